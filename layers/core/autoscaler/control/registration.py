"""Registering an instance: win its record first, then make its node; cut off anywhere, the next time it asks goes on."""

from dataclasses import dataclass, replace

from autoscaler.domain.model import Fleet, NodeSpec
from autoscaler.domain.registration import Caller, Granted, Refused, Status, Trust, authenticate, judge
from autoscaler.domain.snapshot import Record, RecordState
from autoscaler.errors import ConflictError, TransientError
from autoscaler.ports import Controller, Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How an agent connects to its controller."""

    controller: str
    url: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """Who an instance is from now on; the same instance asking again is told the same."""

    spec: NodeSpec
    connection: Connection


def register(ports: Ports, fleet: Fleet, caller: Caller, trust: Trust) -> Registered | Refused:
    """Say to an instance which node it is. Whatever does not answer is a reason to ask again."""
    try:
        return authenticate(caller, trust) or _register(ports, fleet, caller, trust)
    except TransientError as error:
        return Refused(status=Status.UNAVAILABLE, reason=f"{type(error).__name__}: {error}")


def _register(ports: Ports, fleet: Fleet, caller: Caller, trust: Trust) -> Registered | Refused:
    identity = ports.compute.identity(caller.session)
    record = next((record for record in ports.ledger.read().records if record.instance_id == caller.session), None)
    verdict = judge(caller, trust, identity, record, fleet, ports.clock())
    if isinstance(verdict, Refused):
        return verdict
    _win(ports, verdict)
    controller = _controller(ports, verdict.record)
    try:
        controller.create_node(verdict.spec)
    except ConflictError:
        # It asked before, or rebooted: the name is its own and nobody else's, so the node is, too.
        ports.log("node_exists", node=verdict.spec.name, instance_id=verdict.record.instance_id)
    ports.compute.name_instance(verdict.record.instance_id, verdict.spec.name)
    connection = Connection(controller=controller.name, url=controller.url, secret=controller.agent_secret(verdict.spec.name))
    return Registered(spec=verdict.spec, connection=connection)


def _win(ports: Ports, granted: Granted) -> None:
    """Win ``requested -> registered`` before there is a node: whoever condemned the record meanwhile has won instead."""
    record = granted.record
    if record.state is RecordState.REQUESTED:
        now = ports.clock()
        registered = replace(record, state=RecordState.REGISTERED, node=granted.spec.name, registered_at=now, changed_at=now)
        ports.ledger.change_record(registered, expected=RecordState.REQUESTED)


def _controller(ports: Ports, record: Record) -> Controller:
    return next(controller for controller in ports.controllers if controller.name == record.controller)
