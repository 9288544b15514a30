"""The token in an offline reason that says: this node was taken offline by us, and in which class."""

from dataclasses import dataclass
from enum import StrEnum


class MarkClass(StrEnum):
    """What a mark is for, and so who undoes it.

    Nobody undoes `USED_UP` and `RESERVED`: no further build may begin there; nor `REFUSES`: none would; nor `HANDS_OVER`: others wait
    for its room. `ROTATE` goes
    with the node, or once no other controller waits. Demand undoes `RETIRE`, and `OUTDATED` where no other agent can be launched;
    `MONTH_LIMIT` and `DAY_LIMIT` are lifted with the limit, `OPERATOR`, `QUARANTINE` and `MONITOR` by a person.
    """

    RETIRE = "retire"
    INTERRUPTED = "interrupted"
    OPERATOR = "operator"
    QUARANTINE = "quarantine"
    MONITOR = "monitor"  # in place of the mark of a monitor of Jenkins
    OUTDATED = "outdated"
    MONTH_LIMIT = "month-limit"
    DAY_LIMIT = "day-limit"
    USED_UP = "used-up"
    HANDS_OVER = "hands-over"
    ROTATE = "rotate"
    RESERVED = "reserved"
    REFUSES = "refuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Our token at the start of an offline reason: ``autoscaler:<fleet>:<class>:<pass>``."""

    fleet: str
    kind: MarkClass
    pass_id: str

    @property
    def text(self) -> str:
        """The offline reason to set."""
        return f"autoscaler:{self.fleet}:{self.kind}:{self.pass_id}"


def read_mark(reason: str, fleet: str) -> Mark | None:
    """Find our mark at the start of an (unescaped) offline reason; None when it is not this fleet's."""
    parts = reason.split(":")
    if len(parts) != 4 or parts[0] != "autoscaler" or parts[1] != fleet or parts[2] not in set(MarkClass):
        return None
    return Mark(fleet=fleet, kind=MarkClass(parts[2]), pass_id=parts[3])
