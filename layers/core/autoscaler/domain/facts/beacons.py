"""Beacons: nodes of ours that never connect, so that Jenkins' queue tells which labels it waits for."""

import re

from autoscaler.domain.facts.fleet import HELD_LABEL, Fleet, NodeSpec, in_home, labels_given


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
    return tuple(_beacon_spec(fleet, name, labels) for name, labels in beacons)


def _beacon_spec(fleet: Fleet, name: str, labels: tuple[str, ...]) -> NodeSpec:
    return NodeSpec(
        name=name,
        labels=labels,
        executors=1,
        exclusive=True,
        remote_dir="/nonexistent",
        description=f"Kept by the autoscaler of fleet {fleet.name}{in_home(fleet)} with the labels {' '.join(labels)}. It never connects; "
        "while it exists, Jenkins' queue tells which labels it waits for, even when no agent is there. Put back when deleted.",
    )


def beacon_labels(node: str, description: str, labels: frozenset[str]) -> frozenset[str]:
    """Read the labels that a beacon was made with: a plugin may have added others. ``labels``: those that it has now."""
    made_with = _BEACON.search(description)
    return (frozenset(made_with[1].split()) if made_with else labels) - {node}


_BEACON = re.compile(r"with the labels (.+?)\. It never connects")
