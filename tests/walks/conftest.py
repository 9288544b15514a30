"""Which of the walks that take long a run tries."""

from pathlib import Path

from support.sampling import ONE_IN_WALKS, are_named, leave_out, some
from support.spent import folder_of

FOLDER = Path(__file__).parent.name


def pytest_collection_modifyitems(config, items):
    """Leave out two in three, others with each commit; CI, or who names a file or a test, tries all."""
    if are_named(config.args):
        return
    long = [item for item in items if folder_of(item) == FOLDER and item.get_closest_marker("long")]
    chosen = {*some([item.nodeid for item in long], ONE_IN_WALKS)}
    leave_out(config, items, {item for item in long if item.nodeid not in chosen})
