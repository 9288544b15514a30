"""What many tests of the handlers begin with."""

import pytest

from support.deployed import EXAMPLE, deployed_in_memory, event


@pytest.fixture
def here(request):
    """The fleet file of the test's module, ``FLEET``, or the example's, deployed in memory, after a first look of scale_up."""
    with deployed_in_memory(getattr(request.module, "FLEET", EXAMPLE)) as deployed:
        deployed.call("scale_up", event("tick"))
        yield deployed
