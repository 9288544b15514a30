"""What should be there once and is there twice: a second autoscaler on a controller, or a second controller behind its address.

Two autoscalers launch for the same job. Two controllers look like one that restarts again and again, where nothing can be judged.
"""

from collections.abc import Collection, Iterable, Iterator

from autoscaler.domain.facts.fleet import Fleet, in_home
from autoscaler.domain.facts.nodes import described_instance, read_description
from autoscaler.domain.facts.snapshot import ControllerView, Node
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.agents import FORGOTTEN_ASK_AGAIN_SECONDS
from autoscaler.domain.situation.looks import two_sessions
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, listed

OTHER_FLEET, TWO_SESSIONS = "other-autoscaler/", "two-sessions/"
_BEACON, _LABEL = "autoscaler-beacon-", "autoscaler-fleet-"
_RUNBOOK = "operations.md#two-autoscalers"


def others_seen(situation: Situation, told: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Name each second autoscaler and each second controller. ``told``: names of what people were told; an incomplete look ends nothing."""
    for view in situation.views():
        others = _others(situation, view)
        for other, nodes in others.items():
            yield f"{OTHER_FLEET}{view.name}/{other}", _other(situation, view, _titled(other, nodes), nodes)
        begins = f"{OTHER_FLEET}{view.name}/"
        for name in told if not view.complete else ():
            if name.startswith(begins) and (other := name.removeprefix(begins)) not in others:
                yield name, _other(situation, view, other, [])
        if sessions := two_sessions(view, situation.memory.sessions.get(view.name)):
            yield f"{TWO_SESSIONS}{view.name}", _sessions(view, sessions)


def told_others(situation: Situation, view: ControllerView) -> Iterator[str]:
    """Say it in a line each."""
    for other, nodes in _others(situation, view).items():
        yield (
            f"{_both(situation, view, _titled(other, nodes))}; labels of both: {listed(_shared(situation, view, nodes), 5) or 'none'}; "
            f"nodes of the other: {listed(sorted(node.name for node in nodes), 3)}"
        )
    if sessions := two_sessions(view, situation.memory.sessions.get(view.name)):
        yield _two(view, sessions)


def _others(situation: Situation, view: ControllerView) -> dict[str, list[Node]]:
    """Find the nodes that other autoscalers of our labels, or of our name, made or took, by the name of the fleet."""
    others: dict[str, list[Node]] = {}
    elsewhere = _elsewhere(situation)
    for node in view.nodes:
        if node.agent and (other := _fleet_of(situation.fleet, node, elsewhere)):
            others.setdefault(other, []).append(node)
    return {other: nodes for other, nodes in others.items() if other == situation.fleet.name or _shared(situation, view, nodes)}


def _shared(situation: Situation, view: ControllerView, nodes: Iterable[Node]) -> list[str]:
    """Return the labels of jobs that both serve."""
    labels = {label for pool in situation.fleet.pools_of(view.name) for label in pool.labels}
    return sorted(labels & {label for node in nodes for label in node.labels})


def _titled(other: str, nodes: list[Node]) -> str:
    """Name a fleet with its home, if any of its nodes says that."""
    homes = {described[1] for node in nodes if (described := read_description(node.name, node.description)) and described[0] == other}
    return f"{other} in {listed(sorted(homes - {''}))}" if homes - {""} else other


def _fleet_of(fleet: Fleet, node: Node, elsewhere: Collection[str]) -> str:
    """Return the name of the other fleet that a node is of; "" for any other node. ``elsewhere``: instances of another region."""
    if described := read_description(node.name, node.description):
        is_far = not node.offline and described_instance(fleet, node.name, node.description) in elsewhere
        return described[0] if is_far or described != (fleet.name, fleet.home) else ""
    named = node.name.removeprefix(_BEACON).partition("~")[0] if node.name.startswith(_BEACON) else ""
    labels = sorted(label.removeprefix(_LABEL) for label in node.labels if label.startswith(_LABEL))
    return next((name for name in (named, *labels) if name and name != fleet.name), "")


def _elsewhere(situation: Situation) -> set[str]:
    """Name the instances without a record that EC2 has not known for minutes: if one is connected, it runs in another region."""
    missing = situation.snapshot.memory.missing.items()
    return {name for name, known in missing if situation.now - known.since_at >= FORGOTTEN_ASK_AGAIN_SECONDS} - {
        record.machine for record in situation.snapshot.records
    }


def _both(situation: Situation, view: ControllerView, other: str) -> str:
    return f"two autoscalers act on {view.name}: fleet {situation.fleet.name}{in_home(situation.fleet)}, and fleet {other}"


def _other(situation: Situation, view: ControllerView, other: str, nodes: list[Node]) -> Seen:
    shared = _shared(situation, view, nodes)
    names = f"The other has {counted(len(nodes), 'node')} there: {listed(sorted(node.name for node in nodes), 5)}.\n" if nodes else ""
    doubled = f"Both serve {listed(shared, 5)}, and both launch for a job that asks for it.\n" if shared else ""
    are_alike = other.partition(" ")[0] == situation.fleet.name
    mend = "Give one of the two stacks another FleetName" if are_alike else "Give their pools different labels"
    text = (
        f"T{_both(situation, view, other)[1:]}.\n{names}{doubled}{mend}, or take the controller out of one of the two fleet files. "
        "If the other autoscaler is gone, delete its nodes in Jenkins."
    )
    return Seen(f"two autoscalers on {view.name}: {situation.fleet.name} and {other}", text, _RUNBOOK, "autoscaler status")


def _two(view: ControllerView, sessions: tuple[str, str]) -> str:
    first, second = sessions
    return f"two controllers answer at the address of {view.name} in turn: their sessions are {first} and {second}"


def _sessions(view: ControllerView, sessions: tuple[str, str]) -> Seen:
    says = f"T{_two(view, sessions)[1:]} (X-Jenkins-Session).\n"
    then = "A controller that restarts never returns to an earlier session. Each change looks like a restart, so nothing is terminated.\n"
    mend = "Give each controller an address of its own, or let the load balancer send all requests to one of them."
    title = f"two controllers behind the address of {view.name}: {sessions[0]} and {sessions[1]}"
    return Seen(title, says + then + mend, _RUNBOOK, "autoscaler status")
