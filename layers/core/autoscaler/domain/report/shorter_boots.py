"""Estimate what a ready image, or a warm pool, would have saved in each pool in the last days, and say it if it is worth it."""

from collections.abc import Sequence
from statistics import median

from autoscaler.domain.facts.costs import Boots, MonthCosts
from autoscaler.domain.facts.fleet import Fleet, Market, Pool, Share
from autoscaler.domain.facts.instance_stores import has_instance_store
from autoscaler.domain.facts.metering import HOUR_SECONDS, MINIMUM_BILLED_SECONDS
from autoscaler.domain.situation.boot_times import trusted_starts
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration, listed

# A start takes this part of a boot: 13 s against 70 s (Karpenter, issue 3798), 10 to 30 s against 2 to 5 min (github-aws-runners, pull
# request 5204). Assumed of boots from a ready image, too.
_SHORT_SHARE = 1 / 3
# No image boots faster: 23 to 29 s until SSH answers (measured by brevdev/ec2-coldboot-research, 2026), then the agent connects.
_LEAST_BOOT_SECONDS = 40.0
# Less than so much, or than this share of what the pool cost, is not worth a line.
_LEAST_USD, _LEAST_SHARE = 1.0, 0.01
_DAY_HOURS = 24
_LEAST_DAYS = 3  # the first of them may have been a minute; the one after it was a whole day


def told_shorter_boots(situation: Situation, days: Sequence[MonthCosts]) -> tuple[str, ...]:
    """Say it of all pools in one sentence, once the first day is over for a day. ``days``: the costs of the last days, each by itself."""
    pools = {pool.name: pool for pool in situation.pools.values()}  # one pool of several controllers has its boots in common
    span = len(days) - next((place for place, day in enumerate(days) if day.boots), len(days))
    ways = [way for pool in pools.values() if (way := _best(situation.fleet, pool, days))]
    if span < _LEAST_DAYS or not ways:
        return ()
    saved = (
        f"${sum(usd for usd, _, _ in ways):,.0f} of machines and {duration(sum(hours for _, hours, _ in ways) * HOUR_SECONDS)} of waiting"
    )
    by = listed([way for _, _, way in ways])
    return (f"by estimate, shorter boots would have saved {saved} in the last {counted(span, 'day')}: {by} (docs/costs.md#shorter-boots)",)


def ready_image_seconds(boot_seconds: float) -> float:
    """How long a boot from a ready image is taken to last, where a boot lasts so long now: no longer than that."""
    return min(boot_seconds, max(_SHORT_SHARE * boot_seconds, _LEAST_BOOT_SECONDS))


def _best(fleet: Fleet, pool: PoolView, days: Sequence[MonthCosts]) -> tuple[float, float, str] | None:
    """Choose the way that would have saved most in a pool: dollars of machines, hours of waiting; None if none is worth a word."""
    boots = [day.boots.get(pool.name, Boots()) for day in days]
    ways = [(*image_saves(pool, boots), f"a ready image for {pool.name}")]
    if _may_stop(fleet, pool.spec):
        ways.append((*warm_pool_saves(pool, boots), f"a warm pool for {pool.name}"))
    worth = [usd + hours * pool.spec.wait_usd_per_hour for usd, hours, _ in ways]
    spent = sum(day.unused.get(pool.name, 0.0) + sum(one.usd for key, one in day.used.items() if key.pool == pool.name) for day in days)
    least = max(_LEAST_USD, _LEAST_SHARE * spent)
    return ways[worth.index(max(worth))] if max(worth) > least else None


def image_saves(pool: PoolView, boots: Sequence[Boots]) -> tuple[float, float]:
    """Return what shorter boots save: dollars of agents, and hours of jobs that wait for them. ``boots``: of each day."""
    share = 1.0 - ready_image_seconds(pool.boot_seconds) / pool.boot_seconds if pool.boot_seconds else 0.0
    return share * sum(day.usd for day in boots), share * sum(day.wait_hours for day in boots)


def warm_pool_saves(pool: PoolView, boots: Sequence[Boots]) -> tuple[float, float]:
    """Return the dollars and the hours that starts save instead of boots, less disks of as many agents as there were at once each day.

    ``boots``: of each day. That many agents boot once all the same. EC2 bills a minute of each start.
    """
    starts = trusted_starts(pool.memory, pool.name)
    start_seconds = median(starts) if starts else _SHORT_SHARE * pool.boot_seconds
    number, agents = sum(day.number for day in boots), max((day.agents for day in boots), default=0)
    if not number or start_seconds >= pool.boot_seconds:
        return 0.0, 0.0
    again = max(0, number - agents) / number
    usd = sum(day.usd for day in boots) * (1.0 - max(start_seconds, MINIMUM_BILLED_SECONDS) / pool.boot_seconds)
    hours = sum(day.wait_hours for day in boots) * (1.0 - start_seconds / pool.boot_seconds)
    disks = sum(day.agents for day in boots) * _DAY_HOURS * pool.spec.offerings[0].volume_usd_per_hour
    return usd * again - disks, hours * again


def _may_stop(fleet: Fleet, pool: Pool) -> bool:
    """Tell whether a pool that stops no agents could stop all of them between builds."""
    stops = pool.warm_pool is not None or any(hours.warm_pool for hours in pool.schedules)
    cannot = (
        pool.capacity is not None or pool.share is Share.COOPERATIVE or pool.max_builds == 1 or fleet.slot_controllers & {*pool.controllers}
    )
    return not (stops or cannot) and all(o.market is Market.ON_DEMAND and not has_instance_store(o.instance_type) for o in pool.offerings)
