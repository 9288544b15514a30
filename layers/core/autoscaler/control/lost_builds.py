"""Looks up what Jenkins and our own store say of builds whose agents have gone, and answers for those that are lost, each once.

The answer is written down before Jenkins is asked. Cut off after that, it may have been sent: the next look finds what it started, or
that it started nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autoscaler.build_ports import Builds, RerunStore
from autoscaler.control.report import Outcome, Result
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.plan import LeaveLost, RunAgain
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import Parameter, job_path_of
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, ControllerView
from autoscaler.domain.facts.started_builds import LostBuild, LostFacts, Rerun, RerunState, claimed_try, origin_key, rerun_key
from autoscaler.errors import AutoscalerError, ConfigError, ConflictError, RefusedBuildError
from autoscaler.ports import Ports

# Some small requests each; the others in the next looks.
LOST_ASKED_A_LOOK = 20


def look_up(ports: Ports, fleet: Fleet, lost: Mapping[str, LostBuild], views: Iterable[ControllerView]) -> dict[str, LostFacts]:
    """Ask about the builds that are followed. What cannot be read now is asked for in the next look."""
    found: dict[str, LostFacts] = {}
    for view in views:
        mine = [one for one in lost.values() if one.controller == view.name]
        if not mine or not view.complete or view.name not in ports.builds or ports.reruns is None:
            continue
        first = int(ports.clock() // MINUTE_SECONDS) * LOST_ASKED_A_LOOK % len(mine)
        for one in [*mine[first:], *mine[:first]][:LOST_ASKED_A_LOOK]:
            try:
                found[one.key] = _facts(ports, ports.reruns, fleet.rerun_parameter, one)
            except AutoscalerError as error:
                ports.log("lost_build_not_read", controller=view.name, run=one.run, error=f"{type(error).__name__}: {error}")
                break
    return found


def _facts(ports: Ports, store: RerunStore, own: str, lost: LostBuild) -> LostFacts:
    builds = ports.builds[lost.controller]
    run = builds.run(lost.run)
    if run is not None and run.building:
        return LostFacts(run=run)
    unit = run if run is None or lost.unit == lost.run else builds.run(lost.unit)
    rerun = store.rerun(rerun_key(lost.controller, lost.unit, unit.started_at if unit else 0.0))
    shown = unit or run  # a restart may leave a configuration without its matrix
    if shown is None or shown.building:
        return LostFacts(run=run, unit=unit, rerun=rerun)
    since = shown.ended_at if shown.ended_at is not None else shown.started_at
    upstream = tuple(up for path in shown.upstream if (up := builds.run(path)) is not None)
    return LostFacts(
        run=run,
        unit=unit,
        job=builds.job(job_path_of(lost.unit), since),
        rerun=rerun,
        upstream=upstream,
        origin=_origin_of(store, lost.controller, shown.parameters, own),
        is_ordered=_is_ordered(ports, lost.controller, shown.parameters, own, item=shown.item, run=lost.unit),
    )


def _origin_of(store: RerunStore, controller: str, parameters: Iterable[Parameter], own: str) -> Rerun | None:
    """Read the answer that a build's own parameter claims to come from. ``own``: that parameter's name."""
    keys = (origin_key(controller, parameter.value or "") for parameter in parameters if parameter.name == own)
    key = next((key for key in keys if key is not None), None)
    return store.rerun(key) if key is not None else None


def _is_ordered(ports: Ports, controller: str, parameters: Iterable[Parameter], own: str, *, item: int, run: str = "") -> bool:
    """Ask the order that a build's own parameter names, ended or not, whether it has started this very build."""
    named = claimed_try(parameters, own)
    if named is None or ports.run_orders is None:
        return False
    order = ports.run_orders.order(named[0])
    return order is not None and order.has_started(controller, named[1], item=item, run=run)


@dataclass(slots=True)
class Answers:
    """Answers for lost builds. ``given``: the name in the memory, and the answer."""

    ports: Ports
    holder: str
    given: list[tuple[str, Rerun]] = field(default_factory=list)

    def act(self, step: RunAgain | LeaveLost) -> Result:
        """Take one step."""
        if self.ports.reruns is None:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="there is no store of what was run again")
        return self._start(step, self.ports.reruns) if isinstance(step, RunAgain) else self._leave(step, self.ports.reruns)

    def _start(self, step: RunAgain, store: RerunStore) -> Result:
        if step.found is not None:
            return self._note(step, store, replace(step.rerun, state=RerunState.STARTED, item=step.found))
        builds = self.ports.builds[step.controller]
        if _is_repeated_by_now(builds, step):
            return Result(step=step, outcome=Outcome.SKIPPED, detail="a person has started the same just now; the next look tells")
        try:
            self._write(step, store)
        except ConflictError:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="it was answered for before, or another pass acts by now")
        try:
            item = builds.start(job_path_of(step.rerun.run), step.parameters)
        except (RefusedBuildError, ConfigError) as error:
            return self._refused(step, store, str(error))
        result = self._note(step, store, replace(step.rerun, state=RerunState.STARTED, item=item))
        return replace(result, detail=f"queue item {item}")

    def _refused(self, step: RunAgain, store: RerunStore, why: str) -> Result:
        """Leave to a person what Jenkins does not start."""
        left = LeaveLost(
            controller=step.controller,
            pool=step.pool,
            job=step.job,
            lost=step.lost,
            rerun=replace(step.rerun, state=RerunState.LEFT, why=why),
            reason=Reason.RERUN_REFUSED,
            detail=f"{step.rerun.run}: {why}",
        )
        return self._note(left, store, left.rerun)

    def _leave(self, step: LeaveLost, store: RerunStore) -> Result:
        if step.is_known:
            return self._note(step, store, step.rerun)
        try:
            store.add_rerun(step.rerun, holder=self.holder)
        except ConflictError:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="it was answered for before, or another pass acts by now")
        self.given.append((step.lost, step.rerun))
        return Result(step=step, outcome=Outcome.DONE)

    def _write(self, step: RunAgain, store: RerunStore) -> None:
        """Write the answer down, or when it is sent once more: until Jenkins has surely shown it, it is not sent a third time."""
        if step.is_known:
            store.change_rerun(step.rerun, expected=RerunState.WRITTEN)
        else:
            store.add_rerun(step.rerun, holder=self.holder)

    def _note(self, step: RunAgain | LeaveLost, store: RerunStore, rerun: Rerun) -> Result:
        store.change_rerun(rerun, expected=RerunState.WRITTEN)
        self.given.append((step.lost, rerun))
        return Result(step=step, outcome=Outcome.DONE)


def _is_repeated_by_now(builds: Builds, step: RunAgain) -> bool:
    """Tell whether a person has started the same since the look that decided to start it."""
    given = {name: value for name, value in (step.parameters or {}).items() if value != step.rerun.id}
    job = builds.job(job_path_of(step.rerun.run), step.rerun.created_at)
    new = [entry for entry in job.entries if entry.is_by_person and entry.item > step.newest] if job is not None else []
    return any(given.items() <= {parameter.name: parameter.value or "" for parameter in entry.parameters}.items() for entry in new)
