"""Machines and agents for people: stopped ones, starts that fail, loans, images, hosts, and why an idle one is still there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from autoscaler.domain.facts.fleet import Host, Lending, Market, WarmPool, never_stopped
from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.nodes import keeps_static_nodes_from_others
from autoscaler.domain.facts.snapshot import InstanceState, Record, parts_of, told_follows
from autoscaler.domain.forecast.keeping import needed_lately
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.placement import needed_by_its_own, why_refused
from autoscaler.domain.launch.purchase import offering_lacks, startable
from autoscaler.domain.report.datum import SECONDS, Datum
from autoscaler.domain.report.told import Seen
from autoscaler.domain.scale_in.surplus import floor_here, least_kept, least_missed, why_it_stays, why_kept_no_longer
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import TrialOf, closed, failing, told_last, trials_of
from autoscaler.domain.situation.canary import MACHINE_REFUSALS, asked_lately, is_proven, refusals_of, starts_late, why_outdated
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
from autoscaler.domain.wording import counted, dollars, duration, moment, once_mended, sentence

# Stopped agents that do not start again: what people are told, and what `why` says.


_RUNBOOK = "operations.md#starts-failed"
# What EC2 says, and what is often missing then.
_CURES = {
    "InternalError": "Often the role may not give EC2 a grant on the key of the volumes (kms:CreateGrant).",
    "UnauthorizedOperation": "The role lacks ec2:StartInstances for it, or a right on the key of its volumes.",
}


def failed_starts_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools that stop no more agents since starts fail, and the machines that EC2 refuses to start."""
    for pool, trial in trials_of(situation.memory, TrialOf.START).items():
        if trial.is_broken and pool in situation.fleet.pools:
            last = f" The last one: {trial.failed[-1]}." if trial.failed else ""
            cure = next((f"\n{cure}" for code, cure in _CURES.items() if code in trial.why), "")
            text = (
                f"{sentence(told_failed_starts(trial))}.{last}{cure}\nAgents are launched instead, and terminated when nothing needs them."
            )
            title, ask = f"stopped agents of {pool} do not start", f"autoscaler why {pool}"
            yield f"starts/{pool}", Seen(title, text, _RUNBOOK, ask, cure=once_mended(pool))
    for agent in situation.agents:
        refusals = refusals_of(situation.memory, agent)
        if refusals is not None and refusals.failures >= MACHINE_REFUSALS:
            name, pool = agent.record.instance_id, agent.pool.name
            text = (
                f"EC2 refused {refusals.failures} times since {moment(refusals.since_at)}: {refusals.why}.\n"
                "It is terminated. Others serve its jobs."
            )
            yield f"starts/{pool}/{name}", Seen(f"{name} of {pool} does not start", text, _RUNBOOK, f"autoscaler why {pool}")


def told_failed_starts(trial: Trial) -> str:
    """Say how often starts failed in a row, why the last one did, and what follows."""
    starts = {0: "starts failed", 1: "the last start failed"}.get(trial.failures, f"{trial.failures} starts in a row failed")
    then = f"; none is kept stopped, and one is tried from {moment(trial.until_at)} on" if trial.is_closed else ""
    said = f" (its console ends with: {trial.said})" if trial.said else ""
    return f"{starts}: {trial.why}{said}{then}"


# Stopped agents for people: how many there are, what their disks cost, for how long they are kept, and why others are not stopped.


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


def usd_per_hour_together(situation: Situation, records: Iterable[Record]) -> float:
    """What several agents cost an hour."""
    return sum(usd_per_hour_of(situation, record) for record in records)


