"""Translates what Jenkins says of a run's result, of node monitors, and of a flow graph: its node blocks, and how each ended.

A graph is a list of steps in no order, each with the steps before it. ``StepStartNode`` opens a block, ``StepEndNode`` closes the one that
was opened last on the way back. The colour of what closes a block tells how it ended.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from autoscaler.adapters.jenkins.parse import NO_LIST, NO_TEXT, Theirs, read_as
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.runs import NAME_CHARACTERS, BlockEnd, BuildResult, NodeBlock, RunAnswer, RunEnd, RunGraph
from autoscaler.errors import TransientError

# Translates results of runs and readings of node monitors.


RESULT_TREE = "building,result,duration,queueId"
# With the flow graph of a pipeline, which shows the steps that are under way.
WHETHER_ENDED_TREE = "building,inProgress,actions[nodes[displayName,running]]"
# As InputStep names itself in a flow graph.
_INPUT = "Wait for interactive input"
HEALTH_TREE = "computer[_class,displayName,monitorData[size,availablePhysicalMemory,average]]"
_RESULTS = {"SUCCESS": BuildResult.SUCCEEDED, "UNSTABLE": BuildResult.FAILED, "FAILURE": BuildResult.FAILED}
_MONITORS = "hudson.node_monitors."


# A monitor that has not looked yet tells null; one that cannot read this platform -1.
_Reading = Annotated[float | None, AfterValidator(lambda read: read if read is not None and 0 <= read < inf else None)]


class _Run(Theirs):
    building: bool
    inProgress: bool | None = None  # noqa: N815 - Jenkins' spelling; a Jenkins that is too old does not tell
    actions: Any = None
    result: str | None = None
    duration: float | None = None  # milliseconds
    queueId: int = 0  # noqa: N815


class _Monitor(Theirs):
    """One reading; each monitor has one of these fields."""

    size: _Reading = None  # bytes
    availablePhysicalMemory: _Reading = None  # noqa: N815 - bytes
    average: _Reading = None  # milliseconds


def read_result(body: object) -> RunEnd | None:
    """Read how a run ended; None while it runs."""
    run = read_as(_Run, body, "a run")
    if run.building:
        return None
    seconds = run.duration / 1000.0 if run.duration and run.duration > 0 else None
    return RunEnd(result=_RESULTS.get(run.result or ""), seconds=seconds, item=max(0, run.queueId))


def read_whether_ended(body: object) -> RunAnswer:
    """Read whether a run has ended, and how sure that is."""
    run = read_as(_Run, body, "a run")
    if run.building or run.inProgress:
        steps = [step for steps in _lists_of_steps(run.actions) for step in steps if isinstance(step, dict)]
        waits = any(step.get("running") is True and step.get("displayName") == _INPUT for step in steps)
        return RunAnswer.WAITS_FOR_INPUT if waits else RunAnswer.RUNS
    return RunAnswer.MAY_HAVE_ENDED if run.inProgress is None else RunAnswer.ENDED


def _lists_of_steps(actions: Any) -> list[list[Any]]:
    actions = actions if isinstance(actions, list) else []
    return [action["nodes"] for action in actions if isinstance(action, dict) and isinstance(action.get("nodes"), list)]


def read_health(body: object) -> dict[str, Health]:
    """Read the monitors of each node; a node or a monitor that is not understood is left out."""
    computers = body.get("computer") if isinstance(body, dict) else None
    found: dict[str, Health] = {}
    for raw in computers if isinstance(computers, list) else []:
        name, told = (raw.get("displayName"), raw.get("monitorData")) if isinstance(raw, dict) else (None, None)
        if isinstance(name, str) and isinstance(told, dict):
            found["" if str(raw.get("_class") or "").endswith("MasterComputer") else name] = _health(told)
    return found


def _health(told: dict[str, Any]) -> Health:
    disks = [size for name in ("DiskSpaceMonitor", "TemporarySpaceMonitor") if (size := _monitor(told, name).size) is not None]
    average = _monitor(told, "ResponseTimeMonitor").average
    return Health(
        disk_bytes=min(disks, default=None),
        memory_bytes=_monitor(told, "SwapSpaceMonitor").availablePhysicalMemory,
        response_seconds=None if average is None else average / 1000.0,
    )


def _monitor(told: dict[str, Any], name: str) -> _Monitor:
    with suppress(ValidationError):
        return _Monitor.model_validate(told.get(f"{_MONITORS}{name}") or {})
    return _Monitor()


# Translates flow graphs.


# A graph that fills the range may have more steps than were read.
GRAPH_TREE = "building,result,duration,actions[nodes[id,displayName,iconColor,parents]{0,%d}]"
_ALLOCATE, _BODY = "Allocate node : Start", "Allocate node : Body : Start"
# Their bodies carry a name of their own in place of "... : Body : Start".
_STAGE, _PARALLEL, _BRANCH = "Stage : Start", "Execute in parallel : Start", "Branch: "
_START = " : Start"
# What ExecutorStepExecution prints to the log of the step that asked for a node.
_RUNNING_ON = re.compile(r"^Running on (\S+) in ", re.MULTILINE)
_CATCHES = "Catch error"  # catchError and warnError
_MOST_ENCLOSING = 200


@dataclass(slots=True)
class _Step:
    """A step, as Jenkins tells it. ``around``: the block that it is in; ``start``: of what closes a block, what opened it."""

    id: int
    name: Annotated[str, NO_TEXT, Field(alias="displayName")] = ""
    color: Annotated[str, NO_TEXT, AfterValidator(lambda color: color.removesuffix("_anime")), Field(alias="iconColor")] = ""
    kind: Annotated[str, BeforeValidator(lambda kind: str(kind or "")), Field(alias="_class")] = ""
    before: Annotated[list[int], NO_LIST, Field(alias="parents")] = field(default_factory=list)
    around: "_Step | None" = field(default=None, init=False)
    start: "_Step | None" = field(default=None, init=False)
    closed_by: "_Step | None" = field(default=None, init=False)
    inside: list["_Step"] = field(default_factory=list, init=False)

    @property
    def opens(self) -> bool:
        """Tell whether it begins a block."""
        return self.kind.endswith("StartNode")

    @property
    def closes(self) -> bool:
        """Tell whether it ends a block."""
        return self.kind.endswith("EndNode")

    def label(self) -> str:
        """The name that it gives to what is inside, "" if none."""
        opener = self.around.name if self.around else ""
        if not self.kind.endswith("StepStartNode") or (self.name.endswith(_START) and opener not in (_STAGE, _PARALLEL)):
            return ""
        return self.name.removeprefix(_BRANCH if opener == _PARALLEL else "")[:NAME_CHARACTERS]

    def all_inside(self) -> Iterator["_Step"]:
        """Everything inside it, node blocks and what is in them, too."""
        left = list(self.inside)
        while left:
            step = left.pop()
            yield step
            left += step.inside


_STEPS = TypeAdapter(list[_Step])


def read_graph(body: object, size: int, most_steps: int) -> RunGraph:
    """Read the graph of a run, of which at most so many steps were asked for; `TransientError` where it is not understood."""
    end = read_result(body)
    lists = _lists_of_steps(read_as(_Run, body, "a run").actions)
    if not lists:
        return RunGraph(size=size, end=end, shows_steps=False)
    if len(lists[0]) >= most_steps:
        return RunGraph(size=size, end=end, cut=True)
    try:
        steps = _joined({step.id: step for step in _STEPS.validate_python(lists[0])})
    except ValidationError as error:
        raise TransientError(f"the steps of a flow graph are not understood: {error.error_count()} fields") from error
    blocks = tuple(_block(step, has_ended=end is not None) for step in steps.values() if _is_allocated(step))
    return RunGraph(size=size, blocks=blocks, last=max(steps, default=0), end=end)


def read_node_of_block(log: bytes) -> str:
    """Read on which node a block ran from the log of the step that asked for it; "" if it does not say so."""
    told = _RUNNING_ON.search(log.decode(errors="replace"))
    return told[1] if told else ""


def _joined(steps: dict[int, _Step]) -> dict[int, _Step]:
    """Find around each step the block that it is in. Numbers rise along the graph, so that what is before a step is joined already."""
    for _, step in sorted(steps.items()):
        if not step.before:
            continue
        before = steps.get(step.before[0])
        if before is None or before.id >= step.id:
            raise TransientError("a flow graph lacks a step that another one follows")
        inner = before if before.opens else before.around
        if step.closes and inner is not None:
            step.start, step.around = inner, inner.around
            inner.closed_by = step
        else:
            step.around = inner
        if step.around is not None:
            step.around.inside.append(step)
    return steps


def _is_allocated(step: _Step) -> bool:
    """Tell whether it opens a node block that got its executor."""
    return step.opens and step.name == _ALLOCATE and any(inner.name == _BODY and inner.opens for inner in step.inside)


def _block(step: _Step, *, has_ended: bool) -> NodeBlock:
    body = next(inner for inner in step.inside if inner.name == _BODY and inner.opens)
    inside = list(body.all_inside())
    outer = next((label for around in _enclosing(step) if (label := around.label())), "")
    names = frozenset(label for label in (outer, *(step.label() for step in inside)) if label)
    closed = body.closed_by
    block = NodeBlock(names=names, begun_as=body.id, asked_as=step.id)
    if closed is not None:
        return replace(block, end=_end_of(closed, inside), ended_as=closed.id)
    # Of a run that has ended none goes on: Jenkins was killed, or could not end it.
    return replace(block, end=BlockEnd.ABORTED, ended_as=body.id) if has_ended else block


def _enclosing(step: _Step) -> Iterator[_Step]:
    around = step.around
    for _ in range(_MOST_ENCLOSING):
        if around is None:
            return
        yield around
        around = around.around


_ENDS = {"blue": BlockEnd.SUCCEEDED, "red": BlockEnd.FAILED, "yellow": BlockEnd.UNSTABLE}


def _end_of(closed: _Step, inside: list[_Step]) -> BlockEnd:
    """Say how a block ended, from the colour of what closes it and of what is in it."""
    end = _ENDS.get(closed.color, BlockEnd.ABORTED)
    # A node block inside ended with an error.
    failed = (step.start for step in inside if step.closes and step.color == "red")
    if end is BlockEnd.FAILED and any(start is not None and start.name == _ALLOCATE for start in failed):
        return BlockEnd.FAILED_INSIDE
    if end is not BlockEnd.SUCCEEDED:
        return end
    own = list(_own(inside))
    if any(step.color == "yellow" for step in own):
        return BlockEnd.UNSTABLE
    return BlockEnd.CAUGHT if any(_catches(step) for step in own) else BlockEnd.SUCCEEDED


def _own(inside: list[_Step]) -> Iterator[_Step]:
    """Leave out the node blocks in a block, which count for nodes of their own."""
    deeper = {step.id for block in inside if block.opens and block.name == _ALLOCATE for step in (block, *block.all_inside())}
    return (step for step in inside if step.id not in deeper and not (step.start and step.start.id in deeper))


def _catches(step: _Step) -> bool:
    """Tell whether it closes the body of a step that catches errors, with an error."""
    if step.start is None or step.color != "red" or step.around is None:
        return False
    return step.around.opens and step.around.name.startswith(_CATCHES)
