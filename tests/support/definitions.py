"""Where the layer defines a name. A planted bug states the name alone, so that code may move."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LAYER = Path(__file__).parents[2] / "layers" / "core"
PACKAGE = LAYER / "autoscaler"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class NotPlantableError(Exception):
    """A bug's text does not stand in one place of the functions that it names."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, class or constant.

    ``place``: the file's path below the package; ``begins``: the offset of ``text`` in the file.
    """

    file: Path
    place: str
    begins: int
    text: str

    def planted(self, was: str, becomes: str) -> str:
        """Return the whole file's text, with the bug in this definition and nowhere else."""
        whole = self.file.read_text(encoding="utf-8")
        ends = self.begins + len(self.text)
        return whole[: self.begins] + self.text.replace(was, becomes) + whole[ends:]


def definition_of(name: str, was: str, package: Path = PACKAGE) -> Definition:
    """Return the only definition of a name that holds a text, once.

    ``name``: ``function``, ``Class.method``, ``Class`` or ``CONSTANT``.
    """
    named = _definitions(package).get(name, ())
    holding = definitions_holding(name, was, package)
    if not named:
        raise NotPlantableError(f"{name}: no function, class or constant of the layer")
    if not holding:
        raise NotPlantableError(f"{name} ({_places(named)}) does not hold {was!r}")
    if len(holding) > 1:
        raise NotPlantableError(f"{name}: in {_places(holding)}, and each holds {was!r}")
    (definition,) = holding
    if (times := definition.text.count(was)) > 1:
        raise NotPlantableError(f"{name} ({definition.place}) holds {was!r} {times} times")
    return definition


def definitions_holding(name: str, text: str, package: Path = PACKAGE) -> list[Definition]:
    named = _definitions(package).get(name, ())
    return [definition for definition in named if text in definition.text]


def _places(definitions: Iterable[Definition]) -> str:
    return ", ".join(definition.place for definition in definitions)


@cache
def _definitions(package: Path) -> Mapping[str, list[Definition]]:
    definitions: defaultdict[str, list[Definition]] = defaultdict(list)
    for file in sorted(package.rglob("*.py")):
        place = str(file.relative_to(package))
        text = file.read_text(encoding="utf-8")
        begins = [0]
        for line in text.split("\n"):
            begins.append(begins[-1] + len(line) + 1)
        for name, node in _named(ast.parse(text).body):
            decorators = [decorator.lineno for decorator in getattr(node, "decorator_list", ())]
            start = begins[min([node.lineno, *decorators]) - 1]
            end = begins[node.end_lineno or node.lineno]
            definitions[name].append(Definition(file, place, start, text[start:end]))
    return definitions


def _named(body: list[ast.stmt], of: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Yield functions, classes, methods and constants, each with its name.

    Fields belong to their class, and functions in functions to the outer one.
    """
    for node in body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield of + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _named(node.body, f"{of}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not of:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            yield from ((part.id, node) for part in parts if isinstance(part, ast.Name))
