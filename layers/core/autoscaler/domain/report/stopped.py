"""Stopped agents for people: how many there are, what their disks cost, for how long they are kept, and why others are not stopped."""

from collections.abc import Iterator
from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Market, never_stopped
from autoscaler.domain.facts.nodes import keeps_static_nodes_from_others
from autoscaler.domain.facts.snapshot import Instance, InstanceState, Record
from autoscaler.domain.launch.purchase import offering_lacks, startable
from autoscaler.domain.report.failed_starts import told_failed_starts
from autoscaler.domain.scale_in.reclaim import why_kept_no_longer
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import of_disks, of_starts, of_stops, open_trial
from autoscaler.domain.situation.canary import asked_lately, is_proven, is_tripped, starts_late, why_outdated
from autoscaler.domain.situation.pool_view import BOOTS_TO_TRUST, STARTS_TAKE_SHARE, PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.warm_pool import (
    count_stopped,
    in_service,
    most_worth_stopping,
    starts_to_time,
    stopped_wanted,
    why_disk_is_done,
)
from autoscaler.domain.wording import counted, dollars, duration, moment

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedAgents:
    """The stopped agents of a pool on one controller. ``longest_seconds``: how long the first of them has been stopped."""

    count: int
    longest_seconds: float
    usd_per_hour: float
    at_least: int
    at_most: int


def stopped_agents(situation: Situation, pool: PoolView) -> StoppedAgents | None:
    """Describe the stopped agents of a pool; None where it keeps none, and has none."""
    records, warm = [agent.record for agent in pool.stopped if situation.snapshot.is_off(agent.record)], pool.spec.warm_pool
    if warm is None and not records:
        return None
    return StoppedAgents(
        count=len(records),
        longest_seconds=max((situation.now - record.changed_at for record in records), default=0.0),
        usd_per_hour=round(sum(record.volume_usd_per_hour for record in records), 4),
        at_least=warm.min_agents if warm else 0,
        at_most=warm.max_agents if warm else 0,
    )


def usd_per_hour_of(situation: Situation, record: Record) -> float:
    """What an agent costs an hour as it is now: one that is stopped, or stops, costs its disk."""
    return record.volume_usd_per_hour if situation.snapshot.costs_disk_only(record) else record.usd_per_hour


def kept_seconds(situation: Situation, agent: Agent) -> float | None:
    """How long a stopped agent is kept yet if nothing needs it; None where the pool keeps so many in any case."""
    pool = situation.pools.get(agent.key)
    if pool is None or pool.spec.warm_pool is None:
        return 0.0
    warm, place = pool.spec.warm_pool, starts_after(pool, agent)
    oldest_at = min(agent.record.changed_at + warm.max_age_seconds, agent.record.launched_at + warm.max_disk_seconds)
    if place < pool.least_stopped:
        return None
    return max(0.0, min(oldest_at, _needed_until(pool, in_service(pool) + place + 1)) - situation.now)


def told_stopped(situation: Situation, agent: Agent) -> str:
    """Say since when an agent is stopped, and for how long it is kept so."""
    return f"stopped {duration(situation.now - agent.record.changed_at)} ago, {told_kept(situation, agent)}"


def told_kept(situation: Situation, agent: Agent) -> str:
    """Say for how long a stopped agent is kept, if nothing needs it."""
    pool = situation.pools.get(agent.key)
    if pool is None:
        return "which no pool of the fleet file keeps any more"
    if why := why_kept_no_longer(situation, pool, agent):
        return f"to be terminated: {why[1]}"
    left = kept_seconds(situation, agent)
    if left is None:
        return f"kept in any case (warm_pool.min_agents {pool.least_stopped})"
    return f"kept for another {duration(left)}" if left else "to be terminated: not needed again within the time that its disk pays for"


def starts_after(pool: PoolView, agent: Agent) -> int:
    """Count the stopped agents that are started before this one, and kept for longer: those that were stopped later."""
    return sum(_order(other) > _order(agent) for other in pool.stopped)


def _order(agent: Agent) -> tuple[float, str]:
    return agent.record.changed_at, agent.record.instance_id


