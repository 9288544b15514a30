"""Marks of Jenkins' monitors as people see them: which agents they took offline, in the monitor's own words, and what follows."""

from collections.abc import Iterator

from autoscaler.domain.facts.memory import MostMarked
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.agents import MARKED_SECONDS, TRY_EVERY_SECONDS, Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration

_RUNBOOK = "operations.md#agents-marked"
_NAMED = 5


def marks_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the controllers of which most agents are marked, and elsewhere the pools with agents that are marked for a while."""
    for controller, most_marked in situation.memory.most_marked.items():
        yield f"most-marked/{controller}", _most_marked(situation, controller, most_marked)
    for (controller, name), pool in situation.pools.items():
        if agents := [agent for agent in pool.agents if _is_told(situation, agent)]:
            yield f"marked/{controller}/{name}", _marked(situation, controller, name, agents)


def _is_told(situation: Situation, agent: Agent) -> bool:
    mark = situation.memory.marks.get(agent.record.instance_id)
    if mark is None or agent.instance_ended or not agent.is_of_monitor:
        return False
    most_marked = situation.memory.most_marked.get(agent.record.controller)
    until_at = most_marked.since_at if most_marked else situation.now  # what comes after that is told of the controller
    return until_at - mark.since_at >= MARKED_SECONDS


def _marked(situation: Situation, controller: str, pool: str, agents: list[Agent]) -> Seen:
    marks = {agent.record.node: situation.memory.marks[agent.record.instance_id] for agent in agents}
    lines = [f"{node}, for {duration(situation.now - mark.since_at)}: {mark.words}" for node, mark in list(marks.items())[:_NAMED]]
    lines += [f"and {len(marks) - _NAMED} more"] if len(marks) > _NAMED else []
    hosts = "\nHosts stay as they are: see to them." if any(agent.record.is_host for agent in agents) else ""
    others = "" if all(agent.record.is_host for agent in agents) else "\nThey take no builds. Others are launched, and these end once idle."
    text = f"Monitors of {controller} took {counted(len(marks), 'agent')} of {pool} offline.\n" + "\n".join(lines) + others + hosts
    return Seen(f"Jenkins took agents of {pool} offline", text, _RUNBOOK, f"autoscaler why {next(iter(marks))}")


def _most_marked(situation: Situation, controller: str, most_marked: MostMarked) -> Seen:
    marked, of = most_marked.agents
    words = f"Monitors of Jenkins took {marked} of {of} agents of {controller} offline: {most_marked.words}"
    then = "So many at once share a cause: a clock, a plugin, or what the agents have in common. None ends for it."
    tried = f"If jobs wait, one agent is launched {told_next(situation, most_marked)}, then one an hour, until monitors leave one alone."
    return Seen(f"Jenkins takes most agents of {controller} offline", f"{words}\n{then}\n{tried}", _RUNBOOK, "autoscaler agents")


def told_next(situation: Situation, most_marked: MostMarked) -> str:
    """Say when the next agent is tried."""
    left = most_marked.tried_at + TRY_EVERY_SECONDS - situation.now
    return f"in {duration(left)}" if left > 0 else "now"


def told_marked(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say of an agent which monitor took it offline, in its own words, and what becomes of it."""
    mark = situation.memory.marks.get(agent.record.instance_id)
    if mark is None or not agent.is_of_monitor:
        return
    yield f"a monitor of Jenkins took it offline {duration(situation.now - mark.since_at)} ago: {mark.words}"
    most_marked = situation.memory.most_marked.get(agent.record.controller)
    if agent.phase is not Phase.MARKED:
        yield "it ends once it is idle"
    elif agent.record.is_host:
        yield "it is a host, and stays as it is until the monitor or a person brings it online"
    elif most_marked is not None:
        marked, of = most_marked.agents
        tried = f"one agent is tried {told_next(situation, most_marked)} if jobs wait"
        yield f"so are {marked} of {of} agents of {agent.record.controller}: none ends for it, and {tried}"
    elif (left := mark.since_at + MARKED_SECONDS - situation.now) > 0:
        yield f"it is used again if the monitor brings it online; else it ends, in {duration(left)} at the soonest"
