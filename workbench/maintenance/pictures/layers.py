"""The picture of docs/architecture.md: the layers as the import contract has them, each module with its own first sentence."""

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from workbench.maintenance.pictures.svg import INK, box, document, text

ROOT = Path(__file__).parents[3]
_CORE = ROOT / "layers" / "core"
_WIDTH, _LEFT, _COLUMNS = 1240, 236, 3
_LINE, _PAD, _GAP = 13.5, 12, 10
_LETTERS = 60
_FILLS = ("#f1f5f9", "#e0f2fe", "#e0f2fe", "#fef3c7", "#fee2e2", "#ede9fe", "#dcfce7", "#f8fafc")


@dataclass(frozen=True, slots=True)
class _Module:
    name: str
    lines: tuple[str, ...]


def draw() -> str:
    """Draw it from the sources."""
    parts: list[str] = []
    y = float(_PAD)
    for place, packages in enumerate([["functions"], *_contract_layers()]):
        columns = _in_columns([module for package in packages for module in _modules(package)])
        height = 2 * _PAD + max((sum(_height(m) for m in column) for column in columns), default=0.0) + 4
        height = max(height, 2 * _PAD + 18 * len(packages) + 8)
        parts.append(box(_PAD, y, _WIDTH - 2 * _PAD, height, _FILLS[place % len(_FILLS)]))
        parts += [
            text(2 * _PAD, y + 28 + 18 * row, package.rpartition(".")[2], size=14, fill=INK, bold=True)
            for row, package in enumerate(packages)
        ]
        parts += _words(columns, y)
        y += height + _GAP
    parts.append(
        text(_PAD, y + 12, "A layer may import what is below it, never what is above; those that share a band do not know each other.")
    )
    return document(_WIDTH, int(y + 28), parts)


def _contract_layers() -> list[list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in layers]


def _modules(package: str) -> list[_Module]:
    if package == "functions":
        return [_module(file, file.parent.name) for file in sorted((ROOT / package).glob("*/app.py"))]
    path = (ROOT if package == "workbench" else _CORE) / Path(*package.split("."))
    if not path.is_dir():
        return [_module(path.with_suffix(".py"), path.name)]
    files = [file for file in path.glob("*.py") if not file.stem.startswith("__")]
    inner = [(file, file.parent.name) for file in path.glob("*/__init__.py")]
    if package != "workbench":  # what is shipped is shown whole
        inner = [(file, f"{file.parent.name}/{file.stem}") for file in path.glob("*/*.py") if file.stem != "__init__"]
    return [_module(file, name) for file, name in sorted([*((file, file.stem) for file in files), *inner], key=lambda pair: pair[1])]


def _module(file: Path, name: str) -> _Module:
    sentence = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").splitlines()[0]
    return _Module(name, tuple(wrap(sentence.replace("`", ""), _LETTERS)))


def _in_columns(modules: list[_Module]) -> list[list[_Module]]:
    """Fill columns one after another, of about the same height."""
    target = sum(_height(module) for module in modules) / _COLUMNS
    columns: list[list[_Module]] = [[]]
    filled = 0.0
    for module in modules:
        if columns[-1] and filled + _height(module) / 2 > target and len(columns) < _COLUMNS:
            columns.append([])
            filled = 0.0
        columns[-1].append(module)
        filled += _height(module)
    return columns


def _height(module: _Module) -> float:
    return _LINE * (1 + len(module.lines)) + 7


def _words(columns: list[list[_Module]], top: float) -> list[str]:
    parts: list[str] = []
    for place, column in enumerate(columns):
        x = _LEFT + place * (_WIDTH - _LEFT - _PAD) / _COLUMNS
        y = top + _PAD + 12
        for module in column:
            parts.append(text(x, y, module.name, size=11.5, fill=INK, bold=True))
            parts += [text(x, y + _LINE * (row + 1), line, size=10) for row, line in enumerate(module.lines)]
            y += _height(module)
    return parts
