"""Translates Jenkins' JSON. An item or a node that is not understood raises nothing: it is set aside and named."""

import html
import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler.domain.facts.runs import NAME_CHARACTERS
from autoscaler.domain.facts.snapshot import ONE_OFF, Build, Node, OfflineCause, QueueItem, Wait
from autoscaler.errors import TransientError

# Reads Jenkins' ``why`` of a queue item, in the wordings of every version since 1.312.


_OPEN, _CLOSE = "[‘'\"“]?", "[’'\"”]?"
_LABEL = [
    re.compile(rf"There are no nodes with the label {_OPEN}(.+?){_CLOSE}"),
    re.compile(rf"All nodes of label {_OPEN}(.+?){_CLOSE} are offline"),
]
_NEXT = re.compile(rf"Waiting for next available executor(?: on {_OPEN}(.+?){_CLOSE})?")
_NODE = re.compile(rf"{_OPEN}(.+?){_CLOSE} is (?:offline|not accepting tasks)")
_RESERVED = re.compile(rf"{_OPEN}(.+?){_CLOSE} is reserved for jobs (?:with matching label expression|tied to it)")
_IS_RESERVED = ("is reserved for jobs with matching label expression", "is reserved for jobs tied to it")
_MISSING = re.compile(rf"{_OPEN}(.+?){_CLOSE} doesn[’']t have label {_OPEN}(.+?){_CLOSE}")
# Only the start of a next cause of a node separates; a label may hold anything.
_SEPARATOR = re.compile(r"; (?=\S)")
_BETWEEN_WORDS = r"\s‘’“”'\";,:(){}\[\]"
_TIMES = re.compile(r" \(\d+ times\)$")
_QUIET_MODE = re.compile(r".*is about to shut down")
_NOT_AN_EXECUTOR = re.compile(
    r"In the quiet period|Finished waiting|Build .*is (already )?in progress|A build is already in progress|Blocked by "
    r"|.*is about to shut down|(Up|Down)stream project |No workspace is available|Awaiting build to get a workspace"
    r"|We need to schedule a new build to get a workspace|Executor slot already in use|Exception evaluating"
    r"|\?\?\?"
)


def read_why(why: str) -> Wait | None:
    """Read what an item waits for; None when the wording is unknown."""
    for pattern in _LABEL:
        if found := pattern.fullmatch(why):
            return Wait(for_executor=True, label=found[1])
    if found := _NEXT.fullmatch(why):
        return Wait(for_executor=True, named=found[1])
    if _NOT_AN_EXECUTOR.match(why):
        return Wait(for_executor=False)
    return _read_causes_of_nodes(why)


def waits_for_quiet_mode(why: str) -> bool:
    """Tell whether an item waits until quiet mode ends."""
    return _QUIET_MODE.match(why) is not None


def named_nodes(why: str, node_names: Collection[str]) -> tuple[str, ...]:
    """Find node names, with blanks or not, that stand in a text between other words: whatever it says, it may wait for them."""
    # A full stop ends a sentence; within a word it is a part of it.
    before, after = rf"(?<![^{_BETWEEN_WORDS}])", rf"(?=\.?(?:[{_BETWEEN_WORDS}]|$))"
    names = [name for name in filter(why.__contains__, node_names) if name]
    return tuple(sorted(name for name in names if re.search(f"{before}{re.escape(name)}{after}", why)))


def _read_causes_of_nodes(why: str) -> Wait | None:
    """Read one or several causes, a node each, as Jenkins joins them when it tried every node."""
    nodes: list[str] = []
    label: str | None = None
    for part in _SEPARATOR.split(why):
        cause = _TIMES.sub("", part) if part.endswith(" times)") else part
        # First, and before any pattern: Jenkins names all nodes of a large fleet so.
        if cause.endswith(_IS_RESERVED) and _RESERVED.fullmatch(cause):
            continue
        if found := _MISSING.fullmatch(cause):
            label = found[2]
        elif found := _NODE.fullmatch(cause):
            nodes.append(found[1])
        else:
            return None
    # A missing label is what the item asks for; the nodes beside it are those that would do.
    return Wait(for_executor=True, label=label, nodes=tuple(nodes))


# Reads what builds and queue items were started with, where the fleet file names parameters that tell them apart.


