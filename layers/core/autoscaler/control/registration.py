"""Registers an instance: claims its record, then creates its node. Cut off anywhere, its next request goes on."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from autoscaler.control import reserving
from autoscaler.domain.facts.fleet import Fleet, NodeSpec, agent_spec, user_for
from autoscaler.domain.facts.metering import begin_again
from autoscaler.domain.facts.snapshot import Node, Record, RecordState
from autoscaler.domain.repair.static_nodes import free_slots
from autoscaler.domain.report.registration import MAX_REQUESTS_PER_HOUR, Asked, Caller, Granted, Refused, Status, Trust, authenticate, judge
from autoscaler.errors import AutoscalerError, ConflictError, TransientError
from autoscaler.ports import Controller, Ports, StoredState

# Launched, or started: it is to become an agent.
_ASKED_FOR = (RecordState.REQUESTED, RecordState.STARTING)
NOTHING_SAID = Asked()
# Each costs a write; an instance that found none asks again.
_SLOTS_TRIED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How an agent connects to its controller. ``secret`` None: it is connected, and knows it."""

    controller: str
    url: str
    secret: str | None
    user: str = ""  # who runs its builds, where controllers share the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The identity of an instance; asking again gives the same."""

    spec: NodeSpec
    connection: Connection


def register(ports: Ports, fleet: Fleet, caller: Caller, trust: Trust, asked: Asked = NOTHING_SAID) -> Registered | Refused:
    """Tell an instance which node it is. Any error is a reason to ask again."""
    try:
        refused = authenticate(caller, trust) or _too_often(ports, caller)
        return refused or _unchanged(ports, fleet, caller, asked) or _register(ports, fleet, caller, trust)
    except AutoscalerError as error:
        # A setting or a credential of ours may be mended while the instance goes on asking.
        return Refused(status=Status.UNAVAILABLE, reason=f"{type(error).__name__}: {error}")


def _too_often(ports: Ports, caller: Caller) -> Refused | None:
    if ports.rate_limiter.admit(caller.session, now=ports.clock()):
        return None
    return Refused(status=Status.TOO_MANY, reason=f"it asked more than {MAX_REQUESTS_PER_HOUR} times within the hour")


def _unchanged(ports: Ports, fleet: Fleet, caller: Caller, asked: Asked) -> Registered | None:
    """Answer one that is what it should be from its own record alone: agents ask often, and EC2 and Jenkins need not know.

    What it says of itself is no identity: it is compared with its record. Whoever lies learns what it has said.
    """
    record = ports.state.record(caller.session) if asked.connected else None
    if record is None or record.state is not RecordState.REGISTERED or record.node is None:
        return None
    is_it = record.role_id == caller.role_id and asked.connected == (f"{record.controller}/{record.node}",)
    pool = fleet.pools.get(record.pool)
    controller = next((one for one in ports.controllers if one.name == record.controller), None)
    if not is_it or controller is None or pool is None or controller.name not in pool.controllers:
        return None
    spec, user = replace(agent_spec(fleet, pool, record.instance_id, controller.name), name=record.node), user_for(pool, controller.name)
    return Registered(spec=spec, connection=Connection(controller=controller.name, url=controller.url, secret=None, user=user))


def _register(ports: Ports, fleet: Fleet, caller: Caller, trust: Trust) -> Registered | Refused:
    identity = ports.compute.identity(caller.session)
    stored = ports.state.read()
    if f"record#{caller.session}" in stored.unread:
        raise TransientError("its record cannot be read by this version")
    record = next((record for record in stored.records if record.instance_id == caller.session), None)
    verdict = judge(caller, trust, identity, record, fleet)
    if isinstance(verdict, Refused):
        return (verdict.status is Status.GONE and record and _at_work(ports, stored, record)) or verdict
    if verdict.record.boots_to_stop:
        return _booted_to_stop(ports, verdict.record)
    return _grant_node(ports, fleet, replace(verdict, record=replace(verdict.record, role_id=caller.role_id)), stored.records)


def _booted_to_stop(ports: Ports, record: Record) -> Refused:
    """Note that an instance has booted that was launched to be stopped: the next pass stops it. It gets no node, and so no build."""
    ports.state.change_record(replace(record, state=RecordState.STOPPING, changed_at=ports.clock()), expected=record.state)
    return Refused(status=Status.TOO_EARLY, reason="it has booted, and is stopped until it is needed: it asks again once it is started")


def _grant_node(ports: Ports, fleet: Fleet, granted: Granted, records: Iterable[Record]) -> Registered | Refused:
    """Give an instance its node: a free slot, or one of its own name, made once in each of its lives."""
    controller = next(controller for controller in ports.controllers if controller.name == granted.record.controller)
    if granted.record.state is RecordState.STOPPED:
        granted = replace(granted, record=_started_by_hand(ports, granted.record))
    if controller.name in fleet.slot_controllers:
        slot = _take_slot(ports, fleet, controller, granted, records)
        return slot if isinstance(slot, Refused) else _connect(ports, fleet, controller, slot, user="", has_node=True)
    claimed = _claim_name(ports, fleet, granted)
    has_node = claimed.record.node_life == claimed.record.life
    if has_node and controller.node(claimed.spec.name) is None:
        # One answer is no reason to power off: scale_down looks twice, and terminates it.
        return Refused(status=Status.UNAVAILABLE, reason=f"its node {claimed.spec.name} was deleted")
    user = user_for(fleet.pools[claimed.record.pool], controller.name)
    return _connect(ports, fleet, controller, claimed, user=user, has_node=has_node)


