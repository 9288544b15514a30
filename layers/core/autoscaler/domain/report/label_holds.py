"""Labels on hold for people: which jobs wait for the end of a hold, where Jenkins starts them all the same, which agents lack the label."""

from collections.abc import Collection, Iterator
from shlex import quote

from autoscaler.domain.facts.fleet import HELD_LABEL
from autoscaler.domain.facts.memory import Failing
from autoscaler.domain.facts.orders import Hold, Scope, single_label, text_of
from autoscaler.domain.facts.snapshot import Node, QueueItem
from autoscaler.domain.labels import LabelSyntaxError, one_label, parse
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import failing_labels
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import clock, listed

_NAMED = 3


def told_holds(situation: Situation, controller: str, item: QueueItem, holds: Collection[Hold]) -> str:
    """Say what holds an item, by whom and until when; and where Jenkins starts it all the same."""
    return "; ".join([text_of(holds, situation.now), *_beyond(situation, controller, item, holds)])


def told_holds_of_job(situation: Situation, job: str) -> Iterator[str]:
    """Say of a job when what holds it ends, and where Jenkins starts it all the same, each once."""
    for controller, demand in situation.demands.items():
        for item, holds in demand.held:
            if item.job == job:
                yield from _beyond(situation, controller, item, holds)


def _beyond(situation: Situation, controller: str, item: QueueItem, holds: Collection[Hold]) -> Iterator[str]:
    for hold in holds:
        if hold.ends_at is not None:
            place = f"{hold.scope} {hold.name}".strip()
            yield f"the hold of {place} ends at {clock(hold.ends_at)}, or with: autoscaler resume {resume_option(hold)}"
    yield from _not_kept(situation, controller, item, holds)


def resume_option(hold: Hold) -> str:
    """Write the option of `resume` that ends a hold."""
    if hold.is_budget:
        return "--budget"
    return f"--{hold.scope} {quote(hold.name)}" if hold.name else f"--{hold.scope}"


def _not_kept(situation: Situation, controller: str, item: QueueItem, holds: Collection[Hold]) -> Iterator[str]:
    """Say why a hold cannot keep Jenkins from starting an item: no label can be taken for it, or a node's labels are not ours."""
    nodes = situation.snapshot.controllers[controller].nodes
    yield from _of_no_label(situation, nodes, [hold.name for hold in holds if hold.scope is Scope.LABEL])
    for agent in situation.agents:
        if agent.record.controller == controller and (failing := _keeps_held_label(situation, agent)):
            yield f"Jenkins does not let us take the label from {agent.record.node}: {failing.why}"
    if item.asked_label is not None and (names := _others_with(situation, controller, nodes, item.asked_label)):
        yield f"the labels of {listed(names, _NAMED)} are its operator's, so a free executor there still takes it"


def _keeps_held_label(situation: Situation, agent: Agent) -> Failing | None:
    """Find out why a node has a label on hold yet; None if it is without, or nothing has failed."""
    has_any = agent.node and not agent.node.offline and situation.fleet.held_labels.intersection(agent.record.labels, agent.node.labels)
    return failing_labels(situation.memory, agent) if has_any else None


def _of_no_label(situation: Situation, nodes: Collection[Node], held: Collection[str]) -> Iterator[str]:
    names = {node.name for node in nodes}
    for name in held:
        label = single_label(name)
        if label in names:
            yield f"{label} is a node, which keeps its own name: drain it, or it still takes such jobs"
        elif label not in situation.fleet.held_labels:
            yield f"{name} is not a label of its own, so free executors still take such jobs: hold a label that they need"


def _others_with(situation: Situation, controller: str, nodes: Collection[Node], asked: str) -> list[str]:
    """Name the nodes that are online, satisfy an expression, and have labels that are not ours to take."""
    ours = {agent.record.node for agent in situation.agents if agent.record.controller == controller and agent.record.labels}
    others = (node for node in nodes if not (node.name in ours or node.offline or situation.fleet.is_beacon(node.name)))
    return [node.name for node in others if _matches(asked, node.labels)]


def _matches(text: str, labels: frozenset[str]) -> bool:
    try:
        return parse(text).matches(labels)
    except LabelSyntaxError:
        return one_label(text).matches(labels)


def told_held_labels(situation: Situation, agent: Agent) -> str:
    """Say which labels an agent is without while people hold them, or is about to lose or to get back; "" if it is about none."""
    held, node = situation.fleet.held_labels, agent.node
    if node is None or not (held or HELD_LABEL in node.labels):
        return ""
    taken = sorted(held.intersection(agent.record.labels))
    if not taken:
        return "the hold of its labels is over, and it gets them back" if HELD_LABEL in node.labels else ""
    what = "without" if HELD_LABEL in node.labels else "about to lose"
    return f"{what} {listed(taken)}: {text_of(situation.overrides.holds_of(taken), situation.now)}"
