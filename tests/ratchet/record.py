"""The figures that may only fall, and the file that holds them."""

import ast
import json
from collections.abc import Container, Iterator, Mapping
from functools import cache
from pathlib import Path

from packaging_root import ROOT
from ratchet import doors
from ratchet.statements import LAYER, by_folder, by_room, repeated_type_names, total
from ratchet.walk import Walk

FILE = ROOT / "tests" / "ratchet.json"


def measured(plain: Mapping[str, Walk], modules: int) -> dict[str, int]:
    """Each figure by name. ``plain``: what the fleet of one plain pool walks through; ``modules``: what it has loaded after a pass."""
    return sizes() | {
        "modules loaded by scale_up": modules,
        **{f"functions entered by {name}": walk.functions for name, walk in plain.items()},
    }


def sizes() -> dict[str, int]:
    """The figures that need nothing but the text."""
    return {
        "statements of the layer": total(by_room().values()).statements,
        "statements of the tests": total(by_folder().values()).statements,
        "names of inner rooms that tests import": doors.count(doors.imported()),
        "longest import chain": longest_chain(),
        "type names with several meanings": len(repeated_type_names()),
    }


def longest_chain() -> int:
    """Count the modules of the longest chain of imports that loading a module sets off. Imports inside functions are not among them."""
    imported = {_name_of(file): file for file in LAYER.rglob("*.py")}

    @cache
    def length(module: str) -> int:
        return 1 + max(map(length, _loads(imported[module], imported.keys())), default=0)

    return max(map(length, imported))


def _name_of(file: Path) -> str:
    return ".".join(file.relative_to(LAYER.parent).with_suffix("").parts).removesuffix(".__init__")


def _loads(file: Path, modules: Container[str]) -> Iterator[str]:
    """Modules of the layer that a file imports as it is loaded, each as near to its own file as the import says."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            taken = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from {name for name in taken if name in modules} or {node.module}


def read() -> dict[str, int]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def write(figures: Mapping[str, int]) -> None:
    FILE.write_text(json.dumps(dict(figures), indent=2) + "\n", encoding="utf-8")


def exceeded(now: Mapping[str, int], before: Mapping[str, int]) -> list[str]:
    """Say which figures have risen, a line each, and which are measured or recorded alone."""
    risen = [
        f"{name}: {now[name]:,}, recorded {figure:,}. It may only fall; a raise (make walk RECORD=1) is a commit of its own that says why"
        for name, figure in before.items()
        if now.get(name, figure) > figure
    ]
    unpaired = [f"{name}: recorded or measured alone; make walk RECORD=1 records what is measured" for name in sorted({*now} ^ {*before})]
    return risen + unpaired
