"""Runs components of EC2 Image Builder: the part of its documents that ours use, and an error for everything else."""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

PHASES = ("build", "validate", "test")
ACTIONS = ("ExecuteBash", "ExecutePowerShell")
_PLACE = re.compile(r"\{\{\s*(.*?)\s*\}\}")
Shell = Callable[[str], subprocess.CompletedProcess[str]]


class ComponentError(Exception):
    """A document that Image Builder would not take, or that this does not know."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a phase: a script, with the component's parameters in it."""

    name: str
    action: str
    script: str

    def with_values(self, values: Mapping[str, str]) -> str:
        """The script with its parameters put in."""

        def put_in(found: re.Match[str]) -> str:
            if found[1] not in values:
                raise ComponentError(f"{self.name}: {found[0]} is no parameter")
            return values[found[1]]

        return _PLACE.sub(put_in, self.script)


@dataclass(frozen=True, slots=True)
class Component:
    """A component's document, read."""

    name: str
    defaults: Mapping[str, str]
    phases: Mapping[str, tuple[Step, ...]]

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """The parameters that a recipe gives, the others at their defaults."""
        if unknown := given.keys() - self.defaults.keys():
            raise ComponentError(f"{self.name}: there is no parameter {', '.join(sorted(unknown))}")
        return {**self.defaults, **given}

    def run(self, phase: str, shell: Shell, **given: str) -> list[subprocess.CompletedProcess[str]]:
        """Run a phase's steps in their order; the first that fails ends it, as Image Builder ends the build."""
        values, done = self.values(given), []
        for step in self.phases.get(phase, ()):
            if step.action != "ExecuteBash":
                raise ComponentError(f"{step.name}: {step.action} cannot be run here")
            done.append(shell(step.with_values(values)))
            if done[-1].returncode:
                said = f"{done[-1].stdout[-2000:]}\n{done[-1].stderr[-2000:]}"
                raise ComponentError(f"{self.name}, {phase}: {step.name} ended with {done[-1].returncode}\n{said}")
        return done


def read_component(text: str) -> Component:
    """Read a document; whatever this does not know is an error."""
    document = yaml.safe_load(text)
    _only(document, {"name", "description", "schemaVersion", "parameters", "phases"}, {"name", "schemaVersion", "phases"}, "the document")
    if str(document["schemaVersion"]) != "1.0":
        raise ComponentError(f"schemaVersion {document['schemaVersion']} is not known")
    defaults = dict(_parameter(one) for one in document.get("parameters", []))
    phases: dict[str, tuple[Step, ...]] = {}
    for phase in document["phases"]:
        _only(phase, {"name", "steps"}, {"name", "steps"}, "a phase")
        if phase["name"] not in PHASES or phase["name"] in phases:
            raise ComponentError(f"the phase {phase['name']} is not known, or there twice")
        phases[phase["name"]] = tuple(_step(step) for step in phase["steps"])
    return Component(document["name"], defaults, phases)


def _parameter(one: Mapping[str, Any]) -> tuple[str, str]:
    [(name, facts)] = one.items()
    _only(facts, {"type", "default", "description"}, {"type", "default"}, f"the parameter {name}")
    if facts["type"] != "string" or not isinstance(facts["default"], str):
        raise ComponentError(f"the parameter {name}: only texts are known")
    return name, facts["default"]


def _step(step: Mapping[str, Any]) -> Step:
    _only(step, {"name", "action", "timeoutSeconds", "inputs"}, {"name", "action", "inputs"}, "a step")
    if step["action"] not in ACTIONS:
        raise ComponentError(f"{step['name']}: the action {step['action']} is not known")
    _only(step["inputs"], {"commands"}, {"commands"}, step["name"])
    return Step(step["name"], step["action"], "\n".join(step["inputs"]["commands"]))


def _only(there: Mapping[str, Any], known: set[str], needed: set[str], where: str) -> None:
    if there.keys() - known or needed - there.keys():
        raise ComponentError(f"{where}: unknown {sorted(there.keys() - known)}, missing {sorted(needed - there.keys())}")
