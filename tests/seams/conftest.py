"""Chooses which of the tests that drive whole features a run tries."""

from support.sampling import are_named, leave_out, tried


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "feature(*files): drives a feature through the handlers; tried where these files changed, or by turns"
    )


def pytest_collection_modifyitems(config, items):
    if are_named(config.args):  # as a planted bug does
        return
    leave_out(config, items, {item for item in items if not _is_tried(item)})


def _is_tried(item):
    mark = item.get_closest_marker("feature")
    return mark is None or tried(item.name, *(f"layers/core/autoscaler/{file}" for file in mark.args))
