"""Pipelines of the simulated Jenkins: a run that begins at once on the controller itself, and asks for its node some seconds later."""

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind, Started
from autoscaler_workbench.fakes.world.jenkins.controller import Controller

_ASKS_AFTER_SECONDS = 3.0  # for its node: the script is fetched and compiled first
_TRIED_AGAIN_SECONDS = 5.0  # while the controller is away


def submit_pipeline(controller: Controller, job: str, label: str | None, seconds: float, by: Started) -> Build:
    """Begin a run, whose own queue item has left at once; its node block waits in the queue as another one."""
    now = controller.timeline.now
    build = Build(
        run_item=next(controller.ids),
        id=next(controller.ids),
        controller=controller.name,
        kind=Kind.PIPELINE,
        job=job,
        number=controller.next_number(job),
        label=label,
        seconds=seconds,
        queued_at=now,
        buildable_at=now,
        started_with=by,
    )
    controller.note(build)
    controller.timeline.after(_ASKS_AFTER_SECONDS, lambda: _ask_for_node(controller, build))
    return build


def _ask_for_node(controller: Controller, build: Build) -> None:
    if build.ended is not None:
        return
    if controller.up != "up":
        controller.timeline.after(_TRIED_AGAIN_SECONDS, lambda: _ask_for_node(controller, build))
        return
    build.buildable_at = controller.timeline.now
    controller.queue.append(build)
    controller.schedule()
