"""What many tests of the handlers begin with, and which of them a run tries."""

from pathlib import Path

import pytest

from support.deployed import deployed_in_memory, event
from support.sampling import ONE_IN_HANDLERS, are_named, leave_out, some
from support.spent import folder_of

FOLDER = Path(__file__).parent.name


def pytest_collection_modifyitems(config, items):
    """Leave out half of them, others with each commit; CI, or who names a file or a test, tries all."""
    if are_named(config.args):
        return
    mine = [item for item in items if folder_of(item) == FOLDER]
    chosen = {*some([item.nodeid for item in mine], ONE_IN_HANDLERS)}
    leave_out(config, items, {item for item in mine if item.nodeid not in chosen})


@pytest.fixture
def here(request):
    """The fleet file of the test's module, ``FLEET``, deployed in memory, after a first look of scale_up."""
    with deployed_in_memory(request.module.FLEET) as deployed:
        deployed.call("scale_up", event("tick"))
        yield deployed
