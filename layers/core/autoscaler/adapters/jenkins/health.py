"""Translates results of runs and readings of node monitors."""

from math import inf
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.runs import BuildResult, RunAnswer, RunEnd
from autoscaler.errors import TransientError

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


class _Run(BaseModel):
    model_config = ConfigDict(extra="ignore")
    building: bool
    inProgress: bool | None = None  # noqa: N815 - Jenkins' spelling; a Jenkins that is too old does not tell
    actions: Any = None
    result: str | None = None
    duration: float | None = None  # milliseconds
    queueId: int = 0  # noqa: N815


class _Monitor(BaseModel):
    """One reading; each monitor has one of these fields."""

    model_config = ConfigDict(extra="ignore")
    size: _Reading = None  # bytes
    availablePhysicalMemory: _Reading = None  # noqa: N815 - bytes
    average: _Reading = None  # milliseconds


def read_result(body: object) -> RunEnd | None:
    """Read how a run ended; None while it runs."""
    run = _read_run(body)
    if run.building:
        return None
    seconds = run.duration / 1000.0 if run.duration and run.duration > 0 else None
    return RunEnd(result=_RESULTS.get(run.result or ""), seconds=seconds, item=max(0, run.queueId))


def read_whether_ended(body: object) -> RunAnswer:
    """Read whether a run has ended, and how sure that is."""
    run = _read_run(body)
    if run.building or run.inProgress:
        return RunAnswer.WAITS_FOR_INPUT if _waits_for_input(run.actions) else RunAnswer.RUNS
    return RunAnswer.MAY_HAVE_ENDED if run.inProgress is None else RunAnswer.ENDED


def _waits_for_input(actions: Any) -> bool:
    graphs = [action.get("nodes") for action in actions if isinstance(action, dict)] if isinstance(actions, list) else []
    steps = [step for graph in graphs if isinstance(graph, list) for step in graph if isinstance(step, dict)]
    return any(step.get("running") is True and step.get("displayName") == _INPUT for step in steps)


def read_health(body: object) -> dict[str, Health]:
    """Read the monitors of each node; a node or a monitor that is not understood is left out."""
    computers = body.get("computer") if isinstance(body, dict) else None
    found: dict[str, Health] = {}
    for raw in computers if isinstance(computers, list) else []:
        name, told = (raw.get("displayName"), raw.get("monitorData")) if isinstance(raw, dict) else (None, None)
        if isinstance(name, str) and isinstance(told, dict):
            builtin = str(raw.get("_class") or "").endswith("MasterComputer")
            found["" if builtin else name] = _health(told)
    return found


def _read_run(body: object) -> _Run:
    try:
        return _Run.model_validate(body)
    except ValidationError as error:
        raise TransientError(f"Jenkins' answer about a run is not understood: {error.error_count()} fields") from error


def _health(told: dict[str, Any]) -> Health:
    disks = [size for name in ("DiskSpaceMonitor", "TemporarySpaceMonitor") if (size := _monitor(told, name).size) is not None]
    average = _monitor(told, "ResponseTimeMonitor").average
    return Health(
        disk_bytes=min(disks, default=None),
        memory_bytes=_monitor(told, "SwapSpaceMonitor").availablePhysicalMemory,
        response_seconds=None if average is None else average / 1000.0,
    )


def _monitor(told: dict[str, Any], name: str) -> _Monitor:
    try:
        return _Monitor.model_validate(told.get(f"{_MONITORS}{name}") or {})
    except ValidationError:
        return _Monitor()
