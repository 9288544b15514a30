"""Which names of the layer a test may import: those of its doors.

All other names belong to inner rooms, and a redesign there needs no change of a test. What tests
import of inner rooms today is listed for each file in ``tests/inner_names.json``, and the list may
only get shorter. It has names and no modules, so that code may move. Import-linter cannot hold it:
it knows modules alone, and tests are no package.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autoscaler import config
from packaging_root import ROOT
from ratchet.statements import LAYER, TESTS

LIST = TESTS / "inner_names.json"
_DOTTED = re.compile(r"autoscaler(\.\w+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Public names of a room that tests may import, or a few of them.

    ``names``: these alone; ``without``: not these; ``is_data``: types and constants, no functions.
    """

    room: str
    names: Collection[str] | None = None
    without: Collection[str] = ()
    is_data: bool = False

    def opens(self, module: str, name: str) -> bool:
        """Tell whether a name of a module stands in this door. A private one never does."""
        is_public = not name.startswith("_") and name not in self.without
        is_named = self.names is None or name in self.names
        is_right_kind = not self.is_data or name[0].isupper()
        is_here = f"{module}.".startswith(f"{self.room}.")
        return is_here and is_public and is_named and is_right_kind


# Parts of the memory of passes that stand outside its own module.
_REMEMBERED = frozenset(
    """
    AskedRun BlockCounts Blocks CountedEnds GoneBlock LastDefinition LeftBuild LeftPools Looks
    LostBuild MonthParts PoolResults PricedType RanAgain SeenItems Streak
    """.split()
)
_ADAPTERS = frozenset(
    """
    AwsAccount CloudWatchMetrics DynamoAsks DynamoCosts DynamoHistory DynamoJobs DynamoReruns
    DynamoRunOrders DynamoState Ec2Compute EssentialMetrics JenkinsBuilds JenkinsController
    JenkinsSession SnsTopic SqsSlots SsmImages
    """.split()
)
_PORT_VALUES = frozenset(
    """
    Datum Event Executions Identity Message PassNotes Quota Subscription Told
    """.split()
)

DOORS = (
    # The fleet file, read and checked: an operator writes it.
    Door(room="autoscaler.config", names=config.__all__),
    # What a look sees, what people order, what a plan says. Functions there are rules.
    Door(room="autoscaler.domain.facts", is_data=True, without=_REMEMBERED),
    # Facts in, plan out: the whole decision.
    Door(room="autoscaler.domain.decide"),
    # The handlers: what AWS and people send to the functions.
    Door(room="autoscaler.entry"),
    # It wires the handlers; tests give it their time and their world.
    Door(room="autoscaler.bootstrap"),
    # What the adapters and the world both promise.
    Door(room="autoscaler.ports"),
    # What ports take and give beside facts.
    Door(room="autoscaler.domain.report", names=_PORT_VALUES),
    # Each implements a port, which the contract suites judge. They reach Jenkins by a session.
    Door(room="autoscaler.adapters", names=_ADAPTERS),
    # What ports raise, and what people are refused with.
    Door(room="autoscaler.errors"),
    # The log, which an operator reads.
    Door(room="autoscaler.telemetry"),
)
# Rooms behind a door that stay closed: the form of the memory is nobody's promise.
_CLOSED = frozenset({"autoscaler.domain.facts.memory"})
# The world, the simulation and the command line are the workbench's, and open.


def is_door(module: str, name: str) -> bool:
    return module not in _CLOSED and any(door.opens(module, name) for door in DOORS)


def imported() -> dict[str, list[str]]:
    """Return the names of inner rooms that each file of the tests imports."""
    names: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("*.py")):
        if of_file := inner_names(file.read_text(encoding="utf-8")):
            names[file.relative_to(ROOT).as_posix()] = of_file
    return names


def inner_names(text: str) -> list[str]:
    """Return the names of inner rooms that a file imports, patches or takes from a module."""
    nodes = [*ast.walk(ast.parse(text))] if "autoscaler" in text else []
    modules: dict[str, str] = {}
    taken: set[tuple[str, str]] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(room), names=names) if _is_module(room):
                for alias in names:
                    if _is_module(f"{room}.{alias.name}"):
                        modules[alias.asname or alias.name] = f"{room}.{alias.name}"
                    else:
                        taken.add((room, alias.name))
            case ast.Import(names=names):
                taken.update(_split(alias.name) for alias in names if _DOTTED.match(alias.name))
            case ast.Constant(value=str(dotted)) if _DOTTED.fullmatch(dotted):
                taken.update(_patched(dotted))
    taken.update(_of_modules(nodes, modules))
    inner = {name for module, name in taken if not is_door(module, name)}
    # Python itself gives each module names such as `__file__`.
    return sorted(name for name in inner if not name.startswith("__"))


def _of_modules(nodes: list[ast.AST], modules: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what a file takes from each module that it imports whole.

    If the file hands the module on, nobody sees what is taken: the module counts as one name.
    """
    read = set()
    for node in nodes:
        match node:
            case (
                ast.Attribute(value=ast.Name(id=alias) as module, attr=name)
                | ast.Call(args=[ast.Name(id=alias) as module, ast.Constant(value=str(name)), *_])
            ) if alias in modules:
                read.add(module)
                yield modules[alias], name
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in modules and node not in read:
            module = modules[node.id]
            if not any(door.room == module for door in DOORS):
                yield _split(module)


def _patched(dotted: str) -> Iterator[tuple[str, str]]:
    """Yield the name that a dotted text means, such as that of a patch; nothing for a module."""
    module, name = dotted, ""
    while module and not _is_module(module):
        module, name = _split(module)
    if module and name:
        yield module, name


def _split(dotted: str) -> tuple[str, str]:
    module, _, name = dotted.rpartition(".")
    return module, name


@cache
def _is_module(dotted: str) -> bool:
    """Tell whether the layer has a module or package of this name."""
    path = LAYER.parent / Path(*dotted.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def listed() -> dict[str, list[str]]:
    return json.loads(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}


def write_list(names: Mapping[str, Collection[str]]) -> None:
    LIST.write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")


def count(names: Mapping[str, Collection[str]]) -> int:
    return sum(map(len, names.values()))


def missing(
    names: Mapping[str, Collection[str]],
    others: Mapping[str, Collection[str]],
) -> list[str]:
    """Return the names that the others lack, each with its file."""
    lines = []
    for file, of_file in names.items():
        lines += [f"{file}: {name}" for name in of_file if name not in others.get(file, ())]
    return lines
