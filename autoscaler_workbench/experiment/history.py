"""A Jenkins' build history as a trace: what freestyle and matrix builds asked for, when, and for how long.

Polite: one request at a time with a pause after each, a hundred builds a request, and nothing beyond the limits. What Jenkins' API does
not tell is left out and counted: on which agents a pipeline's stages ran stands in its log only.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from autoscaler.adapters.jenkins.session import JenkinsSession
from autoscaler.config import url_problem
from autoscaler.errors import ConfigError, TransientError

_JOBS_TREE = "jobs[_class,name,labelExpression,lastBuild[timestamp],jobs[name]{0,1}]"
# The metrics plugin tells how long a build waited for an executor; without it a build is taken to have been queued when it began.
_BUILDS_TREE = "allBuilds[building,duration,result,timestamp,builtOn,actions[buildableDurationMillis]]"
_NODES_TREE = "computer[displayName,assignedLabels[name]]"
_BUILDS_A_REQUEST = 100
_MILLISECONDS = 1000.0
Get = Callable[[str, str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How much is read at most. ``since``: epoch seconds of the oldest build."""

    since: float
    requests: int = 5000
    pause_seconds: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class PastBuild:
    """One build as a row of a trace."""

    queued_at: float
    started_at: float
    duration_s: float
    label: str
    job: str
    result: str
    source: str = "jenkins"


@dataclass(slots=True, kw_only=True)
class History:
    """What was read.

    ``pipelines``: jobs that were not. ``left_out``: builds that run yet, that ran on the controller itself, or on a machine that is gone
    while the job names no label.
    """

    rows: list[PastBuild] = field(default_factory=list)
    requests: int = 0
    jobs: int = 0
    pipelines: int = 0
    left_out: int = 0
    cut_short: bool = False

    def write(self, file: Path) -> None:
        """Write the rows as a trace, in the order in which they were queued."""
        with file.open("w", encoding="utf-8", newline="") as lines:
            writer = csv.DictWriter(lines, list(PastBuild.__dataclass_fields__))
            writer.writeheader()
            writer.writerows(asdict(row) for row in sorted(self.rows, key=lambda row: row.queued_at))


class _FromJenkins(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")


_Shape = TypeVar("_Shape", bound=_FromJenkins)


class _Action(_FromJenkins):
    buildable_duration_millis: float = 0.0


class _Build(_FromJenkins):
    building: bool = False
    duration: float = 0.0
    result: str | None = None
    timestamp: float
    built_on: str | None = None
    actions: list[_Action | None] = Field(default_factory=list)

    @property
    def waited_millis(self) -> float:
        return max((action.buildable_duration_millis for action in self.actions if action), default=0.0)


class _Job(_FromJenkins):
    java_class: str = Field("", alias="_class")
    name: str
    label_expression: str | None = None
    last_built_at: float = Field(0.0, validation_alias=AliasPath("lastBuild", "timestamp"))
    jobs: list[Any] | None = None


class _Reader:
    """One reading, which stops at its limits."""

    def __init__(self, get: Get, limits: ReadLimits, sleep: Callable[[float], None]) -> None:
        self._get = get
        self._limits = limits
        self._sleep = sleep
        self.history = History()

    def read(self) -> History:
        nodes = self._ask("computer", _NODES_TREE)
        labels = {node["displayName"]: _label_of(node) for node in (nodes or {}).get("computer", [])}
        for path, job in self._jobs(""):
            if "workflow" in job.java_class:
                self.history.pipelines += 1
            else:
                self._read_builds(path, job, labels)
        return self.history

    def _jobs(self, folder: str) -> Iterator[tuple[str, _Job]]:
        """Every job with a build that is young enough, and where it is; folder by folder."""
        answer = self._ask(folder, _JOBS_TREE)
        for job in _checked(_Job, (answer or {}).get("jobs", [])):
            path = f"{folder}/job/{quote(job.name, safe='')}".lstrip("/")
            if job.jobs is not None:
                yield from self._jobs(path)
            elif job.last_built_at >= self._limits.since * _MILLISECONDS:
                yield path, job

    def _read_builds(self, path: str, job: _Job, labels: Mapping[str, str]) -> None:
        self.history.jobs += 1
        first = 0
        while True:
            answer = self._ask(path, f"{_BUILDS_TREE}{{{first},{first + _BUILDS_A_REQUEST}}}")
            builds = _checked(_Build, (answer or {}).get("allBuilds", []))
            for build in builds:
                if build.timestamp < self._limits.since * _MILLISECONDS:
                    return
                self._note(path, job, build, labels)
            if len(builds) < _BUILDS_A_REQUEST:
                return
            first += _BUILDS_A_REQUEST

    def _note(self, path: str, job: _Job, build: _Build, labels: Mapping[str, str]) -> None:
        label = job.label_expression or labels.get(build.built_on or "", "")
        if build.building or not build.built_on or not label:
            self.history.left_out += 1
            return
        started = build.timestamp / _MILLISECONDS
        queued, seconds = started - build.waited_millis / _MILLISECONDS, build.duration / _MILLISECONDS
        name = "/".join(unquote(part) for part in path.split("/")[1::2])
        about = {"label": label, "job": name, "result": build.result or ""}
        self.history.rows.append(PastBuild(queued_at=queued, started_at=started, duration_s=seconds, **about))

    def _ask(self, place: str, tree: str) -> Any:
        if self.history.requests >= self._limits.requests:
            self.history.cut_short = True
            return None
        if self.history.requests:
            self._sleep(self._limits.pause_seconds)
        self.history.requests += 1
        return self._get(f"{place}/api/json".lstrip("/"), tree)


def read_history(get: Get, limits: ReadLimits, sleep: Callable[[float], None]) -> History:
    """Read a history. ``get``: reads the JSON of an API path and a ``tree=``. `TransientError` where it is no answer of Jenkins."""
    return _Reader(get, limits, sleep).read()


def connect(url: str, user: str | None, token: str | None, ca_bundle: str | None, monotonic: Callable[[], float]) -> Get:
    """Read API paths of a Jenkins; without a user, as anonymous. `ConfigError` and `TransientError` name what is wrong."""
    session = session_of(url, user, token, ca_bundle, monotonic)
    return lambda path, tree: session.get(path, tree).json()


def session_of(url: str, user: str | None, token: str | None, ca_bundle: str | None, monotonic: Callable[[], float]) -> JenkinsSession:
    """Make ready to ask a Jenkins; nothing is sent yet. `ConfigError` for an address that is none."""
    if problem := url_problem(url):
        raise ConfigError(f"url {problem}")
    return JenkinsSession(url, user, token, monotonic, ca_bundle or "")


def _label_of(node: Mapping[str, Any]) -> str:
    """The labels of a node, its own name left out, as an expression that asks for all of them."""
    names = sorted({label["name"] for label in node.get("assignedLabels", [])} - {node["displayName"]})
    return " && ".join(name for name in names if not name.startswith("autoscaler-"))


def _checked(shape: type[_Shape], raw: Any) -> list[_Shape]:
    try:
        return [shape.model_validate(entry) for entry in raw]
    except ValidationError as error:
        raise TransientError(f"Jenkins' answer is not understood: {error.errors(include_url=False)[0]['msg']}") from error