# Asked for only then: the values of one build may be many thousand characters.
ACTIONS = "actions[parameters[name,value]]"
# Jenkins shows no value of these, but whatever a plugin may show of them is no name of a kind of builds.
_HIDDEN = ("Password", "Secret")


def parameters_of(actions: Any) -> dict[str, str]:
    """Return the values by name: texts, numbers and truth values. Passwords, secrets and everything else are left out."""
    shown = [one for one in parameters_in(actions) if one["name"] and not any(word in str(one.get("_class")) for word in _HIDDEN)]
    return {one["name"]: text for one in shown if (text := plain(one.get("value"))) is not None}


def parameters_in(actions: Any) -> Iterator[dict[str, Any]]:
    """Yield what has a name among the parameters of a build or a queue item."""
    for action in actions if isinstance(actions, list) else ():
        named = action.get("parameters") if isinstance(action, dict) else None
        yield from (one for one in (named if isinstance(named, list) else ()) if isinstance(one, dict) and isinstance(one.get("name"), str))


def plain(value: object) -> str | None:
    """Return a parameter's value as it is sent again; None for what is no plain value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


# Translates the queue, the nodes and the state of the controller.


QUEUE_TREE = (
    "items[id,why,blocked,buildable,pending,inQueueSince,buildableStartMilliseconds,"
    "task[_class,name,displayName,fullName,url,labelExpression]]"
)
ID_AND_WHY = "id,why"
WITHOUT_WHY = ("id,why,", "id,")
NODE_FIELDS = (
    "_class,displayName,description,offline,temporarilyOffline,idle,numExecutors,offlineCauseReason,offlineCause[_class,timestamp,description],"
    "assignedLabels[name],executors[idle,number,currentExecutable[_class,url,fullDisplayName,timestamp,estimatedDuration]],"
    "oneOffExecutors[idle,currentExecutable[url]]"
)
COMPUTER_TREE = f"computer[{NODE_FIELDS}]"
# The same, where the fleet file names parameters that tell builds apart.
QUEUE_TREE_WITH_PARAMETERS = QUEUE_TREE.replace("items[", f"items[{ACTIONS},")
COMPUTER_TREE_WITH_PARAMETERS = COMPUTER_TREE.replace("number,currentExecutable[", f"number,currentExecutable[{ACTIONS},")
ROOT_TREE = "quietingDown,quietDownReason,jobs[name]{0,1}"

_BY_PERSON = re.compile(r"Disconnected by (.+?)(?: : |$)")
_WHY_KEPT = 200  # of a wording that is not understood, as many characters
# As many as a pool may have. Executors are gone through one by one; whoever may configure a node could make that last for ever.
_MOST_EXECUTORS = 1000
# A pipeline's node block: "folder » job #12 (Unit tests)", if a stage or a parallel branch encloses it; else "part of folder » job #12". A
# script may give its run another name than its number.
_STAGE = re.compile(r"^.*?#\d+ \((.*)\)$", re.DOTALL)
_STAGE_OF_NAMED_RUN = re.compile(r"^(?!part of ).*? \((.*)\)$", re.DOTALL)
_BLOCK = "PlaceholderExecutable"
# The heading of a build or of a pipeline's step, up to the build's number or name.
_HEADING = re.compile(r"^(?:part of )?(.+?) #\d+", re.DOTALL)
NOTHING_TELLS_APART = JobParameters()
NO_LIST = BeforeValidator(lambda value: value or [])
NO_TEXT = BeforeValidator(lambda value: value or "")


class Theirs(BaseModel):
    """A part of an answer; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")


class Task(Theirs):
    """The job of a queue item, as Jenkins describes it."""

    name: Annotated[str, NO_TEXT] = ""
    displayName: Annotated[str, NO_TEXT] = ""  # noqa: N815 - Jenkins' spelling, here and below
    fullName: Annotated[str, NO_TEXT] = ""  # noqa: N815
    url: Annotated[str, NO_TEXT] = ""
    labelExpression: str | None = None  # noqa: N815


class _Item(Theirs):
    id: int
    why: Annotated[str, NO_TEXT] = ""
    buildable: bool = False
    pending: bool = False
    inQueueSince: float | None = None  # noqa: N815
    buildableStartMilliseconds: float | None = None  # noqa: N815
    actions: Any = None
    task: Task = Task()


