"""Agents: each record joined with its instance and its node, and what state of life that makes."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from autoscaler.domain.marks import Mark, MarkClass, read_mark
from autoscaler.domain.model import CORDONED_LABEL, Fleet, Pool
from autoscaler.domain.snapshot import ControllerView, InstanceState, Node, OfflineCause, Record, RecordState, Snapshot

# Of a mark that stands in no record any more.
_NO_PASS = "labels"


class Phase(StrEnum):
    """Where an agent is in its life."""

    REQUESTED = "requested"  # asked for, not registered yet
    OVERDUE = "overdue"  # not registered by its boot deadline
    CONNECTING = "connecting"  # has a node, and time left to connect for the first time
    READY = "ready"  # takes builds
    RETIRING = "retiring"  # out of use by our retire mark: comes back when needed
    DRAINING = "draining"  # out of use by another mark of ours: never comes back
    SET_ASIDE = "set-aside"  # offline by a person or a monitor: hands off
    LOST = "lost"  # its connection is lost
    NODELESS = "nodeless"  # it was registered, and its node is not there
    CONDEMNED = "condemned"
    UNSEEN = "unseen"  # its controller could not be read completely


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent of ours. ``instance`` is None where EC2 was not asked or did not say; `NOT_FOUND` only where EC2 has forgotten it."""

    record: Record
    pool: Pool
    node: Node | None
    instance: InstanceState | None
    phase: Phase
    mark: Mark | None

    @property
    def key(self) -> tuple[str, str]:
        """Controller and pool: whose demand it serves."""
        return self.record.controller, self.record.pool

    @property
    def busy_executors(self) -> int:
        """Executors at work."""
        return len(self.node.builds) if self.node else 0

    @property
    def idle(self) -> bool:
        """Jenkins says so, and no executor contradicts it."""
        return self.node is not None and self.node.idle and not self.node.builds

    @property
    def by_labels(self) -> bool:
        """Our mark on it is that its labels were taken; it may still be online."""
        return self.mark is not None and self.node is not None and not self.node.temporarily_offline

    @property
    def instance_ended(self) -> bool:
        """EC2 said that it is shutting down or gone: it is no supply any more."""
        return self.machine_gone or (self.instance is not None and self.instance.ended)

    @property
    def machine_gone(self) -> bool:
        """Nothing can run on it any more: EC2 said that it has terminated, or has long forgotten it."""
        return self.instance in _GONE


_GONE = (InstanceState.TERMINATED, InstanceState.NOT_FOUND)


def join_agents(
    snapshot: Snapshot, fleet: Fleet, forgotten: Collection[str] = (), forgotten_for_a_day: Collection[str] = ()
) -> tuple[Agent, ...]:
    """Join every record that is not closed with what Jenkins and EC2 show of it; unknown pools are left out.

    ``forgotten``: instances that EC2 knew once and does not know any more; those ``forgotten_for_a_day`` though a build seems to run there.
    """
    nodes = {(view.name, node.name): node for view in snapshot.controllers.values() for node in view.nodes}
    return tuple(_join(snapshot, fleet, nodes, forgotten, forgotten_for_a_day))


def _join(
    snapshot: Snapshot,
    fleet: Fleet,
    nodes: dict[tuple[str, str], Node],
    forgotten: Collection[str],
    forgotten_for_a_day: Collection[str],
) -> Iterator[Agent]:
    for record in snapshot.records:
        pool = fleet.pools.get(record.pool)
        if pool is None or record.state is RecordState.GONE:
            continue
        node = nodes.get((record.controller, record.node)) if record.node else None
        mark = _mark_of(record, node, fleet.name)
        view = snapshot.controllers.get(record.controller)
        yield Agent(
            record=record,
            pool=pool,
            node=node,
            instance=_state(
                snapshot.states.get(record.instance_id),
                node,
                is_forgotten=record.instance_id in forgotten,
                for_a_day=record.instance_id in forgotten_for_a_day,
            ),
            mark=mark,
            phase=_phase(record, node, mark, view, boots=_boots(snapshot, record, pool)),
        )


def _mark_of(record: Record, node: Node | None, fleet: str) -> Mark | None:
    """Find our mark on a node: in its offline reason, or in the record where its labels were taken instead. A person's comes first."""
    if node is None:
        return None
    if node.temporarily_offline:
        return read_mark(node.reason, fleet) if node.cause is OfflineCause.PERSON else None
    if record.cordon:
        return read_mark(record.cordon, fleet)
    # Its labels were to be given back, and are not yet: no job that asks for one starts there.
    return Mark(fleet=fleet, kind=MarkClass.RETIRE, pass_id=_NO_PASS) if CORDONED_LABEL in node.labels else None


def _boots(snapshot: Snapshot, record: Record, pool: Pool) -> bool:
    """Tell whether an agent may still be on its way: within its deadline, and never connected yet. One that was has booted."""
    in_time = snapshot.taken_at < record.launched_at + pool.boot_timeout_seconds
    return in_time and record.instance_id not in snapshot.memory.connected


def _state(state: InstanceState | None, node: Node | None, *, is_forgotten: bool, for_a_day: bool) -> InstanceState | None:
    """NotFound says nothing by itself, and nothing at all against a node that is connected or busy."""
    if state is not InstanceState.NOT_FOUND:
        return state
    left = node is None or (node.offline and (for_a_day or (node.idle and not node.builds)))
    return InstanceState.NOT_FOUND if is_forgotten and left else None


def _phase(record: Record, node: Node | None, mark: Mark | None, view: ControllerView | None, *, boots: bool) -> Phase:
    if record.state is RecordState.CONDEMNED:
        return Phase.CONDEMNED
    if record.state is RecordState.REQUESTED:
        return Phase.REQUESTED if boots else Phase.OVERDUE
    if view is None or not view.complete or record.node in view.unread:
        return Phase.UNSEEN
    if node is None:
        return Phase.NODELESS
    if not node.offline and mark is None:
        return Phase.READY
    if mark:
        return Phase.RETIRING if mark.kind is MarkClass.RETIRE else Phase.DRAINING
    if node.temporarily_offline:
        return Phase.SET_ASIDE
    return Phase.CONNECTING if boots else Phase.LOST
