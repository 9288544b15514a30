"""Disks of agents: which have been used for so long, or are so full, that no agent with one of them is kept stopped."""

from collections.abc import Iterable, Mapping

from autoscaler.domain.facts.fleet import Fleet, Share, may_stop_type, node_name
from autoscaler.domain.facts.memory import Learned, Trial
from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.pools import pool_at_its_widest
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.trials import failed_once_more, of_disks, of_stops, open_trial
from autoscaler.domain.wording import counted, duration

# One machine may have been filled by its builds. Where the next ones are short of disk as well, the image is too large for its volume.
_SHORT_PAUSES = (0.0, 1800.0, 3600.0, 7200.0, 14_400.0)


def why_disk_is_done(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent is not kept stopped for the sake of its disk; None where it may be, or its pool keeps no stopped agents."""
    warm, record = agent.pool.warm_pool, agent.record
    if warm is None:
        return None
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


def counts_builds(fleet: Fleet) -> set[str]:
    """Name the pools that allow only so many builds on one agent, or on one disk."""
    return {name for name, pool in fleet.pools.items() if pool.max_builds is not None or pool_at_its_widest(pool).warm_pool}


def nodes_counted(situation: Situation, controller: str) -> set[str]:
    """Name the nodes of such pools on a controller, and those that an agent had there which is lent to another controller now."""
    pools, counted_pools = situation.fleet.pools, counts_builds(situation.fleet)
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
    trials = (open_trial(pool.memory, scope(pool.name)) for scope in (of_stops, of_disks))
    return all(trial is None or pool.now >= trial.until_at for trial in trials)


def note_short_of_disk(known: Mapping[str, Trial], decided: Iterable[object], now: float) -> dict[str, Trial]:
    """Note pools of which an agent is terminated because its disk is nearly full: more and more rarely one is launched to be stopped."""
    trials = dict(known)
    for step in decided:
        if isinstance(step, Terminate) and step.reason is Reason.SHORT_OF_DISK:
            scope = of_disks(step.pool)
            trials[scope] = failed_once_more(trials.get(scope), _SHORT_PAUSES, step.detail, now)
    return trials
