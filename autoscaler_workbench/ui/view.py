"""What the page says of an answer: tiles, bars and lines, ready to be written as HTML."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from autoscaler.domain.report.limits import told_entry
from autoscaler.domain.report.listing import Figures
from autoscaler.domain.wording import counted, dollars, duration, listed
from autoscaler_workbench.ui.trouble import why_paused

HOT, BOOTING, DRAINING, IDLE, STOPPED, TROUBLE = "busy", "booting", "draining", "idle", "stopped", "trouble"
RESERVED = "reserved"
_COLOURS = {"ending": DRAINING, "set aside": TROUBLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One agent. ``short``: its name without its pool's; ``state``: of which colour, ``kind``: in a word; ``text``: all of it.

    ``about``: what it builds, else what is unusual about it.
    """

    name: str
    short: str
    about: str
    state: str
    kind: str
    load: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """One pool, with its queue and its agents. ``agents``: without those ``off``, of which ``disks`` says what they cost an hour.

    ``used``: how many executors are busy, and what they cost an hour.
    ``notes``: which images run there, and which agents are short of memory or disk.
    """

    name: str
    waiting: int
    longest: str
    paused: str
    notes: tuple[str, ...]
    agents: int
    used: str
    off: int
    disks: str
    tiles: tuple[Tile, ...]
    most: int
    schedules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How much of a limit is used. ``percent``: at most 100; ``level``: ok, high or full."""

    label: str
    text: str
    percent: float
    level: str


def pool_rows(told: dict[str, Any]) -> list[PoolRow]:
    """Describe the pools that have anything: jobs, agents, or a reason why they launch nothing."""
    pools = told["status"]["pools"]
    controllers = {pool["controller"] for pool in pools}
    schedules: dict[str, list[str]] = {}
    for entry in told.get("schedules", []):  # none before 0.3.0, and none in a recorded day
        schedules.setdefault(entry["pool"], []).append(told_entry(entry, told["now_at"], zone_here))
    several = len(controllers) > 1
    rows = [_pool_row(pool, told["agents"], schedules.get(pool["pool"], ()), with_controller=several) for pool in pools]
    return [row for row in rows if row.waiting or row.tiles or row.paused]


def _pool_row(pool: dict[str, Any], agents: Iterable[dict[str, Any]], schedules: Iterable[str], *, with_controller: bool) -> PoolRow:
    mine = [agent for agent in agents if (agent["controller"], agent["pool"]) == (pool["controller"], pool["pool"])]
    off = [agent for agent in mine if agent["word"] == STOPPED]
    on = [agent for agent in mine if agent["word"] != STOPPED]
    disks_usd = sum(agent["usd_per_hour"] for agent in off)
    return PoolRow(
        name=f"{pool['controller']}/{pool['pool']}" if with_controller else pool["pool"],
        waiting=pool["starved"],
        longest=duration(pool["longest_wait_seconds"]) if pool["longest_wait_seconds"] else "",
        paused=why_paused(pool),
        notes=(*pool.get("images", ()), *pool.get("short", ())),  # none before 0.3.0, and none in a recorded day
        agents=len(on),
        used=_used(on),
        off=len(off),
        disks=f"{'disk' if len(off) == 1 else 'disks'} {dollars(disks_usd)} an hour" if disks_usd else "",
        tiles=tuple(_tile(agent) for agent in mine),
        most=pool["max_agents"],
        schedules=tuple(schedules),
    )


def _used(agents: list[dict[str, Any]]) -> str:
    if not agents:
        return ""
    busy, executors, usd = (sum(agent[key] for agent in agents) for key in ("busy", "executors", "usd_per_hour"))
    return f"{busy} of {counted(executors, 'executor')} busy, {dollars(usd)} an hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """What waits of one job on one controller: stages of a run, or builds. ``longest``: of the first of them; ``brief``: a few words.

    ``detail``: what becomes of the first of them, and how much more there is to say.
    """

    job: str
    controller: str
    label: str
    count: int
    what: str
    longest: str
    brief: str
    detail: str


def queue_rows(queue: Iterable[dict[str, Any]]) -> list[QueueRow]:
    """Put the items of one job together; they come longest first, and so do the rows."""
    by_job: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for item in queue:
        by_job.setdefault((item.get("controller", ""), item["job"]), []).append(item)
    return [_queue_row(controller, job, items) for (controller, job), items in by_job.items()]


def _queue_row(controller: str, job: str, items: list[dict[str, Any]]) -> QueueRow:
    first, labels, briefs, details = (
        max(items, key=lambda item: float(item["waiting_seconds"])),
        *(list(dict.fromkeys(item.get(key, "") for item in items)) for key in ("label", "brief", "detail")),
    )
    more = f" ({counted(len(details) - 1, 'other answer')} for the rest)" if len(details) > 1 else ""
    return QueueRow(
        job=job,
        controller=controller,
        label=listed(labels),
        count=len(items),
        what="stage" if first.get("of_pipeline") else "build",
        longest=duration(first["waiting_seconds"]),
        brief=listed(briefs, 1),
        detail=f"{first['detail']}{more}",
    )


def meters(status: dict[str, Any]) -> list[Meter]:
    """Show how much of each limit of the fleet is used."""
    return [
        _meter("agents", status["agents"], status["max_agents"], str),
        _meter("dollars an hour", status["reserved_usd_per_hour"], status["max_usd_per_hour"], dollars),
        _meter("dollars this month", status["usd_in_the_month"], status["max_usd_per_month"], dollars),
        _meter("launches in the hour", status["launches_in_the_hour"], status["max_launches_per_hour"], str),
        *_meters_of_its_own(status.get("limits", ())),
    ]


def _meters_of_its_own(limits: Iterable[dict[str, Any]]) -> Iterator[Meter]:
    """Show how much of the dollars of teams and pools is used."""
    for one in limits:
        if one["max_usd_per_hour"] is not None:
            yield _meter(f"{one['whose']}: dollars an hour", one["reserved_usd_per_hour"], one["max_usd_per_hour"], dollars)
        if one["max_usd_per_month"] is not None:
            yield _meter(f"{one['whose']}: dollars this month", one["usd_in_the_month"], one["max_usd_per_month"], dollars)


def zone_here(at: float) -> tzinfo | None:
    """Return the time zone of this machine at an instant."""
    return datetime.fromtimestamp(at, UTC).astimezone().tzinfo


def newest(events: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return the last events, newest first."""
    return sorted(events, key=lambda event: -float(event["at"]))[:most]


