"""What one agent tries before others follow: a pool's next boot, a new version, a new image, a start of what was stopped."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Failing, Memory, Trial
from autoscaler.domain.facts.nodes import why_of_other_kind
from autoscaler.domain.facts.plan import BootFailure, FailedStart, ImageRefused
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record, RecordState, differ, told_follows, told_outdated
from autoscaler.domain.grouping import grouped
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import (
    FAILED_BOOTS_KEPT,
    IMAGE_PAUSES,
    START,
    START_PAUSES,
    TOGETHER_SECONDS,
    TrialOf,
    by_pool,
    failed_once_more,
    open_trial,
    told_boots,
)
from autoscaler.domain.situation.pool_view import STARTS_TAKE_SHARE, PoolView
from autoscaler.domain.situation.situation import Look, Situation
from autoscaler.domain.wording import durations_apart

# Canaries: pools of which only one agent may boot at a time, after failed boots or a new launch template.


def why_one_at_a_time(situation: Situation, pool: str) -> tuple[Reason, str] | None:
    """Say why only one agent may boot for now; None where as many may as are needed."""
    if failed := open_trial(situation.memory, TrialOf.BOOT.scope(pool)):
        return Reason.ONE_TRIAL, f"{told_boots(failed)}; one agent is tried until one connects"
    if late := next(late_agents(situation, pool), None):
        return Reason.ONE_TRIAL, f"{late.record.instance_id} has not connected by its deadline; one agent is tried until one connects"
    if is_canary(situation, pool) and pool not in situation.to_try:
        follows = told_follows(situation.current[pool], situation.memory.pool(pool).proven)
        return Reason.CANARY, f"{follows}; one agent is tried until one connects"
    return None


def late_agents(situation: Situation, pool: str) -> Iterator[Agent]:
    """Find the agents that have not connected by their deadline, and do not count as failed boots yet: that takes a second look.

    Without those that were started: what starts lack says nothing about boots.
    """
    trial = situation.memory.trials.get(TrialOf.BOOT.scope(pool))
    counted = trial.failed if trial else ()
    for agent in (agent for agent in situation.late_launches if agent.pool.name == pool):
        is_new = agent.record.instance_id not in counted and never_connected(agent.record, situation.memory)
        if is_new and not shows_that_it_boots(situation, agent.record):
            yield agent


def never_connected(record: Record, memory: Memory) -> bool:
    """Tell whether an agent never connected. One that was made for a person is offline for builds, and nobody sees it connect."""
    return not memory.has_connected(record.life_id) and (record.reservation is None or bool(record.trouble))


def shows_that_it_boots(situation: Situation, failed: Record) -> bool:
    """Tell whether an agent that was launched together with one that failed, or later, has connected."""
    return any(_shows(situation, agent.record, failed) for agent in situation.agents if agent.pool.name == failed.pool)


def _shows(situation: Situation, record: Record, failed: Record) -> bool:
    if not situation.memory.has_connected(record.life_id) or record.began_at <= failed.began_at - TOGETHER_SECONDS:
        return False
    return not differ(situation.versions.get(record.instance_id, ""), situation.versions.get(failed.instance_id, ""))


def is_canary(situation: Situation, pool: str) -> bool:
    """Tell whether the pool's present version never booted, where another one did."""
    proven, version = situation.memory.pool(pool).proven, situation.current.get(pool)
    return bool(proven) and version is not None and proven != version


