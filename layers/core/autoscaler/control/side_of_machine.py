"""Registers what a host, or a machine that serves several controllers at once, is on one of them.

What goes wrong on one controller keeps the machine from none of the others, and ends no connection: what an answer leaves out ends, so
that what the machine says it is connected as stays in it.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from autoscaler.control import granting
from autoscaler.control.granting import Connection
from autoscaler.control.sides import side_id
from autoscaler.domain.facts.fleet import Fleet, Pool, agent_spec
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
            if f"record#{name}" in self.stored.unread:
                raise TransientError("its record cannot be read by this version")
            refused_or_granted = self._granted(record or self._new(name, controller))
        except AutoscalerError as error:
            self.ports.log("side_not_told", record=name, error=f"{type(error).__name__}: {error}")
            refused_or_granted = Refused(status=Status.UNAVAILABLE, reason=f"{type(error).__name__}: {error}")
        if isinstance(refused_or_granted, Refused) and refused_or_granted.status is not Status.GONE and record:
            return self._kept(record) or refused_or_granted
        return refused_or_granted

    def left(self, wanted: Collection[str]) -> list[Connection]:
        """Return what it is connected to beside these of its records: it is not to serve these any more, and is yet to be drained there."""
        records = (one for one in self.stored.records if one.machine == self.id and one.instance_id not in wanted)
        return [kept for record in records if (kept := self._kept(record))]

    def _granted(self, record: Record) -> Connection | Refused:
        if record.state is RecordState.CONDEMNED:
            gone = Refused(status=Status.GONE, reason="it was given up here")
            return granting.at_work(self.ports, self.stored, record) or gone
        spec = agent_spec(self.fleet, self.pool, self.id, record.controller)
        granted = Granted(record=replace(record, role_id=self.caller.role_id), spec=spec)
        return granting.grant(self.ports, self.fleet, granted, self.stored.records)

    def _kept(self, record: Record) -> Connection | None:
        """Leave it connected as it says that it is."""
        kept = granting.connected(self.ports, self.fleet, record)
        return kept if kept and kept.key in self.asked.connected else None

    def _new(self, name: str, controller: str) -> Record:
        """Write a record of what was never launched; as long as it has no node, it asks who it is."""
        now = self.ports.clock()
        record = Record(
            instance_id=name,
            state=RecordState.STARTING,
            pool=self.pool.name,
            bindings=(Binding(controller=controller),),
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
