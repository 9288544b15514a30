"""Messages about agents whose labels we took, and which Jenkins has not let us give back for an hour: no job begins there."""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import CORDONED_LABEL, FULL_LABEL
from autoscaler.domain.facts.memory import Failing
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import labels_soon
from autoscaler.domain.report.stopped import usd_per_hour_of
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import failing_labels
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import dollars, duration, listed

_RUNBOOK = "operations.md#lasts-too-long"
_NAMED = 10


def held_labels_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools with such agents, one message for a pool."""
    pools: dict[str, list[tuple[Agent, Failing]]] = {}
    for agent in situation.agents:
        failing = failing_labels(situation.memory, agent)
        if failing and _is_without_labels(situation, agent) and situation.now - failing.since_at >= HOUR_SECONDS:
            pools.setdefault(agent.pool.name, []).append((agent, failing))
    for pool, agents in pools.items():
        yield f"lasts/labels/{pool}", _seen(situation, pool, agents)


def _is_without_labels(situation: Situation, agent: Agent) -> bool:
    """Tell whether a node carries our label in place of those that jobs ask for. On one that is marked offline nothing begins anyway."""
    node = agent.node
    if node is None or node.temporarily_offline:
        return False
    lacks = labels_soon(agent.record, node, situation.fleet) - node.labels  # what a person held, and nobody holds any more
    return bool(lacks) or not node.labels.isdisjoint((FULL_LABEL, CORDONED_LABEL))


def _seen(situation: Situation, pool: str, agents: list[tuple[Agent, Failing]]) -> Seen:
    names = [agent.record.node or "" for agent, _ in agents]
    lines = [
        f"{agent.record.node}: its labels were to be given back {duration(situation.now - failing.since_at)} ago: {failing.why}"
        for agent, failing in agents[:_NAMED]
    ]
    cost = dollars(sum(usd_per_hour_of(situation, agent.record) for agent, _ in agents))
    text = "\n".join([*lines, f"No job begins there, and they cost {cost} an hour. Jenkins is asked again now and then."])
    return Seen(f"{listed(names, 2)} of {pool}: without labels too long", text, _RUNBOOK, f"autoscaler why {names[0]}")
