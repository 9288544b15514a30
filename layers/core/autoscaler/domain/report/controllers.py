"""Controllers that take no builds, or show nothing, for long: what people are told, and what `why` says."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from autoscaler.domain.facts.fleet import Fleet, in_home
from autoscaler.domain.facts.nodes import described_instance, read_description
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, ControllerView, Node
from autoscaler.domain.grouping import grouped
from autoscaler.domain.report.machines import usd_per_hour_of, usd_per_hour_together
from autoscaler.domain.report.told import Seen, Trouble, told_again
from autoscaler.domain.situation.agents import FORGOTTEN_ASK_AGAIN_SECONDS, Agent, Phase
from autoscaler.domain.situation.looks import EC2, blind_seconds, two_sessions
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, dollars, duration, lines_of, listed, moment, sentence

# People are told once a day of agents that cost money and cannot be judged for so long.
UNREAD_SECONDS = 3600.0
UNREAD, QUIET, ENDED = "unread/", "quiet/", "ended/"
_NAMES = 10
# Looks are late if a third of the last two hours was seen by nobody, in more than an outage or two.
_LATE_WITHIN_SECONDS, _LATE_SECONDS, _LATE_SPANS = 7200.0, 2400.0, 3


def late_looks_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Tell that looks come minutes apart, and what is paid meanwhile."""
    looks, since_at = situation.looks.get(EC2), situation.now - _LATE_WITHIN_SECONDS
    spans = [span for span in looks.blind if span[1] > since_at] if looks else []
    blind = blind_seconds(looks, since_at, situation.now)
    if len(spans) < _LATE_SPANS or blind < _LATE_SECONDS:
        return
    apart = max(to_at - from_at for from_at, to_at in spans) + MINUTE_SECONDS
    idle = [agent for agent in situation.agents if agent.phase is Phase.READY and agent.idle]
    usd = dollars(usd_per_hour_together(situation, (agent.record for agent in idle)))
    text = (
        f"Nobody looked at EC2 and Jenkins for {duration(blind)} of the last 2 h: looks came up to {duration(apart)} apart.\n"
        f"Jobs wait that much longer for their agents, and idle agents are paid that much longer: {counted(len(idle), 'agent')} idle, "
        f"{usd} an hour.\nMostly other functions use up the account's concurrency, or passes are cut off: see Throttles of scale_up."
    )
    yield "looks-late", Seen("looks come late", text, "operations.md#looks-late", "autoscaler status", daily=True)


