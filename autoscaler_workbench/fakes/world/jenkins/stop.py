"""Builds of the simulated Jenkins that are asked to stop: Jenkins answers at once, and they end a little later."""

from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller

# Jenkins interrupts a build, and gives its process up to 20 s to end (DurableTaskStep.REMOTE_TIMEOUT).
_STOPS_IN_SECONDS = 2.0


def stop(controller: Controller, build: Build) -> None:
    """Interrupt a build: what waits ends at once; what runs some seconds later, unless it is done before, or Jenkins goes down."""
    if build in controller.queue:
        controller.abort(build)
        return
    controller.timeline.after(_STOPS_IN_SECONDS, lambda: controller.abort(build) if controller.up == "up" else None)
