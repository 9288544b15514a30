"""``LOOK_EVERY_SECONDS``: several looks inside one invocation of the schedule, the lease free in between."""

import pytest

from autoscaler import bootstrap
from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import deployed, event
from support.worlds import environment


@pytest.fixture
def here():
    with environment(LOOK_EVERY_SECONDS="15"), deployed() as stood:
        yield stood


def later(here, seconds, happen):
    here.world.timeline.after(seconds, happen)


def test_a_job_that_comes_within_the_minute_is_served_within_it(here):
    began = here.world.timeline.now
    later(here, 20, lambda: here.world.controllers["main"].submit("job", "utility", 60.0))
    here.call("scale_up", event("tick"))
    later(here, 20, lambda: [here.world.controllers["main"].submit(f"job-{n}", "utility", 60.0) for n in range(60)])
    plan = here.call("scale_up", event("tick") | {"time": "2027-01-15T08:01:00Z"})
    assert [(step["step"], step["pool"], step["reason"]) for step in plan["steps"]] == [("launch", "utility", "starved-queue")]
    assert here.world.timeline.now - began < 120


@pytest.mark.parametrize(("milliseconds", "seconds"), [(68_000, 45), (55_000, 30), (26_000, 0)])
def test_the_looks_are_bounded_by_what_is_left_of_the_invocation(here, milliseconds, seconds):
    began = here.world.timeline.now
    here.call("publish_metrics", event("tick"), milliseconds=milliseconds)
    assert here.world.timeline.now - began == seconds


def test_at_five_seconds_all_twelve_looks_of_a_minute_fit_into_the_time_that_the_template_gives():
    with environment(LOOK_EVERY_SECONDS="5"), deployed() as here:
        here.world.timeline.after(52, lambda: here.world.controllers["main"].submit("job", "utility", 60.0))
        began = here.world.timeline.now
        plan = here.call("scale_up", event("tick"), milliseconds=68_000, request_id="r")
        assert (plan["pass_id"], here.world.timeline.now - began) == ("r.12", 55)
        assert [step["step"] for step in plan["steps"]][-1] == "launch"


def test_the_lease_is_free_between_two_looks(here):
    state, seen = bootstrap.runtime().ports.lease, []

    def try_it():
        now = here.world.timeline.now
        seen.append(state.acquire("somebody else", now=now, until=now + 1))
        state.release("somebody else")

    for seconds in (7, 22, 37):
        later(here, seconds, try_it)
    here.call("scale_up", event("tick"))
    here.call("scale_down", event("tick"))
    assert seen == [True, True, True]


def test_a_person_gets_one_look(here):
    began = here.world.timeline.now
    here.call("scale_up", event("scale_up"))
    assert here.world.timeline.now == began


def test_a_look_that_fails_is_made_good_by_the_next(here):
    plan_fault(here, times=1)
    assert here.call("scale_up", event("tick"))["steps"][-1]["outcome"] == "done"


def test_the_last_looks_failure_is_the_invocations(here):
    plan_fault(here, times=99)
    with pytest.raises(TransientError):
        here.call("scale_up", event("tick"))


def test_every_pass_has_a_name_of_its_own(here):
    passes = [here.call(function, event("tick"), request_id="r")["pass_id"] for function in ("scale_up", "scale_down")]
    assert passes == ["r.3", "r.3"]
    assert here.call("scale_up", {}, request_id="r")["pass_id"] == "r"


@pytest.mark.parametrize("value", ["0", "7", "61", "often", ""])
def test_another_interval_is_refused_in_one_line(value):
    with (
        environment(LOOK_EVERY_SECONDS=value),
        pytest.raises(ConfigError, match=r"LOOK_EVERY_SECONDS .*must be 5, 10, 15, 20, 30 or 60"),
        deployed() as here,
    ):
        here.call("scale_up", {})


def plan_fault(here, times):
    """Fail DescribeInstances; the SDK asks twice."""
    here.server.ec2.faults.plan(Fault("ec2 DescribeInstances", status=400, code="RequestLimitExceeded", times=2 * times))
