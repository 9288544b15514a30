"""Folders, jobs and builds in the Jenkins API: as much as it takes to run a build on a label."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any
from xml.etree import ElementTree as ET

from autoscaler_workbench.fakes.http_fakes.jenkins.answers import actions_of
from autoscaler_workbench.fakes.http_fakes.jenkins.config_xml import job_config_xml
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended, Kind, Started, Stopper
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.flow import graph_of
from autoscaler_workbench.fakes.world.jenkins.matrix import submit_matrix
from autoscaler_workbench.fakes.world.jenkins.pipeline import submit_pipeline
from autoscaler_workbench.fakes.world.jenkins.urls import job_path

_PIPELINE = re.compile(r"node\((?:'(?P<label>.*)'|params\.(?P<parameter>\w+))\)\s*\{\s*sh 'sleep (?P<seconds>[\d.]+)'\s*\}")
_SLEEP = re.compile(r"sleep (?P<seconds>[\d.]+)")
# ``builds`` shows the newest; ``allBuilds`` all.
_BUILDS_SHOWN = 100
_INTERRUPTED = {
    Stopper.PERSON: {"_class": "jenkins.model.CauseOfInterruption$UserInterruption", "shortDescription": "Aborted by somebody"},
    Stopper.REMOVED_NODE: {
        "_class": "org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$RemovedNodeCause",
        "shortDescription": "Agent was removed",
    },
    Stopper.AGENT_AWAY: {
        "_class": "org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$RemovedNodeTimeoutCause",
        "shortDescription": "Timeout waiting for agent to come back",
    },
    Stopper.CANCELLED_ITEM: {
        "_class": "org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$QueueTaskCancelled",
        "shortDescription": "Queue task was cancelled",
    },
}
_FLOW_NODES = dict.fromkeys(("FlowStartNode", "FlowEndNode"), "org.jenkinsci.plugins.workflow.graph") | dict.fromkeys(
    ("StepStartNode", "StepAtomNode", "StepEndNode"), "org.jenkinsci.plugins.workflow.cps.nodes"
)
_ABORTS = (Stopper.REMOVED_NODE, Stopper.AGENT_AWAY, Stopper.CANCELLED_ITEM)  # Jenkins itself, a pipeline
_MATRIX, _NODE_LABEL = "matrix-project", "nodelabelparameter"  # plugins
# Jenkins refuses names with any of these.
UNSAFE_LETTERS = set("?*/\\%!@#$^&|<>[]:;")


class JobRefusedError(Exception):
    """Jenkins answers 400, with this in X-Error."""


class RefusedBuildError(Exception):
    """Jenkins answers this status, and builds nothing."""

    def __init__(self, status: int) -> None:
        """Keep the status."""
        super().__init__(f"{status}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Job:
    """A job. ``declares``: the parameters it takes, with their defaults; ``hides``: those of which Jenkins shows no value.

    ``label_parameter``: whose value is where it runs: a pipeline's own script says so; for freestyle it is one of the plugin NodeLabel.
    """

    kind: Kind
    label: str | None
    seconds: float
    declares: Mapping[str, str] = field(default_factory=dict)
    hides: frozenset[str] = frozenset()
    disabled: bool = False
    configurations: tuple[str, ...] = ()  # of a matrix
    label_parameter: str = ""

    def label_for(self, given: Mapping[str, str]) -> str | None:
        """Where a build of it is to run; None: on any node that takes jobs without a label."""
        if not self.label_parameter:
            return self.label
        return given.get(self.label_parameter, self.declares[self.label_parameter]) or None

    def parameters(self, given: Mapping[str, str]) -> tuple[tuple[str, str | None], ...]:
        """What a build of it is started with: what is given of what it declares, and for the rest the defaults."""
        values = [(name, given.get(name, default)) for name, default in self.declares.items()]
        return tuple((name, None if name in self.hides else value) for name, value in values)


@dataclass(slots=True)
class Jobs:
    """The jobs of one controller, by their full name; a folder is a name without a job."""

    controller: Controller
    base: str = ""  # where the controller is reached
    folders: set[str] = field(default_factory=set)
    jobs: dict[str, Job] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=lambda: {_MATRIX, _NODE_LABEL})  # beside those for folders and pipelines

    def kinds(self) -> dict[str, Any]:
        """Tell which kinds of jobs may be made (View.doItemCategories)."""
        kinds = ["hudson.model.FreeStyleProject", "org.jenkinsci.plugins.workflow.job.WorkflowJob"]
        kinds += ["hudson.matrix.MatrixProject"] if _MATRIX in self.plugins else []
        return {"categories": [{"id": "standalone-projects", "items": [{"class": kind} for kind in kinds]}]}

    def create(self, folder: str, name: str, config: bytes) -> None:
        """Create a folder, a freestyle job or matrix that sleeps in a shell, or a pipeline ``node('LABEL') { sh 'sleep N' }``.

        Instead of a label, a pipeline may have ``params.NAME``, and a freestyle job a parameter of the plugin NodeLabel.
        """
        if not name or set(name) & UNSAFE_LETTERS:
            raise JobRefusedError("it has an unsafe character")
        full = f"{folder}/{name}" if folder else name
        if full in self.folders or full in self.jobs:
            raise JobRefusedError(f"A job already exists with the name ‘{name}’")
        root = ET.fromstring(config)  # noqa: S314 - what our own tests wrote
        if root.tag == "com.cloudbees.hudson.plugins.folder.Folder":
            self.folders.add(full)
        else:
            self.jobs[full] = _read_job(root, self.plugins)

    def knows(self, full_name: str) -> bool:
        """Tell whether there is such a job: it was made here, or was built without having been made, as those of traces are."""
        return full_name in self.jobs or full_name in self.controller.builds_of

    def build(self, full_name: str, given: Mapping[str, str] | None = None, user: str = "") -> Build:
        """Queue one build; one that equals an item in the queue is merged with it. ``given``: None where no parameters were sent."""
        job = self._job(full_name)
        if job.disabled:
            raise RefusedBuildError(409)
        if (given is None) is bool(job.declares):
            raise RefusedBuildError(500 if given is not None else 400)
        started = Started(parameters=job.parameters(given or {}), users=(user,) if user else ())
        label = job.label_for(given or {})
        if waiting := _equal_item(self.controller, full_name, label, started):
            users = (*waiting.started_with.users, *(one for one in started.users if one not in waiting.started_with.users))
            waiting.started_with = replace(waiting.started_with, users=users)
            return waiting
        if full_name not in self.jobs:
            return self._build_again(full_name, started)
        return self._begin(full_name, job, label, started)

    def rebuild(self, build: Build, user: str) -> Build:
        """Queue a build with the same parameters, our own among them, as the plugin Rebuilder does for a person."""
        given = {name: value for name, value in build.started_with.parameters if value is not None}
        again = self.build(build.job, given if self._job(build.job).declares else None, user)
        again.started_with = replace(again.started_with, repeats=(*again.started_with.repeats, build.run_path.rstrip("/")))
        return again

    def _begin(self, full_name: str, job: Job, label: str | None, started: Started) -> Build:
        if job.configurations:
            return submit_matrix(self.controller, full_name, label, job.seconds, job.configurations, started)
        if job.kind is Kind.PIPELINE:
            return submit_pipeline(self.controller, full_name, label, job.seconds, started)
        build = self.controller.submit(full_name, label, job.seconds, started_with=started)
        build.label_is_given = bool(job.label_parameter)
        return build

    def _build_again(self, full_name: str, started: Started) -> Build:
        """Queue a build of a job that nobody defined here: as the last one that lost its agent, or else the last one."""
        known = self.controller.builds_of[full_name]
        like = next((build for build in reversed(known) if build.ended is Ended.KILLED), known[-1])
        again = self.controller.submit(full_name, like.label, like.seconds, kind=like.kind, on_end=like.on_end, started_with=started)
        again.takes_card = like.takes_card  # it begins at the next instant
        return again

    def _job(self, full_name: str) -> Job:
        if full_name in self.jobs:
            return self.jobs[full_name]
        last = self.controller.builds_of[full_name][-1]
        return Job(last.kind, last.label, last.seconds)

    def delete(self, full_name: str) -> None:
        """Delete a job or a folder with all that is in it; its builds are stopped."""

        def is_in_it(name: str) -> bool:
            return f"{name}/".startswith(f"{full_name}/")

        for name in list(filter(is_in_it, self.controller.builds_of)):
            for build in self.controller.builds_of[name]:
                self.controller.abort(build)
            self.controller.forget(name)
        self.folders = {name for name in self.folders if not is_in_it(name)}
        self.jobs = {name: job for name, job in self.jobs.items() if not is_in_it(name)}

    def shown(self, full_name: str) -> dict[str, Any] | None:
        """The JSON of a job or a folder; None: there is none."""
        if full_name in self.folders:
            inside = [name for name in (*self.folders, *self.jobs) if name.rpartition("/")[0] == full_name]
            shown = {"_class": "com.cloudbees.hudson.plugins.folder.Folder", "fullName": full_name, "jobs": self._all(inside)}
            return shown | {"name": full_name.rpartition("/")[2]}
        if not self.knows(full_name):
            return None
        # A freestyle build exists once it runs; a pipeline's run begins at once, and waits for its node.
        job = self._job(full_name)
        freestyle = job.kind is Kind.FREESTYLE
        runs = {b.number: b for b in reversed(self.controller.builds_of.get(full_name, [])) if is_run(b)}
        ordered = [self._listed(runs[number]) for number in sorted(runs, reverse=True)]
        listed: dict[str, Any] = {"builds": ordered[:_BUILDS_SHOWN], "allBuilds": ordered, "lastBuild": next(iter(ordered), None)}
        listed |= {"name": full_name.rpartition("/")[2], "fullName": full_name, "buildable": not job.disabled, "property": _declared(job)}
        if job.configurations:
            return listed | {"_class": "hudson.matrix.MatrixProject", "labelExpression": None}
        if freestyle:
            return listed | {"_class": "hudson.model.FreeStyleProject", "labelExpression": job.label}
        return listed | {"_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob"}

    def at(self, place: list[str]) -> dict[str, Any] | None:
        """The JSON of what is there: a run, a job, or one configuration of a matrix; None: there is nothing."""
        if len(place) % 2 and "=" in place[-1]:
            return self._configuration(place)
        return self.run(place) if len(place) % 2 or is_configuration(place) else self.shown(full_name_of(place))

    def _configuration(self, place: list[str]) -> dict[str, Any] | None:
        builds = self.controller.builds_of.get(f"{full_name_of(place[:-1])}/{place[-1]}")
        if builds is None:
            return None
        listed = [self._listed(build) for build in reversed(builds) if is_run(build)]
        return {"_class": "hudson.matrix.MatrixConfiguration", "name": place[-1], "buildable": True, "property": [], "builds": listed}

    def run(self, place: list[str]) -> dict[str, Any] | None:
        """The JSON of one run; None: there is none. ``place``: ``job/a/job/b/7``, decoded."""
        of_job, configuration = (place[:-2], f"{place[-2]}/") if is_configuration(place) else (place[:-1], "")
        builds = self.run_at(full_name_of(of_job), f"{configuration}{place[-1]}")
        if not builds:
            return None
        shown = {**run_json(builds), "url": self.base + builds[0].run_path}
        return shown | ({"inProgress": shown["building"]} if self.controller.tells_in_progress else {})

    def run_at(self, full_name: str, number: str) -> list[Build]:
        """The stages of a run; none where Jenkins has no such run (yet)."""
        builds = self.controller.runs.get(f"{job_path(full_name)}{number}/", [])
        return builds if builds and is_run(builds[0]) else []

    def config_xml(self, place: list[str]) -> str | None:
        """A job's config.xml, as far as anybody reads it."""
        job = full_name_of(place)
        return job_config_xml(self.controller.heavy.get(job)) if job in self.controller.builds_of else None

    def console(self, place: list[str]) -> str | None:
        """Return the lines of a run's console that are read here: its node, and the trace of its shell; None if there is no run."""
        builds = self.run_at(full_name_of(place[:-1]), place[-1])
        now = self.controller.timeline.now
        lines = [f"Running on {build.node}\n" for build in builds if build.node]
        lines += [f"+ sleep {build.seconds:g}\n" for build in builds if build.sh_has_begun(now)]
        return "".join(lines) if builds else None

    def _listed(self, build: Build) -> Mapping[str, Any]:
        return {**run_json(self.controller.runs[build.run_path], with_graph=False), "url": self.base + build.run_path}

    def at_the_top(self) -> list[dict[str, Any]]:
        """Jobs and folders that stand in no folder; of jobs that were not made here, but built, the name."""
        made = self._all(name for name in (*self.folders, *self.jobs) if "/" not in name)
        known = {one["name"] for one in made}
        built = sorted((self.controller.defined | {build.job.split("/", 1)[0] for build in self.controller.builds}) - known)
        return [*made, *({"_class": "hudson.model.FreeStyleProject", "name": name} for name in built)]

    def _all(self, names: Iterable[str]) -> list[dict[str, Any]]:
        return [shown for name in sorted(names) if (shown := self.shown(name)) is not None]


