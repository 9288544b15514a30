"""Steps in Jenkins alone: beacons, items of its queue, and answers for builds that are lost.

Each lost build is answered for once. The answer is written down before Jenkins is asked. Cut off
after that, it may have been sent: the next look finds what it started, or that it started nothing.
"""

from dataclasses import replace

from autoscaler.control.outcomes import Result
from autoscaler.control.steps.acting import Acting, done, skipped
from autoscaler.domain.facts.plan import (
    CancelItem,
    CreateBeacon,
    LeaveLost,
    LostAnswer,
    RemoveBeacon,
    RunAgain,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import job_path_of
from autoscaler.domain.facts.started_builds import Rerun, RerunState
from autoscaler.errors import ConfigError, ConflictError, RefusedBuildError
from autoscaler.ports import Builds, RerunStore

_ANSWERED_BEFORE = "it was answered for before, or another pass acts by now"


def run_again(acting: Acting, step: RunAgain) -> Result:
    """Start a lost build again, unless a person has done so by now."""
    store = acting.ports.reruns
    if step.found is not None:
        return _note(
            acting, step, store, replace(step.rerun, state=RerunState.STARTED, item=step.found)
        )
    builds = acting.ports.builds[step.controller]
    if _is_repeated_by_now(builds, step):
        return skipped(step, "a person has started the same just now; the next look tells")
    try:  # until Jenkins has surely shown it, it is not sent a third time
        if step.is_known:
            store.change_rerun(step.rerun, expected=RerunState.WRITTEN)
        else:
            store.add_rerun(step.rerun, holder=acting.holder)
    except ConflictError:
        return skipped(step, _ANSWERED_BEFORE)
    try:
        item = builds.start(job_path_of(step.rerun.run), step.parameters)
    except (RefusedBuildError, ConfigError) as error:
        # Left to a person: Jenkins does not start it.
        left = LeaveLost(
            controller=step.controller,
            pool=step.pool,
            job=step.job,
            lost=step.lost,
            rerun=replace(step.rerun, state=RerunState.LEFT, why=str(error)),
            reason=Reason.RERUN_REFUSED,
            detail=f"{step.rerun.run}: {error}",
        )
        return _note(acting, left, store, left.rerun)
    result = _note(acting, step, store, replace(step.rerun, state=RerunState.STARTED, item=item))
    return replace(result, detail=f"queue item {item}")


def leave_lost(acting: Acting, step: LeaveLost) -> Result:
    """Write down that a lost build is not run again."""
    store = acting.ports.reruns
    if step.is_known:
        return _note(acting, step, store, step.rerun)
    try:
        store.add_rerun(step.rerun, holder=acting.holder)
    except ConflictError:
        return skipped(step, _ANSWERED_BEFORE)
    acting.effects.append(LostAnswer(lost=step.lost, rerun=step.rerun))
    return done(step)


def _note(acting: Acting, step: RunAgain | LeaveLost, store: RerunStore, rerun: Rerun) -> Result:
    store.change_rerun(rerun, expected=RerunState.WRITTEN)
    acting.effects.append(LostAnswer(lost=step.lost, rerun=rerun))
    return done(step)


def _is_repeated_by_now(builds: Builds, step: RunAgain) -> bool:
    """Tell whether a person has started the same since the look that decided to start it."""
    given = {
        name: value for name, value in (step.parameters or {}).items() if value != step.rerun.id
    }
    job = builds.job(job_path_of(step.rerun.run), step.rerun.created_at)
    by_people = (entry for entry in (job.entries if job else ()) if entry.is_by_person)
    new = [entry for entry in by_people if entry.item > step.newest]
    started = [{one.name: one.value or "" for one in entry.parameters} for entry in new]
    return any(given.items() <= parameters.items() for parameters in started)


# Beacons, and items of the queue.


def create_beacon(acting: Acting, step: CreateBeacon) -> Result:
    """Create the beacon, unless it is there already."""
    try:
        acting.controllers[step.controller].create_node(step.spec)
    except ConflictError:
        return done(step, "it is there already")
    return done(step)


def remove_beacon(acting: Acting, step: RemoveBeacon) -> Result:
    """Delete a beacon, unless somebody connected an agent to it."""
    controller = acting.controllers[step.controller]
    node = controller.node(step.node)
    if node is None:
        return skipped(step, "it is not there any more")
    if not node.offline or not node.idle or node.builds:
        return skipped(step, "somebody uses it")
    controller.delete_node(step.node)
    return done(step)


def cancel_item(acting: Acting, step: CancelItem) -> Result:
    """Take an item out of the queue, if it is still there."""
    if acting.controllers[step.controller].cancel_item(step.item):
        return done(step)
    return skipped(step, "it left the queue by itself")
