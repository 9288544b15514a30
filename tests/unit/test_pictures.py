"""The pictures of docs/ are those that the code draws now."""

from xml.etree import ElementTree as ET

import pytest

from autoscaler_workbench.maintenance.pictures.__main__ import PICTURES
from packaging_root import ROOT


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_up_to_date(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PICTURES[name](), "run `make pictures`"


def test_every_room_is_in_the_picture():
    shown = {element.text.removesuffix(".py") for element in ET.fromstring(PICTURES["architecture.svg"]()).iter() if element.text}
    packages = {path.parent.name for path in (ROOT / "layers/core/autoscaler").glob("*/**/__init__.py")}
    doors = {path.stem for path in (ROOT / "layers/core/autoscaler/domain").glob("*.py")} - {"__init__"}
    inside = {"jenkins", "steps"}  # packages inside a room: the adapter of Jenkins, and what carries steps out
    assert (packages - inside) | doors <= shown
