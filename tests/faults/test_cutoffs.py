"""Every function, cut off at every outside call in every way: the next passes repair it, and the scene's own promises hold."""

import pytest

from faults.scenes import SCENES
from support.sampling import PARTS


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("scene", SCENES)
def test_wherever_a_function_is_cut_off_the_next_passes_repair_it(scene, part, ask, record_property):
    told = ask("faults.scenes", scene, part, PARTS)
    record_property("counted", ("cut-offs", told["tried"], told["cases"]))
    assert told["broken"] == []
    assert set(told["by invocation"]) == set(SCENES[scene].cut_off)
    assert min(told["by invocation"].values()) > 15, "too little can be cut off"
