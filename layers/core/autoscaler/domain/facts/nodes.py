"""Nodes of ours in Jenkins: whose each is, its description, its labels, the room on it, and our marks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import (
    CORDONED_LABEL,
    EMPTIED,
    EXCLUSIVE,
    FULL_LABEL,
    HELD_LABEL,
    Fleet,
    NodeSpec,
    Pool,
    Share,
    in_home,
    labels_given,
    node_name,
)
from autoscaler.domain.facts.job_settings import Source
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.snapshot import SIDE, ControllerView, Node, QueueItem, Record
from autoscaler.domain.labels import as_told

# What the description of a node of ours says: its fleet, its instance, and where that fleet runs.


_DESCRIBED = re.compile(
    r"Agent (?P<node>\S+) of fleet (?P<fleet>\S+), (?:launched|connected) by the autoscaler "
    r"on instance (?P<instance>(?:i|host)-\S+?)(?: in (?P<home>\S+?))?\."
)

_BEACON = re.compile(r"Kept by the autoscaler of fleet (?P<fleet>\S+) in (?P<home>\S+) with the labels ")  # 0.3.0 did not write its home


def described_instance(fleet: Fleet, node: str, description: str) -> str | None:
    """Read the instance id that we wrote into a node's description; None for any other node, a copy of ours too."""
    found = _DESCRIBED.fullmatch(description)
    return found["instance"] if found and read_description(node, description) == (fleet.name, fleet.home) else None


def read_description(node: str, description: str) -> tuple[str, str] | None:
    """Read the fleet and the home that an autoscaler, ours or another one, wrote into a node's description; None for any other node."""
    if beacon := _BEACON.match(description):
        return beacon["fleet"], beacon["home"]
    found = _DESCRIBED.fullmatch(description)
    return (found["fleet"], found["home"] or "") if found and found["node"] == node else None


# Whose a node is: made by us for one agent, or a static one, which its operator made beforehand (`nodes: slots`).
#
# The fleet file does not tell: it may have said something else when the agent took its node. The node's name does, since a node of ours is
# named after its machine, and so does its description. What we did not make is never deleted, whatever the file says now.


def has_static_node(record: Record) -> bool:
    """Tell whether the node of an agent is its operator's: we neither named it nor gave it labels."""
    return record.node is not None and not record.labels and record.node != node_name(record.pool, record.machine)


def is_of_host(fleet: Fleet, record: Record, node: Node) -> bool:
    """Tell whether the node that has a host's name was made for that host: its name was chosen by a person, who may have used it before.

    The label of the fleet does not tell: static nodes have it, too.
    """
    return record.node_life is not None or described_instance(fleet, node.name, node.description) == record.machine


def is_made_for(fleet: Fleet, record: Record, node: Node) -> bool:
    """Tell whether the node of a host, or of a further side of a machine, was made for it: it is deleted with that alone."""
    return not has_static_node(record) and (record.is_side or is_of_host(fleet, record, node))


def side_id(machine: str, controller: str) -> str:
    """Return the id of the record of a machine's side on one more controller."""
    return f"{machine}{SIDE}{controller}"


def is_wanted(fleet: Fleet, record: Record) -> bool:
    """Tell whether a host, or a further side of an instance, is still to serve that controller."""
    pool = fleet.pools.get(record.pool)
    if pool is None or record.controller not in pool.controllers:
        return False
    at_once = pool.share is Share.COOPERATIVE
    if record.is_side:
        return at_once
    host = next((one for one in fleet.hosts.values() if one.id == record.machine), None)
    return host is not None and host.pool == pool.name and (record.instance_id == host.id) is not at_once


def takes_static_node(fleet: Fleet, record: Record) -> bool:
    """Tell whether an agent has, or is to take, a static node. One that has a node keeps it to its end.

    Hosts, and further sides of machines, take none, whatever the fleet file says meanwhile: they are not to be on such a controller, and
    leave it while their machine goes on.
    """
    return has_static_node(record) if record.node is not None else record.is_instance and record.controller in fleet.slot_controllers


def keeps_static_nodes_from_others(fleet: Fleet, record: Record) -> bool:
    """Tell whether an agent would keep a static node from others while it is stopped."""
    return has_static_node(record) or record.controller in fleet.slot_controllers


def is_made_by_us(fleet: Fleet, node: Node) -> bool:
    """Tell whether a node is one of our own, by its description or since it is a beacon."""
    return fleet.is_beacon(node.name) or described_instance(fleet, node.name, node.description) is not None


