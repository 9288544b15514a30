"""Measures: observes, learns from the changes since the last look, and describes the fleet. Needs no lease."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from autoscaler.control.costs import note_costs
from autoscaler.control.graphs import read_graphs
from autoscaler.control.heavy_jobs import heavy_jobs
from autoscaler.control.invocation import Invocation
from autoscaler.control.jobs import learned_weights, note_jobs
from autoscaler.control.observe import log_notes, observe_without_instances
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.runs import Graphs, RunEnd
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.facts.telemetry import Telemetry, out_of_bounds
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import Lesson, learn_from_builds
from autoscaler.domain.report.datum import Datum, PassNotes
from autoscaler.domain.report.metrics import measure
from autoscaler.domain.report.told import Told
from autoscaler.domain.scale_in.replace import RESULTS_SECONDS, gone_since
from autoscaler.domain.situation.builds import AskedItems, gone_blocks, items_of, runs_to_read
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.warm_pool import next_short_of_disk
from autoscaler.errors import AutoscalerError, ConflictError
from autoscaler.ports import Controller, Ports, StoredState


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one look saw, its metrics, what people had been told of before, and the notes that passes left, by function."""

    situation: Situation
    data: list[Datum]
    told: Told
    passes: Mapping[str, PassNotes]


def collect(ports: Ports, fleet: Fleet, invocation: Invocation) -> Measured:
    """Return the metrics of the fleet as it is now, and save what was learned on the way."""
    stored = ports.state.read()
    reports = telemetry_of(ports)
    situation, lessons = observe_and_learn(ports, fleet, stored, invocation, reports)
    if not invocation.dry_run:
        note_jobs(ports, situation, lessons, reports)
        note_costs(ports, situation, lessons)
    unread = {view.name for view in situation.views() if not view.complete}
    asked = replace(ports, controllers=tuple(c for c in ports.controllers if c.name not in unread))
    data = measure(situation, lessons, node_health(asked), reports)
    return Measured(situation=situation, data=data, told=stored.told, passes=stored.passes)


def telemetry_of(ports: Ports) -> Mapping[str, Telemetry]:
    """Read what machines told last. Where that fails, the next minute reads it."""
    try:
        return believable_telemetry(ports)
    except AutoscalerError as error:
        ports.log("telemetry_not_read", error=f"{type(error).__name__}: {error}")
        return {}


def believable_telemetry(ports: Ports) -> Mapping[str, Telemetry]:
    """Read what machines told last. A report that no machine can have made, from before that was refused, is dropped."""
    reports = ports.telemetry.latest() if ports.telemetry else {}
    problems = {machine: problem for machine, report in reports.items() if (problem := out_of_bounds(report))}
    for machine, problem in problems.items():
        ports.log("telemetry_dropped", machine=machine, problem=problem)
    return {machine: report for machine, report in reports.items() if machine not in problems}


def node_health(ports: Ports) -> dict[str, Mapping[str, Health]]:
    """Read the node monitors of each controller. They change once an hour, so a failed read can wait for the next minute."""
    told = ports.side_by_side([partial(_health, ports, controller) for controller in ports.controllers])
    return {controller.name: health for controller, health in zip(ports.controllers, told, strict=True) if health is not None}


def _health(ports: Ports, controller: Controller) -> Mapping[str, Health] | None:
    try:
        return controller.health()
    except AutoscalerError as error:
        ports.log("health_not_read", controller=controller.name, error=f"{type(error).__name__}: {error}")
        return None


