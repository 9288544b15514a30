"""Scenes of limits, and of what people order."""

from dataclasses import replace
from zoneinfo import ZoneInfo

from autoscaler.domain.facts.fleet import AtMonthLimit, CapacityReservation, Ceilings, PoolSchedule, Team
from autoscaler.domain.facts.memory import (
    Spending,
)
from autoscaler.domain.facts.orders import Hold, Overrides, PoolOverride, Scope, TeamOverride
from seams.days import QUICK, WARM, a_day_with
from support.builders import a_pool, an_offering
from support.remembered import with_tables
from support.reserving import reserve

UTC = ZoneInfo("UTC")


def limits_on_every_level() -> None:
    """Teams, priorities, schedules, reserved capacity, and money and hours that run out."""
    now = 1_800_000_000.0
    hours = PoolSchedule(
        days=frozenset(range(7)),
        from_minute=8 * 60 + 4,
        to_minute=8 * 60 + 30,
        time_zone=UTC,
        min_agents=1,
        max_agents=2,
        warm_executors=1,
        warm_pool=WARM,
    )
    block = CapacityReservation(id="cr-0123456789abcdef0", count=2, usd_per_hour=55.0, block=True, starts_at=now, ends_at=now + 5400.0)
    free = an_offering("p5.48xlarge", usd_per_hour=0.0, volume_usd_per_hour=0.02)
    pools = (
        a_pool("cpu", executors=2, schedules=(hours,), ceilings=Ceilings(max_hours_per_day=1.0), priority=1, **QUICK),
        a_pool("gpu", ceilings=Ceilings(max_usd_per_month=40.0), **QUICK),
        a_pool("block", capacity=block, offerings=(free,), max_agents=2, **QUICK),
    )
    teams = {
        "red": Team(name="red", pools=frozenset({"cpu"}), weight=2.0, ceilings=Ceilings(max_agents=3)),
        "blue": Team(name="blue", pools=frozenset({"gpu"}), weight=1.0, ceilings=Ceilings(max_usd_per_hour=20.0)),
    }
    day = a_day_with(*pools, limits={"max_agents": 4, "max_usd_per_month": 60.0, "at_month_limit": AtMonthLimit.STOP}, teams=teams)
    day.fleet.fleet = replace(day.fleet.fleet, prices_listed_on={"cpu": "2026-01-01", "gpu": "2026-02-01"})
    day.minutes(2).queue(4, "cpu", seconds=1500.0)
    day.queue(3, "gpu", seconds=1500.0)
    day.minutes(9)
    spent = replace(day.fleet.state.memory.month, usd=45.0, by_pool={"cpu": 3.0, "gpu": 30.0})
    lately = (Spending(since_at=day.world.timeline.now - 600.0, by_pool={"cpu": 1.0, "gpu": 9.0}),)
    day.fleet.state.memory = with_tables(day.fleet.state.memory, month=spent, lately=lately)
    day.minutes(4)
    day.queue(2, "cpu", seconds=600.0)
    day.queue(2, "gpu", seconds=600.0)
    day.queue(1, "block", seconds=600.0)
    day.minutes(4)
    day.fleet.state.memory = replace(day.fleet.state.memory, month=replace(day.fleet.state.memory.month, usd=59.9))
    day.minutes(14)


def orders_of_people() -> None:
    """Holds on each kind of scope, other numbers for a pool and a team, a reservation."""
    now = 1_800_000_000.0
    teams = {"red": Team(name="red", pools=frozenset({"cpu", "gpu"}), weight=1.0, ceilings=Ceilings(max_agents=6))}
    day = a_day_with(*(a_pool(name, executors=1, **QUICK) for name in ("cpu", "gpu", "tpu")), teams=teams)
    told = {"by": "ada", "reason": "the release", "since_at": now, "until_at": now + 3600.0}
    numbers = {"min_agents": 1, "max_agents": 2, "warm_executors": 1}
    limits = {"max_agents": 3, "max_launches_per_hour": 3, "max_usd_per_hour": 9.0, "max_usd_per_month": 40.0}
    day.fleet.state.overrides = Overrides(
        holds=(
            Hold(scope=Scope.POOL, name="tpu", freeze=False, **told),
            Hold(scope=Scope.LABEL, name="held", freeze=False, **told),
            Hold(scope=Scope.POOL, name="gpu", freeze=True, **told | {"since_at": now + 600.0}),
        ),
        numbers=(PoolOverride(pool="cpu", **told | numbers),),
        teams=(TeamOverride(team="red", **told | limits),),
    )
    day.minutes(2).queue(5, "cpu", seconds=900.0)
    day.queue(2, "gpu", seconds=300.0)
    day.queue(1, "tpu", seconds=300.0)
    day.queue(1, "held", seconds=300.0)
    day.minutes(8)
    reserve(day, "cpu", hours=0.4)
    day.minutes(30)
