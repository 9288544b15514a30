"""What every test of faults may use."""

import pytest

from support.forks import serving


@pytest.fixture(scope="module")
def ask():
    """Ask a process that may fork, as pytest's may not: a module's name and arguments for its ``answer``."""
    with serving() as asking:
        yield asking
