"""Registers what a host, or a machine that serves several controllers at once, is on one of them.

What goes wrong on one controller keeps the machine from none of the others, and ends no connection: what an answer leaves out ends, so
that what the machine says it is connected as stays in it.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from autoscaler.control import granting
from autoscaler.control.claims import Claim, as_claimed, claim_on, claims, in_the_life_it_says
from autoscaler.control.granting import Connection
from autoscaler.control.sides import side_id
from autoscaler.domain.facts.fleet import Fleet, Pool, agent_spec
from autoscaler.domain.facts.nodes import described_instance
from autoscaler.domain.facts.snapshot import Binding, Record, RecordState
from autoscaler.domain.report.registration import Asked, Caller, Granted, Refused, Status
from autoscaler.errors import AutoscalerError, TransientError
from autoscaler.ports import Ports, StoredState


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
        try:
            self._check(name, record.controller if record else controller)
            refused_or_granted = self._granted(record or self._new(name, controller))
        except AutoscalerError as error:
            self.ports.log("side_not_told", record=name, error=f"{type(error).__name__}: {error}")
            refused_or_granted = Refused(status=Status.UNAVAILABLE, reason=f"{type(error).__name__}: {error}")
        if isinstance(refused_or_granted, Refused) and refused_or_granted.status is not Status.GONE:
            return self._stays(record, controller) or refused_or_granted
        return refused_or_granted

    def _check(self, name: str, controller: str) -> None:
        if f"record#{name}" in self.stored.unread:
            raise TransientError("its record cannot be read by this version")
        if not self._is_known(controller):
            raise TransientError(f"{controller} is not in the fleet file any more, so nobody knows what it does there")

    def left(self, wanted: Collection[str]) -> list[Connection]:
        """Return what it is connected to beside these of its records: it is not to serve these any more, and is yet to be drained there.

        Where its record cannot be read, or is lost and the controller left the fleet file, nobody knows whether it is. Where it is lost and
        something is on its node there, the record is made again, so that the node is drained.
        """
        mine = {one.instance_id: one for one in self.stored.records if one.machine == self.id and one.instance_id not in wanted}
        kept = [self._kept(record) for record in mine.values()]
        unread = (self._as_it_says(one.controller) for one in claims(self.asked) if self._is_unread(one.controller, wanted))
        lost = [self.told(claim.controller) for claim in claims(self.asked) if self._is_lost_in_use(claim, wanted)]
        return [answer for answer in (*kept, *unread, *lost) if isinstance(answer, Connection)]

    def has_node(self, controller: str) -> bool:
        """Tell whether it has a node of its own on a controller; one that cannot be asked shows none."""
        asked = next((one for one in self.ports.controllers if one.name == controller), None)
        try:
            node = asked.node(self._name(controller)) if asked else None
        except AutoscalerError as error:
            self.ports.log("side_not_read", machine=self.id, controller=controller, error=f"{type(error).__name__}: {error}")
            return False
        return node is not None and described_instance(self.fleet, node.name, node.description) == self.id

    def _name(self, controller: str) -> str:
        return agent_spec(self.fleet, self.pool, self.id, controller).name

    def _is_unread(self, controller: str, wanted: Collection[str]) -> bool:
        name = side_id(self.id, controller)
        is_recorded = any(one.machine == self.id and one.controller == controller for one in self.stored.records)
        is_lost = not (is_recorded or self._is_known(controller))
        return name not in wanted and (is_lost or f"record#{name}" in self.stored.unread)

    def _is_lost_in_use(self, claim: Claim, wanted: Collection[str]) -> bool:
        """Tell whether no record says what it is connected as to a controller of its pool, and its node there is not known to be idle."""
        mine = (record for record in self.stored.records if record.machine == self.id)
        served = {binding.controller for record in mine for binding in (*record.bindings, *record.leaves)}
        is_lost = side_id(self.id, claim.controller) not in wanted and claim.controller not in served
        if not is_lost or claim.controller not in self.pool.controllers or not self._is_known(claim.controller):
            return False
        return claim.node == self._name(claim.controller) and self._is_in_use(claim)

    def _is_in_use(self, claim: Claim) -> bool:
        try:
            node = next(controller for controller in self.ports.controllers if controller.name == claim.controller).node(claim.node)
        except AutoscalerError as error:
            self.ports.log("side_not_read", machine=self.id, controller=claim.controller, error=f"{type(error).__name__}: {error}")
            return True
        return node is not None and (bool(node.builds) or not node.idle)

    def _is_known(self, controller: str) -> bool:
        return any(one.name == controller for one in self.ports.controllers)

    def _granted(self, record: Record) -> Connection | Refused:
        if over := self._last_life(record):
            return over
        record = in_the_life_it_says(self.ports, record, self.asked)
        if record.state is RecordState.CONDEMNED:
            gone = Refused(status=Status.GONE, reason="it was given up here")
            return granting.at_work(self.ports, self.stored, record) or gone
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
        node = controller.node(claim.node)
        if node is not None and (node.builds or not node.idle):
            return self._as_it_says(record.controller)
        return Refused(status=Status.GONE, reason="its life there is over, and it begins anew")

    def _as_it_says(self, controller: str) -> Connection | None:
        """Leave it connected to a controller as it says that it is, where no record tells."""
        claim = claim_on(self.asked, controller, self._name(controller))
        return as_claimed(self.ports, self.fleet, self.pool, self.id, claim) if claim else None

    def _kept(self, record: Record) -> Connection | None:
        """Leave it connected as it says that it is."""
        kept = granting.connected(self.ports, self.fleet, record)
        return kept if kept and kept.key in self.asked.connected else None

    def _stays(self, record: Record | None, controller: str) -> Connection | None:
        """Leave it connected as it says that it is. A record that was made anew names no node before Jenkins has answered."""
        return self._kept(record) if record is not None and record.node is not None else self._as_it_says(controller)

    def _new(self, name: str, controller: str) -> Record:
        """Write a record of what was never launched; as long as it has no node, it asks who it is. One that was lost keeps its life."""
        now, claim = self.ports.clock(), claim_on(self.asked, controller, self._name(controller))
        record = Record(
            instance_id=name,
            state=RecordState.STARTING,
            pool=self.pool.name,
            bindings=(Binding(controller=controller, life=claim.life if claim else 0),),
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
