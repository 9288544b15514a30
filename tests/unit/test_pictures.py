"""The pictures of docs/ are those that the code draws now."""

from xml.etree import ElementTree as ET

import pytest

from packaging_root import ROOT
from workbench.maintenance.pictures.__main__ import PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_up_to_date(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PICTURES[name](), "run `make pictures`"


def test_every_module_of_the_layer_is_in_the_picture():
    shown = {element.text.rpartition("/")[2] for element in ET.fromstring(PICTURES["architecture.svg"]()).iter() if element.text}
    modules = {path.stem for path in (ROOT / "layers/core/autoscaler").rglob("*.py") if path.stem != "__init__"}
    assert modules <= shown
