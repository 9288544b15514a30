"""Looks at every hour of a week with schedules: where minima exceed what may be, and what minima come to on the average.

One week says it for a pool; several pools may have time zones, whose distance changes in the year: four weeks show winter, summer in both
hemispheres, and the weeks in between in which America's clocks have changed, and Europe's have not.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from operator import itemgetter

from autoscaler.config.prices import cheapest
from autoscaler.config.problems import Problem
from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.pools import WEEK_SECONDS, boundaries, pool_at_its_widest, pool_for_a_week

_WEEKS = tuple(datetime(2027, month, day, tzinfo=UTC).timestamp() for month, day in ((1, 4), (3, 15), (7, 5), (10, 11)))

Figure = Callable[[Pool], float]


@dataclass(frozen=True, slots=True)
class _Worst:
    """Pools as they are where the sum of a figure is the highest."""

    at: float
    week: float
    pools: list[Pool]

    @property
    def when(self) -> str:
        """Write the time by the clocks of a schedule that begins or ends then."""
        schedules = [schedule for pool in self.pools for schedule in pool.schedules]
        zone = next(one.time_zone for one in reversed(schedules) if self.at in boundaries(one, self.week))
        return f"on {datetime.fromtimestamp(self.at, zone):%A at %H:%M} {zone}"


@dataclass(frozen=True, slots=True)
class _Weeks:
    """What each pool is in these weeks, worked out once, and only for a pool that is asked for."""

    _known: dict[tuple[str, float], list[tuple[float, Pool]]] = field(default_factory=dict)

    def worst(self, pools: Collection[Pool], figure: Figure) -> _Worst:
        """Find where the sum of a figure is the highest; of several times the first."""
        return max((self._worst_of(week, list(pools), figure) for week in _WEEKS), key=itemgetter(0))[1]

    def _worst_of(self, week: float, pools: list[Pool], figure: Figure) -> tuple[float, _Worst]:
        changes = [(at, number, pool) for number, one in enumerate(pools) for at, pool in self._changes(one, week)]
        figures = [0.0] * len(pools)
        highest, worst = -inf, _Worst(week, week, pools)
        for (at, number, pool), (following, _, _) in pairwise([*sorted(changes, key=itemgetter(0)), (inf, 0, pools[0])]):
            pools[number], figures[number] = pool, figure(pool)
            # What it comes to is judged once all that change in the same instant have, and each instant of the week once: at its end.
            if week < at < following and (total := sum(figures)) > highest:
                highest, worst = total, _Worst(at, week, pools.copy())
        return highest, worst

    def _changes(self, pool: Pool, week: float) -> list[tuple[float, Pool]]:
        key = pool.name, week
        if key not in self._known:
            self._known[key] = pool_for_a_week(pool, week)
        return self._known[key]


def impossible_hours(fleet: Fleet) -> Iterator[Problem]:
    """Yield the minima that cannot be at some hour of a week since a schedule says so."""
    scheduled = [pool for pool in fleet.pools.values() if pool.schedules]
    weeks = _Weeks()
    for pool in scheduled:
        yield from _in_pool(pool, weeks)
    if scheduled:
        yield from _in_all(fleet, weeks)


def average(pool: Pool, figure: Figure) -> float:
    """Return a figure of a pool on the average over a week."""
    begin = _WEEKS[0]
    changes = pairwise([*pool_for_a_week(pool, begin), (begin + WEEK_SECONDS, pool)])
    return sum((until - at) * figure(there) for (at, there), (until, _) in changes) / WEEK_SECONDS


def _in_pool(pool: Pool, weeks: _Weeks) -> Iterator[Problem]:
    lowered = [schedule.max_agents for schedule in pool.schedules if schedule.max_agents is not None]
    widest, narrowest = pool_at_its_widest(pool), replace(pool, max_agents=min([pool.max_agents, *lowered]))
    for key, words, least, most in _WITHIN_POOL:
        if least(widest) <= most(narrowest) or least(pool) > most(pool):
            continue  # it can always be, or is told of the pool itself
        worst = weeks.worst([pool], lambda one, least=least, most=most: least(one) - most(one))  # type: ignore[misc]
        [there] = worst.pools
        if least(there) > most(there):
            text = f"pools.{pool.name}.schedules: {worst.when} {key} ({least(there)}) exceeds {words} ({most(there)})"
            yield Problem(place=("pools", pool.name, "schedules"), text=text)


def _in_all(fleet: Fleet, weeks: _Weeks) -> Iterator[Problem]:
    pools, limits = list(fleet.pools.values()), fleet.limits
    for key, most, figure, written in (
        ("max_agents", limits.max_agents, _min_agents, "{:,.0f}"),
        ("max_usd_per_hour", limits.max_usd_per_hour, _usd_per_hour, "${:,.2f}"),
    ):
        if sum(figure(pool_at_its_widest(pool)) for pool in pools) <= most or sum(map(figure, pools)) > most:
            continue
        worst = weeks.worst(pools, figure)
        if (highest := sum(map(figure, worst.pools))) > most:
            names = ", ".join(pool.name for pool in worst.pools if pool.min_agents)
            text = f"limits.{key} ({written.format(most)}): {worst.when} the min_agents of {names} come to {written.format(highest)}"
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
