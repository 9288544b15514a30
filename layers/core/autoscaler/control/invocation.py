"""The invocation that a pass runs in."""

from dataclasses import dataclass, field

from autoscaler.domain.memo import Memo


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One look of an invocation: when the invocation must have ended, and whether it may act.

    ``look`` counts the looks of an invocation from 1; ``part`` names the second half of a look that takes two passes.
    """

    request_id: str
    ends_at: float
    look: int = 1
    part: str = ""
    dry_run: bool = False
    by_a_person: bool = False
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)  # of all its looks; nothing outlives the invocation

    @property
    def pass_id(self) -> str:
        """Name the pass: by the request id, and a later look or second half by a suffix."""
        return self.request_id + (f".{self.look}" if self.look > 1 else "") + self.part