class _Executable(Theirs):
    kind: Annotated[str, NO_TEXT] = Field(default="", alias="_class")
    url: Annotated[str, NO_TEXT] = ""
    fullDisplayName: Annotated[str, NO_TEXT] = ""  # noqa: N815
    timestamp: float | None = None
    estimatedDuration: float | None = None  # noqa: N815
    actions: Any = None


class _Executor(Theirs):
    idle: bool = True
    number: int = 0
    currentExecutable: _Executable | None = None  # noqa: N815


class _Label(Theirs):
    name: str


class _Computer(Theirs):
    displayName: str  # noqa: N815
    description: Annotated[str, NO_TEXT] = ""
    offline: bool
    temporarilyOffline: bool = False  # noqa: N815
    idle: bool
    numExecutors: int = 0  # noqa: N815
    offlineCauseReason: Annotated[str, NO_TEXT] = ""  # noqa: N815
    offlineCause: dict[str, Any] | None = None  # noqa: N815
    assignedLabels: Annotated[list[_Label], NO_LIST] = []  # noqa: N815
    executors: Annotated[list[_Executor], NO_LIST] = []
    oneOffExecutors: Annotated[list[_Executor], NO_LIST] = []  # noqa: N815


_M = TypeVar("_M", bound=Theirs)


def read_as(kind: type[_M], body: object, what: str) -> _M:
    """Read an answer about something; `TransientError` if it is not understood."""
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise TransientError(f"Jenkins' answer about {what} is not understood: {error.error_count()} fields") from error


def read_queue(
    body: object,
    date: datetime,
    node_names: Collection[str],
    tell_apart: JobParameters = NOTHING_TELLS_APART,
    whys: Mapping[int, str] | None = None,
) -> tuple[tuple[QueueItem, ...], list[str]]:
    """Read the queue, next item first, and a line for each entry that was not understood.

    ``tell_apart``: builds, by parameters. ``whys``: Jenkins' reasons by item, where they came apart from the items, and not all.
    """
    items: list[QueueItem] = []
    aside: list[str] = []
    # Long reasons are alike, and each takes milliseconds.
    waits: dict[str, Wait] = {}
    # The API lists the queue backwards: the last is next.
    for raw in reversed(entries_of(body, "items")):
        try:
            item = _Item.model_validate(raw)
        except ValidationError as error:
            name = repr(raw.get("id"))[:100] if isinstance(raw, dict) else type(raw).__name__
            aside.append(f"queue item {name}: {error.error_count()} fields not understood")
            # It is no demand, but whatever node it mentions may be what it waits for.
            unclear = unknown_wait(json.dumps(raw, ensure_ascii=False, default=str), node_names)
            items.append(QueueItem(id=-1, job="", run="", label=None, labelless=False, wait=unclear, buildable=False, waiting_seconds=0.0))
            continue
        why = item.why if whys is None else whys.get(item.id)
        if why is None:
            # A buildable item waits for an executor, unless it is pending: then it has one.
            wait = Wait(for_executor=item.buildable and not item.pending and _tells_its_label(raw))
        else:
            if why not in waits:
                waits[why] = read_why(why) or unknown_wait(why, node_names)
            wait = waits[why]
            if wait.unclear and item.buildable and not item.pending:
                aside.append(f"queue item {item.id}: unknown why {why[:_WHY_KEPT]!r}")
        items.append(_queue_item(raw, item, wait, date, tell_apart))
    return tuple(items), aside


def needs_why(raw: Any) -> bool:
    """Tell whether nothing but Jenkins' reason tells which label an entry of the queue waits for, and that it waits for an executor."""
    if not isinstance(raw, dict) or not isinstance(raw.get("id"), int):
        return False
    return raw.get("buildable") is True and raw.get("pending") is not True and not _tells_its_label(raw)


def _tells_its_label(raw: Any) -> bool:
    """Tell whether a job is of a kind that tells its label, which may be none."""
    task = raw.get("task")
    return isinstance(task, dict) and "labelExpression" in task


def read_computers(
    body: object, date: datetime, tell_apart: JobParameters = NOTHING_TELLS_APART
) -> tuple[tuple[Node, ...], dict[str, str]]:
    """Read the nodes, and a line for each that was not understood, by its name ("" when not even that could be read)."""
    nodes: list[Node] = []
    aside: dict[str, str] = {}
    for raw in entries_of(body, "computer"):
        try:
            nodes.append(read_node(raw, date, tell_apart))
        except ValidationError as error:
            name = raw.get("displayName") if isinstance(raw, dict) else None
            known = name if isinstance(name, str) else ""
            aside[known] = f"node {known or 'without a name'}: {error.error_count()} fields not understood"
    return tuple(nodes), aside


