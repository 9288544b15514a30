"""What every test may use."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from autoscaler.config import load_fleet
from support.rig import live_jenkins

# Worlds are slow to make and machines are noisy: time is no property of ours.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)
settings.load_profile("here")


@pytest.fixture(scope="session")
def example_fleet():
    return load_fleet(Path(__file__).parents[1] / "layers" / "fleet" / "fleet.yaml")


@pytest.fixture(scope="session")
def live():
    """One live controller for a whole run; what the tests made there is removed in the end."""
    with live_jenkins() as controller:
        yield controller


def pytest_terminal_summary(terminalreporter):
    """Say how much was tried where tests count it."""
    counts = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for what, count in (value for name, value in report.user_properties if name == "counted"):
            counts[what] += count
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"NOT TRIED: {report.longrepr[2].removeprefix('Skipped: ')}")
    for what, count in counts.items():
        terminalreporter.write_line(f"{what}: {count}")
