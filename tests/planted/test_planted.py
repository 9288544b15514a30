"""Every known way to kill, to leak or to waste, planted one at a time: the tests must find each. It is by this that they are judged."""

import json
import os
import subprocess
import sys

import pytest

from planted.bugs import BUGS
from planted.capacity import CAPACITY
from planted.cards import CARDS
from planted.costly import COSTLY
from planted.costs import COSTS
from planted.hours import HOURS
from planted.images import IMAGES
from planted.jobs import JOBS
from planted.lending import LENDING
from planted.money import MONEY
from planted.ordered import ORDERED
from planted.promises import PROMISES
from planted.reruns import RERUNS
from planted.reserved import RESERVED
from planted.rotation import ROTATION
from planted.sides import COMING, DEVICES, SIDES
from planted.stale import STALE
from planted.stopped import STOPPED
from planted.teams import TEAMS
from planted.waiting import WAITING
from planted.watching import WATCHING
from planted.weights import WEIGHTS
from support.forks import TESTS, paths

_TESTS_FAILED = 1  # pytest's own: 0 is all passed, 2 and more that something else went wrong


@pytest.fixture(scope="module")
def planting():
    """A process that has everything imported, and forks for each bug."""
    command = [sys.executable, "-m", "support.planting"]
    with subprocess.Popen(
        command, cwd=TESTS.parent, env={**os.environ, "PYTHONPATH": paths()}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize(
    "bug",
    [
        *BUGS,
        *MONEY,
        *WAITING,
        *WEIGHTS,
        *COSTLY,
        *PROMISES,
        *STOPPED,
        *STALE,
        *IMAGES,
        *JOBS,
        *COSTS,
        *CAPACITY,
        *LENDING,
        *ROTATION,
        *TEAMS,
        *HOURS,
        *RESERVED,
        *RERUNS,
        *ORDERED,
        *SIDES,
        *DEVICES,
        *COMING,
        *CARDS,
        *WATCHING,
    ],
    ids=lambda bug: bug.name,
)
def test_the_suite_finds(bug, planting, record_property):
    planting.stdin.write(json.dumps([bug.file, bug.was, bug.becomes, bug.found_by]) + "\n")
    planting.stdin.flush()
    code, told = json.loads(planting.stdout.readline())
    assert code == _TESTS_FAILED, told
    record_property("counted", ("planted bugs found", 1))


def test_seeds_count_where_ci_is_set_too():
    """Hypothesis has settings of its own there, and a seed is then passed over without a word: the three draws would be one."""
    script = "import conftest; from hypothesis import settings; print(settings().derandomize)"
    environment = {**os.environ, "PYTHONPATH": paths(), "CI": "true", "HYPOTHESIS": "planted"}
    assert subprocess.check_output([sys.executable, "-c", script], env=environment, text=True) == "False\n"
