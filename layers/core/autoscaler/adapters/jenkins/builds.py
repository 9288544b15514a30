"""Implements the Builds port over HTTP: small requests for one run, one job or one queue item, and the POST that starts a build."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import jenkins
import requests
from pydantic import Field

from autoscaler.adapters.jenkins.flow_graph import read_result
from autoscaler.adapters.jenkins.parse import NO_LIST, NO_TEXT, Task, Theirs, parameters_in, plain, read_as, run_of, stage_of
from autoscaler.adapters.jenkins.session import (
    QUEUE,
    Answer,
    Connection,
    FailedRequestError,
    InTheWayError,
    LackingPermissionError,
    NotThereError,
    RedirectedError,
    RefusedRequestError,
    if_there,
)
from autoscaler.domain.facts.runs import NO_ITEM, Entry, Interruption, Item, ItemState, Job, Parameter, Run
from autoscaler.domain.wording import shortened
from autoscaler.errors import DoubtfulError, NoAnswerError, RefusedBuildError, TransientError, UnansweredError

# Translates Jenkins' answers about one run, one job and one queue item.


# From which build to which one a list goes, the newest first: further lists are read only if the time in question is not reached. Each
# begins with some of the one before, so that a build that is deleted meanwhile leaves no gap. A job that had more builds since is not known
# as a whole. ``builds`` shows a hundred at most.
BUILDS_LISTED = ((0, 50), (40, 200), (190, 500))
_ACTIONS = "actions[_class,parameters[_class,name,value],causes[_class,userId,upstreamUrl,upstreamBuild]]"
RUN_TREE = f"_class,building,result,timestamp,duration,builtOn,queueId,{_ACTIONS}"
JOB_TREE = f"buildable,property[parameterDefinitions[name]],builds[url,{RUN_TREE}]{{%d,%d}}"
MORE_BUILDS_TREE = f"allBuilds[url,{RUN_TREE}]{{%d,%d}}"
QUEUED_TREE = f"items[id,inQueueSince,task[url],{_ACTIONS}]"
ITEM_TREE = "_class,cancelled,executable[_class,url,fullDisplayName,builtOn,building,result,duration]"
_REPEATS = ("RebuildCause", "Naginator")
# By the class of what stopped a build; any other is `OTHER`.
_INTERRUPTIONS = {
    "UserInterruption": Interruption.PERSON,
    "ExecutorStepExecution$QueueTaskCancelled": Interruption.BLOCK_CANCELLED,
    "ExecutorStepExecution$RemovedNodeCause": Interruption.AGENT_GONE,
    "ExecutorStepExecution$RemovedNodeTimeoutCause": Interruption.AGENT_GONE,
}


class _Cause(Theirs):
    """Why a build began, or why it was interrupted."""

    userId: str | None = None  # noqa: N815 - Jenkins' spelling, here and below
    upstreamUrl: Annotated[str, NO_TEXT] = ""  # noqa: N815
    upstreamBuild: int | None = None  # noqa: N815


class _Asked(Theirs):
    """A run or a queue item. Actions without anything exported are empty."""

    actions: Annotated[list[dict[str, Any]], NO_LIST] = Field([])

    def parameters(self) -> tuple[Parameter, ...]:
        """What it was started with."""
        return tuple(Parameter(name=one["name"], value=plain(one.get("value"))) for one in parameters_in(self.actions))

    def causes(self) -> list[dict[str, Any]]:
        """Whom and what it was started by."""
        return [cause for cause in self._all_causes() if not _is_repeat(cause)]

    def repeats(self) -> list[dict[str, Any]]:
        """The builds that it was started to repeat: they are no parents of it, and nobody waits for it because of them."""
        return [cause for cause in self._all_causes() if _is_repeat(cause)]

    @property
    def is_by_person(self) -> bool:
        """Tell whether somebody asked for it, or a plugin that repeats builds for people."""
        return bool(self.repeats()) or any("UserIdCause" in str(cause.get("_class")) for cause in self.causes())

    def _all_causes(self) -> list[dict[str, Any]]:
        return [cause for action in self.actions if not _is_interruption(action) for cause in action.get("causes") or ()]

    def interruptions(self) -> list[str]:
        """The classes of what stopped it."""
        return [str(cause.get("_class")) for action in self.actions if _is_interruption(action) for cause in action.get("causes") or ()]

    def is_of(self, user: str | None) -> bool:
        """Tell whether this account is among those who asked for it; None: nobody, who has no id."""
        ids = [_Cause.model_validate(one).userId for one in self.causes() if "UserIdCause" in str(one.get("_class"))]
        return any((one or "").casefold() == (user or "").casefold() for one in ids)


class _Run(_Asked):
    kind: Annotated[str, NO_TEXT] = Field(default="", alias="_class")
    building: bool
    result: Annotated[str, NO_TEXT] = ""
    timestamp: float
    duration: float = 0.0
    builtOn: Annotated[str, NO_TEXT] = ""  # noqa: N815
    queueId: int = NO_ITEM  # noqa: N815


class _Build(_Run):
    url: str


class _Named(Theirs):
    name: str = ""


class _Property(Theirs):
    parameterDefinitions: Annotated[list[_Named], NO_LIST] = Field([])  # noqa: N815


class _Job(Theirs):
    buildable: bool = True
    property: Annotated[list[_Property], NO_LIST] = Field([])
    builds: Annotated[list[_Build], NO_LIST] = Field([])
    allBuilds: Annotated[list[_Build], NO_LIST] = Field([])  # noqa: N815 - in further answers


class _Queued(_Asked):
    id: int
    inQueueSince: float = 0.0  # noqa: N815
    task: Task = Task()


class _Queue(Theirs):
    items: list[_Queued]


class _Item(Theirs):
    cancelled: bool = False
    executable: dict[str, Any] | None = None


def read_run(body: object, path: str) -> Run:
    """Read one run; `TransientError` where it is not understood."""
    return _run_at(read_as(_Run, body, "a run"), path)


def read_job(body: object, queue: object, path: str, since: float, user: str | None, more: Sequence[object] = ()) -> Job:
    """Read a job with what waits in the queue and what began of it. ``user``: our account; ``more``: the lists of earlier builds."""
    job, waiting = read_as(_Job, body, "a job"), read_as(_Queue, queue, "the queue").items
    builds, is_whole = _joined(job, more, since)
    queued = [_entry(one, user, item=one.id, at=one.inQueueSince / 1000.0) for one in waiting if run_of(one.task.url) == path]
    runs = [(one, _run_at(one, run_of(one.url))) for one in builds]
    began = [_entry(one, user, item=run.item, at=run.started_at, build=run) for one, run in runs]
    items = {entry.item for entry in began}
    return Job(
        path=path,
        buildable=job.buildable,
        declares=frozenset(one.name for held in job.property for one in held.parameterDefinitions if one.name),
        entries=(*(entry for entry in queued if entry.item not in items), *began),
        is_whole=is_whole,
    )


def next_builds(body: object, more: Sequence[object], since: float) -> tuple[int, int] | None:
    """Say which builds are to be read next; None: all since this time were, or more than are ever read."""
    lists = len(more) + 1
    if lists == len(BUILDS_LISTED) or _joined(read_as(_Job, body, "a job"), more, since)[1]:
        return None
    return BUILDS_LISTED[lists]


def _joined(job: _Job, more: Sequence[object], since: float) -> tuple[list[_Build], bool]:
    """Join the lists of a job's builds, and tell whether no build since this time is missing."""
    builds, listed = {one.url: one for one in job.builds}, job.builds
    gap = False
    for body in more:
        following = read_as(_Job, body, "builds").allBuilds
        gap = gap or listed[-1].url not in {one.url for one in following}
        builds |= {one.url: one for one in following if one.url not in builds}
        listed = following or listed
    first, last = BUILDS_LISTED[len(more)]
    is_last = len(listed) < last - first
    is_early_enough = any(one.timestamp / 1000.0 < since for one in builds.values())
    return list(builds.values()), not gap and (is_last or is_early_enough)


