"""Stops agents, and starts them again. The record is written first: cut off anywhere, the next pass goes on by what EC2 says.

- stopping: the call may not have been made; it is made again once the node was seen idle again, and changes nothing twice.
- starting: likewise. What EC2 refuses to start stays stopped, and is launched instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autoscaler.control.records import Records
from autoscaler.control.report import Outcome, Result
from autoscaler.domain.facts.fleet import Fleet, Market
from autoscaler.domain.facts.made_nodes import has_static_node
from autoscaler.domain.facts.metering import begin_again
from autoscaler.domain.facts.plan import FinishStop, Launch, Start
from autoscaler.domain.facts.snapshot import InstanceState, Record, RecordState, Snapshot
from autoscaler.domain.launch.backoff import Refusal
from autoscaler.domain.launch.starting import offering_of
from autoscaler.errors import ConflictError, LaunchRefusedError, TransientError
from autoscaler.ports import Controller, Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What became of a start: its result, what EC2 refused, and the launch to make instead."""

    result: Result
    refused: tuple[Refusal, ...] = ()
    instead: Launch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Takes these steps for the instances of one snapshot."""

    ports: Ports
    fleet: Fleet
    snapshot: Snapshot
    controllers: Mapping[str, Controller]
    records: Records
    holder: str  # of the lease

    def finish(self, step: FinishStop, record: Record) -> Result:
        """Delete the node of an instance that has stopped, once EC2, asked again, says so; then note that it waits to be started."""
        fate = self.ports.compute.fate(step.instance_id)
        if fate is not InstanceState.STOPPED:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its instance is {fate}")
        if step.node is not None:
            controller = self.controllers[step.controller]
            node = controller.node(step.node)
            if node is not None and not node.offline:
                return Result(step=step, outcome=Outcome.SKIPPED, detail="its node is connected")
            if record.state is RecordState.REGISTERED:
                record = self._change(record, RecordState.STOPPING)
            # A second deletion would leave for ever what is on it.
            is_deleted = node is not None and node.is_deleted and not node.idle
            if not (is_deleted or has_static_node(record)):
                controller.delete_node(step.node)
            record = record.without_node(self.ports.clock())
        self._change(
            replace(record, labels=(), cordon="", trouble="", registered_at=None, keep_until=0.0, reservation=None), RecordState.STOPPED
        )
        return Result(step=step, outcome=Outcome.DONE)

    def start(self, step: Start) -> Started:
        """Note the starts under the lease, ask EC2 for all at once, and take back what it refused."""
        stopped_at = {instance_id: self.records.now[instance_id].changed_at for instance_id in step.instance_ids}
        noted = [self._noted(step, self.records.now[instance_id]) for instance_id in step.instance_ids]
        asked = {record.instance_id: record for record in noted if record}
        problems = self.ports.compute.start(asked) if asked else {}
        refused = {i: why for i, why in problems.items() if isinstance(why, LaunchRefusedError)}
        for instance_id in refused:
            self._take_back(asked[instance_id], stopped_at[instance_id])
        return Started(
            result=_result(step, len(asked), problems),
            refused=tuple(self.refusal(asked[instance_id], why.code) for instance_id, why in refused.items()),
            instead=replace(step.otherwise, count=len(refused)) if step.otherwise and refused else None,
        )

    def refusal(self, record: Record, code: str) -> Refusal:
        """Say what EC2 refused with this code: the offering that an agent is of."""
        pool = self.fleet.pool_of(record.pool, record.controller)
        if pool is None:
            return Refusal(code=code, offering_key="", asked=())
        instance = next((instance for instance in self.snapshot.instances if instance.id == record.instance_id), None)
        offering = offering_of(pool, instance) if instance else None
        asked = (offering,) if offering else tuple(o for o in pool.offerings if o.market is Market.ON_DEMAND)
        return Refusal(code=code, offering_key=offering.key if offering else "", asked=asked)

    def _noted(self, step: Start, record: Record) -> Record | None:
        """Note that a stopped agent is to start, or leave it so noted. None: it is not stopped any more."""
        if record.state is RecordState.STARTING:
            return record
        begun = replace(
            begin_again(record, self.ports.clock()), keep_until=step.keep_until, started_for=step.request, reservation=step.reservation
        )
        try:
            return self.records.write(begun, self.holder)
        except ConflictError:
            return None

    def _take_back(self, record: Record, stopped_at: float) -> None:
        """Note that it stays stopped, since when it was before, and that nothing was started: EC2 may refuse it again each minute."""

        def stopped(read: Record) -> Record | None:
            if (read.state, read.life) != (RecordState.STARTING, record.life):
                return None
            return replace(read, state=RecordState.STOPPED, changed_at=stopped_at, starts=read.starts[:-1], reservation=None)

        self.records.note(record.instance_id, stopped)

    def _change(self, record: Record, state: RecordState) -> Record:
        return self.records.write(replace(record, state=state, changed_at=self.ports.clock()))


def _result(step: Start, asked: int, problems: Mapping[str, TransientError]) -> Result:
    if not asked:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="another pass, or a person, was quicker", count=0)
    got = asked - len(problems)
    return Result(step=step, outcome=Outcome.DONE if got else Outcome.FAILED, detail=_told(problems), count=got)


def _told(problems: Mapping[str, TransientError]) -> str:
    return "; ".join(f"{instance_id}: {why}" for instance_id, why in sorted(problems.items()))
