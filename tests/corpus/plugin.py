"""``pytest -p corpus.plugin``: take candidates from each test.

With ``CORPUS_EACH=NAME`` every decision is one, in files of that name.
"""

import os

import pytest

from corpus.candidates import FOLDER, Candidates
from corpus.harvest import Harvest

_HARVEST = Harvest()
_HARVEST.install()
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")
_MANY = 10**6
_EACH = (
    {"of_a_shape": _MANY, "of_a_test": _MANY} if "CORPUS_EACH" in os.environ else {"of_a_shape": 60}
)
_CANDIDATES = Candidates(
    FOLDER / f"{os.environ.get('CORPUS_EACH', 'suite')}-{_WORKER}.jsonl", **_EACH
)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    _CANDIDATES.add(item.nodeid, _HARVEST.take())
