"""``pytest -p corpus.each TEST...``: take all that each test decides, in a row and one by one, in a
file of its own. ``python -m corpus.missed`` finds there what notices a bug."""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random

import pytest

from corpus.candidates import EACH
from corpus.case import Case, Recorded, written
from corpus.harvest import Harvest, series, ticks

_LONGEST, _OVERLAP = 60, 10  # ticks of a series
_MOST = 250  # decisions of one test: a property draws thousands
_HARVEST = Harvest()
_HARVEST.install()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    """The first line of a file names its test."""
    EACH.mkdir(parents=True, exist_ok=True)
    name = blake2b(item.nodeid.encode(), digest_size=8).hexdigest()
    with (EACH / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        file.write(f"{item.nodeid}\n")
        file.writelines(f"{written(Recorded(case=case))}\n" for case in _cases(item.nodeid))


def _cases(name: str) -> Iterator[Case]:
    taken = _HARVEST.take()
    minutes = ticks(taken)
    for first in range(0, len(minutes) if len(minutes) > 1 else 0, _LONGEST - _OVERLAP):
        yield series(f"{name} from minute {first}", minutes[first : first + _LONGEST])
    decisions = [one for one in taken if one.plan is not None]
    if len(decisions) > _MOST:
        decisions = Random(1).sample(decisions, _MOST)
    yield from (one.alone(f"{name} {number}") for number, one in enumerate(decisions))