def read_node(raw: Any, date: datetime, tell_apart: JobParameters = NOTHING_TELLS_APART) -> Node:
    """Read one node; pydantic's `ValidationError` when it is none."""
    computer = _Computer.model_validate(raw)
    kind = str(raw.get("_class") or "")
    builtin = kind.endswith("MasterComputer") or computer.displayName in {"master", "Built-In Node"}
    builds = [b for e in computer.executors if (b := _build(computer.displayName, e, date, tell_apart))]
    # One-off executors count as work: a flyweight task on the node is a build as any other.
    builds += [b for e in computer.oneOffExecutors if (b := _build(computer.displayName + ONE_OFF.rstrip("/"), e, date, tell_apart))]
    cause, person, lost_at = _offline(computer)
    return Node(
        name=computer.displayName,
        labels=frozenset(label.name for label in computer.assignedLabels),
        executors=min(max(0, computer.numExecutors), _MOST_EXECUTORS),
        offline=computer.offline,
        temporarily_offline=computer.temporarilyOffline,
        cause=cause,
        reason=html.unescape(computer.offlineCauseReason),
        description=computer.description,
        idle=computer.idle,
        builds=tuple(builds),
        agent=not builtin,
        lost_at=lost_at,
        offline_by=person,
        # Computer.kill: what is left of a deleted node has no executor but those at work, and no label (Computer.getAssignedLabels): a node
        # has its own name at least, whoever set its executors to 0. The right to see its config.xml is not needed.
        is_deleted=not (builtin or computer.numExecutors or computer.assignedLabels or computer.idle) and computer.offline,
    )


def read_date(header: str | None) -> datetime:
    """Read the time of an answer, from which ages are counted."""
    try:
        return parsedate_to_datetime(header or "")
    except ValueError as error:
        raise TransientError("Jenkins' answer carries no readable Date header") from error


def read_version(header: str | None) -> tuple[int, ...]:
    """Read Jenkins' version, ``2.504.3`` as (2, 504, 3); () where it is not told."""
    found = re.match(r"\d+(?:\.\d+)*", header or "")
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def entries_of(body: object, key: str) -> list[Any]:
    """Return a list that an answer must have."""
    entries = body.get(key) if isinstance(body, dict) else None
    if not isinstance(entries, list):
        raise TransientError(f"Jenkins' answer has no list of {key}")
    return entries


def unknown_wait(why: str, node_names: Collection[str]) -> Wait:
    """Stand for a wording that is not understood. Whatever node it mentions may be what it waits for, but for a list of all nodes."""
    causes = dict.fromkeys(_TIMES.sub("", part) for part in _SEPARATOR.split(why))
    # Beside causes of plugins Jenkins names the nodes that do not have the label that an item asks for.
    label = next((found[2] for found in map(_MISSING.fullmatch, causes) if found), None)
    nodes = named_nodes(why, node_names) if label is None else ()
    # Without what Jenkins itself says of other nodes, unless nothing else is there.
    unknown = "; ".join(cause for cause in causes if not any(known.fullmatch(cause) for known in (_MISSING, _NODE, _RESERVED)))
    return Wait(for_executor=False, label=label, nodes=nodes, unclear=(unknown or why)[:_WHY_KEPT] or "(nothing)")


def _queue_item(raw: Any, item: _Item, wait: Wait, date: datetime, tell_apart: JobParameters) -> QueueItem:
    task, raw_task = item.task, raw.get("task") or {}
    since = item.inQueueSince if item.buildableStartMilliseconds is None else item.buildableStartMilliseconds
    placeholder = "PlaceholderTask" in str(raw_task.get("_class"))
    run = run_of(task.url) if placeholder else ""
    job = job_of(task.url) or task.fullName or task.name
    return QueueItem(
        id=item.id,
        job=job,
        run=run,
        label=task.labelExpression or None,
        labelless=not placeholder and _tells_its_label(raw) and not task.labelExpression,
        wait=wait,
        buildable=item.buildable and not item.pending,
        waiting_seconds=max(0.0, date.timestamp() - since / 1000.0) if since is not None else 0.0,
        in_quiet_mode=waits_for_quiet_mode(item.why),
        signature=stage_of(task.name) if placeholder else tell_apart.signature(job, parameters_of(item.actions)),
        display=_display_of(task.name, job) if placeholder else _other_name(task.displayName, job.rpartition("/")[2]),
    )


