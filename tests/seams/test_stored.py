"""No number or time that is stored can stop a function or keep it for ever, whatever wrote it."""

import pytest

from support.sampling import some

# Moments at which much is stored.
MOMENTS = {
    "what was learned": 6,
    "what is foreseen": 15,
    "what is remembered": 11,
    "limits on every level": 9,
    "unsettled launches": 4,
    "lost builds": 12,
    "ordered runs": 8,
    "cards": 8,
}


@pytest.mark.parametrize("scene", some(MOMENTS, most=3))
def test_whatever_is_stored_each_function_ends_and_none_crashes(scene, ask, record_property):
    found = ask("seams.shifting", scene, MOMENTS[scene])
    record_property("counted", ("stored numbers and times that were moved", found["tried"]))
    assert found["tried"] > 0
    assert found["wrong"] == {}
