"""Says first what a person should know, for the terminal and the page: orders in force, and what is wrong."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from autoscaler.domain.facts.overrides import BUDGET, BUDGET_PAUSES, POOL_NUMBERS, TEAM_NUMBERS
from autoscaler.domain.report.broken import BrokenPool
from autoscaler.domain.wording import duration


def overrides_in_force(told: dict[str, Any]) -> Iterator[str]:
    """Say what is on hold or overridden, by whom, why, and until when."""
    for order in told.get("holds", []):
        where = next((f"{scope} {order[scope]}" for scope in ("pool", "controller", "label") if scope in order), "the whole fleet")
        end = f"; {BUDGET_PAUSES}; autoscaler resume --budget ends it before" if order["by"] == BUDGET else ""
        until = until_when(order, told["now_at"])
        yield f"{where} is {'frozen' if order['freeze'] else 'on hold'} {until}, by {order['by']}: {order['reason']}{end}"
    for order in (*told.get("numbers", []), *told.get("teams", [])):  # functions of 0.2.0 tell no teams
        whose, names = (f"team {order['team']}", TEAM_NUMBERS) if "team" in order else (order["pool"], POOL_NUMBERS)
        given = ", ".join(f"{name} {order[name]:g}" for name in names if name in order)
        yield f"{whose} has {given} {until_when(order, told['now_at'])}, by {order['by']}: {order['reason']}"


def broken_pools(status: dict[str, Any]) -> list[list[str]]:
    """Say of each broken pool since when, why, what is tried next, and what a person can do."""
    broken = {pool["pool"]: pool["broken"] for pool in status["pools"] if pool.get("broken")}  # a recorded day knows none
    return [list(BrokenPool(**facts).lines()) for facts in broken.values()]


def problems(status: dict[str, Any]) -> Iterator[str]:
    """Say what else is wrong: limits of the month, controllers, our own state, steps, agents, and what people were sent."""
    yield from filter(None, [status["stopped"]])
    yield from (f"{controller}: {problem}" for controller, problem in status["problems"].items())
    yield from (
        f"{controller} shows not a single job: it has none yet, or our account lacks Job/Read there"
        for controller in status["without_jobs"]
    )
    yield from (f"{name} in the state table cannot be read by this version; it counts as alive" for name in status["unread"])
    yield from status["failing"]
    yield from status.get("left", ())  # functions of 0.2.0 tell none
    yield from status.get("told", ())  # functions of 0.2.0 tell none
    yield from filter(None, [status.get("nobody_told")])


def why_paused(pool: dict[str, Any]) -> str:
    """Say why a pool launches nothing; not if its hold or its broken boots are told above."""
    return "" if is_held(pool) or pool.get("broken") else str(pool["paused"])


def is_held(pool: dict[str, Any]) -> bool:
    """Tell whether a person, or the AWS budget, paused it."""
    return bool(pool["paused"].startswith("held:"))


def until_when(order: dict[str, Any], now: float) -> str:
    """Say when an order ends, and in how long."""
    if order["until_at"] is None:
        return "until somebody resumes it"
    return f"until {moment(order['until_at'], now)}, for another {duration(order['until_at'] - now)}"


def moment(at: float, now: float) -> str:
    """Write a time of day, with the day where it is not today's."""
    then, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    return f"{then:%H:%M} UTC" if then.date() == today.date() else f"{then:%a %d %b %H:%M} UTC"