def _equal_item(controller: Controller, job: str, label: str | None, started: Started) -> Build | None:
    """Find what waits of a job that was asked for with the same parameters: Jenkins queues no other one beside it.

    The items of a pipeline and of a matrix leave the queue at once, so that there is none to merge with.
    """
    alike = (b for b in controller.queue if (b.job, b.kind, b.configuration, b.is_taken) == (job, Kind.FREESTYLE, "", False))
    equal = (build for build in alike if set(build.started_with.parameters) == set(started.parameters))
    return next((build for build in equal if build.label == label), None)


def is_configuration(place: list[str]) -> bool:
    """Tell whether a path is of a run of one configuration of a matrix: ``job/m/os=linux/7``."""
    return len(place) > 3 and "=" in place[-2] and place[-1].isdecimal()


def full_name_of(parts: list[str]) -> str:
    """``job/a/job/b`` -> ``a/b``."""
    return "/".join(parts[1::2])


def result_of(run: list[Build]) -> str | None:
    """Jenkins' word for how a run ended, from its stages; None while any of them goes on. A script says it itself."""
    if run[0].flow is not None:
        return run[0].flow.result
    if any(build.ended is None for build in run):
        return None
    if any(build.ended is Ended.ABORTED for build in run):
        return "ABORTED"
    if any(build.stopped_by in _ABORTS for build in run):
        return "ABORTED"
    return "SUCCESS" if all(build.succeeded for build in run) else "FAILURE"


