"""Planting bugs one at a time, each in a forked process of its own that runs the tests which must notice.

All modules are imported once, before anything forks. If a bug changes functions alone, a child exchanges their code in place, and all
modules that have imported them have the bug. If it changes a constant or a class, the child imports all modules of ours anew.
"""

import gc
import importlib
import inspect
import os
import resource
import signal
import sys
import tempfile
import traceback
from functools import cache
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from support.definitions import LAYER, Definition, NotPlantableError, definition_of

# What the tests that bugs name import, and through it all that is slow to import.
_IMPORTED = ("autoscaler.bootstrap", *(f"support.{name}" for name in ("rig", "deployed", "fleets", "leaks", "machine", "busy")))
_OURS = ("autoscaler", "autoscaler_workbench", "support", "planted", "conftest")
# The same each day, or a bug would be found one day and not the next. Draws of one seed are much alike: what one misses, another finds.
_SEEDS = (1, 2, 3)
# Half of what pytest spends in a child goes into what no child needs: assertions rewritten, garbage collected at the end.
_OPTIONS = (
    *("-x", "-q", "--tb=short", "--assert=plain"),
    *("-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception"),
    *("-p", "_hypothesis_pytestplugin"),
)
_BROKEN = 99
# A bug may make a pass go on for ever, and then no test fails: three times as long as all draws of a property take.
_MOST_CPU_SECONDS = 300


def code_of(text: str, file: Path) -> CodeType:
    return compile(text, str(file), "exec", dont_inherit=True)


def changed_functions(old: CodeType, new: CodeType) -> list[CodeType] | None:
    """The new code of each function that differs; None where anything else does."""
    if (old.co_code, old.co_names, len(old.co_consts)) != (new.co_code, new.co_names, len(new.co_consts)):
        return None
    changed: list[CodeType] = []
    for before, after in zip(old.co_consts, new.co_consts, strict=True):
        if not (isinstance(before, CodeType) and isinstance(after, CodeType)):
            if before != after:
                return None
        elif after.co_flags & inspect.CO_OPTIMIZED:
            changed.append(after)
        elif (inside := changed_functions(before, after)) is not None:  # the body of a class
            changed += inside
        else:
            return None
    return changed


def function_named(module: ModuleType, name: str) -> FunctionType | None:
    """The function behind a name of a module, whatever it is wrapped in."""
    found: Any = module
    for part in name.split("."):
        found = vars(found).get(part)
        if found is None:
            return None
    for wrapping in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, wrapping, found)
    return found if isinstance(found, FunctionType) else None


def exchange(module: ModuleType, old: CodeType, new: CodeType) -> bool:
    """Exchange the code of the functions that differ; false where that is not all that differs."""
    pairs = [(function_named(module, code.co_qualname), code) for code in changed_functions(old, new) or ()]
    if not pairs or any(function is None or function.__code__.co_freevars != code.co_freevars for function, code in pairs):
        return False
    for function, code in pairs:
        function.__code__ = code
    return True


class Planted(SourceFileLoader):
    """Loads one module with the bug in it; finds no other."""

    def __init__(self, name: str, file: Path, code: CodeType) -> None:
        super().__init__(name, str(file))
        self._code = code

    def get_code(self, _fullname: str) -> CodeType:
        return self._code

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        spec = PathFinder.find_spec(name, path) if name == self.name else None
        if spec is not None:
            spec.loader = self
        return spec


def plant(definition: Definition, was: str, becomes: str) -> None:
    path = definition.file
    name = ".".join(path.relative_to(LAYER).with_suffix("").parts)
    old, new = code_of(path.read_text(encoding="utf-8"), path), code_of(definition.planted(was, becomes), path)
    if not exchange(importlib.import_module(name), old, new):
        sys.meta_path.insert(0, Planted(name, path, new))
        for ours in [ours for ours in sys.modules if ours.split(".")[0] in _OURS]:
            del sys.modules[ours]


def try_one(definition: Definition, was: str, becomes: str, tests: list[str], seed: int) -> tuple[int, str]:
    """Fork; in the child plant the bug and run the tests until one fails, or for so long. Return how they ended."""
    with tempfile.NamedTemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            try:
                for descriptor in (1, 2):
                    os.dup2(output.fileno(), descriptor)
                resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_SECONDS, _MOST_CPU_SECONDS + 5))
                plant(definition, was, becomes)
                os._exit(int(pytest.main([f"--hypothesis-seed={seed}", *_OPTIONS, *tests])))
            except BaseException:  # noqa: BLE001 - the child's boundary: whatever it was, the parent is told
                Path(output.name).write_text(traceback.format_exc(), encoding="utf-8")
                os._exit(_BROKEN)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGXCPU:
            return code, f"{_MOST_CPU_SECONDS} s of a processor were not enough: does it go on for ever?"
        return code, Path(output.name).read_text(encoding="utf-8")


def answer(function: str, was: str, becomes: str, tests: list[str]) -> tuple[int, str]:
    """Plant a bug and run the tests, as a server of `support.forks`; try one seed after another until they do not pass.

    Return pytest's exit code, and the end of what it printed.
    """
    _ready()
    try:
        definition = definition_of(function, was)
    except NotPlantableError as error:
        return _BROKEN, str(error)
    ended = 0, ""
    for seed in _SEEDS:
        ended = try_one(definition, was, becomes, tests, seed)
        if ended[0] != 0:
            break
    return ended[0], ended[1][-5000:]


@cache
def _ready() -> None:
    """Import what all children share; no child collects it as garbage."""
    for name in _IMPORTED:
        importlib.import_module(name)
    os.environ |= {"HYPOTHESIS": "planted", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    gc.freeze()