def why_outdated(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent differs from what would be launched now; None where it does not, or nobody knows."""
    version, current = situation.version_of(agent), situation.current.get(agent.pool.name)
    if version and current and version != current:
        return Reason.OUTDATED, told_outdated(version, current)
    seconds, most = situation.now - agent.record.launched_at, agent.pool.max_agent_hours
    if most is not None and seconds > most * 3600.0:
        ago, wanted = durations_apart(seconds, most * 3600.0)
        return Reason.MAX_AGENT_HOURS, f"launched {ago} ago, at most {wanted} are wanted (max_agent_hours)"
    return None


def why_relabelled(agent: Agent, fleet: Fleet) -> str | None:
    """Say which labels the node of an agent was made with, if the fleet file gives others now; a static node's are its operator's."""
    made_with, given = frozenset(agent.record.labels), agent.pool.labels | {fleet.ownership_label}
    if agent.node is None or not made_with or agent.record.reservation or made_with == given:
        return None
    return f"its node was made with the labels {_text(made_with, fleet)}, the fleet file gives {_text(given, fleet)}"


def _text(labels: frozenset[str], fleet: Fleet) -> str:
    return " ".join(sorted(labels - {fleet.ownership_label})) or "none"


def why_replaced(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent is to make way for another one: what it was launched from, its age, its node or labels. A host has none of these."""
    if agent.record.is_host:
        return None
    relabelled = why_of_other_kind(situation.fleet, agent.record) or why_relabelled(agent, situation.fleet)
    return why_outdated(situation, agent) or ((Reason.OUTDATED, relabelled) if relabelled else None)


def is_launched_meanwhile(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent is of the version that goes on to be launched while a new image is tried: nothing is wrong with it yet."""
    pool = agent.pool.name
    return pool in situation.to_try and situation.version_of(agent) == situation.launched[pool]


# Canaries of images: one agent tries a new image, again a while after a failed boot; others are launched from the proven one.


_MAY_CONNECT = (RecordState.REQUESTED, RecordState.REGISTERED)


def still_tried(memory: Memory, look: Look, proven: Mapping[str, str]) -> dict[str, Trial]:
    """Forget the trials of images that have booted since, and of those that are not wanted any more. If that is not known, they stand."""
    return {
        TrialOf.IMAGE.scope(pool): canary
        for pool, canary in by_pool(memory, TrialOf.IMAGE).items()
        if pool in look.fleet.pools and look.current.get(pool, canary.version) == canary.version != proven.get(pool)
    }


def note_failed_canaries(
    known: Mapping[str, Trial], failures: Iterable[BootFailure], to_try: Mapping[str, str], now: float
) -> dict[str, Trial]:
    """Note the boots that failed of what is tried."""
    trials = dict(known)
    for failure in failures:
        if is_of_canary(failure, to_try):
            scope = TrialOf.IMAGE.scope(failure.pool)
            trials[scope] = _once_more(trials.get(scope), failure.version, failure.why, now, failure.instance_id)
    return trials


def note_refused_canaries(known: Mapping[str, Trial], refused: Iterable[ImageRefused], now: float) -> dict[str, Trial]:
    """Note the launches of what is tried that EC2 refused."""
    trials = dict(known)
    for launch in refused:
        scope = TrialOf.IMAGE.scope(launch.pool)
        trials[scope] = _once_more(trials.get(scope), launch.version, launch.why, now)
    return trials


def is_of_canary(failure: BootFailure, to_try: Mapping[str, str]) -> bool:
    """Tell whether a boot that failed was of what is tried: then it says nothing of what else is launched."""
    return bool(failure.version) and failure.version == to_try.get(failure.pool)


def to_begin(situation: Situation) -> set[str]:
    """Name the pools in which the next agent that is launched is to try a new image."""
    return {pool for pool in situation.to_try if _is_to_begin(situation, pool)}


def _is_to_begin(situation: Situation, pool: str) -> bool:
    """Tell whether no agent tries it now, and the last one that failed is long enough ago."""
    version, canary = situation.to_try[pool], situation.memory.trials.get(TrialOf.IMAGE.scope(pool))
    if canary is not None and situation.now < canary.until_at:
        return False
    booting = [situation.version_of(agent) for agent in situation.agents if agent.pool.name == pool and _boots(situation, agent)]
    under_way = [*booting, *(intent.version for intent in situation.snapshot.intents if intent.pool == pool and intent.open)]
    # What nobody knows the version of may be it.
    return not {version, ""} & set(under_way)


def _boots(situation: Situation, agent: Agent) -> bool:
    record = agent.record
    is_tried = not situation.memory.has_connected(record.life_id) and record.state in _MAY_CONNECT and not agent.instance_ended
    return is_tried and record.reservation is None  # which is offline for builds from its first minute, and proves nothing


def _once_more(before: Trial | None, version: str, why: str, now: float, instance_id: str = "") -> Trial:
    trial = failed_once_more(before if before and before.version == version else None, IMAGE_PAUSES, why, now)
    return replace(trial, version=version, failed=(*trial.failed, *([instance_id] if instance_id else []))[-FAILED_BOOTS_KEPT:])


# Starts of stopped agents that fail. They count apart from boots: what only a first boot does is missing at a start.
#
# After three failed starts in a row a pool stops no more agents and keeps none stopped; one at a time tries it again, at growing intervals.
# Nor does it stop more than one agent of a template version before one of that version was seen to start.


# So many failed starts in a row are no accident of one machine.
FAILED_STARTS = 3
# A machine that EC2 refused to start so often is terminated.
MACHINE_REFUSALS = 3
# Nor is it asked for again so soon.
ASKED_AGAIN_SECONDS = 300.0
# Nobody waits longer for a start than for so many usual ones; what takes less than this is none of ours to judge.
USUAL_STARTS = 2.0
LEAST_LATE_SECONDS = 120.0
_FAILED_KEPT = 20
_NEVER_CONNECTED = "it did not connect in time"


def refused_start(controller: str, instance_id: str) -> str:
    """Name a machine that EC2 refused to start, in what keeps failing."""
    return f"{START}/{controller}/{instance_id}"


def postponed_start(controller: str, instance_id: str) -> str:
    """Name a machine that EC2 had no room, or we no right, to start, in what keeps failing: nothing is wrong with it."""
    return f"{START}-later/{controller}/{instance_id}"


def refusals_of(memory: Memory, agent: Agent) -> Failing | None:
    """Return how often EC2 refused to start this machine, and why."""
    return memory.controller(agent.record.controller).failing.get(refused_start(agent.record.controller, agent.record.instance_id))


def asked_lately(memory: Memory, agent: Agent, now: float) -> Failing | None:
    """Return why a machine did not start a moment ago: others go first."""
    name = postponed_start(agent.record.controller, agent.record.instance_id)
    failing = refusals_of(memory, agent) or memory.controller(agent.record.controller).failing.get(name)
    return failing if failing and now - failing.tried_at < ASKED_AGAIN_SECONDS else None


def next_starts(memory: Memory, agents: Iterable[Agent], version_of: Mapping[str, str]) -> dict[str, Trial]:
    """Carry on the trials of starts: one that connected closes its pool's, and proves its version. ``version_of``: by instance id."""
    trials = {TrialOf.START.scope(pool): trial for pool, trial in by_pool(memory, TrialOf.START).items()}
    for agent in agents:
        if agent.phase is Phase.READY and agent.record.life and not memory.has_connected(agent.record.life_id):
            scope, version = TrialOf.START.scope(agent.pool.name), version_of.get(agent.record.instance_id, "")
            at = agent.record.began_at
            trials[scope] = Trial(failures=0, since_at=at, failed_at=at, until_at=at, why="", version=version)
    return trials


def failed_starts(failures: Iterable[BootFailure]) -> Iterator[FailedStart]:
    """Name the starts among these failures."""
    starts = (failure for failure in failures if failure.of_start)
    return (FailedStart(pool=start.pool, instance_id=start.instance_id, why=start.why or _NEVER_CONNECTED) for start in starts)


def vain_starts(situation: Situation, failures: Iterable[BootFailure]) -> Iterator[tuple[str, float]]:
    """Say by pool how long jobs waited for each start that failed: until they were served otherwise, and for the boot that served them."""
    for failure in failures:
        pool = situation.pools.get((failure.controller, failure.pool))
        if failure.of_start and pool is not None:
            yield failure.pool, _late_seconds(pool) + pool.boot_seconds


def _late_seconds(pool: PoolView) -> float:
    """After how long a start takes too long. Where failed starts are most of those seen, what was believed before any was seen."""
    usual_seconds = pool.start_seconds if pool.start_seconds < pool.boot_seconds else STARTS_TAKE_SHARE * pool.boot_seconds
    return max(USUAL_STARTS * usual_seconds, LEAST_LATE_SECONDS)


def note_failed_starts(known: Mapping[str, Trial], failures: Collection[FailedStart], now: float) -> dict[str, Trial]:
    """Count the starts that failed, each machine once."""
    trials = {failure.pool: known.get(TrialOf.START.scope(failure.pool)) for failure in failures}
    pools = grouped((failure.pool, failure) for failure in failures if _is_new(failure, trials[failure.pool]))
    return {**known, **{TrialOf.START.scope(pool): _failed(trials[pool], of_pool, now) for pool, of_pool in pools.items()}}


def _is_new(failure: FailedStart, trial: Trial | None) -> bool:
    return failure.of_all or trial is None or failure.instance_id not in trial.failed


def _failed(before: Trial | None, failures: list[FailedStart], now: float) -> Trial:
    trial = failed_once_more(before, START_PAUSES, failures[0].why, now)
    for failure in failures[1:]:
        trial = failed_once_more(trial, START_PAUSES, failure.why, now)
    return replace(trial, failed=(*trial.failed, *(failure.instance_id for failure in failures))[-_FAILED_KEPT:])


def is_tripped(trial: Trial | None) -> bool:
    """Tell whether so many starts failed that a pool stops its agents no more."""
    return trial is not None and trial.failures >= FAILED_STARTS


def most_stopped(memory: Memory, pool: str, now: float) -> float:
    """Say how many agents of a pool may be stopped as far as starts work: one that tries again, or none before its time."""
    trial = memory.trials.get(TrialOf.START.scope(pool))
    if trial is None or not is_tripped(trial):
        return inf
    return 1 if now >= trial.until_at else 0


def is_proven(memory: Memory, pool: str, version: str | None) -> bool:
    """Tell whether an agent of this template version was seen to start again; of a version that nobody knows it cannot be told."""
    trial = memory.trials.get(TrialOf.START.scope(pool))
    return not version or (trial is not None and trial.version == version)


def starts_late(situation: Situation, agent: Agent, pool: PoolView) -> bool:
    """Tell whether an agent that was started takes so much longer than usual that jobs are served otherwise."""
    record = agent.record
    if not agent.phase.is_on_its_way or not record.starts or not record.is_measured:
        return False
    return situation.seen_seconds(record.controller, record.began_at) > _late_seconds(pool)
