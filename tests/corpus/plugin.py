"""``pytest -p corpus.plugin``: take candidates from each test."""

import os

import pytest

from corpus.candidates import FOLDER, Candidates
from corpus.harvest import Harvest

_HARVEST = Harvest()
_HARVEST.install()
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")
_CANDIDATES = Candidates(FOLDER / f"suite-{_WORKER}.jsonl", of_a_shape=60)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    _CANDIDATES.add(item.nodeid, _HARVEST.take())
