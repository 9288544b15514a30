"""Gives a machine its node on one controller: claims its record, then creates the node. Cut off anywhere, its next request goes on."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from autoscaler.domain.facts.fleet import HELD_LABEL, Fleet, NodeSpec, Pool, Share, agent_spec, user_for
from autoscaler.domain.facts.metering import begin_again
from autoscaler.domain.facts.nodes import (
    Mark,
    MarkClass,
    described_instance,
    executors_at_first,
    labels_wanted,
    takes_static_node,
    with_known_weights,
)
from autoscaler.domain.facts.orders import with_held_labels
from autoscaler.domain.facts.snapshot import Node, Record, RecordState
from autoscaler.domain.repair.nodes import free_slots
from autoscaler.domain.report.registration import Granted, Refused, Status
from autoscaler.errors import AutoscalerError, ConfigError, ConflictError, TransientError
from autoscaler.ports import Controller, Ports, StoredState

# Launched, or started: it is to become an agent.
# Each costs a write; an instance that found none asks again.
_SLOTS_TRIED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a machine connects to a controller. ``secret`` None: it is connected, and knows it. ``life``: another one begins anew."""

    controller: str
    url: str
    spec: NodeSpec
    secret: str | None
    user: str = ""  # who runs its builds, where controllers share the machine, or it is a host
    life: int = 0

    @property
    def key(self) -> str:
        """What a machine says that it is connected as."""
        return f"{self.controller}/{self.spec.name}/{self.life}"


def connected(ports: Ports, fleet: Fleet, record: Record) -> Connection | None:
    """Return the connection that a machine has by its record; None where it has none that anybody knows here.

    One to a controller that left the fleet file stays: nobody sees what runs by it. The machine has its address.
    """
    pool = fleet.pool_of(record.pool, record.controller)
    if pool is None or record.node is None:
        return None
    spec = replace(agent_spec(fleet, pool, record.machine, record.controller), name=record.node)
    return as_it_is(ports, pool, record.controller, spec, record.life)


def as_it_is(ports: Ports, pool: Pool, controller: str, spec: NodeSpec, life: int) -> Connection:
    """Leave a machine connected to a controller, which may have left the fleet file: then nobody knows its address."""
    url = next((one.url for one in ports.controllers if one.name == controller), "")
    return Connection(controller=controller, url=url, spec=spec, secret=None, user=user_for(pool, controller), life=life)


def in_force(fleet: Fleet, stored: StoredState, now: float) -> Fleet:
    """Return the fleet with the weights that were learned, and the labels that people hold."""
    return with_held_labels(with_known_weights(fleet, stored.learned), stored.overrides.at(now))


def grant(ports: Ports, fleet: Fleet, granted: Granted, records: Iterable[Record]) -> Connection | Refused:
    """Give an instance its node: a free slot, or one of its own name, made once in each of its lives."""
    controller = next(controller for controller in ports.controllers if controller.name == granted.record.controller)
    if granted.record.state is RecordState.STOPPED:
        # It runs, as EC2 says, though nobody here started it.
        started = begin_again(granted.record, ports.clock())
        granted = replace(granted, record=ports.state.change_record(started, expected=RecordState.STOPPED))
    if takes_static_node(fleet, granted.record):
        slot = _take_slot(ports, fleet, controller, granted, records)
        return slot if isinstance(slot, Refused) else _connect(ports, fleet, controller, slot, user="", has_node=True)
    claimed = _claim_name(ports, fleet, granted)
    record, pool = claimed.record, fleet.pool_of(claimed.record.pool, claimed.record.controller)
    has_node = record.node_life == record.life
    node = controller.node(claimed.spec.name) if has_node else None
    if has_node and (node is None or node.is_deleted):
        # A node that a person deleted is made again for a machine that may be in use on other controllers.
        is_made_again = record.is_host or (pool is not None and pool.share is Share.COOPERATIVE)
        if node is None and not is_made_again:
            # One answer is no reason to power off: scale_down looks twice, and terminates it.
            return Refused(status=Status.UNAVAILABLE, reason=f"its node {claimed.spec.name} was deleted")
        has_node = not is_made_again
    user = user_for(pool, record.controller) if pool else ""
    return _connect(ports, fleet, controller, claimed, user=user, has_node=has_node)


def _connect(ports: Ports, fleet: Fleet, controller: Controller, granted: Granted, *, user: str, has_node: bool) -> Connection:
    """Make the node if there is none, and tell how to connect to it.

    Its record says why that failed: whoever gives the instance up counts a failed boot, and can name the reason.
    """
    record = granted.record
    try:
        if not has_node:
            record = _make_node(ports, fleet, controller, granted)
        _keep_builds_away(controller, record, granted.spec.name, fleet)
        if record.is_instance:
            ports.compute.name_instance(record.instance_id, granted.spec.name, controller.name)
        secret = controller.agent_secret(granted.spec.name)
    except AutoscalerError as error:
        noted(ports, record, replace(record, trouble=f"{type(error).__name__}: {error}"), "trouble_not_noted")
        raise
    noted(ports, record, replace(record, trouble=""), "trouble_not_noted")
    return Connection(controller=controller.name, url=controller.url, spec=granted.spec, secret=secret, user=user, life=granted.record.life)


def at_work(ports: Ports, stored: StoredState, record: Record) -> Refused | None:
    """Tell a condemned machine to ask again while a build may be on it; None where none is."""
    if record.node is None:
        return None
    controller = next((controller for controller in ports.controllers if controller.name == record.controller), None)
    if controller is None:
        return Refused(
            status=Status.UNAVAILABLE, reason=f"its controller {record.controller} is not in the fleet file, so nobody knows what it does"
        )
    node = controller.node(record.node)
    life = stored.memory.sessions.get(record.controller)
    suspect = life is not None and record.node in life.suspects
    if node is not None and (suspect or not node.offline or not node.idle or node.builds):
        return Refused(status=Status.UNAVAILABLE, reason=f"it was given up, and a build may be on its node {record.node}")
    return None


