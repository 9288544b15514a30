"""Records that another version of the autoscaler wrote, and this one cannot read: what it can tell of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRecord:
    """A record in a ``state`` that nobody here knows, or in none that can be read: "". Nothing is done to its agent."""

    state: str = ""
    controller: str = ""
    node: str = ""

    @property
    def text(self) -> str:
        """Say why it cannot be read, and whose it is."""
        why = f"its state is {self.state!r}, which this version does not know" if self.state else "this version cannot read it"
        return f"{why}; its node is {self.node} on {self.controller}" if self.node else why
