"""Shares the tests out among the workers, and lets each collect its garbage seldom.

A file stays on one worker, which makes its fixtures once. The tests of what runs on an instance
sleep for minutes, so one worker has them all: the others keep the cores busy meanwhile.
"""

import gc
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

WAITS = "tests/agent"
# Tests make much and keep little: as Python comes, a fifteenth of their time is collecting it.
_MADE_BEFORE_A_COLLECTION = (50_000, 20, 50)


def unit_of(nodeid: str) -> str:
    """Name what stays on one worker with this test: its file, or the folder that waits."""
    return WAITS if nodeid.startswith(f"{WAITS}/") else nodeid.partition("::")[0]


class OneWaits(LoadFileScheduling):
    """Gives out files, and as one of them the folder that waits."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


class Workers:
    """A pytest plugin: nothing is collected until there are tests, and then seldom."""

    def __init__(self) -> None:
        gc.disable()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> OneWaits | None:
        return OneWaits(config, log) if config.getoption("dist") == "loadfile" else None

    def pytest_collection_finish(self) -> None:
        """Leave modules and tests to the end of the run: collections would go through them in vain."""
        gc.freeze()
        gc.set_threshold(*_MADE_BEFORE_A_COLLECTION)
        gc.enable()
