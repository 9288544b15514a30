"""Restarts of the simulated Jenkins: what each does to builds that run, and how they are found afterwards.

By SIGTERM a freestyle build that runs fails, and is saved so. By force nothing is saved: a build of a freestyle job or a matrix writes its
``build.xml`` when it ends (``Run.execute``), and is not there without it (``RunMap.retrieve``). What ended before stays as it was. Whatever
ends Jenkins, nobody interrupts a matrix as a whole (``Computer.interrupt``): it is saved only if its configurations have all ended by then.
"""

from typing import TYPE_CHECKING

from autoscaler_workbench.fakes.world.jenkins import deleted
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.handing import take_back

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.jenkins.controller import Controller


def go_down(controller: "Controller", *, by_force: bool) -> list[Build]:
    """End freestyle builds and disconnect agents; return the pipelines that will wait for their nodes."""
    take_back(controller)
    matrices = [build for build in controller.builds if build.is_whole_matrix and build.ended is None]
    resuming = deleted.resume_elsewhere(controller)
    for node in controller.nodes.values():
        going = [build for build in node.builds.values() if build.ended is None]
        resuming += [build for build in going if build.kind is Kind.PIPELINE]
        for build in going:
            if build.kind is Kind.FREESTYLE:
                build.is_unsaved = by_force
                controller.end_by_restart(build)
        node.builds.clear()
        node.connected = False
        if not node.temporarily_offline:
            node.cause, node.reason = None, ""
    _end_matrices(controller, matrices, by_force=by_force)
    return resuming


def _end_matrices(controller: "Controller", matrices: list[Build], *, by_force: bool) -> None:
    for whole in matrices:
        whole.is_unsaved = by_force or whole.ended is None
        if whole.ended is None:
            controller.end_by_restart(whole)