def _needed_until(pool: PoolView, number: int) -> float:
    """Until when the n-th agent is worth having, stopped at last, by what was needed so far."""
    if pool.window is None:
        return pool.now
    keep = pool.keep
    watched_until = pool.window.opened_at + keep.seconds_in_all(1)
    # Whoever needs more agents needs this one, too, and may be worth waiting for even longer.
    numbers = [number, *(1 << bits for bits in range(number.bit_length(), pool.window.most.bit_length()))]
    needed = ((at + keep.seconds_in_all(one), one <= most) for at, most in pool.window.peaks for one in numbers)
    return max([watched_until, *(until for until, counts in needed if counts)])


def why_never_stopped(situation: Situation, agent: Agent) -> str | None:
    """Say why an agent of a pool that stops agents will be terminated instead; None where it may be stopped."""
    record, instance = agent.record, situation.instances.get(agent.record.instance_id)
    if agent.pool.warm_pool is None or agent.phase is Phase.STOPPED or record.reservation:
        return None
    if unable := _why_unable(instance):
        return unable
    if record.instance_id in situation.memory.unstoppable:
        return "EC2 refused to stop it (its stop protection, or its kind of instance)"
    if keeps_static_nodes_from_others(situation.fleet, record):
        return "it has a static node, which others could not use meanwhile"
    why = why_disk_is_done(situation, agent) or why_outdated(situation, agent)
    return why[1] if why else None


def _why_unable(instance: Instance | None) -> str:
    """Say why EC2 does not stop an instance, or its root would not outlive that; "" where it does."""
    if instance is not None and instance.market != Market.ON_DEMAND:
        return "EC2 stops no spot instance of a one-time request"
    if instance is not None and not instance.keeps_disk:
        return "its root is an instance store, which is lost when it stops"
    return ""


def stops_of(situation: Situation, pool: PoolView) -> Iterator[str]:
    """Say how long agents of a pool are kept running, and then stopped, and by which prices."""
    yield told_starts(pool)
    yield from _keeping(pool)
    yield from told_disks(pool)
    wanted, there = stopped_wanted(situation, pool), count_stopped(pool)
    least = pool.least_stopped
    kept = f" (at least {least}: warm_pool.min_agents)" if least else ""
    if unstoppable := open_trial(situation.memory, of_stops(pool.name)):
        yield f"EC2 refused to stop an agent of it; what cannot be stopped is terminated: {unstoppable.why}"
    if trial := open_trial(situation.memory, of_starts(pool.name)):
        yield told_failed_starts(trial)
    elif there and not is_proven(situation.memory, pool.name, situation.current.get(pool.name)):
        yield f"no agent of the template version {situation.current[pool.name]} was seen to start again yet: one is stopped until one has"
    elif there and (starts := starts_to_time(pool)) and (most := most_worth_stopping(pool)) < wanted:
        yield f"no more than {most:g} are stopped until {starts} starts were timed: they may be as slow as boots"
    yield f"{counted(there, 'agent')} stopped or about to be, {wanted} worth having beside those that run{kept}"


def told_disks(pool: PoolView) -> Iterator[str]:
    """Say for how long one disk serves, which types are left out, and whether launches pause since disks are nearly full."""
    warm = pool.spec.warm_pool
    if warm is None:
        return
    age, builds = duration(warm.max_disk_seconds), counted(warm.max_disk_builds, "build")
    yield f"an agent is stopped until its disk is {age} old or has seen {builds}, and while a tenth of it is free"
    yield from _told_volumes(pool)
    if types := never_stopped(pool.spec):
        yield f"never stopped, since instance stores are empty after a stop: {', '.join(types)} (warm_pool.instance_stores)"
    if short := open_trial(pool.memory, of_disks(pool.name)):
        until = f"; none is launched to be stopped until {moment(short.until_at)}" if pool.now < short.until_at else ""
        yield f"{counted(short.failures, 'agent')} in a row terminated for the lack of free disk space{until}"


