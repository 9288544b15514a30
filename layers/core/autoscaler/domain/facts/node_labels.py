"""Labels of our nodes, and when a cordon must first remove them.

A Jenkins before 2.517 (LTS 2.528.1) drops a build that it hands to a node in the very instant in which the node is marked
offline; a pipeline lost so hangs for ever. There a node is cordoned in two steps: its labels go, and its mode becomes
exclusive, so that nothing new is handed to it; once it was idle in two looks it is marked offline as everywhere else.
An agent of a rarer kind carries the labels of the general kind only while it is lent: Jenkins places builds, and not we.
One whose builds weigh as much as it has executors has none either, until there is room again; that is no cordon, and it stands in no
record: it follows from the builds that are there.
Labels that a person holds are taken from the nodes, busy or not, so that jobs that ask for them wait. Jobs of other labels begin there
as before.

The labels that a node should have follow from the record, the time, the holds and the builds that are there. So the next pass makes good
a step that was cut off, and a loan and a hold end by themselves. The record names the labels of its last loan: if kinds leave the fleet
file, or their labels change, they are taken back all the same.
"""

from autoscaler.domain.facts.fleet import CORDONED_LABEL, FULL_LABEL, HELD_LABEL, Fleet
from autoscaler.domain.facts.room import Room
from autoscaler.domain.facts.snapshot import ControllerView, Node, Record
from autoscaler.domain.facts.waiting_items import QueueItem
from autoscaler.domain.labels import LabelSyntaxError, one_label, parse

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
    """Name the labels of a node with those that are about to be given back, since nobody holds them any more."""
    if HELD_LABEL not in node.labels:
        return node.labels
    return node.labels | (frozenset(record.labels) - labels_to_lend(record, fleet) - fleet.held_labels)


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
    if room is not None and not record.cordon and not room.is_shown_by(node):
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
    text = item.asked_label
    if text is None:
        return False  # what asks for no label is not taken in exclusive mode
    try:
        return parse(text).matches(node.labels)
    except LabelSyntaxError:
        return one_label(text).matches(node.labels)
