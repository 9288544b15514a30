"""The facts that functions read, a dotted name each: every field of every dataclass that a port answers or a setting holds.

The list is made from the dataclasses, so a new field is on it as soon as it is there.
"""

import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_stats import JobRow, JobTracker
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.runs import Item, Job, Run, RunEnd
from autoscaler.domain.facts.snapshot import ControllerView, Instance, Snapshot
from autoscaler.domain.facts.started_builds import Rerun, RunOrder
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler.domain.report.problems import Thresholds
from autoscaler.domain.report.registration import Identity
from autoscaler.ports import StoredState

# What the functions are given: settings, what is stored, what Jenkins and EC2 answer, what agents report.
INPUTS = (
    *(Fleet, Thresholds),
    *(StoredState, JobRow, JobTracker, RunOrder, Rerun),
    *(Snapshot, ControllerView, Instance, Identity, Health, RunEnd, Run, Job, Item),
    Telemetry,
)


@cache
def classes() -> dict[str, type]:
    """Every dataclass that an input is made of, by its name."""
    found: dict[str, type] = {}
    for given in INPUTS:
        for kind in _made_of(given, set()):
            assert found.setdefault(kind.__name__, kind) is kind, f"two dataclasses are named {kind.__name__}"
    return found


@cache
def facts() -> dict[str, type]:
    """The class of each fact, by the fact's dotted name."""
    return {f"{name}.{field.name}": kind for name, kind in classes().items() for field in fields(kind)}


def file_of(fact: str) -> str:
    """The file that defines a fact, from the project's root."""
    return str(Path("layers/core", *facts()[fact].__module__.split(".")).with_suffix(".py"))


@cache
def hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def classes_in(kind: type) -> list[type]:
    """List the dataclasses that one is made of, itself included."""
    return list(_made_of(kind, set()))


def _made_of(hint: Any, seen: set[type]) -> Iterator[type]:
    if is_dataclass(hint):
        if hint not in seen:
            seen.add(hint)
            yield hint
            for field in fields(hint):
                yield from _made_of(hints(hint)[field.name], seen)
    elif typing.get_origin(hint) is not None or isinstance(hint, UnionType):
        for part in typing.get_args(hint):
            yield from _made_of(part, seen)
