"""Folders, jobs and builds in the Jenkins API: as much as it takes to run a build on a label."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.urls import job_path

_PIPELINE = re.compile(r"node\('(?P<label>.*)'\)\s*\{\s*sleep (?P<seconds>[\d.]+)\s*\}")
_SLEEP = re.compile(r"sleep (?P<seconds>[\d.]+)")
# ``builds`` shows the newest; ``allBuilds`` all.
_BUILDS_SHOWN = 100
# Jenkins refuses names with any of these.
UNSAFE_LETTERS = set("?*/\\%!@#$^&|<>[]:;")


class JobRefusedError(Exception):
    """Jenkins answers 400, with this in X-Error."""


@dataclass(frozen=True, slots=True)
class _Job:
    kind: Kind
    label: str | None
    seconds: float


@dataclass(slots=True)
class Jobs:
    """The jobs of one controller, by their full name; a folder is a name without a job."""

    controller: Controller
    folders: set[str] = field(default_factory=set)
    jobs: dict[str, _Job] = field(default_factory=dict)

    def create(self, folder: str, name: str, config: bytes) -> None:
        """Create a folder, a freestyle job that sleeps in a shell, or a pipeline ``node('LABEL') { sleep N }``."""
        if not name or set(name) & UNSAFE_LETTERS:
            raise JobRefusedError("is an unsafe character")
        full = f"{folder}/{name}" if folder else name
        if full in self.folders or full in self.jobs:
            raise JobRefusedError(f"A job already exists with the name  {name} ")
        root = ET.fromstring(config)  # noqa: S314 - what our own tests wrote
        if root.tag == "com.cloudbees.hudson.plugins.folder.Folder":
            self.folders.add(full)
        else:
            self.jobs[full] = _read_job(root)

    def build(self, full_name: str) -> Build:
        """Queue one build; a job that waits in the queue is not queued twice."""
        job = self.jobs[full_name]
        waiting = next((build for build in self.controller.queue if build.job == full_name), None)
        return waiting or self.controller.submit(full_name, job.label, job.seconds, kind=job.kind)

    def delete(self, full_name: str) -> None:
        """Delete a job or a folder with all that is in it; its builds are stopped."""
        for build in list(self.controller.builds):
            if build.job == full_name or build.job.startswith(f"{full_name}/"):
                self.controller.abort(build)
        self.folders = {name for name in self.folders if name != full_name and not name.startswith(f"{full_name}/")}
        self.jobs = {name: job for name, job in self.jobs.items() if name != full_name and not name.startswith(f"{full_name}/")}

    def shown(self, full_name: str) -> dict[str, Any] | None:
        """The JSON of a job or a folder; None: there is none."""
        if full_name in self.folders:
            inside = [name for name in (*self.folders, *self.jobs) if name.rpartition("/")[0] == full_name]
            shown = {"_class": "com.cloudbees.hudson.plugins.folder.Folder", "fullName": full_name, "jobs": self._all(inside)}
            return shown | {"name": full_name.rpartition("/")[2]}
        if full_name not in self.jobs:
            return None
        # A freestyle build exists once it runs; a pipeline's run begins at once, and waits for its node.
        job, freestyle = self.jobs[full_name], self.jobs[full_name].kind is Kind.FREESTYLE
        builds = [b for b in self.controller.builds if b.job == full_name and (b.started_at is not None or not freestyle)]
        ordered = [_build_json(build) for build in sorted(builds, key=lambda build: -build.number)]
        listed: dict[str, Any] = {"builds": ordered[:_BUILDS_SHOWN], "allBuilds": ordered, "lastBuild": next(iter(ordered), None)}
        listed |= {"name": full_name.rpartition("/")[2], "fullName": full_name}
        if freestyle:
            return listed | {"_class": "hudson.model.FreeStyleProject", "labelExpression": job.label}
        return listed | {"_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob"}

    def run(self, place: list[str]) -> dict[str, Any] | None:
        """The JSON of one run; None: there is none. ``place``: ``job/a/job/b/7``, decoded."""
        builds = self.controller.runs.get(f"{job_path(full_name_of(place[:-1]))}{place[-1]}/", [])
        return dict(_run_json(builds)) if builds else None

    def at_the_top(self) -> list[dict[str, Any]]:
        """Jobs and folders that stand in no folder; of jobs that were not made here, but built, the name."""
        made = self._all(name for name in (*self.folders, *self.jobs) if "/" not in name)
        known = {one["name"] for one in made}
        built = sorted({build.job.split("/", 1)[0] for build in self.controller.builds} - known)
        return [*made, *({"_class": "hudson.model.FreeStyleProject", "name": name} for name in built)]

    def _all(self, names: Iterable[str]) -> list[dict[str, Any]]:
        return [shown for name in sorted(names) if (shown := self.shown(name)) is not None]


def full_name_of(parts: list[str]) -> str:
    """``job/a/job/b`` -> ``a/b``."""
    return "/".join(parts[1::2])


def result_of(run: list[Build]) -> str | None:
    """Jenkins' word for how a run ended, from its stages; None while any of them goes on."""
    if any(build.ended is None for build in run):
        return None
    if any(build.ended is Ended.ABORTED for build in run):
        return "ABORTED"
    return "SUCCESS" if all(build.succeeded for build in run) else "FAILURE"


def _run_json(run: list[Build]) -> Mapping[str, Any]:
    return {**_build_json(run[0]), "building": result_of(run) is None, "result": result_of(run)}


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


def _read_job(root: ET.Element) -> _Job:
    if root.tag == "flow-definition":
        found = _PIPELINE.search(root.findtext("definition/script", ""))
        if found is None:
            raise JobRefusedError("the stand-in knows no other pipeline than node('LABEL') { sleep N }")
        return _Job(Kind.PIPELINE, found["label"] or None, float(found["seconds"]))
    sleep = _SLEEP.search(root.findtext("builders/hudson.tasks.Shell/command", ""))
    return _Job(Kind.FREESTYLE, root.findtext("assignedNode") or None, float(sleep["seconds"]) if sleep else 0.0)
