"""List what jobs cost in a month, grouped as people ask."""

from dataclasses import dataclass
from enum import StrEnum

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import CostKey, MonthCosts, Used
from autoscaler.domain.report.job_costs import OTHERS, RESERVED, folder_of, spread_unused

_NOBODY = "(no job)"


class By(StrEnum):
    """What costs are grouped by."""

    JOB = "job"
    FOLDER = "folder"
    POOL = "pool"
    LABEL = "label"
    TEAM = "team"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEntry:
    """What a group costs. ``idle_usd``: its part of boots, idle and stopped agents; ``hours``: of executors."""

    name: str
    controller: str  # of a job or a folder; else ""
    usd: float
    builds_usd: float
    idle_usd: float
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostList:
    """The costs of a month, or of some days: then ``month`` is from which to which.

    ``metered_usd``: what the limit of the month counted; ``prices_listed_on``: the days of the list prices now; ``days``: how many were
    asked for, 0 if a month was, and how many of them have costs, but for what is not added to today yet.
    """

    month: str
    by: By
    entries: tuple[CostEntry, ...]
    usd: float
    metered_usd: float
    prices_listed_on: tuple[str, ...] = ()
    days: int = 0
    days_with_costs: int = 0
    volumes_usd: float = 0.0  # of what was metered, by estimate


def list_costs(month: MonthCosts, fleet: Fleet, by: By) -> CostList:
    """Group the costs of a month, the dearest first."""
    idle = spread_unused(month)
    groups: dict[tuple[str, str], tuple[Used, float]] = {}
    for key in dict.fromkeys([*month.used, *idle]):
        used, idle_usd = groups.get(group := _group(key, fleet, by), (Used(), 0.0))
        groups[group] = used.plus(month.used.get(key, Used())), idle_usd + idle.get(key, 0.0)
    entries = [
        CostEntry(name=name, controller=controller, usd=used.usd + idle_usd, builds_usd=used.usd, idle_usd=idle_usd, hours=used.hours)
        for (name, controller), (used, idle_usd) in groups.items()
    ]
    return CostList(
        month=month.name,
        by=by,
        entries=tuple(sorted(entries, key=lambda entry: (-entry.usd, entry.name, entry.controller))),
        usd=sum(entry.usd for entry in entries),
        metered_usd=month.metered_usd,
        prices_listed_on=tuple(sorted({*fleet.prices_listed_on.values()})),
    )


def _group(key: CostKey, fleet: Fleet, by: By) -> tuple[str, str]:
    """Name the group of a row, and its controller where it belongs to one."""
    match by:
        case By.JOB:
            return _job(key.job), key.controller
        case By.FOLDER:
            return _folder(key.job), key.controller
        case By.POOL:
            return key.pool, ""
        case By.LABEL:
            return _labels(key.pool, fleet), ""
        case By.TEAM:
            return _team(key.pool, fleet), ""
        case By.CONTROLLER:
            return key.controller or _NOBODY, ""


def _job(job: str) -> str:
    if job.startswith(RESERVED):
        person = job.removeprefix(RESERVED)
        return f"(reserved for {'others' if person == OTHERS else person})"
    return {"": _NOBODY, OTHERS: "(small jobs)"}.get(job, job)


def _folder(job: str) -> str:
    if job.startswith(RESERVED):
        return "(reservations)"
    return _job(job) if job in {"", OTHERS} else folder_of(job) or "(no folder)"


def _labels(pool: str, fleet: Fleet) -> str:
    """All labels of a pool together: a job's dollars can be counted once only."""
    known = fleet.pools.get(pool)
    return " ".join(sorted(known.labels)) if known else f"(pool {pool}, which left the fleet file)"


def _team(pool: str, fleet: Fleet) -> str:
    return next((team.name for team in fleet.teams.values() if pool in team.pools), "(no team)")
