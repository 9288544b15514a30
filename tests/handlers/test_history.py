"""What the functions did, and what people ordered, is told by operate with its reasons."""

import pytest

from autoscaler.errors import ConfigError
from support.deployed import event

GPU = "mxnetlinux-gpu"


def lines(answer):
    return [(one["by"], one["what"], one["where"], one["reason"], one["outcome"]) for one in answer["events"]]


def test_the_last_steps_are_told_with_reasons_and_of_one_pool_alone(here):
    here.world.controllers["main"].submit("job", GPU, 600.0)
    here.pass_minutes(2)
    here.call("operate", {"action": "hold", "pool": "utility", "by": "ann", "reason": "a look at it"})
    told = lines(here.call("operate", {"action": "events", "hours": 1}))
    assert ("scale_up", "launch", f"main/{GPU}", "nobody-can-serve", "done") in told
    assert ("ann", "hold", "utility", "", "done") in told
    of_pool = lines(here.call("operate", event("events")))
    assert {where for _, _, where, _, _ in of_pool} == {f"main/{GPU}"}


def test_what_was_only_planned_is_no_event(here):
    here.world.controllers["main"].submit("job", GPU, 600.0)
    here.world.move_to(here.world.timeline.now + 60)
    before = lines(here.call("operate", {"action": "events"}))
    here.call("scale_up", {"dry_run": True})
    here.call("operate", {"action": "hold", "by": "ann", "dry_run": True})
    assert lines(here.call("operate", {"action": "events"})) == before


def test_a_span_that_makes_no_sense_is_refused(here):
    with pytest.raises(ConfigError, match="hours"):
        here.call("operate", {"action": "events", "hours": 0})
