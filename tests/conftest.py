"""What every test may use."""

import fcntl
import os
import pickle
import sys
from collections import Counter
from functools import cache, partial

import pytest
from botocore import loaders
from hypothesis import HealthCheck, Phase, settings

from autoscaler.config import load_fleet
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from support.forks import serving
from support.needs import Needs, pytest_addoption  # noqa: F401 - an option must be known before a plugin is registered
from support.recorded import record_a_life
from support.rig import live_jenkins
from support.sampling import ONE_IN_HANDLERS, ONE_IN_LONG_WALKS, ONE_IN_WORLDS, are_named, leave_out, some
from support.spent import Spent, folder_of
from support.workers import Workers

# Container images often set PYTHONDONTWRITEBYTECODE. Then each worker, and each process that a test starts, compiles all modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Worlds are slow to make and machines are noisy: time is no property of ours.
_NOISE = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("test", deadline=None, suppress_health_check=_NOISE, max_examples=40)
settings.register_profile("fast", settings.get_profile("test"), max_examples=15)
settings.register_profile("slow", settings.get_profile("test"), max_examples=1000)
# Where something is sure to be found, it is not made smaller first. Where CI is set, Hypothesis draws by the test's name and heeds no seed.
settings.register_profile(
    "planted",
    settings.get_profile("test"),
    max_examples=1000,
    phases=[Phase.generate],
    database=None,
    print_blob=False,
    derandomize=False,
)
settings.load_profile(os.environ.get("HYPOTHESIS", "test"))


def pytest_configure(config):
    config.pluginmanager.register(Needs(), "needs")
    config.pluginmanager.register(Spent(), "spent")
    config.pluginmanager.register(Workers(), "workers")
    config.addinivalue_line(
        "markers", "long: takes seconds of a processor; `make test-fast` leaves it out, and of walks and time-lines a run tries a third"
    )


# What takes minutes begins first, so that no worker is left alone with it in the end.
_LONG_ONES = ("agent", "corpus", "environment", "planted", "seams", "faults", "properties", "walks")


def pytest_collection_modifyitems(config, items):
    """Leave out some of the handlers' tests, walks and hostile worlds, unless a file or a test is named; order the others."""
    if not are_named(config.args):
        handlers = {item.nodeid: item for item in items if folder_of(item) == "handlers"}
        walks = {item.nodeid: item for item in items if folder_of(item) == "walks" and item.get_closest_marker("long")}
        worlds = {item.nodeid: item for item in items if "::test_the_properties_hold_where[" in item.nodeid}
        chosen = {*some(handlers, ONE_IN_HANDLERS), *some(walks, ONE_IN_LONG_WALKS), *some(worlds, ONE_IN_WORLDS)}
        leave_out(config, items, {item for name, item in (handlers | walks | worlds).items() if name not in chosen})
    items.sort(key=lambda item: _LONG_ONES.index(folder) if (folder := folder_of(item)) in _LONG_ONES else len(_LONG_ONES))


# For each of the hundreds of sessions that tests make, botocore would read its descriptions of services anew: megabytes of JSON.
_read = cache(partial(loaders.JSONFileLoader.load_file, loaders.JSONFileLoader()))
loaders.JSONFileLoader.load_file = lambda _loader, path: _read(path)


@pytest.fixture(scope="session")
def example_fleet():
    return load_fleet(EXAMPLE_FLEET)


@pytest.fixture(scope="session")
def life(tmp_path_factory):
    """A fleet's life through the real handlers, which the first worker that needs it records for all."""
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "life.pickle"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            shared.write_bytes(pickle.dumps(record_a_life()))
        return pickle.loads(shared.read_bytes())  # noqa: S301 - we wrote it


@pytest.fixture(scope="module")
def ask():
    """Ask a process that has everything imported and may fork, as pytest's may not: a module's name, arguments for its ``answer``."""
    with serving() as asking:
        yield asking


@pytest.fixture(scope="session")
def live():
    """One live controller for a whole run; what the tests made there is removed in the end."""
    with live_jenkins() as controller:
        yield controller


def pytest_terminal_summary(terminalreporter):
    """Say how much was tried where tests count it, and of how many cases."""
    counts, cases = Counter(), Counter()
    for report in terminalreporter.stats.get("passed", []):
        for what, count, *of in (value for name, value in report.user_properties if name == "counted"):
            counts[what] += count
            cases[what] += sum(of)
    for what, count in counts.items():
        terminalreporter.write_line(f"{what}: {count} of {cases[what]}" if cases[what] else f"{what}: {count}")
