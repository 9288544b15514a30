"""Random worlds with random faults: whatever fails and whenever, nothing is killed, and in the end nothing is left over."""

from hypothesis import settings

from support.machine import AnythingHappens

AnythingHappens.TestCase.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=25)
TestAnythingHappens = AnythingHappens.TestCase
