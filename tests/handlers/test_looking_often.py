"""``LOOK_EVERY_SECONDS``: messages of a queue wake `scale_up` between two ticks, each slot once."""

import json

import pytest

from autoscaler import bootstrap
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.slots import sqs_event
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import NOON, deployed_in_memory, event
from support.worlds import environment


@pytest.fixture
def here():
    with deployed_in_memory(environment={"LOOK_EVERY_SECONDS": "15", "LOOKS_QUEUE": "https://sqs.example.org/looks"}) as stood:
        yield stood


def sent(here):
    """When the messages of the queue are to come, and after how long they may be received."""
    return [(at - NOON, at - sent_at) for _, at, sent_at in here.stored.slots.announced]


def woken(seconds):
    at = NOON + seconds
    return sqs_event(json.dumps({"slot": f"slot#{at:.0f}", "at": at}))


def test_a_tick_asks_to_be_woken_at_each_slot_that_is_left_of_its_minute(here):
    here.call("scale_up", event("tick"))
    assert sent(here) == [(15, 15), (30, 30), (45, 45)]


def test_a_tick_that_comes_late_asks_for_what_is_left(here):
    here.world.move_to(NOON + 31)
    here.call("scale_up", event("tick"))
    assert sent(here) == [(45, 14)]


def test_a_job_that_comes_within_the_minute_is_served_within_it(here):
    here.call("scale_up", event("tick"))
    here.world.move_to(NOON + 5)
    for number in range(60):
        here.world.controllers["main"].submit(f"job-{number}", "utility", 60.0)
    here.world.move_to(NOON + 15)
    plan = here.call("scale_up", woken(15))
    assert [(step["step"], step["pool"], step["reason"]) for step in plan["steps"]] == [("launch", "utility", "starved-queue")]


def test_a_slot_is_one_look_however_often_the_queue_wakes(here):
    here.world.move_to(NOON + 15)
    assert "steps" in here.call("scale_up", woken(15))
    assert here.call("scale_up", woken(15)) == {"skipped": "slot-taken"}


def test_who_is_woken_too_late_leaves_the_look_to_the_next(here):
    here.world.move_to(NOON + 24)
    assert here.call("scale_up", woken(15)) == {"skipped": "stale-slot"}
    assert "steps" in here.call("scale_up", woken(20))


def test_a_queue_that_is_gone_costs_the_looks_of_a_minute_and_nothing_else(here):
    here.stored.slots.faults.plan(Fault("slots announce", status=400, code="QueueDoesNotExist"))
    assert here.call("scale_up", event("tick"))["steps"]


def test_a_persons_event_asks_for_no_further_look(here):
    here.call("scale_up", event("scale_up"))
    assert sent(here) == []


def test_once_a_minute_nothing_is_sent_or_taken():
    with deployed_in_memory() as here:
        here.call("scale_up", event("tick"))
        assert bootstrap.runtime().ports.slots is None
        assert here.call("scale_up", woken(1)) == {"skipped": "no-slots"}


@pytest.mark.parametrize(
    "records", [[], [{"body": "{}"}], [{"body": "no JSON"}], [{"body": '{"slot": "x y", "at": 1}'}], [{}, {}]], ids=repr
)
def test_a_message_of_another_form_is_refused_in_one_line(here, records):
    with pytest.raises(ConfigError, match="event refused: Records") as refused:
        here.call("scale_up", {"Records": records})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", ["0", "7", "61", "often", ""])
def test_another_interval_is_refused_in_one_line(value):
    with (
        environment(LOOK_EVERY_SECONDS=value),
        pytest.raises(ConfigError, match=r"LOOK_EVERY_SECONDS .*must be 5, 10, 15, 20, 30 or 60"),
        deployed_in_memory() as here,
    ):
        here.call("scale_up", {})
