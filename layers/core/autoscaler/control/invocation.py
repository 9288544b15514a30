"""The invocation that a pass runs in."""

from dataclasses import dataclass, field

from autoscaler.domain.memo import Memo


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """An invocation: when it must have ended, and whether it may act.

    ``by``: the function, or the person who asks; ``part`` names the second half of a look that takes two passes.
    """

    request_id: str
    ends_at: float
    by: str = "autoscaler"
    part: str = ""
    dry_run: bool = False
    by_a_person: bool = False
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)  # nothing outlives the invocation

    @property
    def pass_id(self) -> str:
        """Name the pass: by the request id, and a second half by a suffix."""
        return self.request_id + self.part
