"""Registers an instance or a host: tells it which node it is, on each controller. Cut off anywhere, its next request goes on."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from autoscaler.control import granting
from autoscaler.control.granting import Connection
from autoscaler.domain.facts.fleet import BUILD_USER, Fleet, Host, Pool, Share, agent_spec
from autoscaler.domain.facts.metering import rotated
from autoscaler.domain.facts.nodes import described_instance, has_static_node, is_wanted, side_id
from autoscaler.domain.facts.pools import with_left
from autoscaler.domain.facts.snapshot import Binding, Record, RecordState, Reservation
from autoscaler.domain.facts.telemetry import CONTROLLER, DEVICES_POLL_SECONDS, Devices
from autoscaler.domain.report.registration import (
    MAX_REQUESTS_PER_HOUR,
    POLL_SECONDS,
    Asked,
    Caller,
    Granted,
    Refused,
    Status,
    Trust,
    authenticate,
    authenticate_host,
    judge,
)
from autoscaler.errors import AutoscalerError, TransientError
from autoscaler.ports import Controller, Ports, StoredState

# What a machine says that it is connected as.
#
# It is no identity: it only tells what a lost record said, or what an answer must not leave out. An agent that lies about it lies about its
# own machine alone.


# A controller, a node, and a life, none of which has more digits.
_CLAIM = re.compile(r"([^/]*)/(.+)/([0-9]{1,9})", re.DOTALL)


def claims(asked: Asked) -> list[Binding]:
    """Read what a machine says that it is connected as; what cannot be read is left out."""
    found = filter(None, map(_CLAIM.fullmatch, asked.connected))
    return [Binding(controller=key[1], node=key[2], life=int(key[3])) for key in found]


def claim_on(asked: Asked, controller: str, node: str) -> Binding | None:
    """Find the connection that a machine says it has as a node of a controller."""
    return next((claim for claim in claims(asked) if (claim.controller, claim.node) == (controller, node)), None)


def as_it_says(ports: Ports, record: Record, claim: Binding | None) -> Record | None:
    """Note what a machine is connected as, if its record does not know: it was lost since, or is back as it was before.

    Each start and each change of controllers begins a new life. A claim about an earlier life is out of date.
    """
    if claim is None or claim == record.bindings[0] or claim.life < record.life or record.state.is_given_up:
        return None
    begun = replace(rotated(record, claim.controller, ports.clock()), bindings=(claim,), leaves=record.leaves)
    return ports.state.change_record(begun, expected=record.state)


# Registers what a host, or a machine that serves several controllers at once, is on one of them.
#
# What goes wrong on one controller keeps the machine from none of the others, and ends no connection: what an answer leaves out ends, so
# that what the machine says it is connected as stays in it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that asks, and what is known of it."""

    ports: Ports
    fleet: Fleet
    pool: Pool
    stored: StoredState
    caller: Caller
    asked: Asked
    id: str  # of its instance or host

    def told(self, controller: str, *, alone: bool = False) -> Connection | Refused:
        """Return how it connects to a controller. ``alone``: it serves no other one at the same time."""
        name = self.id if alone else side_id(self.id, controller)
        record = next((one for one in self.stored.records if one.instance_id == name), None)
        serves = record.controller if record else controller
        try:
            if f"record#{name}" in self.stored.unread:
                raise TransientError("its record cannot be read by this version")
            if serves not in self.fleet.controllers:
                raise TransientError(f"{serves} is not in the fleet file any more, so nobody knows what it does there")
            refused_or_granted = self._granted(
                record or self._new(name, claim_on(self.asked, controller, self._name(controller)) or Binding(controller=controller))
            )
        except AutoscalerError as error:
            self.ports.log("side_not_told", record=name, error=f"{type(error).__name__}: {error}")
            refused_or_granted = Refused(status=Status.UNAVAILABLE, reason=f"{type(error).__name__}: {error}")
        if isinstance(refused_or_granted, Refused) and refused_or_granted.status is not Status.GONE:
            # A record that was made anew names no node before Jenkins has answered.
            stays = self._kept(record) if record is not None and record.node is not None else self._as_it_says(controller)
            return stays or refused_or_granted
        return refused_or_granted

    def left(self, wanted: Collection[str]) -> list[Connection]:
        """Return what it is connected to beside these of its records: it is not to serve these any more, and is yet to be drained there.

        If its record cannot be read, it stays connected. If its record was lost, it is written again: where the controller left the fleet
        file, since nobody sees what runs there; elsewhere only if something is on its node, so that the node is drained.
        """
        mine = {one.instance_id: one for one in self.stored.records if one.machine == self.id and one.instance_id not in wanted}
        kept = [self._left_on(record) for record in mine.values()]
        others = [claim for claim in claims(self.asked) if side_id(self.id, claim.controller) not in wanted]
        unread = (self._as_it_says(one.controller) for one in others if self._is_unread(one.controller))
        unseen = [self._unseen(claim) for claim in others if self._is_lost_unseen(claim.controller)]
        lost = [self.told(claim.controller) for claim in others if self._is_lost_in_use(claim)]
        return [answer for answer in (*kept, *unread, *unseen, *lost) if isinstance(answer, Connection)]

    def has_node(self, controller: str) -> bool:
        """Tell whether it has a node of its own on a controller; one that cannot be asked shows none."""
        asked = next((one for one in self.ports.controllers if one.name == controller), None)
        read = partial(asked.node, self._name(controller)) if asked else lambda: None
        node = self.ports.or_else(read, "side_not_read", otherwise=None, machine=self.id, controller=controller)
        return node is not None and described_instance(self.fleet, node.name, node.description) == self.id

    def _name(self, controller: str) -> str:
        return agent_spec(self.fleet, self.pool, self.id, controller).name

    def _left_on(self, record: Record) -> Connection | Refused | None:
        """Leave it connected there. What was written again, and not granted since the last request was cut off, is granted now."""
        is_ungranted = record.state is RecordState.STARTING and record.controller in self.fleet.controllers
        return self.told(record.controller) if is_ungranted else self._kept(record)

    def _is_unread(self, controller: str) -> bool:
        return f"record#{side_id(self.id, controller)}" in self.stored.unread

    def _is_lost_unseen(self, controller: str) -> bool:
        """Tell whether its record on a controller that left the fleet file was lost."""
        is_recorded = any(one.machine == self.id and one.controller == controller for one in self.stored.records)
        return not (is_recorded or self._is_unread(controller) or controller in self.fleet.controllers)

    def _unseen(self, claim: Binding) -> Connection | None:
        """Record that an instance is connected where nobody sees its builds, so that nothing ends it; nothing ever ends a host."""
        if not self.pool.of_hosts:
            self._new(side_id(self.id, claim.controller), claim)  # in one write: without a node it would protect nothing
        return self._as_it_says(claim.controller)

    def _is_lost_in_use(self, claim: Binding) -> bool:
        """Tell whether no record says what it is connected as to a controller of its pool, and its node there is not known to be idle."""
        mine = (record for record in self.stored.records if record.machine == self.id)
        served = {binding.controller for record in mine for binding in (*record.bindings, *record.leaves)}
        controller = next((one for one in self.ports.controllers if one.name == claim.controller), None)
        is_ours = claim.controller in self.pool.controllers and claim.node == self._name(claim.controller)
        if claim.controller in served or not is_ours or controller is None:
            return False
        # A node that cannot be asked may be at work.
        is_busy = partial(_is_busy, controller, self._name(claim.controller))
        return self.ports.or_else(is_busy, "side_not_read", otherwise=True, machine=self.id, controller=controller.name)

    def _granted(self, record: Record) -> Connection | Refused:
        if over := self._last_life(record):
            return over
        record = as_it_says(self.ports, record, claim_on(self.asked, record.controller, self._name(record.controller))) or record
        if record.state is RecordState.CONDEMNED:
            return granting.at_work(self.ports, self.stored, record) or Refused(status=Status.GONE, reason="it was given up here")
        spec = agent_spec(self.fleet, self.pool, self.id, record.controller)
        granted = Granted(record=replace(record, role_id=self.caller.role_id), spec=spec)
        fleet = granting.in_force(self.fleet, self.stored, self.ports.clock())
        return granting.grant(self.ports, fleet, granted, self.stored.records)

    def _last_life(self, record: Record) -> Connection | Refused | None:
        """Let the Java of an earlier life end before there is a node that it would connect to; a build that is there ends first."""
        claim = claim_on(self.asked, record.controller, self._name(record.controller))
        if claim is None or claim.life >= record.life:
            return None
        controller = next(one for one in self.ports.controllers if one.name == record.controller)
        if _is_busy(controller, self._name(record.controller)):
            return self._as_it_says(record.controller)
        return Refused(status=Status.GONE, reason="its life there is over, and it begins anew")

    def _as_it_says(self, controller: str) -> Connection | None:
        """Leave it connected to a controller as it says that it is, where no record tells."""
        spec = agent_spec(self.fleet, self.pool, self.id, controller)
        claim = claim_on(self.asked, controller, spec.name)
        return granting.as_it_is(self.ports, self.pool, controller, spec, claim.life) if claim else None

    def _kept(self, record: Record) -> Connection | None:
        """Leave it connected as it says that it is."""
        kept = granting.connected(self.ports, self.fleet, record)
        return kept if kept and kept.key in self.asked.connected else None

    def _new(self, name: str, binding: Binding) -> Record:
        """Write a record of what was never launched; as long as it has no node, it asks who it is."""
        now = self.ports.clock()
        record = Record(
            instance_id=name,
            state=RecordState.STARTING,
            pool=self.pool.name,
            bindings=(binding,),
            launch="",
            instance_type="",
            usd_per_hour=0.0,
            launched_at=now,
            registered_at=None,
            keep_until=0.0,
            changed_at=now,
            exclusive=self.pool.exclusive,
            rotated_at=now,
            role_id=self.caller.role_id,
        )
        self.ports.state.add_record(record)
        return record