def why_of_other_kind(fleet: Fleet, record: Record) -> str | None:
    """Say that an agent has a static node where each is to get its own, or the other way round; None if it has what the file asks for."""
    if record.node is None or has_static_node(record) is (record.controller in fleet.slot_controllers):
        return None
    if has_static_node(record):
        return f"its node is a static one, and agents of {record.controller} get nodes of their own now (nodes: dynamic)"
    return f"its node was made for it, and agents of {record.controller} take static nodes now (nodes: slots)"


# The room that the builds on an agent leave, where jobs weigh more or less: how many more may begin, and so how many executors it shows.
#
# Jenkins hands a build to any executor that is free, whatever the build weighs. So an agent shows no more executors than builds fit, each
# taken to be as heavy as the heaviest that waits. One that has no room loses its labels; one executor stays free there, for what names the
# node itself: a part of a build that already runs there would wait for ever. Once no job has a weight any more, an agent gets all its
# executors back as soon as it is idle: a build that was heavy keeps its room until it ends.


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the builds on an agent take of what it has, in executors, and how many executors its node is to have."""

    taken: int
    of: int
    executors: int
    is_full: bool


def room_on(record: Record, node: Node, fleet: Fleet, weight: int = 1) -> Room | None:
    """Work out the room for builds of this weight; None if no job has one, or the node is its operator's own.

    Whatever its weight, an idle agent has room for one: it then runs alone.
    """
    pool = fleet.pools.get(record.pool)
    if not record.labels or pool is None:
        return None
    if not fleet.weights:
        is_to_give_back = record.by_weight and node.idle and not node.builds
        return Room(taken=0, of=pool.executors, executors=pool.executors, is_full=False) if is_to_give_back else None
    taken = executors_taken(node, fleet)
    if weight == 1 and taken == len(node.builds) <= pool.executors:  # nothing heavy runs or waits
        return Room(taken=taken, of=pool.executors, executors=pool.executors, is_full=False)
    more = (pool.executors - taken) // min(weight, pool.executors)
    return Room(taken=taken, of=pool.executors, executors=len(node.builds) + max(1, more), is_full=more < 1)


def executors_taken(node: Node, fleet: Fleet) -> int:
    """Count the executors that the builds on a node take by their weights; more than it has where the last one was too heavy."""
    return sum(fleet.weights.of_running(build.job) for build in node.builds)


def with_known_weights(fleet: Fleet, learned: Mapping[str, Learned]) -> Fleet:
    """Return the fleet with the weights that were learned or read on its controllers, where any are asked for."""
    if not fleet.weights.by_pattern:
        return fleet
    weights = fleet.weights.knowing(Source.LEARNED, (one.weights for one in learned.values()))
    heavy = ({job: one.weight for job, one in each.heavy_jobs.items()} for each in learned.values())
    weights = weights.knowing(Source.PLUGIN, heavy)
    return fleet if weights is fleet.weights else replace(fleet, weights=weights)


def executors_at_first(pool: Pool, fleet: Fleet) -> int:
    """Say how many executors a new node shows until the first look at it: as many as builds fit that are as heavy as any."""
    return max(1, pool.executors // fleet.weights.heaviest)


# Labels of our nodes, and when a cordon must first remove them.
#
# A Jenkins before 2.517 (LTS 2.528.1) drops a build that it hands to a node in the very instant in which the node is marked
# offline; a pipeline lost so hangs for ever. There a node is cordoned in two steps: its labels go, and its mode becomes
# exclusive, so that nothing new is handed to it; once it was idle in two looks it is marked offline as everywhere else.
# An agent of a rarer kind carries the labels of the general kind only while it is lent: Jenkins places builds, and not we.
# One whose builds weigh as much as it has executors has none either, until there is room again; that is no cordon, and it stands in no
# record: it follows from the builds that are there.
# Labels that a person holds are taken from the nodes, busy or not, so that jobs that ask for them wait. Jobs of other labels begin there
# as before.
#
# The labels that a node should have follow from the record, the time, the holds and the builds that are there. So the next pass makes good
# a step that was cut off, and a loan and a hold end by themselves. The record names the labels of its last loan: if kinds leave the fleet
# file, or their labels change, they are taken back all the same.


# The first version that keeps such a build (jenkinsci/jenkins, pull request 10756).
_KEEPS_HANDED_BUILDS = (2, 517)


def drops_handed_builds(view: ControllerView | None) -> bool:
    """Tell whether this controller may drop a build in the instant of an offline mark; unknown versions may."""
    return view is None or view.version < _KEEPS_HANDED_BUILDS


def labels_wanted(record: Record, fleet: Fleet, now: float, *, is_full: bool = False) -> tuple[frozenset[str], bool]:
    """Name the labels that we set on an agent's node, and say whether its mode is exclusive."""
    if record.cordon:
        return frozenset((fleet.ownership_label, CORDONED_LABEL)), True
    if is_full:
        return frozenset((fleet.ownership_label, FULL_LABEL)), True
    own = frozenset(record.labels) - labels_to_lend(record, fleet)
    labels = own | frozenset(record.lent_labels) if record.is_lent(now) else own
    return (labels - fleet.held_labels | {HELD_LABEL} if labels & fleet.held_labels else labels), record.exclusive


