"""A fleet for a trace that brings none: one pool per label, its machine guessed from the label's words.

A label is all there is to go by. A GPU's or an accelerator's name in it means a GPU machine, with as many GPUs as a lone 1, 2, 4 or 8
in it says, else one; ``arm`` a Graviton machine, ``windows`` a Windows one; anything else is a CPU machine for four builds at a time.
A label expression makes a pool that has every label in it. Limits are wide, since a comparison is not about them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from autoscaler.config import FleetSettings, check
from autoscaler.domain.labels import LabelSyntaxError, parse
from autoscaler_workbench.simulate.shipped import DATA
from autoscaler_workbench.simulate.traces import Trace

EXAMPLE_FLEET = DATA / "mxnet_fleet.yaml"

# win, win10, win-2019, mswin, winserver: but not winter, twin or darwin.
_WINDOWS = re.compile(r"windows|(?<![a-z])(ms)?win(?![a-z])|(?<![a-z])win(server|srv|node|agent|build|vm|x\d)", re.IGNORECASE)
_GPU = re.compile(r"gpu|cuda|nvidia|rocm|ascend|hpu|(?<![a-z])(mi\d{3}|g?[abhlv][1-9]\d{1,2})(?![a-z])", re.IGNORECASE)
_COUNT = re.compile(r"(?<![a-z0-9.])x?([1248])x?(?![a-z0-9.])", re.IGNORECASE)
# The cheapest current machine with an L4-class GPU count that is offered today: https://aws.amazon.com/ec2/instance-types/g6/
_BY_GPUS = {1: "g6.4xlarge", 2: "g6.12xlarge", 4: "g6.12xlarge", 8: "g6.48xlarge"}
_CPU_EXECUTORS = 4
_MOST_AGENTS = 400
_NAME = re.compile(r"[^a-z0-9-]+")


def fleet_for(trace: Trace, defaults: Mapping[str, Any] | None = None) -> FleetSettings:
    """Guess a fleet for all labels of a trace; ``defaults`` as in a fleet file."""
    raw = {
        "fleet": "workbench",
        "limits": {"max_agents": 5000, "max_launches_per_hour": 50_000, "max_usd_per_hour": 50_000, "max_usd_per_month": 10**7},
        "controllers": {"main": {"url": "http://jenkins.invalid/", "nodes": "dynamic"}},
        "defaults": dict(defaults or {}),
        "pools": dict(_pools(sorted({row.label or "" for row in trace.rows}))),
    }
    return check(raw, f"a fleet for {trace.name}")


def _pools(labels: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    taken: set[str] = set()
    for label in labels:
        stem = (_NAME.sub("-", label.lower()).strip("-") or "any")[:32]
        name = next(name for name in (stem, *(f"{stem}-{n}" for n in range(2, len(labels) + 2))) if name not in taken)
        taken.add(name)
        yield name, _pool(name, label)


def _pool(name: str, label: str) -> dict[str, Any]:
    kind = guess_machine(label)
    return {"launch_template": name, "max_agents": _MOST_AGENTS, **kind, **({"labels": _labels(label)} if label else {"exclusive": False})}


def _labels(label: str) -> list[str]:
    try:
        return sorted(parse(label).atoms)
    except LabelSyntaxError:
        return [label]


def says_windows(text: str) -> bool:
    """Whether a label or a name speaks of Windows: as a whole word *win*, with a number or alone, or anywhere in full."""
    return bool(_WINDOWS.search(text))


def guess_machine(label: str) -> dict[str, Any]:
    """Guess a pool's machine from the words of its labels."""
    windows = says_windows(label)
    where = {"platform": "windows", "boot_seconds": 480} if windows else {"platform": "linux"}
    if _GPU.search(label):
        found = _COUNT.search(label.replace("_", " ").replace("-", " "))
        return where | {"executors": 1, "instance_types": ["g4dn.8xlarge" if windows else _BY_GPUS[int(found[1]) if found else 1]]}
    if re.search(r"arm|graviton|aarch", label, re.IGNORECASE):
        return where | {"executors": _CPU_EXECUTORS, "instance_types": ["c7g.4xlarge"]}
    return where | {"executors": _CPU_EXECUTORS, "instance_types": ["c5.4xlarge" if windows else "c6i.4xlarge"]}
