"""Translates what Jenkins tells of one run, one job and one queue item."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from autoscaler.adapters.jenkins.parse import run_of
from autoscaler.domain.facts.runs import Entry, Interruption, Item, ItemState, Job, Parameter, Run, Waiting
from autoscaler.errors import TransientError

# A job that had more builds since the time in question is not known as a whole.
BUILDS_LISTED = 50
_ACTIONS = "actions[_class,parameters[_class,name,value],causes[_class,userId,upstreamUrl,upstreamBuild]]"
RUN_TREE = f"_class,building,result,timestamp,duration,builtOn,queueId,{_ACTIONS}"
JOB_TREE = f"buildable,property[parameterDefinitions[name]],builds[url,timestamp,queueId,{_ACTIONS}]{{0,%d}}"
QUEUED_TREE = f"items[id,inQueueSince,task[url],{_ACTIONS}]"
ITEM_TREE = "_class,cancelled,executable[url]"
_AGENT_GONE = ("ExecutorStepExecution$RemovedNodeCause", "ExecutorStepExecution$RemovedNodeTimeoutCause")
_NO_LIST = BeforeValidator(lambda value: value or [])
_NO_TEXT = BeforeValidator(lambda value: value or "")

_M = TypeVar("_M", bound=BaseModel)


class _Theirs(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Cause(_Theirs):
    """Why a build began, or why it was interrupted."""

    userId: str | None = None  # noqa: N815 - Jenkins' spelling, here and below
    upstreamUrl: Annotated[str, _NO_TEXT] = ""  # noqa: N815
    upstreamBuild: int | None = None  # noqa: N815


class _Asked(_Theirs):
    """A run or a queue item. Actions without anything exported are empty."""

    actions: Annotated[list[dict[str, Any]], _NO_LIST] = []

    def parameters(self) -> tuple[Parameter, ...]:
        """What it was started with."""
        named = [one for action in self.actions for one in action.get("parameters") or () if isinstance(one.get("name"), str)]
        return tuple(Parameter(name=one["name"], value=_plain(one.get("value"))) for one in named)

    def causes(self) -> list[dict[str, Any]]:
        """Whom and what it was started by."""
        return [cause for action in self.actions if not _is_interruption(action) for cause in action.get("causes") or ()]

    def interruptions(self) -> list[str]:
        """The classes of what stopped it."""
        return [str(cause.get("_class")) for action in self.actions if _is_interruption(action) for cause in action.get("causes") or ()]

    def is_of(self, user: str | None) -> bool:
        """Tell whether this account is among those who asked for it; None: nobody, who has no id."""
        ids = [_Cause.model_validate(one).userId for one in self.causes() if "UserIdCause" in str(one.get("_class"))]
        return any((one or "").casefold() == (user or "").casefold() for one in ids)


class _Run(_Asked):
    building: bool
    result: Annotated[str, _NO_TEXT] = ""
    timestamp: float
    duration: float = 0.0
    builtOn: Annotated[str, _NO_TEXT] = ""  # noqa: N815
    queueId: int = -1  # noqa: N815


class _Build(_Asked):
    url: str
    timestamp: float
    queueId: int = -1  # noqa: N815


class _Named(_Theirs):
    name: str = ""


class _Property(_Theirs):
    parameterDefinitions: Annotated[list[_Named], _NO_LIST] = []  # noqa: N815


class _Job(_Theirs):
    buildable: bool = True
    property: Annotated[list[_Property], _NO_LIST] = []
    builds: Annotated[list[_Build], _NO_LIST] = []


class _Task(_Theirs):
    url: Annotated[str, _NO_TEXT] = ""


class _Queued(_Asked):
    id: int
    inQueueSince: float = 0.0  # noqa: N815
    task: _Task = _Task()


class _Queue(_Theirs):
    items: list[_Queued]


class _Executable(_Theirs):
    url: Annotated[str, _NO_TEXT] = ""


class _Item(_Theirs):
    cancelled: bool = False
    executable: _Executable | None = None


def read_run(body: object, path: str) -> Run:
    """Read one run; `TransientError` where it is not understood."""
    run = _read(_Run, body, "a run")
    kind = str(body.get("_class")) if isinstance(body, dict) else ""
    began = run.timestamp / 1000.0
    return Run(
        path=path,
        is_pipeline=kind.endswith("WorkflowRun"),
        building=run.building,
        result="" if run.building else run.result,
        started_at=began,
        ended_at=None if run.building or run.duration <= 0 else began + run.duration / 1000.0,
        node=run.builtOn,
        item=run.queueId,
        parameters=run.parameters(),
        upstream=_upstream(run.causes()),
        interruptions=tuple(_interruption(kind) for kind in run.interruptions()),
    )


def read_job(body: object, queue: object, path: str, since: float, user: str | None) -> Job:
    """Read a job with what waits in the queue and what began of it. ``user``: our account."""
    job, waiting = _read(_Job, body, "a job"), _read(_Queue, queue, "the queue").items
    queued = [
        Entry(item=one.id, run="", at=one.inQueueSince / 1000.0, is_ours=one.is_of(user), parameters=one.parameters())
        for one in waiting
        if run_of(one.task.url) == path
    ]
    began = [
        Entry(item=one.queueId, run=run_of(one.url), at=one.timestamp / 1000.0, is_ours=one.is_of(user), parameters=one.parameters())
        for one in job.builds
    ]
    items = {entry.item for entry in began}
    return Job(
        path=path,
        buildable=job.buildable,
        declares=frozenset(one.name for held in job.property for one in held.parameterDefinitions if one.name),
        entries=(*(entry for entry in queued if entry.item not in items), *began),
        is_whole=len(began) < BUILDS_LISTED or min(entry.at for entry in began) < since,
    )


def read_waiting(body: object) -> dict[int, Waiting]:
    """Read what each item of the queue was asked for with."""
    return {
        one.id: Waiting(
            job=run_of(one.task.url), at=one.inQueueSince / 1000.0, parameters=one.parameters(), upstream=_upstream(one.causes())
        )
        for one in _read(_Queue, body, "the queue").items
    }


def read_item(body: object) -> Item:
    """Read what became of a queue item."""
    item = _read(_Item, body, "a queue item")
    if item.cancelled:
        return Item(state=ItemState.CANCELLED)
    if item.executable is not None and item.executable.url:
        return Item(state=ItemState.STARTED, run=run_of(item.executable.url))
    return Item(state=ItemState.WAITING)


def _upstream(causes: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Return the runs that caused another one."""
    read = [_Cause.model_validate(cause) for cause in causes if cause.get("upstreamUrl")]
    return tuple(f"{run_of(cause.upstreamUrl)}/{cause.upstreamBuild}" for cause in read if cause.upstreamBuild is not None)


def _is_interruption(action: dict[str, Any]) -> bool:
    return str(action.get("_class")).endswith("InterruptedBuildAction")


def _interruption(kind: str) -> Interruption:
    if kind.endswith("UserInterruption"):
        return Interruption.PERSON
    return Interruption.AGENT_GONE if kind.endswith(_AGENT_GONE) else Interruption.OTHER


def _plain(value: object) -> str | None:
    """Return a parameter's value as it is sent again; None for what is no plain value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _read(kind: type[_M], body: object, what: str) -> _M:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise TransientError(f"Jenkins' answer about {what} is not understood: {error.error_count()} fields") from error
