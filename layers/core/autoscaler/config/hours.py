"""Looks at every hour of a week with schedules: where minima exceed what may be, and what minima come to on the average.

One week says it for a pool; several pools may have time zones, whose distance changes in the year: four weeks show winter, summer in both
hemispheres, and the weeks in between in which America's clocks have changed, and Europe's have not.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from operator import itemgetter

from autoscaler.config.prices import cheapest
from autoscaler.config.problems import Problem
from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.pool_schedules import boundaries, pool_at, pool_at_its_widest

_WEEKS = tuple(datetime(2027, month, day, tzinfo=UTC).timestamp() for month, day in ((1, 4), (3, 15), (7, 5), (10, 11)))
_WEEK_SECONDS = 7 * 86_400.0

Figure = Callable[[Pool], float]


def impossible_hours(fleet: Fleet) -> Iterator[Problem]:
    """Yield the minima that cannot be at some hour of a week since a schedule says so."""
    scheduled = [pool for pool in fleet.pools.values() if pool.schedules]
    for pool in scheduled:
        yield from _in_pool(pool)
    if scheduled:
        yield from _in_all(fleet)


def average(pool: Pool, figure: Figure) -> float:
    """Return a figure of a pool on the average over a week."""
    begin = _WEEKS[0]
    cuts = {at for schedule in pool.schedules for at in boundaries(schedule, begin) if begin < at < begin + _WEEK_SECONDS}
    instants = sorted({begin, *cuts, begin + _WEEK_SECONDS})
    return sum((until - at) * figure(pool_at(pool, at)) for at, until in pairwise(instants)) / _WEEK_SECONDS


def _in_pool(pool: Pool) -> Iterator[Problem]:
    lowered = [schedule.max_agents for schedule in pool.schedules if schedule.max_agents is not None]
    widest, narrowest = pool_at_its_widest(pool), replace(pool, max_agents=min([pool.max_agents, *lowered]))
    for key, words, least, most in _WITHIN_POOL:
        if least(widest) <= most(narrowest) or least(pool) > most(pool):
            continue  # it can always be, or is told of the pool itself
        [there], when = _worst([pool], lambda one, least=least, most=most: least(one) - most(one))  # type: ignore[misc]
        if least(there) > most(there):
            text = f"pools.{pool.name}.schedules: {when} {key} ({least(there)}) exceeds {words} ({most(there)})"
            yield Problem(place=("pools", pool.name, "schedules"), text=text)


def _in_all(fleet: Fleet) -> Iterator[Problem]:
    pools, limits = list(fleet.pools.values()), fleet.limits
    for key, most, figure, written in (
        ("max_agents", limits.max_agents, _min_agents, "{:,.0f}"),
        ("max_usd_per_hour", limits.max_usd_per_hour, _usd_per_hour, "${:,.2f}"),
    ):
        if sum(figure(pool_at_its_widest(pool)) for pool in pools) <= most or sum(map(figure, pools)) > most:
            continue
        then, when = _worst(pools, figure)
        if (worst := sum(map(figure, then))) > most:
            names = ", ".join(pool.name for pool in then if pool.min_agents)
            text = f"limits.{key} ({written.format(most)}): {when} the min_agents of {names} come to {written.format(worst)}"
            yield Problem(place=("limits", key), text=text)


def _min_agents(pool: Pool) -> float:
    return pool.min_agents


def _usd_per_hour(pool: Pool) -> float:
    return pool.min_agents * cheapest(pool.offerings)


# The key, what it may not exceed in words, and both of them.
_WITHIN_POOL: tuple[tuple[str, str, Figure, Figure], ...] = (
    ("min_agents", "max_agents", _min_agents, lambda pool: pool.max_agents),
    ("warm_executors", "max_agents x executors", lambda pool: pool.warm_executors, lambda pool: pool.max_agents * pool.executors),
)


def _worst(pools: Collection[Pool], figure: Figure) -> tuple[list[Pool], str]:
    """Return the pools as they are where the sum of a figure is the highest, and when that is; of several times the first."""
    worst: tuple[float, list[Pool], str] | None = None
    for at, zone in _instants(pools):
        then = [pool_at(pool, at) for pool in pools]
        if worst is None or sum(map(figure, then)) > worst[0]:
            worst = sum(map(figure, then)), then, f"on {datetime.fromtimestamp(at, zone):%A at %H:%M} {zone}"
    return (worst[1], worst[2]) if worst else (list(pools), "")


def _instants(pools: Collection[Pool]) -> list[tuple[float, tzinfo]]:
    """Return when anything changes in these weeks, each once, by the clocks of which time zone."""
    schedules = dict.fromkeys(schedule for pool in pools for schedule in pool.schedules)
    zones = {at: schedule.time_zone for week in _WEEKS for schedule in schedules for at in boundaries(schedule, week)}
    return sorted(zones.items(), key=itemgetter(0))