def is_run(build: Build) -> bool:
    """Tell whether Jenkins has a build of it: of a freestyle job once it has begun, and after a restart only if it was saved."""
    return build.kind is Kind.PIPELINE or (build.started_at is not None and not build.is_dropped and not build.is_unsaved)


def run_json(run: list[Build], *, with_graph: bool = True) -> Mapping[str, Any]:
    """A run, from its stages. ``with_graph``: with its flow graph, as far as it has one."""
    first, result = run[0], result_of(run)
    shown = _build_json(first)
    flow = first.flow
    ended_at = (flow.ended_at or 0.0) if flow else max(build.ended_at or 0.0 for build in run)
    duration = int(1000 * ended_at) - shown["timestamp"] if result is not None else 0
    stopped = [_INTERRUPTED[by] for by in dict.fromkeys(build.stopped_by for build in run if build.stopped_by)]
    interrupted = [{"_class": "jenkins.model.InterruptedBuildAction", "causes": stopped}] if stopped else []
    actions = [*actions_of(first.started_with), *interrupted, *(_graph_json(run) if with_graph else ())]
    about = {"queueId": first.run_item or first.id, "actions": actions, "duration": duration}
    return {**shown, **about, "building": result is None, "result": result}


def _graph_json(run: list[Build]) -> list[dict[str, Any]]:
    """The flow graph of a pipeline, in no order that says anything: Jenkins goes back from the heads."""
    if run[0].kind is not Kind.PIPELINE:
        return []
    steps = graph_of(run).steps
    nodes = [
        {
            "_class": f"{_FLOW_NODES[step.kind]}.{step.kind}",
            "displayName": step.name,
            "iconColor": step.color + ("_anime" if step.running else ""),
            "id": str(step.id),
            "parents": [str(parent) for parent in step.parents],
            "running": step.running,
        }
        for step in [*steps[len(steps) // 2 :], *steps[: len(steps) // 2]]
    ]
    return [{}, {"_class": "org.jenkinsci.plugins.workflow.job.views.FlowGraphAction", "nodes": nodes}]


def _build_json(build: Build) -> Mapping[str, Any]:
    freestyle = build.kind is Kind.FREESTYLE
    began = build.started_at if freestyle and build.started_at is not None else build.queued_at
    return {
        "_class": "hudson.model.FreeStyleBuild" if freestyle else "org.jenkinsci.plugins.workflow.job.WorkflowRun",
        "building": build.ended is None,
        "duration": int(1000 * (build.ended_at - began)) if build.ended_at is not None else 0,
        "number": build.number,
        "result": result_of([build]),
        "timestamp": int(1000 * began),
    } | ({"builtOn": build.node or ""} if freestyle else {})


def _declared(job: Job) -> list[dict[str, Any]]:
    if not job.declares:
        return []
    named = [{"_class": "hudson.model.StringParameterDefinition", "name": name} for name in job.declares]
    return [{"_class": "hudson.model.ParametersDefinitionProperty", "parameterDefinitions": named}]


def _read_job(root: ET.Element, plugins: set[str]) -> Job:
    """Read config.xml. A parameter of a class that is not there is left out (RobustCollectionConverter)."""
    found = root.iterfind("properties/hudson.model.ParametersDefinitionProperty/parameterDefinitions/*")
    declared = [one for one in found if one.tag.startswith("hudson.model.") or _NODE_LABEL in plugins]
    labels = [one.findtext("name", "") for one in declared if one.tag.endswith(".LabelParameterDefinition")]
    job = _read_work(root)
    return replace(
        job,
        declares={one.findtext("name", ""): one.findtext("defaultValue", "") for one in declared},
        hides=frozenset(one.findtext("name", "") for one in declared if "Password" in one.tag),
        disabled=root.findtext("disabled") == "true",
        label_parameter=job.label_parameter or next(iter(labels), ""),
    )


def _read_work(root: ET.Element) -> Job:
    if root.tag == "flow-definition":
        found = _PIPELINE.search(root.findtext("definition/script", ""))
        if found is None:
            raise JobRefusedError("the stand-in knows no other pipeline than node('LABEL') { sh 'sleep N' }")
        return Job(Kind.PIPELINE, found["label"] or None, float(found["seconds"]), label_parameter=found["parameter"] or "")
    sleep = _SLEEP.search(root.findtext("builders/hudson.tasks.Shell/command", ""))
    seconds = float(sleep["seconds"]) if sleep else 0.0
    if root.tag == "matrix-project":
        return _read_matrix(root, seconds)
    return Job(Kind.FREESTYLE, root.findtext("assignedNode") or None, seconds)


def _read_matrix(root: ET.Element, seconds: float) -> Job:
    """Read the axes: a configuration is named after them in order of their names (Combination), and runs where its label axis says."""
    axes = {axis.findtext("name", ""): [value.text or "" for value in axis.iterfind("values/string")] for axis in root.iterfind("axes/*")}
    labels = [value.text or "" for value in root.iterfind("axes/hudson.matrix.LabelAxis/values/string")]
    if len(labels) > 1:
        raise JobRefusedError("the stand-in knows no matrix on several labels")
    named = [[f"{name}={value}" for value in axes[name]] for name in sorted(axes)]
    configurations = tuple(",".join(values) for values in product(*named))
    return Job(Kind.FREESTYLE, next(iter(labels), None), seconds, configurations=configurations)