def labels_soon(record: Record, node: Node, fleet: Fleet) -> frozenset[str]:
    """Name the labels of a node with those that we took for a while and give back, but for those that people hold and that it lacks."""
    if node.labels.isdisjoint(EMPTIED):
        return node.labels
    return node.labels - EXCLUSIVE | (frozenset(record.labels) - labels_to_lend(record, fleet) - fleet.held_labels)


def is_held_as_wanted(record: Record, node: Node, fleet: Fleet, now: float) -> bool:
    """Tell whether a node lacks the labels that people hold, and no others.

    Once a label of it was taken, all that we gave it are compared: restored state may know of fewer holds than there were.
    """
    if not (HELD_LABEL in node.labels or fleet.held_labels):
        return True
    wanted, _ = labels_wanted(record, fleet, now)
    is_about_it = HELD_LABEL in node.labels or HELD_LABEL in wanted
    return not is_about_it or node.labels & labels_of_ours(record, fleet) == wanted


def labels_to_lend(record: Record, fleet: Fleet) -> frozenset[str]:
    """Name the labels of more general kinds, which an agent carries only while it is lent: today's, and those of its last loan."""
    pool = fleet.pools.get(record.pool)
    return frozenset(record.lent_labels) | (pool.lent_labels if pool else frozenset())


def labels_of_ours(record: Record, fleet: Fleet) -> frozenset[str]:
    """Name the labels of a node that our functions wrote; others belong to a person or a plugin."""
    return frozenset((CORDONED_LABEL, FULL_LABEL, HELD_LABEL, *record.labels)) | labels_to_lend(record, fleet)


def are_as_wanted(record: Record, node: Node, fleet: Fleet, now: float, room: Room | None = None) -> bool:
    """Tell whether a node's labels are as its record says. Labels that a person removed do not count, unless it is lent by them.

    ``room``: what its builds leave, where jobs have weights; then it has as many executors as fit, too.
    """
    is_full = room is not None and room.is_full
    # If its labels are off, no build takes the executors beyond that: they are left until there is room.
    if room is not None and not record.cordon and (node.executors < room.executors if is_full else node.executors != room.executors):
        return False
    if (CORDONED_LABEL in node.labels) != bool(record.cordon):
        return False
    if (FULL_LABEL in node.labels) != (is_full and not record.cordon):
        return False
    if record.cordon or is_full:
        return not labels_to_lend(record, fleet) & node.labels
    if not is_held_as_wanted(record, node, fleet, now):
        return False
    lent = frozenset(record.lent_labels) - fleet.held_labels if record.is_lent(now) else frozenset()
    return lent == labels_to_lend(record, fleet) & node.labels


def may_start_on(item: QueueItem, node: Node) -> bool:
    """Tell whether an item may start on a cordoned node by its remaining labels: its name, a person's label, a negation."""
    if node.name in (*item.wait.nodes, item.wait.named):
        return True
    # What asks for no label is not taken in exclusive mode.
    asked = item.asked_label if item.asked_label is not None else item.wait.named
    return asked is not None and as_told(asked).matches(node.labels)


# The token in an offline reason that says: this node was taken offline by us, and in which class.


# What the class of a mark looks like in any version.
_CLASS = re.compile("[a-z]+(-[a-z]+)*")


