"""The token in an offline reason that says: this node was taken offline by us, and in which class."""

import re
from dataclasses import dataclass
from enum import StrEnum

# What the class of a mark looks like in any version.
_CLASS = re.compile("[a-z]+(-[a-z]+)*")


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
    UNKNOWN = "unknown"  # of another version: whatever it is for, the agent is drained, and ends once it is idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Our token at the start of an offline reason: ``autoscaler:<fleet>:<class>:<pass>``.

    ``written``: the class as it was written, if nobody here knows it.
    """

    fleet: str
    kind: MarkClass
    pass_id: str
    written: str = ""

    @property
    def text(self) -> str:
        """The offline reason to set."""
        return f"autoscaler:{self.fleet}:{self.written or self.kind}:{self.pass_id}"


def read_mark(reason: str, fleet: str) -> Mark | None:
    """Find our mark at the start of an (unescaped) offline reason; None when it is not this fleet's."""
    parts = reason.split(":")
    if len(parts) != 4 or parts[0] != "autoscaler" or parts[1] != fleet:
        return None
    _, _, written, pass_id = parts
    kind = class_of(written)
    if kind is not MarkClass.UNKNOWN:
        return Mark(fleet=fleet, kind=kind, pass_id=pass_id)
    # A person who writes words of their own after our name keeps the node.
    is_a_mark = _CLASS.fullmatch(written) and pass_id and not any(map(str.isspace, pass_id))
    return Mark(fleet=fleet, kind=kind, pass_id=pass_id, written=written) if is_a_mark else None


def class_of(written: str) -> MarkClass:
    """Return the class of a word; `UNKNOWN` for one of another version."""
    return MarkClass(written) if written in set(MarkClass) else MarkClass.UNKNOWN
