"""Count statements: nodes of the syntax tree without docstrings, so that denser lines change nothing."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from operator import add
from pathlib import Path

from packaging_root import ROOT

LAYER = ROOT / "layers" / "core" / "autoscaler"
TESTS = ROOT / "tests"
_IMPORTS = (ast.Import, ast.ImportFrom)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@dataclass(frozen=True, slots=True)
class Size:
    """``statements`` holds ``imports``, and no ``docstrings``."""

    files: int = 0
    lines: int = 0
    statements: int = 0
    imports: int = 0
    docstrings: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(*map(add, astuple(self), astuple(other)))


def size_of(file: Path) -> Size:
    text = file.read_text(encoding="utf-8")
    nodes = [*_blocks(ast.parse(text))]
    docstrings = sum(isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None for node in nodes)
    statements = sum(isinstance(node, ast.stmt) for node in nodes) - docstrings
    return Size(1, text.count("\n"), statements, sum(isinstance(node, _IMPORTS) for node in nodes), docstrings)


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all statements below it. No expression holds a statement, so that none needs to be entered."""
    yield node
    for block in _BLOCKS:
        for inside in getattr(node, block, ()):
            yield from _blocks(inside)


def by_room() -> dict[str, Size]:
    """The layer by its packages, those of the domain one by one."""
    return _by(LAYER, lambda parts: "/".join(parts[:2] if parts[0] == "domain" and len(parts) > 2 else parts[:1]))


def by_folder() -> dict[str, Size]:
    """The tests by folder."""
    return _by(TESTS, lambda parts: parts[0])


def total(sizes: Iterable[Size]) -> Size:
    return sum(sizes, Size())


def _by(root: Path, place) -> dict[str, Size]:
    sizes: defaultdict[str, Size] = defaultdict(Size)
    for file in sorted(root.rglob("*.py")):
        sizes[place(file.relative_to(root).parts)] += size_of(file)
    return dict(sizes)


def repeated_type_names() -> dict[str, int]:
    """Public names of types that several modules of the layer define, each with a meaning of its own."""
    modules: defaultdict[str, int] = defaultdict(int)
    for file in LAYER.rglob("*.py"):
        for name in {*_type_names(ast.parse(file.read_text(encoding="utf-8")))}:
            modules[name] += 1
    return {name: count for name, count in sorted(modules.items()) if count > 1}


def _type_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name) and _is_type_name(target.id))


def _is_type_name(name: str) -> bool:
    return name[0].isupper() and not name.isupper()
