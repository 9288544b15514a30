"""Whether Jenkins may start long jobs on free executors of a pool that declines them, as far as the fleet file tells."""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.wording import listed

CURE = "give the jobs that may run there a label that no other pool has"


def jobs_without_label(pool: Pool, fleet: Fleet) -> tuple[bool | None, str]:
    """Tell whether jobs without a label stay off a pool's nodes, and if not, why; None: nobody knows."""
    if not pool.exclusive:
        return False, "exclusive: false, so Jenkins starts jobs without a label there, however long they take: set exclusive: true"
    if slots := sorted(fleet.slot_controllers & set(pool.controllers)):
        only = "Usage: Only build jobs with label expressions matching this node"
        return None, f"{listed(slots)} has static nodes (nodes: slots), and Jenkins' API does not show their mode: each should have {only}"
    return True, ""


def labels_of_others(pool: Pool, fleet: Fleet) -> dict[str, list[str]]:
    """Find the labels that other pools on the same controllers have, too, and name those: jobs may start on either."""
    shared = dict(_shared(pool, fleet))
    return {label: shared[label] for label in sorted(shared)}


def _shared(pool: Pool, fleet: Fleet) -> Iterator[tuple[str, list[str]]]:
    others = [other for other in fleet.pools.values() if other.name != pool.name and set(other.controllers) & set(pool.controllers)]
    for label in pool.labels:
        if names := [other.name for other in others if label in other.labels]:
            yield label, names
