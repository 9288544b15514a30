"""Every two who write one record: neither overwrites what the other one has noted."""

import pytest

from faults.writers import NAMES, SCENES


@pytest.mark.parametrize("scene", SCENES)
def test_two_who_write_one_record_lose_nothing_of_each_other(scene, ask, record_property):
    told = ask("faults.writers", scene)
    record_property("counted", ("meetings of two writers", told["tried"]))
    assert told["idle"] == []
    assert told["broken"] == {}


def test_each_writer_meets_others():
    assert {name for _, names in SCENES.values() for name in names} == {*NAMES}
