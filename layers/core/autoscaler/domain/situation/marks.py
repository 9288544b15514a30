"""Marks of monitors: which agents Jenkins takes offline by itself, since when, and whether the agents are to blame.

Monitors of Jenkins (disk, temporary space, response time, clock) and of plugins mark a node some seconds after it has connected, and
once an hour. A marked agent is replaced. But if most agents of a controller are marked within minutes, they share a cause: a clock, a
plugin, an image. Their replacements would be marked, too, so that one is tried now and then.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.facts.memory import Memory, MonitorMark, MostMarked
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.plan import BootFailure
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.situation.agents import Agent, Phase

# Monitors look once an hour, and bring back what has recovered. Builds are served by a new agent long before.
MARKED_SECONDS = 600.0
# So many agents are no coincidence, if they are more than half of those that are connected.
MOST_AT_LEAST = 3
# The first look of all monitors is over by then: hudson.node_monitors.NodeMonitorUpdater, 5 s after a connection.
PROVEN_SECONDS = 180.0
TRY_EVERY_SECONDS = HOUR_SECONDS
# If no agent was seen marked for so long, the next agents show whether it is over.
_FORGOTTEN_SECONDS = 24 * HOUR_SECONDS
# A monitor's words are kept up to this length.
WORDS_CHARACTERS = 200
_CONNECTED = (Phase.READY, Phase.MARKED)
_KEPT = (Phase.UNSEEN, Phase.CONDEMNED)


def next_marked(memory: Memory, agents: Collection[Agent], snapshot: Snapshot) -> tuple[dict[str, MonitorMark], dict[str, MostMarked]]:
    """Carry on which agents are marked by monitors, and of which controllers most are.

    An agent that was marked together with most others never counts as a failed boot, not even once the others are back.
    """
    marks = _next_marks(memory.marks, agents, snapshot.taken_at)
    most_marked = next_most_marked(memory.most_marked, marks, agents, snapshot)
    together = {agent.record.instance_id for agent in agents if agent.record.controller in most_marked}
    return {name: replace(mark, at_once=mark.at_once and name not in together) for name, mark in marks.items()}, most_marked


def _next_marks(marks_before: Mapping[str, MonitorMark], agents: Iterable[Agent], now: float) -> dict[str, MonitorMark]:
    """Carry on since when each agent is marked by a monitor, also after our own mark has taken its place."""
    marks: dict[str, MonitorMark] = {}
    for agent in agents:
        name, before = agent.record.instance_id, marks_before.get(agent.record.instance_id)
        if agent.phase is Phase.MARKED:
            marks[name] = before or MonitorMark(since_at=now, words=words_of(agent), at_once=_is_at_once(agent, now))
        elif before is not None and (agent.is_of_monitor or agent.phase in _KEPT):
            marks[name] = before
    return marks


def words_of(agent: Agent) -> str:
    """Return what a monitor says of an agent, in its own words."""
    words = " ".join(agent.node.reason.split()) if agent.node else ""
    return words[:WORDS_CHARACTERS] or "(it gives no reason)"


def _is_at_once(agent: Agent, now: float) -> bool:
    return agent.record.registered_at is not None and now - agent.record.registered_at <= PROVEN_SECONDS


def next_most_marked(
    most_marked_before: Mapping[str, MostMarked], marks: Mapping[str, MonitorMark], agents: Iterable[Agent], snapshot: Snapshot
) -> dict[str, MostMarked]:
    """Carry on of which controllers most agents are marked. A controller that could not be read completely stays as it was."""
    by_controller: dict[str, list[Agent]] = {name: [] for name in snapshot.controllers}
    for agent in agents:
        by_controller.setdefault(agent.record.controller, []).append(agent)
    most_marked: dict[str, MostMarked] = {}
    for name, view in snapshot.controllers.items():
        before = most_marked_before.get(name)
        after = _next(name, before, marks, by_controller[name], snapshot) if view.complete else before
        if after is not None:
            most_marked[name] = after
    return most_marked


def _next(
    controller: str, before: MostMarked | None, marks: Mapping[str, MonitorMark], agents: list[Agent], snapshot: Snapshot
) -> MostMarked | None:
    now, connected = snapshot.taken_at, [agent for agent in agents if agent.phase in _CONNECTED]
    marked = [agent for agent in connected if agent.phase is Phase.MARKED]
    if before is None:
        return _begun([marks[agent.record.instance_id] for agent in marked], len(connected), now)
    if _is_over(before, marked, connected, now):
        return None
    tried_at = max((before.tried_at, *_launched(controller, agents, snapshot)))
    if not marked:
        return replace(before, tried_at=tried_at)
    return replace(before, agents=(len(marked), len(connected)), seen_at=now, tried_at=tried_at)


def _begun(marks: list[MonitorMark], connected: int, now: float) -> MostMarked | None:
    """Tell that most of so many agents were marked within minutes; None where they were not."""
    fresh = [mark for mark in marks if now - mark.since_at <= MARKED_SECONDS]
    if len(fresh) < MOST_AT_LEAST or 2 * len(fresh) <= connected:
        return None
    return MostMarked(since_at=now, words=fresh[-1].words, agents=(len(fresh), connected), seen_at=now, tried_at=now)


def _is_over(before: MostMarked, marked: list[Agent], connected: list[Agent], now: float) -> bool:
    """Tell whether monitors leave the agents alone again: most of them, or one that has connected since."""
    if not marked and now - before.seen_at > _FORGOTTEN_SECONDS:
        return True
    proven = [agent.record.registered_at for agent in connected if agent.phase is Phase.READY and _is_proven(agent, now)]
    return bool(proven) and (2 * len(marked) <= len(connected) or any(at is not None and at > before.since_at for at in proven))


def _is_proven(agent: Agent, now: float) -> bool:
    return agent.record.registered_at is not None and now - agent.record.registered_at >= PROVEN_SECONDS


def _launched(controller: str, agents: Iterable[Agent], snapshot: Snapshot) -> Iterator[float]:
    """Say when agents were launched or started on a controller, but for pools that monitors leave alone."""
    pools: dict[str, list[Agent]] = {}
    for agent in agents:
        pools.setdefault(agent.pool.name, []).append(agent)
    yield from (agent.record.began_at for mine in pools.values() if is_doubtful(mine) for agent in mine)
    intents = (intent for intent in snapshot.intents if intent.controller == controller)
    yield from (intent.created_at for intent in intents if is_doubtful(pools.get(intent.pool, ())))


def is_doubtful(agents: Collection[Agent]) -> bool:
    """Tell whether agents of a pool may be marked as most of their controller are: some of them are, or none takes builds."""
    return any(agent.phase is Phase.MARKED for agent in agents) or all(agent.phase is not Phase.READY for agent in agents)


def failed_by_marks(marks: Mapping[str, MonitorMark], agents: Iterable[Agent], versions: Mapping[str, str]) -> tuple[BootFailure, ...]:
    """Name the agents that a monitor marked as soon as they had connected: the next one of their pool would fare as they did."""
    return tuple(
        BootFailure(
            controller=agent.record.controller,
            pool=agent.pool.name,
            instance_id=agent.record.instance_id,
            why=f"a monitor took it offline as soon as it had connected: {mark.words}",
            version=versions.get(agent.record.instance_id, ""),
            launched_at=agent.record.began_at,
            launch=agent.record.launch,
        )
        for agent in agents
        if (mark := marks.get(agent.record.instance_id)) is not None and mark.at_once and not mark.is_counted
        if agent.phase is Phase.MARKED and agent.record.is_instance
    )


def note_counted(marks: Mapping[str, MonitorMark], failures: Iterable[BootFailure]) -> dict[str, MonitorMark]:
    """Note which marks count as failed boots, so that each does once."""
    counted = {failure.instance_id for failure in failures}
    return {name: replace(mark, is_counted=True) if name in counted else mark for name, mark in marks.items()}