def _tile(agent: dict[str, Any]) -> Tile:
    state = RESERVED if agent["state"] == RESERVED else _COLOURS.get(agent["word"], agent["word"])
    builds = ", ".join(agent["jobs"]) or agent["word"]
    parts = (
        agent["node"],
        agent["instance_id"],
        agent["instance_type"],
        builds,
        f"launched {duration(agent['age_seconds'])} ago",
        agent["note"],
        Figures(**agent["telemetry"]).text() if agent.get("telemetry") else "",
    )
    name = agent["node"] or agent["instance_id"]
    return Tile(
        name=name,
        short=name.removeprefix(f"{agent['pool']}-"),
        about=", ".join(job.rpartition("/")[2] for job in agent["jobs"]) or agent["note"],
        state=state,
        kind=agent["state"] if state == TROUBLE else state,
        load="" if state == STOPPED else f"{agent['busy']} of {agent['executors']}",
        text="\n".join(part for part in parts if part),
    )


def _meter(label: str, used: float, most: float, written: Callable[[float], str]) -> Meter:
    percent = min(100.0, 100.0 * used / most) if most else 100.0
    level = "full" if percent >= 100.0 else "high" if percent >= 80.0 else "ok"
    return Meter(label=label, text=f"{written(used)} of {written(most)}", percent=percent, level=level)
