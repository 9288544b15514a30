"""``make mutate`` takes hours, and nobody's CI runs it: what it works on is checked here."""

import re

import pytest

from support.mutation import LAID_OUT, LEFT_OUT, ROOT

_TRIED = [path for room in ("unit", "properties", "scenarios") for path in sorted((ROOT / "tests" / room).glob("test_*.py"))]
_IMPORTED = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)


def _name(path):
    return path.relative_to(ROOT / "tests").as_posix()


def test_what_is_left_out_is_there():
    assert set(LEFT_OUT) <= {_name(path) for path in _TRIED}


@pytest.mark.parametrize("path", [path for path in _TRIED if _name(path) not in LEFT_OUT], ids=_name)
def test_a_test_that_mutants_are_tried_on_needs_only_what_is_laid_out(path):
    of_the_project = {directory.name for directory in ROOT.iterdir() if directory.is_dir()}
    assert not (set(_IMPORTED.findall(path.read_text(encoding="utf-8"))) & of_the_project) - set(LAID_OUT)
