"""Applies a plan step by step. A failed step stops no other, and the next pass makes it good."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.control import launches, nodes, reserving
from autoscaler.control.nodes import Cordons, GoneMachines, Records
from autoscaler.control.observe import Answers, Invocation
from autoscaler.control.outcomes import Outcome, Report, Result, StepNotes
from autoscaler.control.stopping import Rotation, Stopping
from autoscaler.domain.facts.fleet import Fleet, agent_spec
from autoscaler.domain.facts.memory import EC2_ANSWERED, Memory
from autoscaler.domain.facts.metering import handed_back
from autoscaler.domain.facts.nodes import has_static_node, is_made_for, with_known_weights
from autoscaler.domain.facts.orders import with_held_labels
from autoscaler.domain.facts.plan import (
    Adopt,
    BootFailure,
    CancelItem,
    Cordon,
    CreateBeacon,
    DeleteNode,
    EndReservation,
    FinishRotation,
    FinishStop,
    ForceStop,
    Forget,
    FreeSlot,
    Launch,
    LeaveLost,
    Lend,
    Plan,
    Relabel,
    RemoveBeacon,
    Reserve,
    ReserveDevice,
    Rotate,
    RunAgain,
    Start,
    Step,
    Stop,
    TakeBack,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.pools import with_left, with_volumes
from autoscaler.domain.facts.snapshot import InstanceState, Record, RecordState, Snapshot, version_of
from autoscaler.domain.launch.backoff import Had, Refusal, may_be_the_image
from autoscaler.domain.learn import Outcomes, note_results
from autoscaler.domain.situation.breakers import has_failed_often, key_of, why_no_node
from autoscaler.domain.situation.canary import FailedStart, postponed_start
from autoscaler.errors import AutoscalerError, DoubtfulError, NoAnswerError, RefusedError, StuckError, UnansweredError
from autoscaler.ports import Controller, Ports

# Reads the console of an agent that did not boot, while its instance is there.


def keep_console(ports: Ports, failure: BootFailure) -> dict[str, str]:
    """Log why an agent did not boot before its instance is gone. A console that cannot be read does not keep the instance."""
    read: dict[str, str] = {}
    try:
        said = read[failure.instance_id] = ports.compute.console_output(failure.instance_id)
    except AutoscalerError as error:
        said = f"(not read: {error})"
    facts = {"controller": failure.controller, "pool": failure.pool, "instance_id": failure.instance_id, "why": failure.why}
    ports.log("boot_failed", **facts, console=said or "(nothing)")
    return read


# Saves the memory of a pass, with what its steps have taught. Refusals of EC2 are saved at once: a pass may be cut off after them.


# Each save writes the whole memory. If EC2 refuses everything, the others are saved when the pass ends.
_MOST_EARLY_SAVES = 5
_ASKED_OF_EC2 = (Launch, Start, Stop, Terminate)


class Lessons:
    """What the steps of one pass have taught so far."""

    def __init__(self, ports: Ports, fleet: Fleet, plan: Plan) -> None:
        """Begin with the memory of the plan."""
        self._ports = ports
        self._fleet = fleet
        self._plan = plan
        self._version = plan.memory.version
        self._refusals = 0
        self._early_saves = 0
        self._saved: Memory | None = None

    def note(self, result: Result, outcomes: Outcomes, *, is_last: bool) -> None:
        """Save what EC2 has refused in a step. After the last one the pass saves everything anyway."""
        refusals = len(outcomes.refused) + len(outcomes.refused_canaries)
        has_failed = result.outcome is Outcome.FAILED and isinstance(result.step, _ASKED_OF_EC2)
        is_new, self._refusals = has_failed or refusals > self._refusals, refusals
        if is_new and not is_last and self._early_saves < _MOST_EARLY_SAVES:
            self._early_saves += 1
            self._save(self._learned(outcomes))

    def save(self, outcomes: Outcomes) -> bool:
        """Save what is to be remembered of the whole pass; tell whether the memory of the plan is saved."""
        memory = self._learned(outcomes)
        if self._saved is not None and memory == self._saved:
            return True
        if not (self._plan.remember or memory != self._plan.memory):
            return False
        return self._save(memory)

    def _learned(self, outcomes: Outcomes) -> Memory:
        return note_results(self._plan.memory, self._fleet, outcomes, self._ports.clock())

    def _save(self, memory: Memory) -> bool:
        try:
            self._ports.state.save_memory(replace(memory, version=self._version))
        except AutoscalerError as error:
            # Forgetting costs a window or a second look, and what was done is done: the report must still go out.
            self._ports.log("memory_not_saved", error=f"{type(error).__name__}: {error}")
            return False
        self._saved = memory
        self._version += 1
        return True


# Applies the steps of a plan.


# With less time left in the invocation than this, no step is begun.
STEP_RESERVE_SECONDS = 10.0
# A step in Jenkins is up to three small calls; one that takes longer than this leaves its controller to the next pass.
SLOW_STEP_SECONDS = 8.0

_GIVEN_UP = (RecordState.CONDEMNED, RecordState.GONE)
# What an earlier pass wrote it may have acted on: it is not taken back.
_NOT_ACTED_ON = (RecordState.REQUESTED, RecordState.REGISTERED)


def apply(ports: Ports, fleet: Fleet, snapshot: Snapshot, plan: Plan, invocation: Invocation, holder: str = "") -> Report:
    """Take every step for which there is time, and note each when it is done; then save what to remember.

    ``holder``: the name the lease is held under, "" without it: then nothing can be launched.
    """
    ends_at = invocation.ends_at
    notes, lessons = StepNotes(ports, plan, invocation.by), Lessons(ports, fleet, plan)
    known = with_left(with_volumes(with_known_weights(fleet, snapshot.learned), snapshot), snapshot)
    actuator = _Actuator(ports, with_held_labels(known, snapshot.overrides.at(snapshot.taken_at)), snapshot, holder)
    for failure in plan.boot_failures:
        if ends_at - ports.clock() >= STEP_RESERVE_SECONDS:
            actuator.consoles |= keep_console(ports, failure)
    results: list[Result] = []
    for result, is_last in actuator.take_all((step for step in plan.steps if not isinstance(step, Forget)), ends_at):
        results.append(result)
        notes.note(result)
        lessons.note(result, actuator.outcomes(), is_last=is_last)
    actuator.remembered = lessons.save(actuator.outcomes())
    # A record that is closed is known from the memory alone: it goes once that is saved, or its launch would not count any more.
    for result, _ in actuator.take_all((step for step in plan.steps if isinstance(step, Forget)), ends_at):
        results.append(result)
        notes.note(result)
    notes.finish()
    return Report(plan=plan, results=tuple(results), dry_run=False, unresponsive=frozenset(actuator.unresponsive))


class _Actuator:
    """Takes steps, and skips controllers that have stopped answering."""

    def __init__(self, ports: Ports, fleet: Fleet, snapshot: Snapshot, holder: str) -> None:
        self._holder = holder
        self._ports = ports
        self._fleet = fleet
        self._snapshot = snapshot
        self._controllers: Mapping[str, Controller] = {controller.name: controller for controller in ports.controllers}
        self._records = Records(state=ports.state, now={record.instance_id: record for record in snapshot.records})
        self.unresponsive: set[str] = set()
        self.remembered = False
        self._instead: list[Launch] = []  # of what could not be started
        self.refused: list[tuple[str, tuple[Refusal, ...]]] = []
        self.refused_starts: list[FailedStart] = []
        self.refused_canaries: list[tuple[str, str, str]] = []  # of new images
        self.had: list[Had] = []  # by launches
        self.tried: dict[str, str | None] = {}  # steps in Jenkins, and why they failed
        self.stuck: set[str] = set()
        self.unstoppable: dict[str, tuple[str, str]] = {}  # pools, and what EC2 said, by instance id
        self.stopped: set[str] = set()  # pools
        self.terminated: set[str] = set()
        self.consoles: dict[str, str] = {}  # of boots that failed
        self.answers = Answers(ports, holder)  # for lost builds

    def outcomes(self) -> Outcomes:
        """Return the outcomes of the steps so far."""
        return Outcomes(
            refused=self.refused,
            refused_starts=self.refused_starts,
            refused_canaries=self.refused_canaries,
            launched=self.had,
            tried=self.tried,
            stuck=self.stuck,
            unstoppable=self.unstoppable,
            stopped=self.stopped,
            terminated=self.terminated,
            consoles=self.consoles,
            answers=self.answers.given,
        )

    def take_all(self, steps: Iterable[Step], ends_at: float) -> Iterator[tuple[Result, bool]]:
        """Take the steps for which there is time, one by one; tell whether a step was the last one."""
        late, waiting = "no time is left in this invocation", deque(steps)
        while waiting:
            step = waiting.popleft()
            in_time = ends_at - self._ports.clock() >= STEP_RESERVE_SECONDS
            result = self.take(step) if in_time else Result(step=step, outcome=Outcome.SKIPPED, detail=late)
            waiting.extendleft(self._instead)
            self._instead.clear()
            yield result, not waiting

    def take(self, step: Step) -> Result:
        if step.controller in self.unresponsive:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"{step.controller} stopped answering, or answers too slowly")
        if isinstance(step, Launch | Start) and (why := self._no_node(step.controller)):
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"no node can be made on {step.controller}: {why}")
        began = self._ports.clock()
        try:
            result = self._take(step)
        except AutoscalerError as error:
            if isinstance(error, UnansweredError | NoAnswerError) and not isinstance(error, DoubtfulError):
                self.unresponsive.add(step.controller)
            result = Result(step=step, outcome=Outcome.FAILED, detail=f"{type(error).__name__}: {error}")
        # What takes so long takes it from the other controllers. A launch or a start waits for EC2, and not for Jenkins.
        if not isinstance(step, Launch | Start) and self._ports.clock() - began > SLOW_STEP_SECONDS:
            self.unresponsive.add(step.controller)
        if (key := key_of(step)) and not isinstance(step, Stop):  # of stops EC2's refusals alone count
            self.tried[key] = result.detail if result.outcome is Outcome.FAILED else None
        return result

    def _take(self, step: Step) -> Result:
        match step:
            case CreateBeacon() | RemoveBeacon() | CancelItem() | RunAgain() | LeaveLost():
                return self._in_jenkins(step)
            case Cordon() | Uncordon() | Relabel() | Lend() | TakeBack() | Reserve() | ReserveDevice() | EndReservation():
                return self._cordon_or_reserve(step)
            case Launch():
                return self._launch(step)
            case Rotate() | FinishRotation():
                return self._rotation().act(step, self._records.now[step.instance_id])
            case Terminate():
                return self._terminate(step)
            case Stop() | ForceStop() | FinishStop() | Start():
                return self._stop_or_start(step)
            case DeleteNode() | FreeSlot():
                return self._gone_machines().act(step)
            case Adopt() | Forget():
                return self._adopt(step) if isinstance(step, Adopt) else self._forget(step)
            case _:
                raise AssertionError(step)

    def _in_jenkins(self, step: CreateBeacon | RemoveBeacon | CancelItem | RunAgain | LeaveLost) -> Result:
        if isinstance(step, RunAgain | LeaveLost):
            return self.answers.act(step)
        return nodes.act(self._controllers[step.controller], step)

    def _cordon_or_reserve(self, step: Cordon | Uncordon | Relabel | Lend | TakeBack | Reserve | ReserveDevice | EndReservation) -> Result:
        cordons = self._cordons(step.controller)
        match step:
            case Reserve():
                return reserving.reserve(cordons, step)
            case ReserveDevice():
                return reserving.reserve_device(cordons, step)
            case EndReservation():
                return reserving.end(cordons, step)
            case _:
                return cordons.act(step, self._record_of(step.controller, step.node))

    def _cordons(self, controller: str) -> Cordons:
        return Cordons(
            controller=self._controllers[controller],
            view=self._snapshot.controllers[controller],
            fleet=self._fleet,
            records=self._records,
            clock=self._ports.clock,
            log=self._ports.log,
        )

    def _rotation(self) -> Rotation:
        return Rotation(
            controllers=self._controllers, fleet=self._fleet, records=self._records, clock=self._ports.clock, holder=self._holder
        )

    def _record_of(self, controller: str, node: str) -> Record | None:
        return next((record for record in self._records.now.values() if (record.controller, record.node) == (controller, node)), None)

    def _no_node(self, controller: str) -> str:
        return "" if controller in self._fleet.slot_controllers else why_no_node(self.tried, controller)

    def _launch(self, step: Launch) -> Result:
        result, refusals, had = launches.launch(self._ports, self._fleet.pools[step.pool], step, self._snapshot.memory, self._holder)
        tried = [one for one in refusals if step.tries and result.outcome is Outcome.FAILED and may_be_the_image(one.code)]
        if tried:  # what else is launched in the pool goes on
            codes = ", ".join(sorted({one.text for one in tried}))
            self.refused_canaries.append((step.pool, version_of(step.template_version, step.image), f"EC2 answered {codes}"))
        others = tuple(one for one in refusals if one not in tried)
        self.refused += [(step.pool, others)] if others else []
        self.had += had
        return result

    def _terminate(self, step: Terminate) -> Result:
        """Condemn the record, read the node once more, terminate, delete the node. Cut off anywhere, the next pass goes on.

        The read comes last: whoever brings the node online before it is seen, and what was given up is then drained again.
        """
        if step.controller not in self._controllers:
            return self._end_unseen(step)
        record = self._records.now[step.instance_id]
        if record.state is RecordState.STOPPED and (fate := self._ports.compute.fate(step.instance_id)) is not InstanceState.STOPPED:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its instance is {fate}")
        if record.state not in _GIVEN_UP:
            self._change(record, RecordState.CONDEMNED)
        keep = self._last_read(step, record)
        if keep:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=keep)
        if not record.is_instance:
            return self._disconnect(step)
        self._end(step.instance_id)
        # A slot stays cordoned until its machine has surely ended: online again, it would take builds at once.
        if step.node is not None and not has_static_node(record):
            self._gone_machines().delete_node(step.controller, step.node, step.instance_id)
        return Result(step=step, outcome=Outcome.DONE)

    def _end(self, instance_id: str) -> None:
        try:
            self._ports.compute.terminate(instance_id)
        except StuckError:
            self.stuck.add(instance_id)
            raise
        self.terminated.add(instance_id)

    def _end_unseen(self, step: Terminate) -> Result:
        """Terminate an instance whose controller left the fleet file, as a person ordered: nobody can read its node."""
        record = self._records.now.get(step.instance_id)
        if record is not None and record.state not in _GIVEN_UP:
            self._change(record, RecordState.CONDEMNED)
        self._end(step.instance_id)
        return Result(step=step, outcome=Outcome.DONE)

    def _disconnect(self, step: Terminate) -> Result:
        """Delete the node, which ends the connection. A host that is still in the fleet file asks anew who it is."""
        record, now = self._records.now[step.instance_id], self._ports.clock()
        controller = self._controllers[step.controller]
        node = controller.node(step.node) if step.node is not None else None
        if node is not None and is_made_for(self._fleet, record, node):
            controller.delete_node(node.name)
        if reserving.is_wanted(self._fleet, record):
            self._records.note(step.instance_id, lambda read: handed_back(read, now) if read.state is record.state else None)
        else:
            self._change(record, RecordState.GONE)
        return Result(step=step, outcome=Outcome.DONE)

    def _stop_or_start(self, step: Stop | ForceStop | FinishStop | Start) -> Result:
        if isinstance(step, Stop):
            return self._stop(step)
        if isinstance(step, ForceStop):
            return self._stopping().force(step)
        return self._finish_stop(step) if isinstance(step, FinishStop) else self._start(step)

    def _stop(self, step: Stop) -> Result:
        """Note that it stops, read the node once more, stop the instance. Its node is deleted once EC2 says that it has stopped."""
        record = self._records.now[step.instance_id]
        if record.state is RecordState.REGISTERED:
            self._change(record, RecordState.STOPPING)
        if keep := self._last_read(step, record):
            return Result(step=step, outcome=Outcome.SKIPPED, detail=keep)
        key = key_of(step) or ""
        try:
            self._ports.compute.stop(step.instance_id)
        except (StuckError, RefusedError) as error:
            is_final = isinstance(error, StuckError) or has_failed_often(self._snapshot.memory, step)
            self.tried[key] = None if is_final else str(error)
            if is_final:  # it never will be; the next look terminates it instead
                self.unstoppable[step.instance_id] = step.pool, str(error)
                self._take_back(record)
            raise
        self.tried[key] = None
        self.stopped.add(step.pool)
        return Result(step=step, outcome=Outcome.DONE)

    def _finish_stop(self, step: FinishStop) -> Result:
        stopping, record = self._stopping(), self._records.now[step.instance_id]
        result = stopping.finish(step, record)
        if step.failed and result.outcome is Outcome.DONE:
            self.tried[postponed_start(step.controller, step.instance_id)] = f"{EC2_ANSWERED}{step.failed}"
        return result

    def _start(self, step: Start) -> Result:
        started = self._stopping().start(step)
        self.refused_starts += started.failed
        self.tried |= started.tried
        self._instead += [started.instead] if started.instead else []
        return started.result

    def _stopping(self) -> Stopping:
        return Stopping(
            ports=self._ports,
            fleet=self._fleet,
            snapshot=self._snapshot,
            controllers=self._controllers,
            records=self._records,
            holder=self._holder,
        )

    def _last_read(self, step: Terminate | Stop, before: Record) -> str | None:
        """Say why the instance must be kept after all. Nothing was sent yet, so its record is restored, and it may reconnect."""
        if step.node is None:
            keep = reserving.used_elsewhere(self._controllers, self._fleet, self._records.now.values(), before)
            if keep:
                self._take_back(before)
            return keep
        ended = step.ended if isinstance(step, Terminate) else ()
        try:
            keep = nodes.may_terminate(self._controllers[step.controller], step.node, step.mark, ended)
            keep = keep or reserving.used_elsewhere(self._controllers, self._fleet, self._records.now.values(), before)
        except AutoscalerError:
            self._take_back(before)
            raise
        if keep:
            self._take_back(before)
        return keep

    def _take_back(self, before: Record) -> None:
        """Restore a record that this step changed. One that an earlier pass changed stays: what it wrote may have been sent."""
        if before.state in _NOT_ACTED_ON or before.leaves:  # what leaves a node for another controller runs: nothing was sent
            changed = self._records.now[before.instance_id].state
            self._records.note(before.instance_id, lambda record: self._in(record, before.state) if record.state is changed else None)

    def _gone_machines(self) -> GoneMachines:
        return GoneMachines(
            controllers=self._controllers,
            compute=self._ports.compute,
            records=self._records,
            clock=self._ports.clock,
        )

    def _adopt(self, step: Adopt) -> Result:
        instance = next(i for i in self._snapshot.instances if i.id == step.instance_id)
        pool = self._fleet.pool_of(step.pool, step.controller)
        if pool is None:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"nobody knows its pool {step.pool}")
        spec = agent_spec(self._fleet, pool, instance.id, step.controller)
        launches.adopt(self._ports, pool, instance, step.node, spec.labels if step.node == spec.name else ())
        return Result(step=step, outcome=Outcome.DONE)

    def _forget(self, step: Forget) -> Result:
        if not self.remembered:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="its launch could not be noted; the next pass closes it")
        self._change(self._records.now[step.instance_id], RecordState.GONE)
        return Result(step=step, outcome=Outcome.DONE)

    def _change(self, record: Record, state: RecordState) -> None:
        """Change a record's state, or lose the race and stop here."""
        self._records.write(self._in(record, state))

    def _in(self, record: Record, state: RecordState) -> Record:
        return replace(record, state=state, changed_at=self._ports.clock())
