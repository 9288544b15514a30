"""Where the layer defines a name. A planted bug states the name alone, so that code may move to another file."""

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
    """A function, class or constant. ``begins``: the offset of its ``text`` in the file; ``place``: the file, below the package."""

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
    """Return the only definition of a name that holds a text, once. ``name``: ``function``, ``Class.method``, ``Class``, ``CONSTANT``."""
    definitions = definitions_holding(name, was, package)
    named = _places(_definitions(package).get(name, ()))
    if not named:
        raise NotPlantableError(f"{name}: the layer defines no function, class or constant of this name")
    if not definitions:
        raise NotPlantableError(f"{name} ({named}) does not hold {was!r}")
    if len(definitions) > 1:
        raise NotPlantableError(f"{name} is defined in {_places(definitions)}, and each holds {was!r}")
    if (times := definitions[0].text.count(was)) > 1:
        raise NotPlantableError(f"{name} ({named}) holds {was!r} {times} times")
    return definitions[0]


def definitions_holding(name: str, text: str, package: Path = PACKAGE) -> list[Definition]:
    return [definition for definition in _definitions(package).get(name, ()) if text in definition.text]


def _places(definitions: Iterable[Definition]) -> str:
    return ", ".join(definition.place for definition in definitions)


@cache
def _definitions(package: Path) -> Mapping[str, list[Definition]]:
    definitions: defaultdict[str, list[Definition]] = defaultdict(list)
    for file in sorted(package.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        lines = text.split("\n")
        begins = [0]
        for line in lines:
            begins.append(begins[-1] + len(line) + 1)
        for name, node in _named(ast.parse(text).body):
            first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
            start, end = begins[first - 1], begins[node.end_lineno or first]
            definitions[name].append(Definition(file, str(file.relative_to(package)), start, text[start:end]))
    return definitions


def _named(body: list[ast.stmt], of: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Each function, class and method with its name. Fields of classes and functions in functions belong to what holds them."""
    for node in body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield of + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _named(node.body, f"{of}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not of:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            yield from ((name, node) for name in names)
