"""What the time-lines about one node share."""

import pytest

from support.builders import a_mark
from support.worlds import a_world_node, stand

NODE, MARK = "cpu-1", a_mark()


@pytest.fixture
def here():
    """One node that carries our mark, connected and idle."""
    with stand("memory") as stood:
        stood.jenkins.add_node(a_world_node(NODE, "cpu"))
        stood.controller.set_offline(NODE, MARK.text)
        yield stood
