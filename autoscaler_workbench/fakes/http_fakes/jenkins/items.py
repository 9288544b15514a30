"""What Jenkins tells about one item of its queue, for some minutes after it left."""

from typing import Any

from autoscaler_workbench.fakes.http_fakes.jenkins.answers import PLACEHOLDER, actions_of, part_of, queued_json, task_json
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import run_json
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.flow import graph_of

_LEFT_ITEMS_SECONDS = 300.0  # for so long Jenkins tells what became of an item


def step_log(run: list[Build], number: str) -> str | None:
    """``execution/node/ID/log/logText/progressiveText`` of the step that asked for a node; None: no such step, or it got none."""
    steps = graph_of(run).steps if run and run[0].kind is Kind.PIPELINE else []
    node = next((step.node for step in steps if str(step.id) == number), "")
    return f"Still waiting to schedule task\nRunning on {node} in /home/jenkins/workspace/job\n" if node else None


def left_item_json(build: Build, base: str) -> dict[str, Any]:
    """``/queue/item/ID/api/json`` of what has left the queue: it was cancelled, or its build began."""
    cancelled = build.started_at is None and build.ended is not None
    about = {"actions": actions_of(build.started_with), "id": build.id, "task": task_json(build, base), "why": None}
    executable = None if cancelled else _executable_json(build) | {"number": build.number, "url": base + build.run_path}
    return {"_class": "hudson.model.Queue$LeftItem", "cancelled": cancelled, "executable": executable} | about


def _executable_json(build: Build) -> dict[str, Any]:
    """What began: a build, or a node block, which names its run alone."""
    if build.kind is Kind.PIPELINE:
        return {"_class": f"{PLACEHOLDER}$PlaceholderExecutable", "fullDisplayName": part_of(build)}
    return dict(run_json([build], with_graph=False))


def _run_item_json(build: Build, base: str) -> dict[str, Any]:
    """The item by which a pipeline's run began."""
    task = {"_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob", "url": base + build.job_path}
    about = {"actions": actions_of(build.started_with), "id": build.run_item, "task": task, "why": None}
    executable = {"_class": "org.jenkinsci.plugins.workflow.job.WorkflowRun", "number": build.number, "url": base + build.run_path}
    return {"_class": "hudson.model.Queue$LeftItem", "cancelled": False, "executable": executable} | about


def item_json(controller: Controller, number: int, base: str) -> dict[str, Any] | None:
    """``/queue/item/ID/api/json``; None: Jenkins knows no such item, or no longer. What it dropped it never knew."""
    build = controller.items.get(number)
    if build is None:
        return None
    if build.run_item == number:
        return _run_item_json(build, base) if _is_told(controller, build.queued_at) else None
    return None if build.is_dropped else _own_item_json(controller, build, base)


def _own_item_json(controller: Controller, build: Build, base: str) -> dict[str, Any] | None:
    if build in controller.queue and build.started_at is None:
        return queued_json(controller, build, base, {})
    left_at = build.started_at if build.started_at is not None else build.ended_at or 0.0
    return left_item_json(build, base) if _is_told(controller, left_at) else None


def _is_told(controller: Controller, left_at: float) -> bool:
    """Tell whether Jenkins still knows what left its queue then: for minutes, and never after a restart."""
    return left_at >= controller.up_since and controller.timeline.now - left_at < _LEFT_ITEMS_SECONDS
