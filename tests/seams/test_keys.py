"""Every key of the fleet file makes a difference, through the real handlers; `make test` tries some, `make slow` each."""

from dataclasses import replace
from functools import cache

import pytest

from autoscaler.config import FleetSettings
from seams.key_doors import first_difference, lived
from seams.key_scenes import SCENES
from seams.keys import CHANGES, SECTIONS, file_of, keys
from support.sampling import ONE_IN, tried

_SCENES_FILES = ("tests/seams/keys.py", "tests/seams/key_scenes.py")
_TRIED = [key for key in CHANGES if tried(f"key {key}", file_of(key), *_SCENES_FILES)]


@cache
def undisturbed(scene):
    return list(lived(scene))


def test_each_key_has_a_change_and_each_change_a_key_and_a_scene():
    assert {*CHANGES, *SECTIONS} == {*keys()}
    assert {change.scene for change in CHANGES.values()} == {*SCENES}


@pytest.mark.parametrize("scene", [scene for scene in SCENES if tried(f"scene {scene}", *_SCENES_FILES)])
def test_a_scene_is_the_same_each_time(scene):
    """Or a difference would say nothing of a key."""
    assert list(lived(scene)) == undisturbed(scene)


@pytest.mark.parametrize("key", _TRIED)
def test_a_key_of_the_fleet_file_makes_a_difference(key, record_property):
    change = CHANGES[key]
    assert first_difference(change, undisturbed(change.scene)) is not None, f"{key}: {change.value} changes nothing that is {change.seen}"
    record_property("counted", (f"keys of the fleet file tried, of {len(CHANGES)}, one in {ONE_IN} at least", 1))


def test_a_key_that_never_reaches_the_decision_is_noticed(monkeypatch):
    translated = FleetSettings.domain
    monkeypatch.setattr(FleetSettings, "domain", lambda settings: without_priorities(translated(settings)))
    change = CHANGES["pools.*.priority"]
    assert first_difference(change, undisturbed(change.scene)) is None


def without_priorities(fleet):
    return replace(fleet, pools={name: replace(pool, priority=0) for name, pool in fleet.pools.items()})