def kept_seconds(situation: Situation, agent: Agent) -> float | None:
    """How long a stopped agent is kept yet if nothing needs it; None where the pool keeps so many in any case."""
    pool = situation.pools.get(agent.key)
    if pool is None or pool.spec.warm_pool is None:
        return 0.0
    warm, place = pool.spec.warm_pool, starts_after(pool, agent)
    oldest_at = min(agent.record.changed_at + warm.max_age_seconds, agent.record.launched_at + warm.max_disk_seconds)
    if place < pool.least_stopped:
        return None
    needed_until = pool.now
    if pool.window is not None:  # it is worth having, stopped at last, by what was needed so far
        keep, number = pool.keep, in_service(pool) + place + 1
        # Whoever needs more agents needs this one, too, and may be worth waiting for even longer.
        numbers = [number, *(1 << bits for bits in range(number.bit_length(), pool.window.most.bit_length()))]
        ends = [at + keep.seconds_in_all(one) for at, most in pool.window.peaks for one in numbers if one <= most]
        needed_until = max([pool.window.opened_at + keep.seconds_in_all(1), *ends])
    return max(0.0, min(oldest_at, needed_until) - situation.now)


def told_stopped(situation: Situation, agent: Agent) -> str:
    """Say since when an agent is stopped, and for how long it is kept so if nothing needs it."""
    pool, ago = situation.pools.get(agent.key), f"stopped {duration(situation.now - agent.record.changed_at)} ago"
    if pool is None:
        return f"{ago}, which no pool of the fleet file keeps any more"
    if why := why_kept_no_longer(situation, pool, agent):
        return f"{ago}, to be terminated: {why[1]}"
    left = kept_seconds(situation, agent)
    if left is None:
        return f"{ago}, kept in any case (warm_pool.min_agents {pool.least_stopped})"
    what_follows = (
        f"kept for another {duration(left)}" if left else "to be terminated: not needed again within the time that its disk pays for"
    )
    return f"{ago}, {what_follows}"


def starts_after(pool: PoolView, agent: Agent) -> int:
    """Count the stopped agents that are started before this one, and kept for longer: those that were stopped later."""
    stopped = agent.record.changed_at, agent.record.instance_id
    return sum((other.record.changed_at, other.record.instance_id) > stopped for other in pool.stopped)


def why_never_stopped(situation: Situation, agent: Agent) -> str | None:
    """Say why an agent of a pool that stops agents will be terminated instead; None where it may be stopped."""
    record, instance = agent.record, situation.instances.get(agent.record.instance_id)
    if agent.pool.warm_pool is None or agent.phase is Phase.STOPPED or record.reservation:
        return None
    if instance is not None and instance.market != Market.ON_DEMAND:
        return "EC2 stops no spot instance of a one-time request"
    if instance is not None and not instance.keeps_disk:
        return "its root is an instance store, which is lost when it stops"
    if situation.memory.agent(record.instance_id).is_unstoppable:
        return "EC2 refused to stop it (its stop protection, or its kind of instance)"
    if keeps_static_nodes_from_others(situation.fleet, record):
        return "it has a static node, which others could not use meanwhile"
    why = why_disk_is_done(situation, agent, agent.pool.warm_pool) or why_outdated(situation, agent)
    return why[1] if why else None


def stops_of(situation: Situation, pool: PoolView, warm: WarmPool) -> Iterator[str]:
    """Say how long agents of a pool are kept running, and then stopped, and by which prices."""
    yield told_starts(pool)
    if (stopped := pool.keep.stopped) is not None:
        keep, runs, in_all = pool.keep, pool.keep.seconds(1), pool.keep.seconds_in_all(1)
        boot, start = keep.costs.boot_usd + keep.costs.wait_usd, stopped.start_usd + stopped.wait_usd
        yield (
            f"an agent costs {dollars(keep.costs.usd_per_second * DAY_SECONDS)} a day running and "
            f"{dollars(stopped.usd_per_second * DAY_SECONDS)} stopped; "
            f"a start costs {dollars(start)} and a boot {dollars(boot)}, with the waiting for it"
        )
        fixed = " (idle_seconds)" if keep.fixed_seconds else ""
        text = f"after it was last needed, agent 1 of {pool.name} runs for {duration(runs)}{fixed}"
        if in_all <= runs:
            yield f"{text}, and is terminated then: to keep it stopped does not pay"
        else:
            yield f"{text}, is stopped then, and terminated after {duration(in_all)}: the cheapest, by how soon agents were needed again"
    yield from _told_disks(pool, warm)
    wanted, there = stopped_wanted(situation, pool), count_stopped(pool)
    least = pool.least_stopped
    kept = f" (at least {least}: warm_pool.min_agents)" if least else ""
    if unstoppable := failing(situation.memory, TrialOf.STOPS.scope(pool.name)):
        yield f"EC2 refused to stop an agent of it; what cannot be stopped is terminated: {unstoppable.why}"
    if trial := failing(situation.memory, TrialOf.START.scope(pool.name)):
        yield told_failed_starts(trial)
    elif there and not is_proven(situation.memory, pool.name, situation.current.get(pool.name)):
        yield f"no agent of the template version {situation.current[pool.name]} was seen to start again yet: one is stopped until one has"
    elif there and (starts := starts_to_time(pool)) and (most := most_worth_stopping(pool)) < wanted:
        yield f"no more than {most:g} are stopped until {starts} starts were timed: they may be as slow as boots"
    yield f"{counted(there, 'agent')} stopped or about to be, {wanted} worth having beside those that run{kept}"


