"""What one agent tries before others follow: a pool's boot, a new version or image, a start, a controller whose monitors mark agents."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Memory, MonitorMark, Trial
from autoscaler.domain.facts.nodes import why_of_other_kind
from autoscaler.domain.facts.plan import BootFailure
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import OFF, Record, RecordState, differ, told_follows, told_outdated
from autoscaler.domain.grouping import grouped
from autoscaler.domain.situation.agents import (
    AT_ONCE,
    LATE,
    MARKED_SECONDS,
    PROVEN_SECONDS,
    Agent,
    Phase,
    has_settled,
    is_doubtful,
)
from autoscaler.domain.situation.bets import (
    PLACE_REMEMBERED_SECONDS,
    REMEMBERED_SECONDS,
    START,
    Outcome,
    TrialOf,
    at_once,
    boots_counted,
    closed,
    failing,
    places_of,
    step_kept_seconds,
    step_trial,
    steps_done,
    told_boots,
    trials_of,
)
from autoscaler.domain.situation.pool_view import STARTS_TAKE_SHARE, PoolView, launched_and_to_try
from autoscaler.domain.situation.situation import Look, Situation
from autoscaler.domain.wording import durations_apart

# Canaries: pools of which only one agent may boot at a time, after failed boots or a new launch template.


# What one boot shows, those that were launched so shortly before it show again.
_TOGETHER_SECONDS = 60.0
_WENT_AWAY = f"it went away {AT_ONCE}"


def few_at_once(situation: Situation, pool: str) -> tuple[float, Reason, str] | None:
    """Say how many agents may boot at once for now, and why; None where as many may as are needed."""
    if failed := closed(situation.memory, TrialOf.BOOT.scope(pool)):
        return max(1.0, failed.width(situation.now)), Reason.ONE_TRIAL, f"{told_boots(failed)}; {at_once(failed, 'one connects')}"
    if is_canary(situation, pool) and pool not in situation.to_try:
        follows = told_follows(situation.current[pool], situation.memory.pool(pool).proven)
        return 1.0, Reason.CANARY, f"{follows}; one agent is tried until one connects"
    return None


def is_to_be_counted(situation: Situation, agent: Agent) -> bool:
    """Tell whether a boot is late, and the second look that counts it is yet to come: nothing is launched in its place before.

    Else forty machines that fail together would be followed by forty others, before anybody knows that they have failed.
    """
    is_boot = agent.record.is_instance and not (agent.record.life or agent.instance_ended)
    return is_boot and never_connected(agent.record, situation.memory) and not has_counted(situation, agent)


def has_counted(situation: Situation, agent: Agent) -> bool:
    """Tell whether a boot is known to have failed: by its own look, or since it is late and others that were launched with it failed."""
    failed = failing(situation.memory, TrialOf.BOOT.scope(agent.pool.name))
    is_of_round = failed is not None and agent.phase in LATE and agent.record.began_at < failed.failed_at
    return is_of_round or agent.record.instance_id in boots_counted(situation.memory)


def never_connected(record: Record, memory: Memory) -> bool:
    """Tell whether an agent never connected. One that was made for a person is offline for builds, and nobody sees it connect."""
    return not memory.has_connected(record.life_id) and (record.reservation is None or bool(record.trouble))


def shows_that_it_boots(situation: Situation, failed: Record) -> bool:
    """Tell whether an agent that was launched together with one that failed, or later, has connected."""
    return any(_shows(situation, agent.record, failed) for agent in situation.agents if agent.pool.name == failed.pool)


def _shows(situation: Situation, record: Record, failed: Record) -> bool:
    if not situation.memory.has_connected(record.life_id) or record.began_at <= failed.began_at - _TOGETHER_SECONDS:
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


def still_tried(trials: Mapping[str, Trial], look: Look, proven: Mapping[str, str]) -> dict[str, Trial]:
    """Forget what EC2 refused long ago, controllers that have gone, and boots of what is wanted no more or, as a new image, boots by now.

    If it is not known what is wanted, they stand.
    """
    wanted = {TrialOf.BOOT: launched_and_to_try(look.fleet, look.current, proven)[0], TrialOf.IMAGE: look.current}
    steps_over = {key for view in look.snapshot.controllers.values() for key in steps_done(view)}
    kept = dict[str, Trial]()
    for scope, trial in trials.items():
        kind, _, name = scope.partition("/")
        if kind in wanted:
            is_over = name not in look.fleet.pools or differ(trial.version, wanted[TrialOf(kind)].get(name, ""))
            is_over |= kind == TrialOf.IMAGE and trial.version == proven.get(name)
        elif kind in {TrialOf.CONNECT, TrialOf.MARKED}:
            is_over = name not in look.snapshot.controllers
        elif kind == TrialOf.STEP:
            is_over = name in steps_over or look.now - trial.failed_at >= step_kept_seconds(name, trial)
        elif kind == TrialOf.PLACE:
            is_over = look.now - trial.failed_at >= PLACE_REMEMBERED_SECONDS
        else:
            is_over = kind != TrialOf.START and look.now - trial.until_at >= REMEMBERED_SECONDS
        if not is_over:
            kept[scope] = trial
    return kept


def outcomes_of_boots(situation: Situation, failures: Iterable[BootFailure]) -> Iterator[Outcome]:
    """Say what failed: starts, boots of a new image that is tried, boots of what a pool launches.

    What has another version than is launched says nothing of that, nor does a machine beside which others connect.
    """
    for failure in failures:
        of_one = Outcome(scope="", at=failure.launched_at, why=failure.why, name=failure.instance_id)
        launched = situation.launched.get(failure.pool, "")
        if failure.of_start:
            yield replace(of_one, scope=TrialOf.START.scope(failure.pool), why=failure.why or _NEVER_CONNECTED)
        elif is_of_canary(failure, situation.to_try):
            yield replace(of_one, scope=TrialOf.IMAGE.scope(failure.pool), version=failure.version)
        else:
            yield from (replace(of_one, scope=place) for place in failure.places)
            counts = not (failure.beside or differ(failure.version, launched))
            yield replace(of_one, scope=TrialOf.BOOT.scope(failure.pool), version=launched, counts=counts)


def boots_seen(look: Look, memory: Memory, launched: Mapping[str, str]) -> Iterator[Outcome]:
    """Say which boots and starts were won: their agents take builds for the first time. What goes away again at once has lost its boot."""
    for agent in look.agents:
        is_news = (agent.phase is Phase.READY and memory.trials) or agent.phase is Phase.CONNECTING
        version = "" if agent.record.life else look.version_of(agent)
        if is_news and not differ(version, launched.get(agent.pool.name, "")):
            yield from _of_boot(look, memory, agent)


def _of_boot(look: Look, memory: Memory, agent: Agent) -> Iterator[Outcome]:
    record, kind = agent.record, TrialOf.START if agent.record.life else TrialOf.BOOT
    one = Outcome(scope=kind.scope(agent.pool.name), at=record.began_at, name=record.instance_id)
    trial = memory.trials.get(one.scope)
    if _went_away(look, memory, agent):
        yield replace(one, why=_WENT_AWAY)
    elif agent.phase is Phase.READY and trial and _is_up(memory, agent, trial, look.now):
        yield replace(one, won=True)
    if agent.phase is Phase.READY and not (record.life or memory.has_connected(record.life_id)):
        instances = {instance.id: instance for instance in look.snapshot.instances}
        yield from (replace(one, scope=place, won=True) for place in places_of(record, look.fleet, instances) if place in memory.trials)


def _is_up(memory: Memory, agent: Agent, trial: Trial, now: float) -> bool:
    """Tell whether an agent has just become one: it is connected or, where others went away again or were marked, it has stayed."""
    record = agent.record
    if AT_ONCE not in trial.why:
        return not memory.has_connected(record.life_id)
    is_new = record.instance_id not in trial.outcomes and record.began_at >= trial.since_at
    return is_new and has_settled(memory.agent(record.instance_id), record, now)


def _went_away(look: Look, memory: Memory, agent: Agent) -> bool:
    """Tell whether an agent was there in the last look, and has gone before it had settled.

    If its controller restarted, or EC2 shows that somebody stopped or ended the machine, it did not go by itself.
    """
    record, view = agent.record, look.snapshot.controllers.get(agent.record.controller)
    life, was_there = memory.sessions.get(record.controller), memory.agent(record.instance_id).ready_since is not None
    is_same = view is not None and life is not None and view.session == life.session
    is_away = agent.phase is Phase.CONNECTING and not agent.instance_ended and agent.instance not in OFF
    return is_away and was_there and is_same and memory.has_connected(record.life_id)


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


# Starts of stopped agents that fail. They count apart from boots: what only a first boot does is missing at a start.
#
# Once more of a pool's starts fail than work, it stops no more agents and keeps none stopped; one tries it again, at growing intervals.
# Nor does it stop more than one agent of a template version before one of that version was seen to start.


# A machine that EC2 refused to start so often is terminated.
MACHINE_REFUSALS = 3
# Nor is it asked for again so soon.
ASKED_AGAIN_SECONDS = 300.0
# Nobody waits longer for a start than for so many usual ones; what takes less than this is none of ours to judge.
_NEVER_CONNECTED = "it did not connect in time"
USUAL_STARTS = 2.0
LEAST_LATE_SECONDS = 120.0


def refused_start(controller: str, instance_id: str) -> str:
    """Name a machine that EC2 refused to start, in what keeps failing."""
    return f"{START}/{controller}/{instance_id}"


def postponed_start(controller: str, instance_id: str) -> str:
    """Name a machine that EC2 had no room, or we no right, to start, in what keeps failing: nothing is wrong with it."""
    return f"{START}-later/{controller}/{instance_id}"


def refusals_of(memory: Memory, agent: Agent) -> Trial | None:
    """Return how often EC2 refused to start this machine, and why."""
    return step_trial(memory, refused_start(agent.record.controller, agent.record.instance_id))


def asked_lately(memory: Memory, agent: Agent, now: float) -> Trial | None:
    """Return why a machine did not start a moment ago: others go first."""
    name = postponed_start(agent.record.controller, agent.record.instance_id)
    refused = refusals_of(memory, agent) or step_trial(memory, name)
    return refused if refused and now - refused.failed_at < ASKED_AGAIN_SECONDS else None


def vain_starts(situation: Situation, failures: Iterable[BootFailure]) -> dict[str, float]:
    """Say by pool how long jobs waited for a start that failed: until they were served otherwise, and for the boot that served them.

    Starts that were asked for before the last such loss was known say nothing more: eight that fail together are one.
    """
    lost = {pool: trial.failed_at for pool, trial in trials_of(situation.memory, TrialOf.START).items()}
    starts = [failure for failure in failures if failure.of_start and failure.launched_at >= lost.get(failure.pool, 0.0)]
    views = {failure.pool: situation.pools.get((failure.controller, failure.pool)) for failure in starts}
    return {name: _late_seconds(pool) + pool.boot_seconds for name, pool in views.items() if pool}


def _late_seconds(pool: PoolView) -> float:
    """After how long a start takes too long. Where failed starts are most of those seen, what was believed before any was seen."""
    usual_seconds = pool.start_seconds if pool.start_seconds < pool.boot_seconds else STARTS_TAKE_SHARE * pool.boot_seconds
    return max(USUAL_STARTS * usual_seconds, LEAST_LATE_SECONDS)


def most_stopped(memory: Memory, pool: str, now: float) -> float:
    """Say how many agents of a pool may be stopped as far as starts work: as many as try it again, none before its time."""
    trial = closed(memory, TrialOf.START.scope(pool))
    return trial.width(now) if trial else inf


def is_proven(memory: Memory, pool: str, version: str | None) -> bool:
    """Tell whether an agent of this template version was seen to start again; of a version that nobody knows it cannot be told."""
    return not version or memory.pool(pool).started == version


def starts_late(situation: Situation, agent: Agent, pool: PoolView) -> bool:
    """Tell whether an agent that was started takes so much longer than usual that jobs are served otherwise."""
    record = agent.record
    if not agent.phase.is_on_its_way or not record.starts or not record.is_measured:
        return False
    return situation.seen_seconds(record.controller, record.began_at) > _late_seconds(pool)


# Marks that agents share: if monitors take most agents of a controller offline within minutes, the cause is a clock, a plugin, an image.
#
# The next agents would be marked, too: one is tried now and then, until monitors leave one alone.


# So many agents are no coincidence, if they are more than half of those that are connected.
MOST_AT_LEAST = 3
# If no agent was tried for so long, and none is marked, the next agents show whether it is over.
_MARKS_FORGOTTEN_SECONDS = 86_400.0
_CONNECTED = (Phase.READY, Phase.MARKED)


def marked_together(look: Look, memory: Memory, marks: Mapping[str, MonitorMark]) -> Iterator[Outcome]:
    """Say of which controllers monitors mark most agents, where they no longer do, and where an agent was tried since.

    An agent that is tried counts as lost until it has stayed online. Nothing changes for a controller that was not read.
    """
    for controller, view in look.snapshot.controllers.items():
        trial = memory.trials.get(TrialOf.MARKED.scope(controller))
        if view.complete and (marks or trial):
            agents = [agent for agent in look.agents if agent.record.controller == controller]
            yield from _of_marks(controller, trial, marks, agents, look)


def without_shared(marks: Mapping[str, MonitorMark], agents: Iterable[Agent], trials: Mapping[str, Trial]) -> dict[str, MonitorMark]:
    """Never count an agent as a failed boot that was marked together with most others, not even once the others are back."""
    shared = {scope for scope, trial in trials.items() if trial.is_failing}
    together = {agent.record.instance_id for agent in agents if TrialOf.MARKED.scope(agent.record.controller) in shared}
    return {name: replace(mark, at_once=mark.at_once and name not in together) for name, mark in marks.items()}


def _of_marks(controller: str, trial: Trial | None, marks: Mapping[str, MonitorMark], agents: list[Agent], look: Look) -> Iterator[Outcome]:
    outcome, connected = Outcome(scope=TrialOf.MARKED.scope(controller)), [agent for agent in agents if agent.phase in _CONNECTED]
    marked = [agent for agent in connected if agent.phase is Phase.MARKED]
    if trial is None:
        yield from _begun(outcome, [marks[agent.record.instance_id] for agent in marked], len(connected), look.now)
        return
    tried_at = max(_launched(controller, agents, look), default=0.0)
    if _is_over(trial, marked, connected, look.now):
        yield replace(outcome, won=True)
    elif marked or tried_at > trial.failed_at:
        share = f"{len(marked)} of {len(connected)}" if marked else trial.said
        yield replace(outcome, at=tried_at, why=trial.why, said=share)


def _begun(outcome: Outcome, marks: list[MonitorMark], connected: int, now: float) -> Iterator[Outcome]:
    """Say that most of so many agents were marked within minutes."""
    fresh = [mark for mark in marks if now - mark.since_at <= MARKED_SECONDS]
    if len(fresh) < MOST_AT_LEAST or 2 * len(fresh) <= connected:
        return
    yield replace(outcome, why=fresh[-1].words, said=f"{len(fresh)} of {connected}")


def _is_over(trial: Trial, marked: list[Agent], connected: list[Agent], now: float) -> bool:
    """Tell whether monitors leave the agents alone again: most of them, or one that has connected since."""
    if not marked and now - trial.failed_at > _MARKS_FORGOTTEN_SECONDS:
        return True
    ready_at = [agent.record.registered_at for agent in connected if agent.phase is Phase.READY]
    proven = [at for at in ready_at if at is not None and now - at >= PROVEN_SECONDS]
    return bool(proven) and (2 * len(marked) <= len(connected) or max(proven) > trial.since_at)


def _launched(controller: str, agents: Iterable[Agent], look: Look) -> Iterator[float]:
    """Say when agents were launched or started on a controller, but for pools that monitors leave alone."""
    pools = grouped((agent.pool.name, agent) for agent in agents)
    yield from (agent.record.began_at for mine in pools.values() if is_doubtful(mine) for agent in mine)
    intents = (intent for intent in look.snapshot.intents if intent.controller == controller)
    yield from (intent.created_at for intent in intents if is_doubtful(pools.get(intent.pool, ())))
