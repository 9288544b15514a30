"""Which branches of the decision a case takes, and how many there are in what any case enters."""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import coverage
from coverage.python import PythonFileReporter

from corpus.case import LAYER

Arc = tuple[
    str, int, int
]  # file below the layer, from a line, to a line; negative: out of the function


def arcs_of(act: Callable[[], object]) -> frozenset[Arc]:
    """Run it, and return each jump from line to line in the domain; within a statement of several
    lines that from its first one, too."""
    measured = coverage.Coverage(
        data_file=None, branch=True, source=[str(LAYER / "domain")], config_file=False
    )
    measured.start()
    try:
        act()
    finally:
        measured.stop()
    data = measured.get_data()
    return frozenset(
        (name, *arc)
        for file in data.measured_files()
        if (jumps := data.arcs(file))
        for name in [str(Path(file).relative_to(LAYER))]
        for arc in (*jumps, *_reporter(name).translate_arcs(jumps))
    )


def lines_of_each(acts: Mapping[str, Callable[[], object]]) -> Iterator[tuple[str, int, str]]:
    """Run one after another. Yield file, line and name for each line of the domain that an act
    enters."""
    measured = coverage.Coverage(data_file=None, source=[str(LAYER / "domain")], config_file=False)
    measured.start()
    try:
        for name, act in acts.items():
            measured.switch_context(name)
            act()
    finally:
        measured.stop()
    data = measured.get_data()
    for file in data.measured_files():
        for line, names in data.contexts_by_lineno(file).items():
            yield from ((str(Path(file).relative_to(LAYER)), line, name) for name in names)


@dataclass(frozen=True, slots=True)
class Branches:
    """Branches of the functions that were entered. ``taken`` of ``all``."""

    taken: frozenset[Arc]
    all: frozenset[Arc]

    @property
    def missed(self) -> list[Arc]:
        return sorted(self.all - self.taken)

    def by_room(self) -> Mapping[str, tuple[int, int]]:
        """How many were taken of how many, by room."""
        rooms: dict[str, tuple[int, int]] = {}
        for arc in self.all:
            room = arc[0].split("/")[1].removesuffix(".py")
            taken, count = rooms.get(room, (0, 0))
            rooms[room] = taken + (arc in self.taken), count + 1
        return dict(sorted(rooms.items()))


def branches(arcs: Collection[Arc]) -> Branches:
    """Of the arcs that were taken, and could be taken, those that leave a line which has several
    ways on."""
    entered: dict[str, set[int]] = {}
    for file, start, _ in arcs:
        entered.setdefault(file, set()).add(abs(start))
    possible = {
        arc
        for file, lines in entered.items()
        for arc in _possible(file)
        if _function_at(file)(arc[1]) & lines
    }
    return Branches(taken=frozenset(possible & set(arcs)), all=frozenset(possible))


@cache
def _possible(file: str) -> frozenset[Arc]:
    """The branches of a file: ways on of lines that have several."""
    reporter = _reporter(file)
    several = {line for line, count in reporter.exit_counts().items() if count > 1}
    return frozenset((file, start, end) for start, end in reporter.arcs() if start in several)


@cache
def _reporter(file: str) -> PythonFileReporter:
    """What coverage's own reports ask about a file."""
    return PythonFileReporter(
        str(LAYER / file), coverage.Coverage(config_file=False, data_file=None)
    )


@cache
def _function_at(file: str) -> Callable[[int], set[int]]:
    """Find the lines of the body of the function that a line is in; a line of none has none."""
    tree = ast.parse((LAYER / file).read_text(encoding="utf-8"))
    bodies = sorted(_bodies(tree), key=len)

    def lines_at(line: int) -> set[int]:
        return next((body for body in bodies if line in body), set())

    return lines_at


def _bodies(tree: ast.AST) -> Iterator[set[int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield set(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