def _claim_name(ports: Ports, fleet: Fleet, granted: Granted) -> Granted:
    """Claim a node name of its own, and note the labels it is created with: taken labels are given back from this note.

    The node of an instance that registers for a person has none of the labels that jobs ask for.
    """
    if not granted.record.state.is_asked_for:
        return granted
    labels, for_a_person = granted.spec.labels, granted.record.reservation is not None
    cordon = _mark(fleet).text if for_a_person and labels else granted.record.cordon
    record = replace(granted.record, labels=labels, exclusive=granted.spec.exclusive, cordon=cordon)
    return _win(ports, replace(granted, record=record), granted.spec.name)


def _make_node(ports: Ports, fleet: Fleet, controller: Controller, granted: Granted) -> Record:
    """Create a node of its own, under a name that is never used again, and once in a life of its instance.

    That it was made is written down after it was: cut off in between, the next ask goes on.
    """
    pool = fleet.pool_of(granted.record.pool, granted.record.controller)
    spec = replace(granted.spec, executors=executors_at_first(pool, fleet)) if pool else granted.spec
    try:
        controller.create_node(_node_of(granted.record, spec, fleet, ports.clock()))
    except ConflictError:
        # It asked before, or rebooted: the name is its own and nobody else's, so the node is, too. A host's name was chosen by a person.
        there = controller.node(granted.spec.name) if granted.record.is_host else None
        if there is not None and described_instance(fleet, there.name, there.description) != granted.record.machine:
            raise ConfigError(
                f"a node {granted.spec.name} is there on {controller.name} that is not ours: rename the host, or the node"
            ) from None
        ports.log("node_exists", node=granted.spec.name, instance_id=granted.record.instance_id)
    made = replace(granted.record, node_life=granted.record.life, by_weight=spec.executors != granted.spec.executors)
    return ports.state.change_record(made, expected=RecordState.REGISTERED)


def noted(ports: Ports, record: Record, changed: Record, event: str) -> Record:
    """Note on a record why its machine does not connect. If that fails, it asks again, and what is wrong is wrong then, too."""
    change = partial(ports.state.change_record, changed, expected=record.state)
    return record if changed == record else ports.or_else(change, event, otherwise=record, instance_id=record.instance_id)


def _take_slot(ports: Ports, fleet: Fleet, controller: Controller, granted: Granted, records: Iterable[Record]) -> Granted | Refused:
    """Take a free slot at random: instances that ask at the same moment then seldom want the same one, and never both get it."""
    record = granted.record
    if record.node is not None:
        node, deleted = controller.node(record.node), Refused(status=Status.GONE, reason=f"its slot {record.node} was deleted")
        return _as_labelled(_win(ports, granted, record.node), node) if node else deleted
    view = controller.look()
    if not view.complete:
        raise TransientError(f"{controller.name} could not be read: {view.problem}")
    for slot in ports.shuffled(free_slots(view, fleet, records).get(record.pool, []))[:_SLOTS_TRIED]:
        try:
            won = _win(ports, granted, slot.name)
        except ConflictError:
            if ports.state.record(record.instance_id) != record:
                raise  # somebody changed its own record: another slot would be refused, too
            ports.log("slot_taken", node=slot.name, instance_id=record.instance_id)
        else:
            return _as_labelled(won, slot)
    return Refused(status=Status.NO_SLOT, reason=f"no slot of pool {record.pool} is free on {controller.name}")


def _as_labelled(granted: Granted, slot: Node) -> Granted:
    """Take the slot's own labels and executors."""
    labels = tuple(sorted(slot.labels - {slot.name}))
    return replace(granted, spec=replace(granted.spec, name=slot.name, labels=labels, executors=slot.executors))


def _win(ports: Ports, granted: Granted, node: str) -> Granted:
    """Change it to ``registered`` before there is a node. If another pass condemned the record meanwhile, that one has won the race."""
    record = granted.record
    if not record.state.is_asked_for:
        return granted
    now = ports.clock()
    registered = replace(record.bound(node=node), state=RecordState.REGISTERED, registered_at=now, changed_at=now)
    return replace(granted, record=ports.state.change_record(registered, expected=record.state))


# Nodes that are made for people: no build begins there ever.


# In the mark of such a node: no pass has set it.
_AT_REGISTRATION = "registration"


def _node_of(record: Record, spec: NodeSpec, fleet: Fleet, now: float) -> NodeSpec:
    """Describe the node that is made for an instance: as its pool's, without labels that people hold, or out of use for a person."""
    if record.reservation and record.cordon:
        labels, exclusive = labels_wanted(record, fleet, now)
        return replace(spec, labels=tuple(sorted(labels)), exclusive=exclusive)
    held = fleet.held_labels.intersection(spec.labels)
    return replace(spec, labels=(*sorted({*spec.labels} - held), HELD_LABEL)) if held else spec


def _keep_builds_away(controller: Controller, record: Record, node: str, fleet: Fleet) -> None:
    """Mark the node of a reserved agent offline before the agent is told how to connect: no build can be handed to it ever."""
    if record.reservation is None:
        return
    there = controller.node(node)
    if there is not None and not there.temporarily_offline:
        controller.set_offline(node, _mark(fleet).text)


def _mark(fleet: Fleet) -> Mark:
    return Mark(fleet=fleet.name, kind=MarkClass.RESERVED, pass_id=_AT_REGISTRATION)