def _entry(asked: _Asked, user: str | None, *, item: int, at: float, build: Run | None = None) -> Entry:
    return Entry(
        item=item,
        run=build.path if build else "",
        at=at,
        is_ours=asked.is_of(user),
        parameters=asked.parameters(),
        build=build,
        is_by_person=asked.is_by_person and not asked.is_of(user),
        repeats=_named(asked.repeats()),
    )


def _run_at(run: _Run, path: str) -> Run:
    began = run.timestamp / 1000.0
    return Run(
        path=path,
        is_pipeline=run.kind.endswith("WorkflowRun"),
        building=run.building,
        result="" if run.building else run.result,
        started_at=began,
        ended_at=None if run.building or run.duration <= 0 else began + run.duration / 1000.0,
        node=run.builtOn,
        item=run.queueId,
        parameters=run.parameters(),
        upstream=_named(run.causes()),
        interruptions=tuple(_interruption(kind) for kind in run.interruptions()),
    )


def read_item(body: object) -> Item:
    """Read what became of a queue item. A pipeline's run, and a matrix as a whole, run on no agent."""
    item = read_as(_Item, body, "a queue item")
    if item.cancelled:
        return Item(state=ItemState.CANCELLED)
    executable: dict[str, Any] = item.executable or {}
    if not executable.get("url"):
        return Item(state=ItemState.WAITING)
    node, is_block = str(executable.get("builtOn") or ""), str(executable.get("_class")).endswith("PlaceholderExecutable")
    return Item(
        state=ItemState.STARTED,
        run=run_of(str(executable["url"])),
        node=node,
        end=read_result(executable) if node else None,
        block=stage_of(str(executable.get("fullDisplayName") or "")) if is_block else None,
    )


