"""The emulator of AWS on which `tests/contract` tries the stores of the state."""

import re
import subprocess

import pytest

from packaging_root import ROOT
from support.tools import MINISTACK


@pytest.mark.needs("ministack")
def test_the_emulator_has_the_version_that_is_pinned():
    requirements = (ROOT / "tests" / "rehearsal" / "requirements.txt").read_text(encoding="utf-8")
    [pinned] = re.findall(r"(?m)^ministack==([\d.]+)$", requirements)
    ask = "import importlib.metadata as m; print(m.version('ministack'))"
    there = subprocess.run([MINISTACK.parent / "python", "-c", ask], capture_output=True, text=True, check=True).stdout
    assert there.strip() == pinned
