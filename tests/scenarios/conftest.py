"""What the time-lines about one node share, and which cases of a time-line a run tries."""

from pathlib import Path

import pytest

from support.builders import a_mark
from support.sampling import ONE_IN_MANY, ONE_IN_TIME_LINES, are_named, leave_out, some, some_of_each
from support.spent import folder_of
from support.worlds import a_world_node, stand

FOLDER = Path(__file__).parent.name
NODE, MARK = "cpu-1", a_mark()


def pytest_collection_modifyitems(config, items):
    """Leave out most time-lines, and more of the long ones and of the cases that are many; whoever names a file or a test gets all."""
    if are_named(config.args):
        return
    mine = [item for item in items if folder_of(item) == FOLDER]
    chosen = {*some_of_each([item.nodeid for item in mine])}
    long = [item.nodeid for item in mine if item.get_closest_marker("long")]
    chosen -= {*long} - {*some(long, ONE_IN_MANY)}
    chosen = {*some(sorted(chosen), ONE_IN_TIME_LINES)}
    leave_out(config, items, {item for item in mine if item.nodeid not in chosen})


@pytest.fixture
def here():
    """One node that carries our mark, connected and idle."""
    with stand("memory") as stood:
        stood.jenkins.add_node(a_world_node(NODE, "cpu"))
        stood.controller.set_offline(NODE, MARK.text)
        yield stood