def _told_volumes(pool: PoolView) -> Iterator[str]:
    """Say which volumes the price counts, and where their sizes are from, if EC2 said them."""
    if (read := pool.memory.volumes.get(pool.name)) and pool.spec.volume_usd_per_gib_month is not None:
        usd = pool.spec.offerings[0].volume_usd_per_hour
        listed = ", ".join(str(volume) for volume in read.volumes) or "volumes that EC2 does not name"
        default = "" if read.is_whole else f", at least {pool.spec.volume_gib or 0.0:g} GiB by default"
        yield f"a stopped agent costs {dollars(usd)} an hour for {listed} ({read.source}{default})"


def told_starts(pool: PoolView) -> str:
    """Say how long a stopped agent takes to start, and how that is known."""
    seen, believed_seconds = len(pool.memory.starts.get(pool.name, ())), STARTS_TAKE_SHARE * pool.boot_seconds
    if seen >= BOOTS_TO_TRUST:
        how = f"half of the last {seen}"
    elif pool.start_seconds > believed_seconds:
        how = f"the quickest of {seen} seen so far"
    else:
        how = f"{STARTS_TAKE_SHARE:g} of a boot; {counted(seen, 'start')} seen so far"
    return f"a start of {pool.name} takes {duration(pool.start_seconds)} ({how})"


def _keeping(pool: PoolView) -> Iterator[str]:
    """Say the two times of the first agent, and what decides them."""
    keep, stopped = pool.keep, pool.keep.stopped
    if stopped is None:
        return
    runs, in_all = keep.seconds(1), keep.seconds_in_all(1)
    boot, start = keep.costs.boot_usd + keep.costs.wait_usd, stopped.start_usd + stopped.wait_usd
    day = f"{dollars(keep.costs.usd_per_second * _DAY_SECONDS)} a day running and {dollars(stopped.usd_per_second * _DAY_SECONDS)} stopped"
    yield f"an agent costs {day}; a start costs {dollars(start)} and a boot {dollars(boot)}, with the waiting for it"
    told = f"after it was last needed, agent 1 of {pool.name} runs for {duration(runs)}{' (idle_seconds)' if keep.fixed_seconds else ''}"
    if in_all <= runs:
        yield f"{told}, and is terminated then: to keep it stopped does not pay"
    else:
        yield f"{told}, is stopped then, and terminated after {duration(in_all)}: the cheapest, by how soon agents were needed again"


def of_stopped(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say of a stopped agent since when it is, for how long it is kept, and what would start it."""
    record, pool = agent.record, situation.pools.get(agent.key)
    again = f", started again {counted(record.life, 'time')}" if record.life else ""
    yield f"launched {duration(situation.now - record.launched_at)} ago{again}; {told_stopped(situation, agent)}"
    if pool is None:
        return
    before = starts_after(pool, agent)
    if agent not in startable(situation, pool):
        yield "it is not started now: " + _why_not_started(situation, agent)
    else:
        others = f", after {counted(before, 'other')} that stopped later" if before else ""
        yield f"it is started when an agent of {pool.name} is needed, before another one is launched{others}"
    yield told_starts(pool)


def _why_not_started(situation: Situation, agent: Agent) -> str:
    if agent.instance is not InstanceState.STOPPED:
        return f"EC2 says that it is {agent.instance or 'not there'}"
    if outdated := why_outdated(situation, agent):
        return outdated[1]
    pool, instance = situation.pools[agent.key], situation.instances.get(agent.record.instance_id)
    lacks = offering_lacks(situation, pool, instance) if instance else None
    return next(_starts_fail(situation, pool, agent), lacks.why if lacks else "EC2 does not show it now")


def _starts_fail(situation: Situation, pool: PoolView, agent: Agent) -> Iterator[str]:
    """Say which starts that fail, or take too long, keep it from being started now."""
    if failing := asked_lately(situation.memory, agent, situation.now):
        yield f"it did not start {duration(situation.now - failing.tried_at)} ago: {failing.why}"
    for other in (other for other in pool.agents if starts_late(situation, other, pool)):
        yield f"{other.record.node or other.record.instance_id} takes longer than usual to start, and agents are launched meanwhile"
    trial = situation.memory.trials.get(of_starts(pool.name))
    if trial is not None and is_tripped(trial):
        yield told_failed_starts(trial)