def _told_disks(pool: PoolView, warm: WarmPool) -> Iterator[str]:
    """Say for how long one disk serves, which types are left out, and whether launches pause since disks are nearly full."""
    age, builds = duration(warm.max_disk_seconds), counted(warm.max_disk_builds, "build")
    yield f"an agent is stopped until its disk is {age} old or has seen {builds}, and while a tenth of it is free"
    if (read := pool.memory.pool(pool.name).volumes) and pool.spec.volume_usd_per_gib_month is not None:
        listed = ", ".join(str(volume) for volume in read.volumes) or "volumes that EC2 does not name"
        default = "" if read.is_whole else f", at least {pool.spec.volume_gib or 0.0:g} GiB by default"
        yield f"a stopped agent costs {dollars(pool.spec.offerings[0].volume_usd_per_hour)} an hour for {listed} ({read.source}{default})"
    if types := never_stopped(pool.spec):
        yield f"never stopped, since instance stores are empty after a stop: {', '.join(types)} (warm_pool.instance_stores)"
    if short := failing(pool.memory, TrialOf.DISKS.scope(pool.name)):
        until = f"; none is launched to be stopped until {moment(short.until_at)}" if pool.now < short.until_at else ""
        yield f"{counted(short.failures, 'agent')} in a row terminated for the lack of free disk space{until}"


def told_starts(pool: PoolView) -> str:
    """Say how long a stopped agent takes to start, and how that is known."""
    seen, believed_seconds = len(pool.memory.pool(pool.name).starts), STARTS_TAKE_SHARE * pool.boot_seconds
    if seen >= BOOTS_TO_TRUST:
        how = f"half of the last {seen}"
    elif pool.start_seconds > believed_seconds:
        how = f"the quickest of {seen} seen so far"
    else:
        how = f"{STARTS_TAKE_SHARE:g} of a boot; {counted(seen, 'start')} seen so far"
    return f"a start of {pool.name} takes {duration(pool.start_seconds)} ({how})"


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
    if refused := asked_lately(situation.memory, agent, situation.now):
        yield f"it did not start {duration(situation.now - refused.failed_at)} ago: {refused.why}"
    for other in (other for other in pool.agents if starts_late(situation, other, pool)):
        yield f"{other.record.node or other.record.instance_id} takes longer than usual to start, and agents are launched meanwhile"
    if trial := closed(situation.memory, TrialOf.START.scope(pool.name)):
        yield told_failed_starts(trial)


# Loans for people: which agents are lent to jobs of a more general kind, until when, and why others are not.


_WHEN = {
    Lending.NEVER: "never lent",
    Lending.IDLE: "lent while they are idle and nobody who needs their own kind waits or is foreseen",
    Lending.ALWAYS: "lent while they are idle and nobody who needs their own kind waits",
}


def count_lent(pool: PoolView) -> int:
    """Count its agents that are lent now."""
    return sum(agent.record.is_lent(pool.now) for agent in pool.agents if agent.node)


