"""A fleet on the live controller, for one test."""

import pytest

from support.live_scene import Scene
from support.rig import live_rig


@pytest.fixture
def scene(live):
    with live_rig(live) as rig:
        yield Scene(live, rig.fleet)
