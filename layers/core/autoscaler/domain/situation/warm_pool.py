"""The warm pool: which agents may be stopped, whose disks forbid it, and how many stopped ones there are and are worth having."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

from autoscaler.domain.facts.fleet import Market, Share, WarmPool, may_stop_type, node_name
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.nodes import MarkClass, keeps_static_nodes_from_others
from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.pools import pool_at_its_widest
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler.domain.forecast.keeping import needed_lately
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import Outcome, TrialOf, failing
from autoscaler.domain.situation.canary import is_launched_meanwhile, is_proven, most_stopped, why_outdated
from autoscaler.domain.situation.pool_view import BOOTS_TO_TRUST, STARTS_TAKE_SHARE, STARTS_TO_DOUBT, PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration

# Disks of agents: which have been used for so long, or are so full, that no agent with one of them is kept stopped.


# One machine may have been filled by its builds. Where the next ones are short of disk as well, the image is too large for its volume.
_SHORT_PAUSES = (0.0, 1800.0, 3600.0, 7200.0, 14_400.0)


def why_disk_is_done(situation: Situation, agent: Agent, warm: WarmPool) -> tuple[Reason, str] | None:
    """Say why an agent is not kept stopped for the sake of its disk; None where it may be. ``warm``: its pool's."""
    record = agent.record
    if why := why_type_is_left_out(situation, agent):
        return Reason.INSTANCE_STORE, why
    if record.instance_id in short_of_disk(situation):
        return Reason.SHORT_OF_DISK, "its agent reports less than a tenth of its disk free"
    age = situation.now - record.launched_at
    if age >= warm.max_disk_seconds:
        at_most = duration(warm.max_disk_seconds)
        return Reason.DISK_USED_UP, f"its disk is {duration(age)} old, at most {at_most} are wanted (warm_pool.max_disk_age_hours)"
    builds = builds_had(situation, agent)
    if builds >= warm.max_disk_builds:
        at_most = counted(warm.max_disk_builds, "build")
        return (
            Reason.DISK_USED_UP,
            f"its disk has seen {counted(builds, 'build')}, at most {at_most} are wanted (warm_pool.max_disk_builds)",
        )
    return None


def why_type_is_left_out(situation: Situation, agent: Agent) -> str:
    """Say that its type has disks which do not outlive a stop; "" where it has none, or its pool stops it all the same."""
    instance = situation.instances.get(agent.record.instance_id)
    instance_type = instance.instance_type if instance and instance.instance_type else agent.record.instance_type
    if may_stop_type(agent.pool, instance_type):
        return ""
    return f"{instance_type} has instance stores, which are empty after a stop (warm_pool.instance_stores)"


def builds_had(situation: Situation, agent: Agent) -> int:
    """Count the builds that an agent has had in all its lives, as far as looks saw them."""
    if agent.record.node is None:
        return 0
    learned = situation.snapshot.learned
    histories = [*learned.values()] if agent.pool.share is Share.ROTATE else [learned.get(agent.record.controller, Learned())]
    running = {key for history in histories for key in history.running}
    unnoted = sum(build.key not in running for build in agent.node.builds) if agent.node else 0
    return sum(history.builds.get(agent.record.node, 0) for history in histories) + unnoted


def nodes_counted(situation: Situation, controller: str) -> set[str]:
    """Name the nodes on a controller on which, or on whose disks, only so many builds may be, those of agents lent away included."""
    pools = situation.fleet.pools
    counted_pools = {name for name, pool in pools.items() if pool.max_builds is not None or pool_at_its_widest(pool).warm_pool}
    records = [record for record in situation.snapshot.records if record.pool in counted_pools]
    here = {record.node for record in records if record.controller == controller and record.node}
    return here | {node_name(record.pool, record.machine) for record in records if pools[record.pool].share is Share.ROTATE}


def short_of_disk(situation: Situation) -> frozenset[str]:
    """Name the instances whose last report said so."""
    return frozenset(instance_id for learned in situation.snapshot.learned.values() for instance_id in learned.short_of_disk)


def next_short_of_disk(
    before: frozenset[str], records: Iterable[Record], controller: str, reports: Mapping[str, Telemetry]
) -> frozenset[str]:
    """Note which agents of a controller are short of disk by their last report. A report that is gone said what it said."""
    here = [record for record in records if record.controller == controller]
    return frozenset(record.instance_id for record in here if _is_short(reports.get(record.machine), before=record.instance_id in before))


def _is_short(report: Telemetry | None, *, before: bool) -> bool:
    return before if report is None else report.is_short_of_disk


def may_fill(pool: PoolView) -> bool:
    """Tell whether agents may be launched to be stopped: not if EC2 did not let us stop one lately, nor if their disks are full by then."""
    trials = (failing(pool.memory, kind.scope(pool.name)) for kind in (TrialOf.STOPS, TrialOf.DISKS))
    return all(trial is None or pool.now >= trial.until_at for trial in trials)


def ends_short_of_disk(decided: Iterable[object]) -> Iterator[Outcome]:
    """Name pools of which an agent is terminated because its disk is nearly full: more and more rarely one is launched to be stopped."""
    for step in decided:
        if isinstance(step, Terminate) and step.reason is Reason.SHORT_OF_DISK:
            yield Outcome(scope=TrialOf.DISKS.scope(step.pool), pauses=_SHORT_PAUSES, why=step.detail)