def told_lent(situation: Situation, agent: Agent) -> str:
    """Say until when an agent is lent, or how many jobs still use it; "" where it is neither."""
    labels = " ".join(agent.record.lent_labels)
    if agent.record.is_lent(situation.now):
        return f"lent to jobs that ask for {labels}, for another {duration(agent.record.lent_until - situation.now)} at most"
    if agent.record.lent_until and (borrowed := agent.borrowed_executors(situation.now)):
        return f"{counted(borrowed, 'job')} began on it while it was lent"
    return ""


def lending_of(situation: Situation, pool: PoolView) -> Iterator[str]:
    """Say when agents of a pool are lent, and whether they are now."""
    if not pool.spec.lent_labels:
        return
    labels = " or ".join(sorted(pool.spec.lent_labels))
    yield f"agents of {pool.name} are {_WHEN[pool.spec.lend]} (lend: {pool.spec.lend}), to jobs that ask for {labels}"
    if pool.spec.lend is Lending.NEVER:
        return
    if refusal := why_refused(situation, pool):
        yield f"none is lent now: {refusal}"
    elif needed := needed_by_its_own(situation, pool):
        yield f"{counted(needed, 'agent')} kept for jobs of its own kind, {count_lent(pool)} lent"
    else:
        yield f"{count_lent(pool)} lent now"


# Images for people and metrics: which runs where, which is launched, which is tried, and how long each takes to boot.
#
# Only of pools whose image a parameter names; what launch templates name is theirs to tell.


def image_of(situation: Situation, agent: Agent) -> str:
    """The image that an agent runs; "" where nobody knows, or no parameter names it."""
    return parts_of(situation.version_of(agent))[1] if agent.pool.image_parameter else ""


def told_images(situation: Situation, pool: PoolView) -> Iterator[str]:
    """Say which images its agents run, which one is launched, and what becomes of a new one."""
    if not pool.spec.image_parameter:
        return
    there = Counter(image_of(situation, agent) or "an unknown image" for agent in pool.agents if not agent.instance_ended)
    run = ", ".join(f"{counted(count, 'agent')} of {image}" for image, count in sorted(there.items()))
    launched = parts_of(pool.version)[1] or "the launch template's image"
    if not situation.current.get(pool.name):
        proven = ", which booted last" if pool.version else ""
        launched += f"{proven}: what {pool.spec.image_parameter} names is not known"
    yield f"launched from {launched}" + (f"; {run}" if run else "")
    if pool.to_try:
        yield f"{told_follows(pool.to_try, pool.version)}: {_next(situation, pool)}"


def told_failed(canary: Trial) -> str:
    """Say how often a new image did not boot, and why the last time, as far as that is known."""
    why = told_last(canary)
    return f"{counted(canary.failures, 'try', 'tries')} of it failed" + (f" ({why})" if why else "")


def boots_of_images(situation: Situation, since: Mapping[str, float]) -> Iterator[Datum]:
    """Tell how long agents took to boot, by pool and image. ``since``: by controller, when it was last looked at; others tell nothing."""
    boots = ((agent, agent.record.registered_at) for agent in situation.agents if agent.record.is_measured and not agent.record.life)
    new = ((agent, at - agent.record.launched_at) for agent, at in boots if at and at > since.get(agent.record.controller, inf))
    for (pool, image), values in grouped(((agent.record.pool, image_of(situation, agent)), took) for agent, took in new).items():
        if image:
            dimensions = (("Fleet", situation.fleet.name), ("Pool", pool), ("Image", image))
            yield Datum(name="ImageBootSeconds", values=tuple(values), unit=SECONDS, dimensions=dimensions)


def _next(situation: Situation, pool: PoolView) -> str:
    """Say who tries a new image, or when one does."""
    canary, now = situation.memory.trials.get(TrialOf.IMAGE.scope(pool.name)), situation.now
    trying = [agent for agent in situation.agents if agent.pool.name == pool.name and agent.phase.boots]
    ids = [agent.record for agent in trying if situation.version_of(agent) == pool.to_try and not agent.instance_ended]
    failed = f"{told_failed(canary)}; " if canary and canary.failures else ""
    if ids:
        return f"{failed}{ids[0].instance_id} tries it, launched {duration(now - ids[0].launched_at)} ago"
    if canary and now < canary.until_at:
        return f"{failed}it is tried again in {duration(canary.until_at - now)}, with the first agent that is launched then"
    return f"{failed}the next agent that is launched tries it"


