"""Stops and starts agents, and gives them to other controllers.

The record is written first: the next pass goes on by what EC2 says.

- stopping: the call may not have been made; it is made again once the node was seen idle again, and
  changes nothing twice.
- starting: likewise. What EC2 refuses to start stays stopped, and is launched instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autoscaler.control import nodes
from autoscaler.control.outcomes import Result
from autoscaler.control.steps.acting import Acting, done, failed, skipped
from autoscaler.control.steps.ending import last_read, restore
from autoscaler.domain.facts.fleet import agent_spec, node_name
from autoscaler.domain.facts.memory import EC2_ANSWERED
from autoscaler.domain.facts.metering import begin_again, given_back, rotated
from autoscaler.domain.facts.nodes import has_static_node
from autoscaler.domain.facts.plan import (
    FailedStart,
    FinishRotation,
    FinishStop,
    ForceStop,
    NotStopped,
    Rotate,
    Start,
    Stop,
    Stopped,
)
from autoscaler.domain.facts.snapshot import InstanceState, Record, RecordState
from autoscaler.domain.launch.backoff import keeps_from_starting
from autoscaler.domain.situation.bets import has_failed_often, key_of
from autoscaler.domain.situation.canary import postponed_start, refused_start
from autoscaler.errors import (
    ConflictError,
    LaunchRefusedError,
    RefusedError,
    StuckError,
    TransientError,
)


def stop(acting: Acting, step: Stop) -> Result:
    """Note that it stops, read the node once more, stop the instance.

    Its node is deleted once EC2 says that it has stopped.
    """
    record = acting.records[step.instance_id]
    if record.state is RecordState.REGISTERED:
        acting.write_as(record, RecordState.STOPPING)
    if keep := last_read(acting, step, record):
        return skipped(step, keep)
    key, effects = key_of(step) or "", acting.effects
    try:
        acting.ports.compute.stop(step.instance_id)
    except (StuckError, RefusedError) as error:
        is_final = isinstance(error, StuckError) or has_failed_often(acting.snapshot.memory, step)
        acting.tried(key, None if is_final else str(error))
        if is_final:  # it never will be; the next look terminates it instead
            effects.append(NotStopped(instance_id=step.instance_id, pool=step.pool, why=str(error)))
            restore(acting, record)
        raise
    acting.tried(key, None)
    effects.append(Stopped(pool=step.pool))
    return done(step)


def force_stop(acting: Acting, step: ForceStop) -> Result:
    """Stop an instance by force that EC2, asked again, says is stopping still."""
    fate = acting.ports.compute.fate(step.instance_id)
    if fate is not InstanceState.STOPPING:
        return skipped(step, f"its instance is {fate}")
    acting.ports.compute.stop(step.instance_id, by_force=True)
    return done(step)


def finish_stop(acting: Acting, step: FinishStop) -> Result:
    """Delete the node of an instance that has stopped, once EC2, asked again, says so.

    Then note that it waits to be started.
    """
    record = acting.records[step.instance_id]
    fate = acting.ports.compute.fate(step.instance_id)
    if fate is not InstanceState.STOPPED:
        return skipped(step, f"its instance is {fate}")
    if step.node is not None:
        controller = acting.controllers[step.controller]
        node = controller.node(step.node)
        if node is not None and not node.offline:
            return skipped(step, "its node is connected")
        if record.state is RecordState.REGISTERED:
            record = acting.write_as(record, RecordState.STOPPING)
        # A second deletion would leave for ever what is on it.
        is_deleted = node is not None and node.is_deleted and not node.idle
        if not (is_deleted or has_static_node(record)):
            controller.delete_node(step.node)
        record = record.without_node(acting.ports.clock())
    freed = replace(record, labels=(), cordon="", trouble="", reservation=None)
    acting.write_as(replace(freed, registered_at=None, keep_until=0.0), RecordState.STOPPED)
    if step.failed:
        acting.tried(
            postponed_start(step.controller, step.instance_id), f"{EC2_ANSWERED}{step.failed}"
        )
    return done(step)


# Starts.


# What EC2 answered by machine: why it did not start, or None.
_Answers = Mapping[str, TransientError | None]


def start(acting: Acting, step: Start) -> Result:
    """Note the starts under the lease, ask EC2 for all at once, and take back what it refused.

    Spares are started in their place.
    """
    last, spares = _attempt(acting, step, step.instance_ids), list(step.spares)
    answers, without_spares = last, len(last)
    while spares and (more := sum(map(_is_of_machine, _refusals(last).values()))):
        last, spares = _attempt(acting, step, spares[:more]), spares[more:]
        answers = {**answers, **last}
    return _started(acting, step, answers, spares=len(answers) - without_spares)


def _started(acting: Acting, step: Start, answers: _Answers, *, spares: int) -> Result:
    """Note what has started and what has not, and launch what is missing then."""
    started = [name for name, why in answers.items() if why is None]
    for name in started:
        acting.tried(refused_start(step.controller, name), None)
    for name, refusal in _refusals(answers).items():
        _note_refused(acting, step, name, refusal)
    short = len(_refusals(answers)) - spares
    if step.otherwise and short > 0:
        acting.instead.append(replace(step.otherwise, count=short))
    if not answers:
        return replace(skipped(step, "another pass, or a person, was quicker"), count=0)
    detail = "; ".join(f"{name}: {why}" for name, why in sorted(answers.items()) if why)
    return replace(done(step, detail) if started else failed(step, detail), count=len(started))


def _attempt(acting: Acting, step: Start, instance_ids: Iterable[str]) -> _Answers:
    """Ask for some machines with one call."""
    stopped_at = {name: acting.records[name].changed_at for name in instance_ids}
    noted = [_noted(acting, step, acting.records[name]) for name in stopped_at]
    asked = {record.instance_id: record for record in noted if record}
    problems = acting.ports.compute.start(asked) if asked else {}
    for name in _refusals(problems):
        _stays_stopped(acting, asked[name], stopped_at[name])
    return {name: problems.get(name) for name in asked}


def _refusals(answers: _Answers) -> dict[str, LaunchRefusedError]:
    return {name: why for name, why in answers.items() if isinstance(why, LaunchRefusedError)}


def _noted(acting: Acting, step: Start, record: Record) -> Record | None:
    """Note that a stopped agent is to start; None: it is not stopped any more."""
    if record.state is RecordState.STARTING:
        return record
    begun = replace(
        begin_again(record, acting.ports.clock()),
        keep_until=step.keep_until,
        started_for=step.request,
        reservation=step.reservation,
    )
    try:
        return acting.write(begun, acting.holder)
    except ConflictError:
        return None


def _stays_stopped(acting: Acting, record: Record, stopped_at: float) -> None:
    """Note that it stays stopped, since when it was before, and that nothing was started.

    EC2 may refuse it again each minute.
    """

    def stopped(read: Record) -> Record | None:
        if (read.state, read.life) != (RecordState.STARTING, record.life):
            return None
        as_before = replace(read, state=RecordState.STOPPED, changed_at=stopped_at)
        return replace(as_before, starts=read.starts[:-1], reservation=None)

    acting.note(record.instance_id, stopped)


def _note_refused(acting: Acting, step: Start, name: str, refusal: LaunchRefusedError) -> None:
    """Note why a machine did not start: it counts as a failed start unless machines are short."""
    is_of_machine, why = _is_of_machine(refusal), f"{EC2_ANSWERED}{refusal.named}"
    if not keeps_from_starting(refusal.code):
        acting.effects.append(
            FailedStart(pool=step.pool, instance_id=name, why=why, of_all=not is_of_machine)
        )
    key = refused_start if is_of_machine else postponed_start
    acting.tried(key(step.controller, name), why)


def _is_of_machine(refusal: LaunchRefusedError) -> bool:
    """Tell whether a refusal is for one machine: nothing is short, nor is a right missing.

    Another machine may not meet it.
    """
    return not (keeps_from_starting(refusal.code) or refusal.code == "UnauthorizedOperation")


# Gives agents to other controllers. Cut off anywhere, the next pass deletes the node that was left.
#
# Until that node is deleted the agent is told to ask again, so that whatever may have begun there
# meanwhile goes on. If the node is in use again before it is deleted, the agent goes back to it,
# and the next look decides anew.


def rotate(acting: Acting, step: Rotate) -> Result:
    """Read the node once more, note whom the agent serves from now on, then delete the node."""
    record, controller = acting.records[step.instance_id], acting.controllers[step.controller]
    if keep := nodes.may_terminate(controller, step.node, step.mark):
        return skipped(step, keep)
    acting.write(rotated(record, step.to, acting.ports.clock()), acting.holder)
    return _leave(acting, step)


def finish_rotation(acting: Acting, step: FinishRotation) -> Result:
    """Delete the node that an agent has left, unless that is in use again."""
    if step.controller not in acting.controllers:
        return _close_unseen(acting, step)
    return _leave(acting, step, is_bound=step.is_bound)


def _leave(acting: Acting, step: Rotate | FinishRotation, *, is_bound: bool = False) -> Result:
    controller = acting.controllers[step.controller]
    node = controller.node(step.node)
    if node is not None and (is_bound or not (node.offline and node.idle and not node.builds)):
        return _stay(acting, step)
    record = acting.records[step.instance_id]
    if step.node == node_name(record.pool, record.machine):  # a static node is its operator's
        controller.delete_node(step.node)
    acting.note(step.instance_id, lambda read: _without(read, step))
    return done(step)


def _stay(acting: Acting, step: Rotate | FinishRotation) -> Result:
    """Give an agent back to the node that it was to leave, since that is in use again.

    Somebody brought it online, as a reload of Jenkins' configuration does with every node, or a
    build is on it or bound to it. If it were only left alone, it might stay online and idle: then
    the agent could register nowhere, and nobody would end its instance.
    """
    pool = acting.fleet.pool_of(step.pool, step.controller)
    if pool is None:
        return skipped(step, f"its node is in use, and nobody knows its pool {step.pool}")
    machine, place = acting.records[step.instance_id].machine, (step.controller, step.node)
    spec = agent_spec(acting.fleet, pool, machine, step.controller)
    # As it is adopted.
    labels, now = spec.labels if step.node == spec.name else (), acting.ports.clock()

    def stays(read: Record) -> Record | None:
        left = next((one for one in read.leaves if (one.controller, one.node) == place), None)
        # Not what was given up meanwhile, nor what has a node elsewhere.
        begins = read.state is RecordState.STARTING and read.node is None
        return given_back(read, left, labels, now) if left is not None and begins else None

    record = acting.note(step.instance_id, stays)
    is_back = record is not None and record.node == step.node
    so = f": it stays on {step.controller}" if is_back else ""
    return skipped(
        step, f"somebody brought its node online, or a build is on it or bound to it{so}"
    )


def _close_unseen(acting: Acting, step: FinishRotation) -> Result:
    """Note that nothing runs on a controller that left the fleet file, as a person said.

    Its node stays there: nobody can delete it.
    """
    record = acting.records[step.instance_id]
    if (record.controller, record.node) != (step.controller, step.node):
        acting.note(step.instance_id, lambda read: _without(read, step))
    elif record.is_instance:
        return skipped(step, "it is an instance, which is ended as a whole")
    else:
        acting.write_as(record, RecordState.GONE)
    return done(step)


def _without(record: Record, step: Rotate | FinishRotation) -> Record:
    """Note that the node is deleted that an agent leaves."""
    place = step.controller, step.node
    others = [left for left in record.leaves if (left.controller, left.node) != place]
    return replace(record, leaves=tuple(others))
