"""Matrix builds of the simulated Jenkins: one build that has no agent, and waits for a build of each configuration."""

from functools import partial

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind, Started
from autoscaler_workbench.fakes.world.jenkins.controller import Controller


def submit_matrix(
    controller: Controller, job: str, label: str | None, seconds: float, configurations: tuple[str, ...], by: Started
) -> Build:
    """Begin a matrix, and queue a build of each of its configurations; it has failed where one of them has."""
    now, number = controller.timeline.now, controller.next_number(job)
    facts = {"controller": controller.name, "kind": Kind.FREESTYLE, "job": job, "number": number, "seconds": seconds}
    whole = Build(id=next(controller.ids), label=None, queued_at=now, buildable_at=now, started_with=by, started_at=now, **facts)  # type: ignore[arg-type]
    whole.is_whole_matrix = True
    controller.note(whole)
    parts: list[Build] = []
    for configuration in configurations:
        part = Build(
            id=next(controller.ids),
            label=label,
            queued_at=now,
            buildable_at=now,
            configuration=configuration,
            started_with=Started(parameters=by.parameters, upstream=(whole.run_path.rstrip("/"),)),
            on_end=partial(_ended, controller, whole, parts),
            **facts,  # type: ignore[arg-type]
        )
        parts.append(part)
        controller.note(part)
        controller.queue.append(part)
    whole.on_end = partial(_stop, controller, parts)
    controller.timeline.after(0.0, controller.schedule)
    return whole


def _ended(controller: Controller, whole: Build, parts: list[Build], _part: Build) -> None:
    if whole.ended is None and all(part.ended is not None for part in parts):
        controller.end(whole, succeeded=all(part.succeeded for part in parts))


def _stop(controller: Controller, parts: list[Build], _whole: Build) -> None:
    """Whoever stops the whole stops what still runs or waits of it (MatrixBuild.doRun)."""
    for part in parts:
        controller.abort(part)