class MarkClass(StrEnum):
    """What a mark is for, and so who undoes it.

    Nobody undoes `USED_UP` and `RESERVED`: no further build may begin there; nor `REFUSES`: none would; nor `HANDS_OVER`: others wait
    for its room. `ROTATE` goes
    with the node, or once no other controller waits. Demand undoes `RETIRE`, and `OUTDATED` where no other agent can be launched;
    `MONTH_LIMIT` and `DAY_LIMIT` are lifted with the limit, `OPERATOR`, `QUARANTINE` and `MONITOR` by a person.
    """

    RETIRE = "retire"
    INTERRUPTED = "interrupted"
    OPERATOR = "operator"
    QUARANTINE = "quarantine"
    MONITOR = "monitor"  # in place of the mark of a monitor of Jenkins
    OUTDATED = "outdated"
    MONTH_LIMIT = "month-limit"
    DAY_LIMIT = "day-limit"
    USED_UP = "used-up"
    HANDS_OVER = "hands-over"
    ROTATE = "rotate"
    RESERVED = "reserved"
    REFUSES = "refuses"
    UNKNOWN = "unknown"  # of another version: whatever it is for, the agent is drained, and ends once it is idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Our token at the start of an offline reason: ``autoscaler:<fleet>:<class>:<pass>``.

    ``written``: the class as it was written, if nobody here knows it.
    """

    fleet: str
    kind: MarkClass
    pass_id: str
    written: str = ""

    @property
    def text(self) -> str:
        """The offline reason to set."""
        return f"autoscaler:{self.fleet}:{self.written or self.kind}:{self.pass_id}"


def read_mark(reason: str, fleet: str) -> Mark | None:
    """Find our mark at the start of an (unescaped) offline reason; None when it is not this fleet's."""
    parts = reason.split(":")
    if len(parts) != 4 or parts[0] != "autoscaler" or parts[1] != fleet:
        return None
    _, _, written, pass_id = parts
    kind = class_of(written)
    if kind is not MarkClass.UNKNOWN:
        return Mark(fleet=fleet, kind=kind, pass_id=pass_id)
    # A person who writes words of their own after our name keeps the node.
    is_a_mark = _CLASS.fullmatch(written) and pass_id and not any(map(str.isspace, pass_id))
    return Mark(fleet=fleet, kind=kind, pass_id=pass_id, written=written) if is_a_mark else None


def class_of(written: str) -> MarkClass:
    """Return the class of a word; `UNKNOWN` for one of another version."""
    return MarkClass(written) if written in set(MarkClass) else MarkClass.UNKNOWN


# Beacons: nodes of ours that never connect, so that Jenkins' queue tells which labels it waits for.


def beacon_specs(fleet: Fleet, controller: str) -> tuple[NodeSpec, ...]:
    """Describe the beacons of a controller: one without a label of jobs, one with all of them, and one for each set that its pools give.

    Without an agent node Jenkins' queue names no labels, and if one node alone satisfies a label it names that node instead. So each
    label has two nodes at least, and what an agent satisfies a beacon satisfies, too, unless it is asked for by its name. Static nodes
    are always there, and need no beacons beside the first one. While people hold labels, agents are without them: each such set has one,
    too, and a job that only a beacon with a held label satisfies needs that label.
    """
    pools = fleet.pools_of(controller) if controller not in fleet.slot_controllers else ()
    sets: dict[tuple[str, ...], str] = {}
    for pool in pools:
        sets.setdefault(labels_given(fleet, pool), f"{fleet.beacon}~{pool.name}")
        if held := fleet.held_labels.intersection(pool.labels):
            without = (*sorted(pool.labels - held), fleet.ownership_label, HELD_LABEL)
            sets.setdefault(without, f"{fleet.beacon}~{pool.name}~held")
    beacons = [(fleet.beacon, (fleet.beacon,)), *((name, labels) for labels, name in sets.items())]
    if pools:
        beacons.append((f"{fleet.beacon}~~", (*sorted({label for pool in pools for label in pool.labels}), fleet.ownership_label)))
    return tuple(
        NodeSpec(
            name=name,
            labels=labels,
            executors=1,
            exclusive=True,
            remote_dir="/nonexistent",
            description=f"Kept by the autoscaler of fleet {fleet.name}{in_home(fleet)} with the labels {' '.join(labels)}. "
            "It never connects; while it exists, Jenkins' queue tells which labels it waits for, even when no agent is there. "
            "Put back when deleted.",
        )
        for name, labels in beacons
    )


def beacon_labels(node: str, description: str, labels: frozenset[str]) -> frozenset[str]:
    """Read the labels that a beacon was made with: a plugin may have added others. ``labels``: those that it has now."""
    made_with = _BEACON_LABELS.search(description)
    return (frozenset(made_with[1].split()) if made_with else labels) - {node}


_BEACON_LABELS = re.compile(r"with the labels (.+?)\. It never connects")


# What Jenkins' node monitors read of a node.


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Readings of Jenkins' node monitors; None: not told. ``disk``: the lower of the agent's and the temporary directory."""

    disk_bytes: float | None = None
    memory_bytes: float | None = None
    response_seconds: float | None = None