def controllers_seen(situation: Situation, told: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Name the controllers that nobody can read while agents run there, those in long quiet modes, and those with zombies.

    ``told``: names of what people were told. Quiet mode is over when a look sees no quiet mode: not when a job has gone, nor when
    the controller cannot be read.
    """
    for view in situation.snapshot.controllers.values():
        since, quiet = _seen_at(situation, view.name), f"{QUIET}{view.name}"
        there = [record for record in situation.snapshot.living if record.controller == view.name]
        usd = usd_per_hour_together(situation, there)
        if usd and not view.complete and situation.now - since >= UNREAD_SECONDS:
            text = (
                f"It was last read at {moment(since)}, {duration(situation.now - since)} ago: {view.problem}.\n"
                f"{counted(len(there), 'agent')} there cost {dollars(usd)} an hour. "
                "Nobody can tell whether they are needed: none is launched or terminated."
            )
            title, runbook = f"controller {view.name} cannot be read", "operations.md#controller-unread"
            yield f"{UNREAD}{view.name}", Seen(title, text, runbook, "autoscaler status", daily=True)
        # By the node, the executor and the run of each.
        if ended := [name.split("/", 2) for name, one in situation.memory.controller(view.name).asked.items() if one.over_at]:
            lines = (
                "Executors show builds whose own pages say that they have ended. They take no other build until their node is deleted.",
                *lines_of([f"{run} on {node}" for node, _, run in ended], _NAMES),
                "Agents are drained, terminated and replaced by demand. On a host, or a static node, only a restart of Jenkins helps.",
            )
            title, runbook = f"executors of {view.name} show builds that have ended", "operations.md#builds-that-have-ended"
            yield f"{ENDED}{view.name}", Seen(title, "\n".join(lines), runbook, "autoscaler plan")
        if quiet in told if not view.complete else view.quieting_down and (quiet in told or _is_quiet_too_long(situation, view)):
            yield quiet, _quiet(situation, view)


def told_controller(situation: Situation, view: ControllerView) -> str:
    """Say why a controller neither takes builds nor can be judged, since when, and what follows; "" if all is well."""
    if not view.complete:
        return f"{view.name} could not be read completely{_since(situation, view)}: {view.problem}; nothing is terminated or launched there"
    if view.quieting_down:
        return f"{in_quiet_mode(situation, view)}: it begins no build, and nothing is terminated there"
    if view.in_parts:
        return f"the queue of {view.name} was read in parts, so nothing is cordoned, stopped or terminated there: {view.in_parts}"
    reason = situation.no_giving_up(view.name)
    return f"nothing is terminated on {view.name}: {reason}" if reason else ""


def told_quiet(view: ControllerView) -> str:
    """Say what an item waits for while its controller is in quiet mode."""
    return f"it waits until {view.name} leaves quiet mode{_because(view)}"


def in_quiet_mode(situation: Situation, view: ControllerView) -> str:
    """Say why the jobs of a controller in quiet mode wait."""
    return f"{view.name} is in quiet mode{_since(situation, view)}{_because(view)}"


def _since(situation: Situation, view: ControllerView) -> str:
    at = _seen_at(situation, view.name)
    return f" since {moment(at)}" if at < situation.now else ""


def _because(view: ControllerView) -> str:
    return f" ({view.quiet_reason})" if view.quiet_reason else ""


def _seen_at(situation: Situation, controller: str) -> float:
    """When the controller was last read and took builds."""
    looks = situation.looks.get(controller)
    return looks.at if looks else situation.now


def _is_quiet_too_long(situation: Situation, view: ControllerView) -> bool:
    """Tell whether a job waits for the end of quiet mode for longer than any pool there lets it, or agents are paid for nothing."""
    limits = [pool.spec.max_wait_seconds for pool in situation.pools_of(view.name).values()]
    waits = bool(limits) and any(item.in_quiet_mode and item.waiting_seconds >= min(limits) for item in view.items)
    return waits or bool(_paid_for_nothing(situation, view.name))


def _paid_for_nothing(situation: Situation, controller: str) -> list[Agent]:
    """List the agents that are idle in quiet mode, and cost something, once that has lasted for an hour."""
    if situation.now - _seen_at(situation, controller) < UNREAD_SECONDS:
        return []
    agents = (agent for agent in situation.agents if agent.record.controller == controller and agent.record.is_instance)
    return [agent for agent in agents if agent.idle and usd_per_hour_of(situation, agent.record)]


def _quiet(situation: Situation, view: ControllerView) -> Seen:
    idle, waiting = _paid_for_nothing(situation, view.name), [item for item in view.items if item.in_quiet_mode]
    usd = dollars(usd_per_hour_together(situation, (agent.record for agent in idle)))
    names = listed([agent.record.node or agent.record.instance_id for agent in idle], _NAMES)
    cost = f"{counted(len(idle), 'idle agent')} cost {usd} an hour: {names}.\n" if idle else ""
    longest = max(waiting, key=lambda item: item.waiting_seconds, default=None)
    jobs = f"{counted(len(waiting), 'job')} wait, {longest.job} for {duration(longest.waiting_seconds)}.\n" if longest else ""
    reason = f"Jenkins' reason: {view.quiet_reason}" if view.quiet_reason else "Jenkins names no reason"
    return Seen(
        f"{view.name} is in quiet mode, and {'jobs wait' if waiting else 'agents are idle'}",
        f"{view.name} has been in quiet mode since {moment(_seen_at(situation, view.name))}. {reason}.\n{jobs}{cost}"
        "It begins no build until somebody cancels that, under Manage Jenkins. Nothing is launched or terminated there meanwhile.",
        "operations.md#quiet-mode",
        "autoscaler queue" if waiting else "autoscaler agents",
        daily=True,
    )


# What should be there once and is there twice: a second autoscaler on a controller, or a second controller behind its address.
#
# Two autoscalers launch for the same job. Two controllers look like one that restarts again and again, where nothing can be judged.


OTHER_FLEET, TWO_SESSIONS = "other-autoscaler/", "two-sessions/"
_BEACON, _LABEL = "autoscaler-beacon-", "autoscaler-fleet-"
_RUNBOOK = "operations.md#two-autoscalers"


def others_seen(situation: Situation, told: Mapping[str, Trouble]) -> Iterator[tuple[str, Seen]]:
    """Name each second autoscaler and each second controller. ``told``: what people were told; an incomplete look ends nothing."""
    for view in situation.snapshot.controllers.values():
        if not view.complete:
            yield from told_again(told, f"{OTHER_FLEET}{view.name}/")
        for other, nodes in _others(situation, view).items():
            yield f"{OTHER_FLEET}{view.name}/{other}", _other(situation, view, _titled(other, nodes), nodes)
        if sessions := two_sessions(view, situation.memory.sessions.get(view.name)):
            text = (
                f"{sentence(_two(view, sessions))} (X-Jenkins-Session).\nA controller that restarts never returns to an earlier session. "
                "Each change looks like a restart, so nothing is terminated.\n"
                "Give each controller an address of its own, or let the load balancer send all requests to one of them."
            )
            title = f"two controllers behind the address of {view.name}: {sessions[0]} and {sessions[1]}"
            yield f"{TWO_SESSIONS}{view.name}", Seen(title, text, _RUNBOOK, "autoscaler status")


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
    # If an instance without a record that EC2 has not known for minutes is connected, it runs in another region.
    missing = ((name, past.missing) for name, past in situation.snapshot.memory.agents.items() if past.missing)
    unknown = {name for name, known in missing if situation.now - known.since_at >= FORGOTTEN_ASK_AGAIN_SECONDS}
    elsewhere = unknown - {record.machine for record in situation.snapshot.records}
    named = ((other, node) for node in view.nodes if node.agent and (other := _fleet_of(situation.fleet, node, elsewhere)))
    return {other: nodes for other, nodes in grouped(named).items() if other == situation.fleet.name or _shared(situation, view, nodes)}


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


def _both(situation: Situation, view: ControllerView, other: str) -> str:
    return f"two autoscalers act on {view.name}: fleet {situation.fleet.name}{in_home(situation.fleet)}, and fleet {other}"


def _other(situation: Situation, view: ControllerView, other: str, nodes: list[Node]) -> Seen:
    shared = _shared(situation, view, nodes)
    doubled = f"Both serve {listed(shared, 5)}, and both launch for a job that asks for it.\n" if shared else ""
    are_alike = other.partition(" ")[0] == situation.fleet.name
    mend = "Give one of the two stacks another FleetName" if are_alike else "Give their pools different labels"
    text = (
        f"{sentence(_both(situation, view, other))}.\n"
        f"The other has {counted(len(nodes), 'node')} there: {listed(sorted(node.name for node in nodes), 5)}.\n"
        f"{doubled}{mend}, or take the controller out of one of the two fleet files. "
        "If the other autoscaler is gone, delete its nodes in Jenkins."
    )
    return Seen(f"two autoscalers on {view.name}: {situation.fleet.name} and {other}", text, _RUNBOOK, "autoscaler status")


def _two(view: ControllerView, sessions: tuple[str, str]) -> str:
    return f"two controllers answer at the address of {view.name} in turn: their sessions are {' and '.join(sessions)}"


# Queues that are too large to be read in one answer: people are told, since nothing is scaled in on their controllers.


def large_queues_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the controllers whose queue was read in parts, each with its message."""
    for view in situation.snapshot.controllers.values():
        if view.in_parts:
            text = (
                f"Jenkins' queue on {view.name} does not fit in one answer: {view.in_parts}.\n"
                "Agents are launched for jobs as ever. None is taken out of use, stopped or terminated until the queue fits in one answer."
            )
            title = f"the queue of {view.name} is too large to be read at once"
            yield f"queue/{view.name}", Seen(title, text, "operations.md#large-queues", "autoscaler queue")