def observe_and_learn(
    ports: Ports, fleet: Fleet, stored: StoredState, invocation: Invocation, reports: Mapping[str, Telemetry] = MappingProxyType({})
) -> tuple[Situation, dict[str, Lesson]]:
    """Observe, and learn from the changes since the last look: durations, results and waits of jobs, and what ``reports`` say of disks."""
    snapshot = observe_without_instances(ports, fleet, stored, invocation)
    situation = assess(snapshot, fleet, invocation.memo)
    lessons: dict[str, Lesson] = {}
    ask_until = ports.clock() + RESULTS_SECONDS
    for port in ports.controllers:
        controller = port.name
        ends = _ends(ports, port, snapshot, ask_until)
        results = {run: end.result for run, end in ends.items() if end.result is not None}
        view, before = snapshot.controllers[controller], snapshot.learned[controller]
        items = items_of(before, view, [end.item for end in ends.values() if end.item], snapshot.taken_at)
        if view.complete and controller in ports.builds:
            _ask_items(ports, controller, items, ask_until)
        graphs = _graphs(ports, port, snapshot, ask_until, items.runs)
        lesson = replace(learn_from_builds(situation, controller, results, graphs, items), ends={**_ends_of_pipelines(graphs), **ends})
        _log_blocks(ports, controller, lesson)
        weights = learned_weights(ports, fleet, controller, snapshot.learned[controller].weights)
        heavy = heavy_jobs(ports, fleet, port, snapshot.controllers[controller], snapshot.learned[controller].heavy_jobs)
        short = next_short_of_disk(snapshot.learned[controller].short_of_disk, stored.records, controller, reports)
        learned = replace(lesson.learned, weights=weights, heavy_jobs=heavy, short_of_disk=short)
        lesson = lessons[controller] = replace(lesson, learned=learned)
        if not lesson.learned.tells_what(snapshot.learned[controller]):
            try:
                ports.state.save_learned(controller, lesson.learned)
            except ConflictError:
                # An invocation that overlapped this one learned the same first: its samples count, ours would be twice.
                ports.log("learned_elsewhere", controller=controller)
    log_notes(ports, snapshot)
    return situation, lessons


def _ask_items(ports: Ports, controller: str, items: AskedItems, ask_until: float) -> None:
    """Ask what became of queue items, until one question fails or the time is up; the next look asks about the rest."""
    try:
        for item in items.to_ask():
            if ports.clock() >= ask_until:
                break
            items.answers[item] = ports.builds[controller].item(item)
    except AutoscalerError as error:
        ports.log("item_not_read", controller=controller, error=f"{type(error).__name__}: {error}")


def _graphs(ports: Ports, controller: Controller, snapshot: Snapshot, ask_until: float, unseen: Collection[str]) -> Graphs:
    """Read the graphs of the pipelines of which node blocks are gone."""
    before = snapshot.learned[controller.name]
    gone = gone_blocks(before, snapshot.controllers[controller.name], snapshot.taken_at)
    return read_graphs(ports, controller, runs_to_read(gone, before.blocks.runs, snapshot.taken_at), ask_until, unseen)


def _ends_of_pipelines(graphs: Graphs) -> dict[str, RunEnd]:
    """Say how long pipelines took that have ended; results are those of their node blocks."""
    return {run: RunEnd(result=None, seconds=graph.end.seconds) for run, graph in graphs.read.items() if graph and graph.end}


def _log_blocks(ports: Ports, controller: str, lesson: Lesson) -> None:
    for build in lesson.unseen:
        where = {"controller": controller, "pool": build.pool, "node": build.node, "run": build.run}
        ports.log("build_ended", **where, result=build.result)
    for block, end in lesson.blocks:
        where = {"controller": controller, "pool": block.pool, "node": block.node, "run": block.run}
        ports.log("block_ended", **where, block=block.signature, result=end)


def _ends(ports: Ports, controller: Controller, snapshot: Snapshot, ask_until: float) -> dict[str, RunEnd]:
    """Ask how builds ended that are gone since the last look, until one fails or the time is up; the rest stay unknown."""
    found: dict[str, RunEnd] = {}
    for gone in gone_since(snapshot.learned[controller.name], snapshot.controllers[controller.name]):
        if ports.clock() >= ask_until:
            ports.log("results_not_asked", controller=controller.name, seconds=RESULTS_SECONDS)
            break
        try:
            end = controller.result(gone.run)
        except AutoscalerError as error:
            ports.log("result_not_read", controller=controller.name, run=gone.run, error=f"{type(error).__name__}: {error}")
            break
        if end is not None:
            found[gone.run] = end
        if end is not None and end.result is not None:
            ports.log("build_ended", controller=controller.name, pool=gone.pool, node=gone.node, run=gone.run, result=end.result)
    return found