# Hosts as people see them: whose each is, and which are not connected.


# One that is switched off and on again is back by then.
TOLD_AFTER_SECONDS = 900.0


def hosts_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the hosts that have not been connected for a while."""
    for host, since in hosts_away(situation):
        if situation.now - since >= TOLD_AFTER_SECONDS:
            asks = f"Ask {host.owner}. " if host.owner else ""
            trouble = next((record.trouble for record in situation.snapshot.records if record.machine == host.id and record.trouble), "")
            why = f"When it last asked: {trouble}.\n" if trouble else ""
            text = f"It has not been connected for {duration(situation.now - since)}; jobs that only it can run wait.\n{why}{asks}"
            title, ask = f"host {host.name} is not connected", f"autoscaler why {host.name}"
            yield f"host/{host.name}", Seen(title, text, "operations.md#hosts-offline", ask)


def hosts_away(situation: Situation) -> Iterator[tuple[Host, float]]:
    """Find the hosts that are not connected, and since when."""
    for host in situation.fleet.hosts.values():
        if (since := situation.memory.agent(host.id).away_since) is not None:
            yield host, since


def told_host(hosts: Mapping[str, Host], record: Record) -> str:
    """Say whose a host is; "" for any other machine, and where nobody wrote it down."""
    host = next((one for one in hosts.values() if one.id == record.machine), None)
    return f"of {host.owner}" if host and host.owner else ""


# Why an idle agent is still there: what keeping it costs and spares, by the very values that scaling in uses.


_QUARTER_SECONDS = 900.0


def why_kept(situation: Situation, agent: Agent) -> str | None:
    """Say why an idle agent is kept; None where it is busy, marked or not known to be idle."""
    since = situation.past(agent).idle_since
    if agent.phase is not Phase.READY or not agent.idle or since is None:
        return None
    pool = situation.pools.get(agent.key)
    if pool is None or not (pool.window and pool.window.peaks):
        return None
    idle = f"kept: idle for {duration(situation.now - since)}"
    if stays := why_it_stays(situation, agent):
        return f"{idle}, and {stays}"
    order = [one.record.instance_id for one in least_missed(situation, pool.ready)]
    number = len(order) - order.index(agent.record.instance_id)  # which agent of its pool it is: the first is missed most, and goes last
    return f"{idle}, {_worth(situation, pool, number)}"


def _worth(situation: Situation, pool: PoolView, number: int) -> str:
    """Say what needs an agent, or set the price of keeping it against what a boot costs, as `Keeping` does."""
    keep, costs, window = pool.keep, pool.keep.costs, situation.window_of(pool)
    if number <= floor_here(situation, pool):
        return f"and the pool keeps {counted(pool.spec.min_agents, 'agent')} in any case (min_agents)"
    if number <= window.peaks[-1][1]:
        return "and needed now"
    if number <= least_kept(situation, pool):
        return f"and {situation.forecasts(pool.controller)[pool.name].why}"
    if situation.now - window.opened_at >= keep.seconds(number) and needed_lately(window, keep.seconds, situation.now) < number:
        return "and not needed any more: it goes as soon as nothing else is in the way"
    if keep.fixed_seconds is not None:
        return f"kept for {duration(keep.fixed_seconds)} after it was last needed (idle_seconds)"
    quarter, kept, stopped = costs.usd_per_second * _QUARTER_SECONDS, duration(keep.seconds(number)), keep.stopped
    what, usd, wait_usd, stays = "boot", costs.boot_usd, costs.wait_usd, "is kept"
    if stopped is not None and keep.seconds_in_all(number) > keep.seconds(number):
        what, usd, wait_usd, stays = "start", stopped.start_usd, stopped.wait_usd, "is kept running"
    against = f"a {what} of {dollars(usd + wait_usd)} ({dollars(wait_usd)} of it waiting)"
    price = f"worth {dollars(quarter)} a quarter of an hour against {against}"
    return f"{price}; agent {number} of {pool.name} {stays} for {kept} after it was last needed"
