"""Random worlds with random faults: whatever fails and whenever, nothing is killed, and in the end nothing is left over."""

from hypothesis import settings

from support.machine import AnythingHappens

# A world costs a second: `make test` lives a quarter as many as it has draws of other properties, and `make slow` half as many.
_WORLDS = settings().max_examples // (2 if settings().max_examples >= 1000 else 4)
AnythingHappens.TestCase.settings = settings(max_examples=_WORLDS, stateful_step_count=25)

# How often each is met in a hundred worlds, at the least: worlds in which nothing is shared say nothing of it.
LEAST = {
    "a world with share none": 8,
    "a world with share rotate": 6,
    "a world with share cooperative": 4,
    "a world with hosts": 6,
    "a world with a rotation": 0.5,
    "jobs on the other controller": 10,
    "jobs by turns": 8,
    "restarts of the other controller": 10,
    "the other controller cannot be read": 10,
    "another share": 4,
    "a deleted node": 3,
    "a host without power": 2,
    "a host out of the fleet file": 0.4,
    "a host's service restarts": 1,
    "calls about job statistics that failed": 100,
    "a world in which runs are ordered": 25,
    "a world in which lost builds run again": 30,
    "an order": 12,
    "an order that passed": 5,
    "an order that cancelled": 0.4,
    "an order that failed": 0.4,
    "a machine taken from a build": 8,
    "a lost build started": 5,
    "an ordered build that was lost and started again": 0.3,
    "a failing worker that was replaced": 0.3,
}
# With fewer, chance alone could miss one.
_WORLDS_TO_COUNT = 300


class TestAnythingHappens(AnythingHappens.TestCase):
    def runTest(self):  # noqa: N802 - as unittest names it
        AnythingHappens.happened.clear()
        super().runTest()
        happened = AnythingHappens.happened
        if happened["worlds"] >= _WORLDS_TO_COUNT:
            too_seldom = {what: happened[what] for what, least in LEAST.items() if happened[what] < least / 100 * happened["worlds"]}
            assert too_seldom == {}, f"of {happened['worlds']} worlds"