def _started_by_hand(ports: Ports, record: Record) -> Record:
    """Note that a stopped agent runs, as EC2 says, though nobody here started it."""
    begun = begin_again(record, ports.clock())
    ports.state.change_record(begun, expected=RecordState.STOPPED)
    return begun


def _connect(ports: Ports, fleet: Fleet, controller: Controller, granted: Granted, *, user: str, has_node: bool) -> Registered:
    """Make the node if there is none, and tell how to connect to it.

    Its record says why that failed: whoever gives the instance up counts a failed boot, and can name the reason.
    """
    record = granted.record
    try:
        if not has_node:
            record = _make_node(ports, fleet, controller, granted)
        reserving.keep_builds_away(controller, record, granted.spec.name, fleet)
        ports.compute.name_instance(record.instance_id, granted.spec.name, controller.name)
        secret = controller.agent_secret(granted.spec.name)
    except AutoscalerError as error:
        _note_trouble(ports, record, f"{type(error).__name__}: {error}")
        raise
    _note_trouble(ports, record, "")
    return Registered(spec=granted.spec, connection=Connection(controller=controller.name, url=controller.url, secret=secret, user=user))


def _at_work(ports: Ports, stored: StoredState, record: Record) -> Refused | None:
    """Tell a condemned instance to ask again while a build may be on it; None where none is."""
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
    """Claim a node name of its own, and note the labels it is created with: taken labels are given back from this note."""
    if granted.record.state not in _ASKED_FOR:
        return granted
    record = replace(granted.record, labels=granted.spec.labels, exclusive=granted.spec.exclusive)
    return _win(ports, replace(granted, record=reserving.out_of_use(record, fleet)), granted.spec.name)


def _make_node(ports: Ports, fleet: Fleet, controller: Controller, granted: Granted) -> Record:
    """Create a node of its own, under a name that is never used again, and once in a life of its instance.

    That it was made is written down after it was: cut off in between, the next ask goes on.
    """
    try:
        controller.create_node(reserving.node_of(granted.record, granted.spec, fleet, ports.clock()))
    except ConflictError:
        # It asked before, or rebooted: the name is its own and nobody else's, so the node is, too.
        ports.log("node_exists", node=granted.spec.name, instance_id=granted.record.instance_id)
    made = replace(granted.record, node_life=granted.record.life)
    ports.state.change_record(made, expected=RecordState.REGISTERED)
    return made


def _note_trouble(ports: Ports, record: Record, trouble: str) -> None:
    if trouble == record.trouble:
        return
    try:
        ports.state.change_record(replace(record, trouble=trouble), expected=record.state)
    except AutoscalerError as error:
        # It asks again, and what is wrong is wrong then, too.
        ports.log("trouble_not_noted", instance_id=record.instance_id, error=f"{type(error).__name__}: {error}")


def _take_slot(ports: Ports, fleet: Fleet, controller: Controller, granted: Granted, records: Iterable[Record]) -> Granted | Refused:
    """Take a free slot at random: instances that ask at the same moment then seldom want the same one, and never both get it."""
    record = granted.record
    if record.node is not None:
        node = controller.node(record.node)
        return _as_it_is(granted, node) if node else Refused(status=Status.GONE, reason=f"its slot {record.node} was deleted")
    view = controller.look()
    if not view.complete:
        raise TransientError(f"{controller.name} could not be read: {view.problem}")
    free = free_slots(view, fleet, records).get(record.pool, [])
    for slot in ports.shuffled(free)[:_SLOTS_TRIED]:
        try:
            won = _win(ports, granted, slot.name)
        except ConflictError:
            ports.log("slot_taken", node=slot.name, instance_id=record.instance_id)
        else:
            return _as_it_is(won, slot)
    return Refused(status=Status.NO_SLOT, reason=f"no slot of pool {record.pool} is free on {controller.name}")


def _as_it_is(granted: Granted, slot: Node) -> Granted:
    """Take the slot's own labels and executors."""
    labels = tuple(sorted(slot.labels - {slot.name}))
    return replace(granted, spec=replace(granted.spec, name=slot.name, labels=labels, executors=slot.executors))


def _win(ports: Ports, granted: Granted, node: str) -> Granted:
    """Change it to ``registered`` before there is a node. Whoever condemned the record meanwhile has won the race."""
    record = granted.record
    if record.state not in _ASKED_FOR:
        return granted
    now = ports.clock()
    registered = replace(record.bound(node=node), state=RecordState.REGISTERED, registered_at=now, changed_at=now, to_stop=False)
    ports.state.change_record(registered, expected=record.state)
    return replace(granted, record=registered)