def _build(where: str, executor: _Executor, date: datetime, tell_apart: JobParameters) -> Build | None:
    executable = executor.currentExecutable
    if executable is None:
        # Busy with something that the account may not read (no Job/Read): a build all the same.
        return (
            None if executor.idle else Build(key=f"{where}/{executor.number}", job="", run="", elapsed_seconds=None, estimate_seconds=None)
        )
    run = run_of(executable.url)
    job = _job_of_run(run)
    own_clock = executable.estimatedDuration is not None and executable.estimatedDuration > 0 and executable.timestamp is not None
    elapsed = date.timestamp() - (executable.timestamp or 0) / 1000.0
    is_block = executable.kind.endswith(_BLOCK)
    told = stage_of(executable.fullDisplayName) if is_block else tell_apart.signature(job, parameters_of(executable.actions))
    return Build(
        key=f"{where}/{executor.number}/{run}",
        job=job,
        run=run,
        elapsed_seconds=max(0.0, elapsed) if own_clock else None,
        estimate_seconds=(executable.estimatedDuration or 0) / 1000.0 if own_clock else None,
        signature=told,
        is_block=is_block,
        display=_display_of(executable.fullDisplayName, job),
    )


def stage_of(name: str) -> str:
    """Return the stage or branch that encloses a pipeline's node block, as Jenkins' name of it tells; "" if there is none."""
    found = _STAGE.match(name) or _STAGE_OF_NAMED_RUN.match(name)
    return found[1][:NAME_CHARACTERS] if found else ""


def _display_of(heading: str, job: str) -> str:
    """Return the name that a job has for display in the heading of one of its builds; "" if it is the job's own name."""
    found = _HEADING.match(heading)
    return _other_name(found[1], job) if found else ""


def _other_name(display: str, job: str) -> str:
    return "" if display.replace(" » ", "/") in {job, unquote(job)} else display[:NAME_CHARACTERS]


def run_of(url: str) -> str:
    """Return the path of a run as Jenkins encoded it, whether its URL is relative or absolute."""
    found = re.search(r"(?:^|/)(job/.*)$", url)
    return found[1].rstrip("/") if found else url.rstrip("/")


def job_of(url: str) -> str:
    """Return the readable name of the job of a URL: ``job/a%20b/job/c/7/`` is ``a b/c``."""
    return _job_of_run(run_of(url))


def _job_of_run(run: str) -> str:
    # All runs of a job share one entry of the cache, whatever their number. Digits after "job" are a job's name.
    path, _, last = run.rpartition("/")
    return _readable(f"{path}/0" if last.isdecimal() and path.rpartition("/")[2] != "job" else run)


@lru_cache(maxsize=10_000)
def _readable(run: str) -> str:
    rest = run.split("/")
    names: list[str] = []
    while len(rest) > 1 and rest[0] == "job":
        names.append(rest[1])
        rest = rest[2:]
    # What is left is a run's number, after the configuration of a matrix if it has one.
    names += rest[:-1] if rest and rest[-1].isdecimal() else rest
    return "/".join(unquote(name) for name in names)


def _offline(computer: _Computer) -> tuple[OfflineCause, str, float | None]:
    """Read why a node is offline; who took it offline, "" if nobody did, or if Jenkins says it in another language.

    And when the connection to its agent was lost, by the controller's clock, as far as a mark does not hide it.
    """
    if computer.offlineCause is None:
        return OfflineCause.NONE, "", None
    kind, at = str(computer.offlineCause.get("_class") or ""), computer.offlineCause.get("timestamp")
    if kind.endswith(("OfflineCause$UserCause", "OfflineCause$ByCLI")):
        by_person = _BY_PERSON.match(html.unescape(str(computer.offlineCause.get("description") or "")))
        return OfflineCause.PERSON, by_person[1] if by_person else "", None
    lost_at = at / 1000.0 if kind.endswith("ChannelTermination") and isinstance(at, int | float) and at else None
    is_lost = kind.endswith(("OfflineCause$ChannelTermination", "OfflineCause$LaunchFailed"))
    return OfflineCause.LOST if is_lost else OfflineCause.OTHER, "", lost_at
