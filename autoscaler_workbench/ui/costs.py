"""What the page says of the month's costs: its dearest jobs."""

from dataclasses import dataclass
from typing import Any

from autoscaler.domain.wording import dollars

_JOBS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One job of the month. ``idle``: its part of what nobody used."""

    job: str
    usd: str
    share: str
    idle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTable:
    """The dearest jobs of a month, and how many there are ``more``. ``problem``: in one line, why they are not known."""

    month: str = ""
    total: str = ""
    rows: tuple[CostRow, ...] = ()
    more: int = 0
    problem: str = ""


def cost_table(told: dict[str, Any]) -> CostTable | None:
    """Describe the costs that were told; None where none are, as of a recorded day."""
    costs = told.get("costs")
    if costs is None:
        return None
    if "problem" in costs:
        return CostTable(problem=costs["problem"])
    rows = tuple(_row(entry, costs["usd"]) for entry in costs["entries"][:_JOBS])
    return CostTable(month=costs["month"], total=dollars(costs["usd"]), rows=rows, more=len(costs["entries"]) - len(rows))


def _row(entry: dict[str, Any], total: float) -> CostRow:
    share = f"{entry['usd'] / total:.0%}" if total else ""
    return CostRow(job=entry["name"], usd=dollars(entry["usd"]), share=share, idle=dollars(entry["idle_usd"]))