def _named(causes: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Return the runs that these causes name."""
    read = [_Cause.model_validate(cause) for cause in causes if cause.get("upstreamUrl")]
    return tuple(f"{run_of(cause.upstreamUrl)}/{cause.upstreamBuild}" for cause in read if cause.upstreamBuild is not None)


def _is_repeat(cause: Mapping[str, Any]) -> bool:
    """Tell whether a cause is of the plugin Rebuilder or Naginator, which name the build that they repeat as if it were upstream."""
    return str(cause.get("_class")).rpartition(".")[2].startswith(_REPEATS)


def _is_interruption(action: dict[str, Any]) -> bool:
    return str(action.get("_class")).endswith("InterruptedBuildAction")


def _interruption(kind: str) -> Interruption:
    return next((interruption for ending, interruption in _INTERRUPTIONS.items() if kind.endswith(ending)), Interruption.OTHER)


# Implements the Builds port.


# Each is sure to have done nothing: Jenkins refused it, or was not reached.
_NOT_DONE = (RefusedRequestError, NotThereError, InTheWayError, NoAnswerError)
_CANCEL = "queue/cancelItem"
_ITEM = re.compile(r"(?:^|/)queue/item/(\d+)/?$")


@dataclass(eq=False)
class JenkinsBuilds:
    """The builds of one controller, whose connection they share."""

    connection: Connection

    def run(self, path: str) -> Run | None:
        """Ask the run itself. A 404 says no more than that this account is not shown it."""
        return if_there(lambda: read_run(self.connection.get(f"{path}/{jenkins.INFO}", RUN_TREE).json(), path), None)

    def job(self, path: str, since: float) -> Job | None:
        """Ask the queue first: what leaves it in between is among the builds then. Four requests at most."""
        try:
            queue = self.connection.get(QUEUE, QUEUED_TREE)
            shown = self.connection.get(f"{path}/{jenkins.INFO}", JOB_TREE % BUILDS_LISTED[0]).json()
            more: list[object] = []
            while builds := next_builds(shown, more, since):
                more.append(self.connection.get(f"{path}/{jenkins.INFO}", MORE_BUILDS_TREE % builds).json())
        except NotThereError:
            return None
        return read_job(shown, queue.json(), path, since, self.connection.ask(lambda session: session.username), more)

    def item(self, item: int) -> Item:
        """Ask for the item itself, which Jenkins knows until five minutes after it left the queue."""
        unknown = Item(state=ItemState.UNKNOWN)
        return if_there(lambda: read_item(self.connection.get(f"queue/item/{item}/{jenkins.INFO}", ITEM_TREE).json()), unknown)

    def start(self, job: str, parameters: Mapping[str, str] | None) -> int:
        """Ask for a build at once, without the job's quiet period."""
        path = f"{job}/build" if parameters is None else f"{job}/buildWithParameters"
        try:
            answer = self.connection.ask(lambda session: session.post(path, {"delay": "0sec"}, dict(parameters or {})))
        except (RefusedRequestError, NotThereError) as error:
            raise RefusedBuildError(f"Jenkins does not start {job}: {error}") from error
        except (*_NOT_DONE, DoubtfulError):
            raise
        except TransientError as error:
            # An error page may be a proxy's that gave up waiting, or Jenkins' own after the item was queued.
            raise UnansweredError(str(error)) from error
        found = _ITEM.search(urlsplit(answer.headers.get("Location", "")).path)
        if found is None:
            _refuse_other_page(answer, job, "starting")
            raise RefusedBuildError(f"Jenkins put no build of {job} into its queue: a plugin refused it")
        return int(found[1])

    def stop(self, path: str) -> None:
        """Ask as a person does who presses the red button: a build ends some seconds after the answer, which is the way to its page."""
        try:
            answer = self.connection.post(f"{path}/stop", {})
        except NotThereError:
            return
        except LackingPermissionError as error:
            raise RefusedBuildError(f"Jenkins does not stop {path}: {error}") from error
        _refuse_other_page(answer, path, "stopping")

    def cancel(self, item: int) -> bool:
        """Take it out of the queue. Jenkins fails (500) for one that left within five minutes, and for one that begins right now."""
        try:
            self.connection.post(_CANCEL, {"id": str(item)})
        except NotThereError:
            return False
        except RefusedRequestError as error:
            if error.status != requests.codes.unprocessable_entity:
                raise
            raise RefusedBuildError(f"Jenkins does not cancel queue item {item} (422): the account lacks Job/Cancel") from error
        except FailedRequestError as error:
            if error.status != requests.codes.internal_server_error or (state := self.item(item).state) is ItemState.WAITING:
                raise
            return state is ItemState.CANCELLED
        return True


def _refuse_other_page(answer: Answer, path: str, doing: str) -> None:
    """Raise `RedirectedError` for a redirect to another page than that of a job or a run, which is where Jenkins sends us back to."""
    location = urlsplit(answer.headers.get("Location", ""))
    led = unquote(location.path)
    if led not in {"", "."} and not f"/{led.strip('/')}".endswith(f"/{unquote(path)}"):
        place = shortened(location.netloc + led)
        raise RedirectedError(f"{doing} {path} was answered with a redirect to {place}: a login page or a proxy is in the way")
