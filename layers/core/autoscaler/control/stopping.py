"""Stops and starts agents, and gives them to other controllers. The record is written first: the next pass goes on by what EC2 says.

- stopping: the call may not have been made; it is made again once the node was seen idle again, and changes nothing twice.
- starting: likewise. What EC2 refuses to start stays stopped, and is launched instead.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.control import nodes
from autoscaler.control.nodes import Records
from autoscaler.control.outcomes import Outcome, Result
from autoscaler.domain.facts.fleet import Fleet, agent_spec, node_name
from autoscaler.domain.facts.memory import EC2_ANSWERED
from autoscaler.domain.facts.metering import begin_again, given_back, rotated
from autoscaler.domain.facts.nodes import has_static_node
from autoscaler.domain.facts.plan import FinishRotation, FinishStop, ForceStop, Launch, Rotate, Start
from autoscaler.domain.facts.snapshot import InstanceState, Record, RecordState, Snapshot
from autoscaler.domain.launch.backoff import keeps_from_starting
from autoscaler.domain.situation.canary import FailedStart, postponed_start, refused_start
from autoscaler.errors import ConflictError, LaunchRefusedError, TransientError
from autoscaler.ports import Controller, Ports

_NOT_ALLOWED = "UnauthorizedOperation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What became of a start: its result, the starts that failed, why these machines did not start, and the launch to make instead.

    ``tried``: by the names of what keeps failing; None: it started.
    """

    result: Result
    failed: tuple[FailedStart, ...] = ()
    tried: Mapping[str, str | None]
    instead: Launch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One call for some machines, and why EC2 did not start some of them."""

    asked: tuple[str, ...]
    problems: Mapping[str, TransientError]

    @property
    def refusals(self) -> dict[str, LaunchRefusedError]:
        return {name: why for name, why in self.problems.items() if isinstance(why, LaunchRefusedError)}

    @property
    def refused_machines(self) -> int:
        """Count the refusals that another machine may not meet."""
        return sum(_is_of_machine(why.code) for why in self.refusals.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Takes these steps for the instances of one snapshot."""

    ports: Ports
    fleet: Fleet
    snapshot: Snapshot
    controllers: Mapping[str, Controller]
    records: Records
    holder: str  # of the lease

    def force(self, step: ForceStop) -> Result:
        """Stop an instance by force that EC2, asked again, says is stopping still."""
        fate = self.ports.compute.fate(step.instance_id)
        if fate is not InstanceState.STOPPING:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its instance is {fate}")
        self.ports.compute.stop(step.instance_id, by_force=True)
        return Result(step=step, outcome=Outcome.DONE)

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
        """Note the starts under the lease, ask EC2 for all at once, and take back what it refused; spares are started in their place."""
        attempts, spares = [self._start(step, step.instance_ids)], list(step.spares)
        while spares and (more := attempts[-1].refused_machines):
            attempts.append(self._start(step, spares[:more]))
            spares = spares[more:]
        return _started(step, attempts)

    def _start(self, step: Start, instance_ids: Iterable[str]) -> _Attempt:
        stopped_at = {instance_id: self.records.now[instance_id].changed_at for instance_id in instance_ids}
        noted = [self._noted(step, self.records.now[instance_id]) for instance_id in stopped_at]
        asked = {record.instance_id: record for record in noted if record}
        attempt = _Attempt(asked=tuple(asked), problems=self.ports.compute.start(asked) if asked else {})
        for instance_id in attempt.refusals:
            self._take_back(asked[instance_id], stopped_at[instance_id])
        return attempt

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


def _started(step: Start, attempts: Sequence[_Attempt]) -> Started:
    problems = {name: why for attempt in attempts for name, why in attempt.problems.items()}
    refusals = {name: why for attempt in attempts for name, why in attempt.refusals.items()}
    started = [name for attempt in attempts for name in attempt.asked if name not in problems]
    return Started(
        result=_result(step, len(started) + len(problems), problems),
        failed=tuple(_failed(step, name, why) for name, why in refusals.items() if not keeps_from_starting(why.code)),
        tried=_tried(step, started, refusals),
        instead=_instead(step, len(refusals) - sum(len(attempt.asked) for attempt in attempts[1:])),
    )


def _instead(step: Start, short: int) -> Launch | None:
    return replace(step.otherwise, count=short) if step.otherwise and short > 0 else None


def _failed(step: Start, instance_id: str, why: LaunchRefusedError) -> FailedStart:
    return FailedStart(pool=step.pool, instance_id=instance_id, why=f"{EC2_ANSWERED}{why.named}", of_all=not _is_of_machine(why.code))


def _tried(step: Start, started: Iterable[str], refusals: Mapping[str, LaunchRefusedError]) -> dict[str, str | None]:
    tried: dict[str, str | None] = {refused_start(step.controller, name): None for name in started}
    return tried | {_failing_key(step, name, why.code): f"{EC2_ANSWERED}{why.named}" for name, why in refusals.items()}


