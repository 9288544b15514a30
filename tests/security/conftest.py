"""One recorded life serves every test here."""

import pytest

from support.recorded import record_a_life


@pytest.fixture(scope="session")
def life():
    return record_a_life()