# Answers the request of a machine.


def _is_busy(controller: Controller, name: str) -> bool:
    node = controller.node(name)
    return node is not None and (bool(node.builds) or not node.idle)


NOTHING_SAID = Asked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The identity of a machine on each controller that it serves; asking again gives the same."""

    connections: tuple[Connection, ...]
    poll_seconds: int = POLL_SECONDS
    people: tuple[Reservation, ...] = ()  # who have a device of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The machine of a controller was heard: it is connected to nothing."""

    controller: str


def register(ports: Ports, fleet: Fleet, caller: Caller, trust: Trust, asked: Asked = NOTHING_SAID) -> Registered | Heard | Refused:
    """Tell a machine which node it is. Any error is a reason to ask again."""
    host = next((host for host in fleet.hosts.values() if host.role_id == caller.role_id), None)
    controller = fleet.controller_hosts.get(caller.role_id)
    machine = f"{CONTROLLER}{controller}" if controller else host.id if host else caller.session
    said = replace(asked, devices=()) if controller else asked  # devices are of agents
    request = _Request(ports=ports, fleet=fleet, caller=caller, trust=trust, asked=said, host=host, id=machine)
    try:
        refused = (authenticate_host if host or controller else authenticate)(caller, trust) or request.too_often()
        return refused or (Heard(controller=controller) if controller else request.answer())
    except AutoscalerError as error:
        # A setting or a credential of ours may be mended while the machine goes on asking.
        return Refused(status=Status.UNAVAILABLE, reason=f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """A request of a machine: an instance, a host, or that of a controller, which alone has its role."""

    ports: Ports
    fleet: Fleet
    caller: Caller
    trust: Trust
    asked: Asked
    host: Host | None
    id: str  # of the machine
    known: dict[str, Record | None] = field(default_factory=dict)  # records of it that were read for this answer, by id

    def too_often(self) -> Refused | None:
        """Refuse one that asks more often than an agent does. Its report about itself is kept in the same write."""
        devices = self._devices() if self.asked.devices else None
        if self.ports.rate_limiter.admit(self.id, now=self.ports.clock(), telemetry=self.asked.telemetry, devices=devices):
            return None
        return Refused(status=Status.TOO_MANY, reason=f"it asked more than {MAX_REQUESTS_PER_HOUR} times within the hour")

    def answer(self) -> Registered | Refused:
        """Tell who it is, from its own records where nothing is new."""
        told = self._unchanged() or (self._connect_host(self.host) if self.host else self._connect_instance())
        if isinstance(told, Refused):
            return told
        poll_seconds = DEVICES_POLL_SECONDS if self.asked.devices else POLL_SECONDS
        return Registered(connections=tuple(told), poll_seconds=poll_seconds, people=self._people())

    def _people(self) -> tuple[Reservation, ...]:
        """Read who has a device of it, from the records in which that may stand: whoever an answer does not name loses it.

        What was read for this answer is not read again. The fleet file may share the machine no more.
        """
        if self.asked.devices or any(pool.share is Share.COOPERATIVE for pool in self.fleet.pools.values()):
            # In a host's first side when it was reserved: the fleet file may name its controllers in another order by now.
            for name in [side_id(self.id, controller) for controller in self.fleet.controllers] if self.host else [self.id]:
                self._record(name)
            # Somebody may hold a device who is no build's user, and in none of the records that were read.
            users = {device.user for device in self.asked.devices if device.user and not device.user.startswith(BUILD_USER)}
            if users - {one.person for one in self._reservations()}:
                self._read()
        return tuple(one for one in self._reservations() if not one.is_over(self.ports.clock()))

    def _reservations(self) -> Iterator[Reservation]:
        return (one for record in self.known.values() if record is not None for one in record.devices_for)

    def _record(self, name: str) -> Record | None:
        """Read a record of it once for an answer."""
        if name not in self.known:
            self.known[name] = self.ports.state.record(name)
        return self.known[name]

    def _devices(self) -> Devices:
        return Devices(told_at=self.ports.clock(), devices=self.asked.devices, waiting=self.asked.waiting)

    def _read(self) -> StoredState:
        """Read the state. A machine that begins anew has no free device until it reports some again.

        It is told who it is though it cannot be noted that nothing is known of its devices any more.
        """
        stored = self.ports.state.read()
        self.known.update({one.instance_id: one for one in stored.records if one.machine == self.id})
        if self.id in stored.devices and not (self.asked.devices or self.asked.connected):
            forget = partial(self.ports.state.note_devices, self.id, self._devices())
            self.ports.or_else(forget, "devices_not_noted", otherwise=None, machine=self.id)
        return stored

    def _unchanged(self) -> list[Connection] | None:
        """Answer one that is what it should be from its own records alone: agents ask often, and EC2 and Jenkins need not know.

        Its claims about itself are no identity: they are compared with its records. A liar learns only its own claims.
        """
        told: list[Connection] = []
        for record in self._records() if self.asked.connected else ():
            known = self._as_known(record) if record else None
            if known is None:
                return None
            told.append(known)
        return told if told and sorted(one.key for one in told) == sorted(self.asked.connected) else None

    def _records(self) -> Iterator[Record | None]:
        """Read the records of a machine on the controllers that it is to serve; None where one is missing."""
        first, _, _ = self.asked.connected[0].partition("/")
        record = self._record(self.id) or self._record(side_id(self.id, first))
        yield record
        pool = self.fleet.pools.get(record.pool) if record else None
        if record and pool and pool.share is Share.COOPERATIVE:
            yield from (self._record(side_id(self.id, name)) for name in pool.controllers if name != record.controller)

    def _as_known(self, record: Record) -> Connection | None:
        """Tell from its record alone what a machine is on one controller; None where anything is to be seen to first."""
        if record.state is not RecordState.REGISTERED or record.role_id != self.caller.role_id:
            return None
        pool = self.fleet.pools.get(record.pool)
        if pool is None or record.controller not in pool.controllers or (record.is_host and not is_wanted(self.fleet, record)):
            return None
        return granting.connected(self.ports, self.fleet, record)

    def _connect_instance(self) -> list[Connection] | Refused:
        identity = self.ports.compute.identity(self.id)
        stored = self._read()
        if f"record#{self.id}" in stored.unread:
            raise TransientError("its record cannot be read by this version")
        record = self.known.get(self.id)
        fleet = with_left(self.fleet, stored)  # until it is drained, an agent whose pool left is what it was
        verdict = judge(self.caller, self.trust, identity, record, fleet)
        if isinstance(verdict, Refused):
            if verdict.status is not Status.FORBIDDEN and record is not None and self._has_nowhere_to_go(record):
                return self._serve_another(record, self.fleet.pools[record.pool].controllers[0])
            # One that was given up asks again while a build may be on any of its nodes.
            at_work = (granting.at_work(self.ports, stored, one) for one in stored.records if one.machine == self.id)
            return (verdict.status is Status.GONE and next(filter(None, at_work), None)) or verdict
        if self._is_taken_back(verdict.record):
            return Refused(status=Status.GONE, reason="EC2 takes the instance back before it was an agent")
        # What EC2 shows as its node is what it was told last.
        claim = claim_on(self.asked, identity.controller, identity.node) if identity else None
        if as_it_says(self.ports, verdict.record, claim):
            return self._connect_instance()
        # Why its last connection failed, as it says: whoever gives it up can name the reason.
        known = replace(verdict.record, problem=self.asked.problem or verdict.record.problem)
        told = granting.noted(self.ports, verdict.record, known, "problem_not_noted")
        granted = replace(verdict, record=replace(told, role_id=self.caller.role_id))
        connection = granting.grant(self.ports, granting.in_force(fleet, stored, self.ports.clock()), granted, stored.records)
        return connection if isinstance(connection, Refused) else [connection, *self._further(granted.record, stored)]

    def _is_taken_back(self, record: Record) -> bool:
        """Tell whether EC2 takes an instance back that was told no node yet in this life: it has no build, and is to get none."""
        is_young = record.state.is_asked_for or (not has_static_node(record) and record.node_life != record.life)
        return is_young and not self.asked.connected and record.is_interrupted(self.ports.clock())

    def _further(self, record: Record, stored: StoredState) -> list[Connection]:
        """Connect an instance to the other controllers that it serves at once, as far as they can be asked."""
        pool = with_left(self.fleet, stored).pool_of(record.pool, record.controller)
        if pool is None:
            return []
        # What has left goes on as it is, and gets nothing new; a static node is drained first.
        at_once = pool.share is Share.COOPERATIVE and not pool.has_left and not has_static_node(record)
        others = [name for name in pool.controllers if name != record.controller] if at_once else []
        machine = self._machine(pool, stored)
        told = [one for name in others if isinstance(one := machine.told(name), Connection)]
        return [*told, *machine.left({self.id, *(side_id(self.id, name) for name in others)})]

    def _connect_host(self, host: Host) -> list[Connection] | Refused:
        """Connect a host to its controllers, or to the one whose turn it is."""
        stored, pool = self._read(), self.fleet.pools[host.pool]
        machine = self._machine(pool, stored)
        if pool.share is not Share.COOPERATIVE:
            return self._connect_alone(host, machine)
        told = [machine.told(name) for name in pool.controllers]
        left = machine.left({side_id(host.id, name) for name in pool.controllers})
        connections = [*(one for one in told if isinstance(one, Connection)), *left]
        refused = [one for one in told if isinstance(one, Refused)]
        # Java of a life that is over ends first: what is told to ask again goes on as it is.
        return connections or max(refused, key=lambda one: one.status is Status.GONE)

    def _connect_alone(self, host: Host, machine: Machine) -> list[Connection] | Refused:
        """Connect a host to one controller: the one that it serves now, or the first of its pool where it serves none."""
        mine = next((one for one in machine.stored.records if one.instance_id == host.id and one.pool == host.pool), None)
        if mine and self._has_nowhere_to_go(mine):
            return self._serve_another(mine, self._where_it_is(machine))
        if mine and mine.leaves:
            return Refused(status=Status.TOO_EARLY, reason=f"it leaves {mine.leaves[0].controller} first")
        told = machine.told(mine.controller if mine else self._where_it_is(machine), alone=True)
        return told if isinstance(told, Refused) else [told, *machine.left({host.id})]

    def _has_nowhere_to_go(self, record: Record) -> bool:
        """Tell whether a machine left one controller for another that left the fleet file, and never had a node there."""
        begins = record.state is RecordState.STARTING and record.node is None and not record.leaves
        return begins and record.pool in self.fleet.pools and record.controller not in self.fleet.controllers

    def _serve_another(self, record: Record, controller: str) -> Refused:
        """Let a machine serve another controller than the one that left the fleet file before it had a node there."""
        moved = replace(rotated(record, controller, self.ports.clock()), leaves=())
        self.ports.state.change_record(moved, expected=record.state)
        return Refused(status=Status.TOO_EARLY, reason=f"{record.controller} left the fleet file; it serves {controller} now")

    def _where_it_is(self, machine: Machine) -> str:
        """Find the controller of a host without a record, which may have been lost: where it is connected, or has a node."""
        served = machine.pool.controllers
        said = next((claim.controller for claim in claims(self.asked) if claim.controller in served), None)
        return said or next((name for name in served if machine.has_node(name)), served[0])

    def _machine(self, pool: Pool, stored: StoredState) -> Machine:
        fleet = with_left(self.fleet, stored)
        return Machine(ports=self.ports, fleet=fleet, pool=pool, stored=stored, caller=self.caller, asked=self.asked, id=self.id)
