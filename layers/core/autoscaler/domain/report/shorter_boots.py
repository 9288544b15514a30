"""Estimate what a ready image, or a warm pool, would have saved in each pool in the last days, and say it if it is worth it."""

from collections.abc import Sequence
from statistics import median

from autoscaler.domain.facts.costs import Boots, MonthCosts
from autoscaler.domain.facts.fleet import Fleet, Market, Pool, Share
from autoscaler.domain.facts.instance_stores import has_instance_store
from autoscaler.domain.facts.metering import MINIMUM_BILLED_SECONDS
from autoscaler.domain.situation.boot_times import trusted_starts
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration

# A start takes this part of a boot: 13 s against 70 s (Karpenter, issue 3798), 10 to 30 s against 2 to 5 min (github-aws-runners, pull
# request 5204). Assumed of boots from a ready image, too.
_SHORT_SHARE = 1 / 3
# No image boots faster: 23 to 29 s until SSH answers (measured by brevdev/ec2-coldboot-research, 2026), then the agent connects.
_LEAST_BOOT_SECONDS = 40.0
# Less than so much, or than this share of what the pool cost, is not worth a line.
_LEAST_USD, _LEAST_SHARE = 1.0, 0.01
_DAY_HOURS = 24


def told_shorter_boots(situation: Situation, days: Sequence[MonthCosts]) -> tuple[str, ...]:
    """Say it in one sentence for each pool. ``days``: the costs of the last days, each by itself."""
    pools = {pool.name: pool for pool in situation.pools.values()}  # one pool of several controllers has its boots in common
    return tuple(line for pool in pools.values() if (line := _told(situation.fleet, pool, days)))


def ready_image_seconds(boot_seconds: float) -> float:
    """How long a boot from a ready image is taken to last, where a boot lasts so long now: no longer than that."""
    return min(boot_seconds, max(_SHORT_SHARE * boot_seconds, _LEAST_BOOT_SECONDS))


def _told(fleet: Fleet, pool: PoolView, days: Sequence[MonthCosts]) -> str:
    boots = [day.boots.get(pool.name, Boots()) for day in days]
    least = max(_LEAST_USD, _LEAST_SHARE * sum(_usd(day, pool.name) for day in days))
    image_seconds = ready_image_seconds(pool.boot_seconds)
    ways = [(f"a ready image that boots in {duration(image_seconds)} (docs/images.md)", image_usd(pool, boots))]
    if _may_stop(fleet, pool.spec):
        ways.append(("a warm pool (docs/warm-pool.md)", warm_pool_usd(pool, boots)))
    worth = [(way, usd) for way, usd in ways if usd > least]
    if not worth:
        return ""
    took = f"its agents boot in {duration(pool.boot_seconds)}"
    (first, usd), others = worth[0], "".join(f", {way} about ${usd:,.0f}" for way, usd in worth[1:])
    span = f"in the last {counted(len(days), 'day')}"
    return f"pool {pool.name}: {took}; by estimate, {first} would have saved about ${usd:,.0f} {span}{others}"


def _usd(day: MonthCosts, pool: str) -> float:
    return day.unused.get(pool, 0.0) + sum(used.usd for key, used in day.used.items() if key.pool == pool)


def image_usd(pool: PoolView, boots: Sequence[Boots]) -> float:
    """Return what shorter boots save: of the agents, and of the jobs that wait for them. ``boots``: of each day."""
    share = 1.0 - ready_image_seconds(pool.boot_seconds) / pool.boot_seconds if pool.boot_seconds else 0.0
    return share * sum(day.usd + day.wait_hours * pool.spec.wait_usd_per_hour for day in boots)


def warm_pool_usd(pool: PoolView, boots: Sequence[Boots]) -> float:
    """Return what starts save instead of boots, less the disks of as many agents as there were at once on each day.

    ``boots``: of each day. That many agents boot once all the same. EC2 bills a minute of each start.
    """
    starts = trusted_starts(pool.memory, pool.name)
    start_seconds = median(starts) if starts else _SHORT_SHARE * pool.boot_seconds
    number, agents = sum(day.number for day in boots), max((day.agents for day in boots), default=0)
    if not number or start_seconds >= pool.boot_seconds:
        return 0.0
    usd = sum(day.usd for day in boots) * (1.0 - max(start_seconds, MINIMUM_BILLED_SECONDS) / pool.boot_seconds)
    waits = sum(day.wait_hours for day in boots) * (1.0 - start_seconds / pool.boot_seconds) * pool.spec.wait_usd_per_hour
    disks = sum(day.agents for day in boots) * _DAY_HOURS * pool.spec.offerings[0].volume_usd_per_hour
    return (usd + waits) * max(0, number - agents) / number - disks


def _may_stop(fleet: Fleet, pool: Pool) -> bool:
    """Tell whether a pool that stops no agents could stop all of them between builds."""
    stops = pool.warm_pool is not None or any(hours.warm_pool for hours in pool.schedules)
    cannot = (
        pool.capacity is not None or pool.share is Share.COOPERATIVE or pool.max_builds == 1 or fleet.slot_controllers & {*pool.controllers}
    )
    return not (stops or cannot) and all(o.market is Market.ON_DEMAND and not has_instance_store(o.instance_type) for o in pool.offerings)
