"""Reads from a Jenkins what a first fleet file needs: agents, the labels that jobs ask for, and clouds. Nothing is changed there.

Jenkins' REST API shows no cloud: `hudson.slaves.Cloud` exports nothing. The plugin Configuration as Code exports them as YAML, to accounts
with Overall/SystemRead.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from autoscaler.adapters.jenkins.session import JenkinsSession
from autoscaler.domain.labels import LabelSyntaxError, parse
from autoscaler.domain.wording import counted
from autoscaler.errors import AutoscalerError, TransientError

_COMPUTERS = "computer[displayName,numExecutors,assignedLabels[name],monitorData[path]]"
_JOBS = "labelExpression,jobs[labelExpression,jobs[labelExpression,jobs[labelExpression]]]"
_ARCHITECTURE = "hudson.node_monitors.ArchitectureMonitor"
_DISK = "hudson.node_monitors.DiskSpaceMonitor"
_BUILT_IN = "hudson.model.Hudson$MasterComputer"
_OURS, _FLEET = "autoscaler-", "autoscaler-fleet-"
_NO_EXPORT = "clouds of the EC2 and EC2 Fleet plugins: no part of Jenkins' REST API shows them"
_NEEDS = "needs the plugin Configuration as Code, and Overall/SystemRead for the account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One agent of the controller. ``system``: as its architecture monitor says, such as Linux (amd64); empty: it does not say."""

    name: str
    labels: tuple[str, ...]
    executors: int
    system: str = ""
    remote_dir: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read. ``unknown``: what could not be, and why."""

    version: str
    machines: tuple[Machine, ...]
    clouds: tuple[tuple[str, Mapping[str, Any]], ...]  # kind and settings, as the export has them
    asked_for: frozenset[str]  # labels that jobs ask for
    unknown: tuple[str, ...]


def read_controller(session: JenkinsSession) -> Seen:
    """Read a controller; `ConfigError` or `TransientError` where its agents cannot be read."""
    answer = session.get("computer/api/json", _COMPUTERS)
    try:
        machines = tuple(_machines(answer.json()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TransientError(f"Jenkins' list of agents is not understood ({type(error).__name__})") from error
    unknown = list(_fleets(answer.json()))
    if machines and not any(machine.system for machine in machines):
        unknown.append("operating systems and root directories of the agents: they are offline, or the account lacks Agent/Connect")
    asked_for, problem = _asked_for(session)
    unknown += [problem] if problem else []
    clouds, problem = _clouds(session)
    unknown += [problem] if problem else []
    version = answer.headers.get("X-Jenkins", "")
    return Seen(version=version, machines=machines, clouds=clouds, asked_for=asked_for, unknown=tuple(unknown))


def _machines(answer: Mapping[str, Any]) -> Iterator[Machine]:
    """Yield agents that are not ours, and not the controller itself."""
    for computer in answer["computer"]:
        labels = [label["name"] for label in computer.get("assignedLabels", []) if label["name"] != computer["displayName"]]
        if computer.get("_class") == _BUILT_IN or any(label.startswith(_OURS) for label in (computer["displayName"], *labels)):
            continue
        told = computer.get("monitorData") or {}
        yield Machine(
            name=computer["displayName"],
            labels=tuple(sorted(labels)),
            executors=max(1, int(computer.get("numExecutors", 1))),
            system=told.get(_ARCHITECTURE) or "",
            remote_dir=(told.get(_DISK) or {}).get("path"),
        )


def _fleets(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each fleet of the autoscaler that has agents here already."""
    agents = [computer for computer in answer["computer"] if not computer["displayName"].startswith(f"{_OURS}beacon-")]
    labels = [label["name"] for computer in agents for label in computer.get("assignedLabels", [])]
    for label, times in sorted(Counter(label for label in labels if label.startswith(_FLEET)).items()):
        yield f"{counted(times, 'agent')} of the autoscaler's fleet {label.removeprefix(_FLEET)}: that fleet's own file has the pools"


def _asked_for(session: JenkinsSession) -> tuple[frozenset[str], str]:
    """Return the labels in the expressions of freestyle jobs, and what is not known about them."""
    try:
        jobs = session.get("api/json", f"jobs[{_JOBS}]").json().get("jobs", [])
        return frozenset(_atoms(jobs)), "labels that pipelines ask for: they stand in their scripts only"
    except (AutoscalerError, AttributeError, TypeError) as error:
        return frozenset(), f"labels that jobs ask for: {error}"


def _atoms(jobs: list[dict[str, Any]]) -> Iterator[str]:
    for job in jobs:
        yield from _atoms(job.get("jobs") or [])
        try:
            yield from parse(job["labelExpression"]).atoms if job.get("labelExpression") else ()
        except LabelSyntaxError:
            continue


def _clouds(session: JenkinsSession) -> tuple[tuple[tuple[str, Mapping[str, Any]], ...], str]:
    """Return the clouds in the export of the plugin Configuration as Code, or why there is none."""
    try:
        exported = yaml.safe_load(session.post("configuration-as-code/export", with_text=True).body)
        clouds = (exported.get("jenkins") or {}).get("clouds") or []
        return tuple((str(kind), settings) for cloud in clouds for kind, settings in cloud.items() if isinstance(settings, dict)), ""
    except (AutoscalerError, yaml.YAMLError, AttributeError, TypeError, RecursionError) as error:
        said = str(error) if isinstance(error, AutoscalerError) else "it is not understood"
        return (), f"{_NO_EXPORT}, and their export {_NEEDS} ({said})"
