"""Says first what a person should know, for the terminal and the page: orders in force, and what is wrong."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from autoscaler.domain.facts.orders import BUDGET_PAUSES, POOL_NUMBERS, TEAM_NUMBERS, Hold, Scope
from autoscaler.domain.report.overdue import resume_option
from autoscaler.domain.report.waiting import BrokenPool
from autoscaler.domain.wording import duration

_FACTS_OF_HOLDS = ("since_at", "until_at", "by", "reason", "freeze")


def overrides_in_force(told: dict[str, Any]) -> Iterator[str]:
    """Say what is on hold or overridden, by whom, why, and until when."""
    for order in told.get("holds", []):
        scope = next((scope for scope in (Scope.POOL, Scope.CONTROLLER, Scope.LABEL) if scope in order), Scope.FLEET)
        hold = Hold(scope=scope, name=order.get(scope, ""), **{name: order[name] for name in _FACTS_OF_HOLDS})
        where = f"{scope} {hold.name}" if hold.name else "the whole fleet"
        is_now = f"{where} is {'frozen' if hold.freeze else 'on hold'}"
        since = f"since {moment(hold.since_at, told['now_at'])} " if hold.since_at else ""  # 0: orders that cannot be read
        yield f"{is_now} {_ordered(order, told)}; {since}{_effect(hold)}; to end it now: autoscaler resume {resume_option(hold)}"
    for order in (*told.get("numbers", []), *told.get("teams", [])):  # functions of 0.2.0 tell no teams
        whose, names = (f"team {order['team']}", TEAM_NUMBERS) if "team" in order else (order["pool"], POOL_NUMBERS)
        given = ", ".join(f"{name} {order[name]:g}" for name in names if name in order)
        option = f"--team {order['team']}" if "team" in order else order["pool"]
        yield f"{whose} has {given} {_ordered(order, told)}; to end it now: autoscaler set {option}"


def _ordered(order: dict[str, Any], told: dict[str, Any]) -> str:
    return f"{until_when(order, told['now_at'])}, by {order['by']}: {order['reason']}"


def _effect(hold: Hold) -> str:
    """Say what a hold keeps from being done."""
    if hold.is_budget:
        return BUDGET_PAUSES
    if hold.scope is Scope.LABEL:
        return "jobs that ask for it wait"
    where = "there" if hold.name else "anywhere"
    return f"nothing is launched, drained or repaired {where}" if hold.freeze else f"nothing is launched or drained {where}"


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
    return f"{day_time(at, now)} UTC"


def day_time(at: float, now: float) -> str:
    """Write it without its zone, for lists that name it once."""
    then, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%a %d %b %H:%M}"