# Stopped agents: how many there are, and how many are worth having.


# Marks of what is drained since nothing needs it, or since it may not run today.
_NOT_NEEDED = (MarkClass.RETIRE, MarkClass.DAY_LIMIT)
_STOPPED_SOON = (Phase.STOPPED, Phase.STOPPING)


def may_be_stopped(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent can be stopped, and its operator lets us."""
    record, instance = agent.record, situation.instances.get(agent.record.instance_id)
    if instance is None or agent.pool.warm_pool is None or situation.past(agent).is_unstoppable:
        return False
    # EC2 stops no spot instance of ours, and a root that does not outlive it is lost.
    is_able = instance.keeps_disk and instance.market == Market.ON_DEMAND
    is_surplus = record.reservation is None and (agent.mark is None or agent.mark.kind in _NOT_NEEDED)
    # A static node is its operator's, for one of their few agents: a stopped one would keep it from the others.
    is_ours = not keeps_static_nodes_from_others(situation.fleet, record)
    is_wanted = is_launched_meanwhile(situation, agent) or not why_outdated(situation, agent)
    is_fit = why_disk_is_done(situation, agent, agent.pool.warm_pool) is None
    return is_able and is_surplus and is_ours and situation.spent_by(agent.pool.name) is None and is_wanted and is_fit


def count_stopped(pool: PoolView) -> int:
    """Count its agents that are stopped, or are about to be."""
    return sum(agent.phase in _STOPPED_SOON and not agent.instance_ended for agent in pool.agents)


def stopped_wanted(situation: Situation, pool: PoolView) -> int:
    """Count the stopped agents that are worth having beside those that run, within what its operator allows on all controllers.

    Where starts failed, one is worth having to try whether they work again.
    """
    warm, window = pool.spec.warm_pool, situation.memory.needs(pool.controller, pool.name).window
    if warm is None:
        return 0
    needed = needed_lately(window, pool.keep.seconds_in_all, situation.now) if window else 0
    most = most_stopped(situation.memory, pool.name, situation.now)
    worth = max(needed - in_service(pool), pool.least_stopped, int(most < inf))
    return int(min(worth, warm.max_agents, most))


def least_stopped(situation: Situation, pool: PoolView) -> int:
    """Count the stopped agents that its operator wants, as far as starts are known to work."""
    return int(min(pool.least_stopped, most_to_stop(situation, pool.name)))


def starts_to_time(pool: PoolView) -> int | None:
    """Count the starts to be timed before a pool stops as many agents as may be needed again; None once enough were.

    If starts are no quicker than boots, the disks of many would cost money for nothing. If even the quickest of the first few took longer
    than was believed, that is likely, and more are timed before many are stopped.
    """
    timed = len(pool.memory.pool(pool.name).starts)
    is_slow = timed >= STARTS_TO_DOUBT and pool.start_seconds > STARTS_TAKE_SHARE * pool.boot_seconds
    needed = BOOTS_TO_TRUST if is_slow else STARTS_TO_DOUBT
    return needed if timed < needed else None


def most_worth_stopping(pool: PoolView) -> float:
    """Say how many agents a pool may stop at once because they may be needed again: not many before enough starts were timed."""
    starts = starts_to_time(pool)
    return inf if starts is None else max(starts, pool.least_stopped)


def is_start_to_prove(situation: Situation, pool: PoolView) -> bool:
    """Tell whether its operator wants more stopped agents than one, and it is not known that such a one starts again, nor is it tried.

    An agent of an older template version would say nothing of the present one.
    """
    current = situation.current.get(pool.name)
    works = is_proven(situation.memory, pool.name, current) and most_stopped(situation.memory, pool.name, situation.now) > 1
    if pool.least_stopped <= 1 or works:
        return False
    if not any(not current or situation.version_of(agent) == current for agent in pool.stopped):
        return False
    return not any(agent.record.life and agent.phase is not Phase.STOPPED for agent in pool.agents)


def most_to_stop(situation: Situation, pool: str) -> float:
    """Say how many agents may be stopped at once, all controllers together: one of this template version until one has started again.

    Those of older versions stay beside it until this one has proved itself.
    """
    current = situation.current.get(pool)
    most = most_stopped(situation.memory, pool, situation.now)
    if is_proven(situation.memory, pool, current):
        return most
    stopped = (agent for agent in situation.agents if agent.pool.name == pool and agent.phase is Phase.STOPPED)
    return min(most, 1 + sum(situation.version_of(agent) != current for agent in stopped))


def stopped_in_time(situation: Situation, pool: PoolView) -> int:
    """Count the agents that are stopped, and those that will be once nothing needs them: all that run, but for those that always do.

    Launches that were not answered yet count as agents.
    """
    # Once a second look shows them idle.
    about_to_stop = (agent for agent in pool.agents if agent.phase.is_out_of_use and not agent.instance_ended)
    stopped = count_stopped(pool) + sum(may_be_stopped(situation, agent) for agent in about_to_stop)
    coming = sum(agents for name, _, agents in situation.expected(pool.controller) if name == pool.name)
    return stopped + max(0, in_service(pool) + coming - pool.spec.min_agents)


def in_service(pool: PoolView) -> int:
    """Count its agents that take builds, or will."""
    return sum(agent.phase.is_in_service and not agent.instance_ended for agent in pool.agents)