def _failing_key(step: Start, instance_id: str, code: str) -> str:
    return refused_start(step.controller, instance_id) if _is_of_machine(code) else postponed_start(step.controller, instance_id)


def _is_of_machine(code: str) -> bool:
    """Tell whether a refusal may be about one machine: neither is anything short, nor is a right missing for all."""
    return not (keeps_from_starting(code) or code == _NOT_ALLOWED)


def _result(step: Start, asked: int, problems: Mapping[str, TransientError]) -> Result:
    if not asked:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="another pass, or a person, was quicker", count=0)
    got = asked - len(problems)
    return Result(step=step, outcome=Outcome.DONE if got else Outcome.FAILED, detail=_told(problems), count=got)


def _told(problems: Mapping[str, TransientError]) -> str:
    return "; ".join(f"{instance_id}: {why}" for instance_id, why in sorted(problems.items()))


# Gives agents to other controllers. The record is written first: cut off anywhere, the next pass deletes the node that was left.
#
# Until that node is deleted the agent is told to ask again, so that whatever may have begun there meanwhile goes on. If the node is in use
# again before it is deleted, the agent goes back to it, and the next look decides anew.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Takes these steps, while the lease is still ``holder``'s."""

    controllers: Mapping[str, Controller]
    fleet: Fleet
    records: Records
    clock: Callable[[], float]
    holder: str

    def act(self, step: Rotate | FinishRotation, record: Record) -> Result:
        """Read the node once more, note whom the agent serves from now on, then delete the node that it leaves."""
        if isinstance(step, Rotate):
            if keep := nodes.may_terminate(self.controllers[step.controller], step.node, step.mark):
                return Result(step=step, outcome=Outcome.SKIPPED, detail=keep)
            self.records.write(rotated(record, step.to, self.clock()), self.holder)
        return self._leave(step)

    def _leave(self, step: Rotate | FinishRotation) -> Result:
        if step.controller not in self.controllers:
            return self._close_unseen(step)
        controller = self.controllers[step.controller]
        node = controller.node(step.node)
        is_bound = isinstance(step, FinishRotation) and step.is_bound
        if node is not None and (is_bound or not (node.offline and node.idle and not node.builds)):
            return self._stay(step)
        record = self.records.now[step.instance_id]
        if step.node == node_name(record.pool, record.machine):  # a static node is its operator's
            controller.delete_node(step.node)
        self.records.note(step.instance_id, lambda read: _without(read, step))
        return Result(step=step, outcome=Outcome.DONE)

    def _stay(self, step: Rotate | FinishRotation) -> Result:
        """Give an agent back to the node that it was to leave, since that is in use again.

        Somebody brought it online, as a reload of Jenkins' configuration does with every node, or a build is on it or bound to it. If it
        were only left alone, it might stay online and idle: then the agent could register nowhere, and nobody would end its instance.
        """
        pool = self.fleet.pool_of(step.pool, step.controller)
        if pool is None:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its node is in use, and nobody knows its pool {step.pool}")
        spec = agent_spec(self.fleet, pool, self.records.now[step.instance_id].machine, step.controller)
        labels, now = spec.labels if step.node == spec.name else (), self.clock()  # as it is adopted

        def stays(read: Record) -> Record | None:
            left = next((one for one in read.leaves if (one.controller, one.node) == (step.controller, step.node)), None)
            # Not what was given up meanwhile, nor what has a node elsewhere.
            begins = read.state is RecordState.STARTING and read.node is None
            return given_back(read, left, labels, now) if left is not None and begins else None

        record = self.records.note(step.instance_id, stays)
        so = f": it stays on {step.controller}" if record is not None and record.node == step.node else ""
        detail = f"somebody brought its node online, or a build is on it or bound to it{so}"
        return Result(step=step, outcome=Outcome.SKIPPED, detail=detail)

    def _close_unseen(self, step: Rotate | FinishRotation) -> Result:
        """Note that nothing runs on a controller that left the fleet file, as a person said. Its node stays there: nobody can delete it."""
        record = self.records.now[step.instance_id]
        if (record.controller, record.node) != (step.controller, step.node):
            self.records.note(step.instance_id, lambda read: _without(read, step))
        elif record.is_instance:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="it is an instance, which is ended as a whole")
        else:
            self.records.write(replace(record, state=RecordState.GONE, changed_at=self.clock()))
        return Result(step=step, outcome=Outcome.DONE)


def _without(record: Record, step: Rotate | FinishRotation) -> Record:
    """Note that the node is deleted that an agent leaves."""
    others = tuple(binding for binding in record.leaves if (binding.controller, binding.node) != (step.controller, step.node))
    return replace(record, leaves=others)
