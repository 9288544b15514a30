"""Applies a plan step by step. A failed step stops no other, and the next pass makes it good."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import Outcome, Report, Result, StepNotes
from autoscaler.control.steps import cordons, ending, in_jenkins, launching, stopping
from autoscaler.control.steps.acting import Acting, failed, skipped
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.nodes import with_known_weights
from autoscaler.domain.facts.orders import with_held_labels
from autoscaler.domain.facts.plan import (
    Adopt,
    BootFailure,
    CancelItem,
    ConsoleRead,
    Cordon,
    CreateBeacon,
    DeleteNode,
    Effect,
    EndReservation,
    FinishRotation,
    FinishStop,
    ForceStop,
    Forget,
    FreeSlot,
    ImageRefused,
    Launch,
    LeaveLost,
    Lend,
    NotLaunched,
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
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.learn import last_tried, note_results
from autoscaler.domain.situation.bets import key_of, why_no_node
from autoscaler.errors import AutoscalerError, DoubtfulError, NoAnswerError, UnansweredError
from autoscaler.ports import Ports

# Reads the console of an agent that did not boot, while its instance is there.


def keep_console(acting: Acting, failure: BootFailure) -> None:
    """Log why an agent did not boot before its instance is gone. A console that cannot be read does not keep the instance."""
    try:
        said = acting.ports.compute.console_output(failure.instance_id)
        acting.effects.append(ConsoleRead(instance_id=failure.instance_id, text=said))
    except AutoscalerError as error:
        said = f"(not read: {error})"
    acting.ports.log(
        "boot_failed",
        controller=failure.controller,
        pool=failure.pool,
        instance_id=failure.instance_id,
        why=failure.why,
        console=said or "(nothing)",
    )


# Saves the memory of a pass, with what its steps have taught. Refusals of EC2 are saved at once: a pass may be cut off after them.


# Each save writes the whole memory. If EC2 refuses everything, the others are saved when the pass ends.
_MOST_EARLY_SAVES = 5
_ASKED_OF_EC2 = (Launch, Start, Stop, Terminate)


@dataclass(slots=True)
class Lessons:
    """Saves what the steps of a pass have taught, added to the memory of its plan."""

    ports: Ports
    fleet: Fleet
    plan: Plan
    _effects_noted: int = 0
    _early_saves: int = 0
    _saves: int = 0
    _saved: Memory | None = None

    def note(self, result: Result, effects: Sequence[Effect], *, is_last: bool) -> None:
        """Save what EC2 has refused in a step. After the last one the pass saves everything anyway."""
        has_failed = result.outcome is Outcome.FAILED and isinstance(result.step, _ASKED_OF_EC2)
        is_new = has_failed or any(isinstance(effect, NotLaunched | ImageRefused) for effect in effects[self._effects_noted :])
        self._effects_noted = len(effects)
        if is_new and not is_last and self._early_saves < _MOST_EARLY_SAVES:
            self._early_saves += 1
            self._save(note_results(self.plan.memory, self.fleet, effects, self.ports.clock()))

    def save(self, effects: Sequence[Effect]) -> bool:
        """Save what is to be remembered of the whole pass; tell whether the memory of the plan is saved."""
        memory = note_results(self.plan.memory, self.fleet, effects, self.ports.clock())
        if self._saved is not None and memory == self._saved:
            return True
        if not (self.plan.remember or memory != self.plan.memory):
            return False
        return self._save(memory)

    def _save(self, memory: Memory) -> bool:
        versioned = replace(memory, version=self.plan.memory.version + self._saves)
        # Forgetting costs a window or a second look, and what was done is done: the report must still go out.
        if not self.ports.is_done(partial(self.ports.state.save_memory, versioned), "memory_not_saved"):
            return False
        self._saved = memory
        self._saves += 1
        return True


# Applies the steps of a plan.


# With less time left in the invocation than this, no step is begun.
STEP_RESERVE_SECONDS = 10.0
# A step in Jenkins is up to three small calls; one that takes longer than this leaves its controller to the next pass.
SLOW_STEP_SECONDS = 8.0

# What carries each step out.
CARRIED_OUT_BY: Mapping[type[Step], Callable[[Acting, Any], Result]] = {
    CreateBeacon: in_jenkins.create_beacon,
    RemoveBeacon: in_jenkins.remove_beacon,
    CancelItem: in_jenkins.cancel_item,
    Cordon: cordons.cordon,
    Uncordon: cordons.uncordon,
    Relabel: cordons.relabel,
    Lend: cordons.lend,
    TakeBack: cordons.take_back,
    Reserve: cordons.reserve,
    ReserveDevice: cordons.reserve_device,
    EndReservation: cordons.end_reservation,
    Launch: launching.launch,
    Adopt: launching.adopt,
    Stop: stopping.stop,
    ForceStop: stopping.force_stop,
    FinishStop: stopping.finish_stop,
    Start: stopping.start,
    Rotate: stopping.rotate,
    FinishRotation: stopping.finish_rotation,
    Terminate: ending.terminate,
    DeleteNode: ending.delete_node,
    FreeSlot: ending.free_slot,
    Forget: ending.forget,
    RunAgain: in_jenkins.run_again,
    LeaveLost: in_jenkins.leave_lost,
}


def apply(ports: Ports, fleet: Fleet, snapshot: Snapshot, plan: Plan, invocation: Invocation, holder: str = "") -> Report:
    """Take every step for which there is time, and note each when it is done; then save what to remember.

    ``holder``: the name the lease is held under, "" without it: then nothing can be launched.
    """
    notes, lessons = StepNotes(ports, plan, invocation.by), Lessons(ports, fleet, plan)
    known = with_left(with_volumes(with_known_weights(fleet, snapshot.learned), snapshot), snapshot)
    acting = Acting(ports, with_held_labels(known, snapshot.overrides.at(snapshot.taken_at)), snapshot, holder)
    for failure in plan.boot_failures:
        if invocation.ends_at - ports.clock() >= STEP_RESERVE_SECONDS:
            keep_console(acting, failure)
    for result, is_last in take_all(acting, (step for step in plan.steps if not isinstance(step, Forget)), invocation.ends_at):
        notes.note(result)
        lessons.note(result, acting.effects, is_last=is_last)
    acting.is_remembered = lessons.save(acting.effects)
    # A record that is closed is known from the memory alone: it goes once that is saved, or its launch would not count any more.
    for result, _ in take_all(acting, (step for step in plan.steps if isinstance(step, Forget)), invocation.ends_at):
        notes.note(result)
    notes.send()
    return Report(plan=plan, results=tuple(notes.results), dry_run=False, unresponsive=frozenset(acting.unresponsive))


def take_all(acting: Acting, steps: Iterable[Step], ends_at: float) -> Iterator[tuple[Result, bool]]:
    """Take the steps for which there is time, one by one; tell whether a step was the last one."""
    waiting = deque(steps)
    while waiting:
        step = waiting.popleft()
        in_time = ends_at - acting.ports.clock() >= STEP_RESERVE_SECONDS
        result = take(acting, step) if in_time else skipped(step, "no time is left in this invocation")
        waiting.extendleft(acting.instead)
        acting.instead.clear()
        yield result, not waiting


def take(acting: Acting, step: Step) -> Result:
    """Carry one step out, unless its controller has stopped answering, or makes no node for what would be launched."""
    controller, waits_for_ec2 = step.controller, isinstance(step, Launch | Start)
    if controller in acting.unresponsive:
        return skipped(step, f"{controller} stopped answering, or answers too slowly")
    if waits_for_ec2 and controller not in acting.fleet.slot_controllers and (why := why_no_node(last_tried(acting.effects), controller)):
        return skipped(step, f"no node can be made on {controller}: {why}")
    began = acting.ports.clock()
    try:
        result = CARRIED_OUT_BY[type(step)](acting, step)
    except AutoscalerError as error:
        if isinstance(error, UnansweredError | NoAnswerError) and not isinstance(error, DoubtfulError):
            acting.unresponsive.add(controller)
        result = failed(step, f"{type(error).__name__}: {error}")
    # What takes so long takes it from the other controllers. A launch or a start waits for EC2, and not for Jenkins.
    if not waits_for_ec2 and acting.ports.clock() - began > SLOW_STEP_SECONDS:
        acting.unresponsive.add(controller)
    if (key := key_of(step)) and not isinstance(step, Stop):  # of stops EC2's refusals alone count
        acting.tried(key, result.detail if result.outcome is Outcome.FAILED else None)
    return result
