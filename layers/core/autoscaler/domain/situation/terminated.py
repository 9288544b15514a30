"""Remembers which instances EC2 has reported as terminated. That is final, whatever a later answer leaves out or still shows.

EC2's answers come from several machines, which learn of an end one after another and forget it an hour later.
"""

from collections.abc import Mapping
from dataclasses import replace

from autoscaler.domain.facts.snapshot import InstanceState, Snapshot


def with_terminated(snapshot: Snapshot) -> Snapshot:
    """Correct what EC2 shows in a look by what it has said before."""
    ended = snapshot.memory.terminated
    if not ended:
        return snapshot
    shown = {instance.id for instance in snapshot.instances}
    fates = {**snapshot.fates, **{name: InstanceState.TERMINATED for name in ended if name in shown or name in snapshot.fates}}
    instances = (
        tuple(instance for instance in snapshot.instances if instance.id not in ended) if shown & ended.keys() else snapshot.instances
    )
    reasons = {**{name: why for name, why in ended.items() if why}, **snapshot.end_reasons}
    return replace(snapshot, fates=fates, instances=instances, end_reasons=reasons)


def next_terminated(before: Mapping[str, str], snapshot: Snapshot) -> dict[str, str]:
    """Note which instances have terminated, and why, as long as a record or a node names them."""
    named = {record.machine for record in snapshot.records} | snapshot.fates.keys()
    seen = {name for name, state in snapshot.fates.items() if state is InstanceState.TERMINATED}
    return {name: snapshot.end_reasons.get(name, before.get(name, "")) for name in sorted(seen | (before.keys() & named))}
