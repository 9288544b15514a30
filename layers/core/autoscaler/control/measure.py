"""Measuring: look, learn from what changed since the last look, and describe what is there. Decides nothing, needs no lease."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from autoscaler.control.invocation import Invocation
from autoscaler.control.observe import log_notes, observe_without_instances
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import BuildResult, Health, Snapshot
from autoscaler.domain.learn import Lesson, assess, learn_from_builds
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.report.metrics import measure
from autoscaler.domain.scale_in.build_results import RESULTS_SECONDS, gone_since
from autoscaler.domain.situation.situation import Situation
from autoscaler.errors import AutoscalerError, ConflictError
from autoscaler.ports import Controller, Ports


def collect(ports: Ports, fleet: Fleet, invocation: Invocation) -> list[Datum]:
    """Measure what is there, and learn from what changed since the last look. Decides nothing, needs no lease."""
    situation, lessons = observe_and_learn(ports, fleet, invocation)
    unread = {view.name for view in situation.views() if not view.complete}
    asked = replace(ports, controllers=tuple(c for c in ports.controllers if c.name not in unread))
    return measure(situation, lessons, node_health(asked) if invocation.look == 1 else {})


def node_health(ports: Ports) -> dict[str, Mapping[str, Health]]:
    """What each controller's node monitors say; they look once an hour, so that one that cannot be read now is read in a minute."""
    told = ports.side_by_side([partial(_health, ports, controller) for controller in ports.controllers])
    return {controller.name: health for controller, health in zip(ports.controllers, told, strict=True) if health is not None}


def _health(ports: Ports, controller: Controller) -> Mapping[str, Health] | None:
    try:
        return controller.health()
    except AutoscalerError as error:
        ports.log("health_not_read", controller=controller.name, error=f"{type(error).__name__}: {error}")
        return None


def observe_and_learn(ports: Ports, fleet: Fleet, invocation: Invocation) -> tuple[Situation, dict[str, Lesson]]:
    """Look, and learn from what changed since the last look: how long jobs ran, how they ended, how long those waited that began."""
    snapshot = observe_without_instances(ports, ports.state.read(), invocation)
    situation = assess(snapshot, fleet)
    lessons: dict[str, Lesson] = {}
    ask_until = ports.clock() + RESULTS_SECONDS
    for port in ports.controllers:
        controller = port.name
        lesson = lessons[controller] = learn_from_builds(situation, controller, _results(ports, port, snapshot, ask_until))
        if not lesson.learned.tells_what(snapshot.learned[controller]):
            try:
                ports.state.save_learned(controller, lesson.learned)
            except ConflictError:
                # An invocation that overlapped this one learned the same first: its samples count, ours would be twice.
                ports.log("learned_elsewhere", controller=controller)
    log_notes(ports, snapshot)
    return situation, lessons


def _results(ports: Ports, controller: Controller, snapshot: Snapshot, ask_until: float) -> dict[str, BuildResult]:
    """Ask how the builds ended that are gone since the last look. Where one cannot be asked for, or in time, the others stay unknown."""
    found: dict[str, BuildResult] = {}
    for gone in gone_since(snapshot.learned[controller.name], snapshot.controllers[controller.name]):
        if ports.clock() >= ask_until:
            ports.log("results_not_asked", controller=controller.name, seconds=RESULTS_SECONDS)
            break
        try:
            result = controller.result(gone.run)
        except AutoscalerError as error:
            ports.log("result_not_read", controller=controller.name, run=gone.run, error=f"{type(error).__name__}: {error}")
            break
        if result is not None:
            found[gone.run] = result
            ports.log("build_ended", controller=controller.name, pool=gone.pool, node=gone.node, run=gone.run, result=result)
    return found
