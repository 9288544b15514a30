"""A pass that is cut off in the middle leaves what it did in the history and in the log, and what EC2 refused in the memory."""

from collections import Counter
from functools import partial

import pytest

from autoscaler.adapters.ec2 import Ec2Compute
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler_workbench.fakes.world.faults import Fault
from support import ordering
from support.builders import a_pool, an_offering
from support.cutting import Died
from support.deployed import deployed_in_memory, event
from support.remembered import tables
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

HOUR = 3600.0
FOR_EVER = 10**9


def a_day(*pools):
    return Day(in_memory(*(pools or (a_pool("cpu", executors=1, idle_seconds=300.0, max_agents=5),)))).minutes(2)


def a_day_of_stops():
    warm = WarmPool(min_agents=0, max_agents=5, max_age_seconds=168 * HOUR)
    firm = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
    return starts_proven(a_day(a_pool("cpu", executors=1, offerings=(firm,), idle_seconds=300.0, warm_pool=warm, max_agents=5)))


def cut_off(faults, act, call, number=1):
    """Let an invocation die just before its n-th call of this kind arrives; tell whether it got so far."""
    made = Counter()

    def meanwhile(name):
        made[name] += 1
        if made[call] >= number:  # nothing of a dead process runs on
            raise Died(name)

    faults.meanwhile = meanwhile
    try:
        act()
    except Died:
        return True
    finally:
        faults.meanwhile = lambda _call: None
    return False


def live_until_cut_off(day, function, call, number=1, minutes=60):
    """Live on until a pass makes that call, and dies before it."""
    for _ in range(minutes):
        day.world.move_to(day.world.timeline.now + 60.0)
        day.fleet.publish_metrics()
        for name in ("scale_up", "scale_down"):
            act = getattr(day.fleet, name)
            if name != function:
                act()
            elif cut_off(day.fleet.faults, act, call, number):
                return
    pytest.fail(f"{function} never got to {call}")


def noted(day, since=0.0):
    return Counter((event.by, event.what, event.outcome) for event in day.fleet.history.events if event.at >= since)


def logged(day):
    return Counter((facts["step"], facts["outcome"]) for name, facts in day.fleet.logged if name == "step")


def test_cordons_of_the_first_look_are_noted_if_the_second_look_is_cut_off():
    day = a_day()
    day.queue(3, seconds=1800.0)
    live_until_cut_off(day, "scale_down", "ec2 TerminateInstances")
    assert noted(day)["scale_down", "cordon", "done"] == logged(day)["cordon", "done"] == 2
    assert noted(day)["scale_down", "terminate", "done"] == 0


def test_each_termination_before_the_cut_off_is_noted():
    day = a_day()
    day.queue(3, seconds=1800.0)
    live_until_cut_off(day, "scale_down", "ec2 TerminateInstances", number=2)
    assert noted(day)["scale_down", "terminate", "done"] == logged(day)["terminate", "done"] == 3 - day.agents() > 0
    day.minutes(10)
    assert (noted(day)["scale_down", "terminate", "done"], day.agents()) == (3, 0)


def test_each_stop_before_the_cut_off_is_noted():
    day = a_day_of_stops()
    day.queue(3, seconds=1800.0)
    live_until_cut_off(day, "scale_down", "ec2 StopInstances", number=2)
    running = sum(instance.is_on() for instance in day.world.alive())
    assert noted(day)["scale_down", "stop", "done"] == logged(day)["stop", "done"] == 3 - running > 0


def test_each_launch_before_the_cut_off_is_noted():
    day = a_day(a_pool("cpu"), a_pool("gpu"))
    day.queue(1, "cpu")
    day.queue(1, "gpu")
    live_until_cut_off(day, "scale_up", "ec2 CreateFleet", number=2)
    assert noted(day)["scale_up", "launch", "done"] == logged(day)["launch", "done"] == 1


@pytest.mark.parametrize("code", ["InsufficientInstanceCapacity", "UnauthorizedOperation", "SomethingNew"])
def test_what_ec2_refused_to_launch_is_remembered_though_the_pass_is_cut_off_after_it(code):
    day = a_day(a_pool("cpu", max_agents=1), a_pool("gpu", max_agents=1))
    day.queue(1, "cpu")
    day.queue(1, "gpu")
    day.fleet.faults.plan(Fault("ec2 CreateFleet", status=400, code=code))
    live_until_cut_off(day, "scale_up", "ec2 CreateFleet", number=2)
    assert code in str(day.fleet.state.memory.trials)
    assert noted(day)["scale_up", "launch", "failed"] == logged(day)["launch", "failed"] == 1


def test_what_ec2_refused_to_stop_is_counted_though_each_pass_is_cut_off_after_it():
    day = a_day_of_stops()
    day.fleet.faults.plan(Fault("ec2 StopInstances", status=400, code="IncorrectInstanceState", times=FOR_EVER))
    day.queue(3, seconds=1800.0)
    for _ in range(4):  # the second agent's stop never arrives
        live_until_cut_off(day, "scale_down", "ec2 StopInstances", number=2)
        if tables(day.fleet.state.memory).unstoppable:
            return
    pytest.fail("it was asked again and again")


def test_one_refusal_costs_no_write_more_than_before():
    day = a_day()
    day.queue(1)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", status=400, code="InsufficientInstanceCapacity"))
    saves = []
    day.fleet.faults.meanwhile = lambda call: saves.append(call) if call == "state save_memory" else None
    day.world.move_to(day.world.timeline.now + 60.0)
    day.fleet.scale_up()
    assert (len(saves), "InsufficientInstanceCapacity" in str(day.fleet.state.memory.trials)) == (1, True)


def test_a_history_that_does_not_answer_costs_a_pass_two_tries_and_nothing_else():
    day = a_day()
    day.queue(5, seconds=300.0)
    calls = Counter()
    day.fleet.faults.meanwhile = lambda call: calls.update([call])
    day.fleet.faults.plan(Fault("history note", status=500, times=FOR_EVER))
    most = 0
    for _ in range(30):
        before = calls["history note"]
        day.minutes(1)
        most = max(most, calls["history note"] - before)
    assert (day.agents(), most) == (0, 4)  # a minute has up to two passes that act, here the two looks of scale_down


def test_what_could_not_be_noted_at_once_is_noted_when_the_pass_ends():
    day = a_day()
    day.queue(3, seconds=300.0)
    day.fleet.faults.plan(Fault("history note", status=500))
    day.minutes(30)
    assert noted(day) == Counter({("scale_up", what, "done"): n for (what, _), n in logged(day).items() if what in _UP}) + Counter(
        {("scale_down", what, "done"): n for (what, _), n in logged(day).items() if what not in _UP}
    )


_UP = ("launch", "uncordon", "create-beacon", "start")


def test_each_start_of_an_order_of_runs_is_noted_before_the_next():
    day = ordering.a_day()
    ordering.define(day, seconds=300.0)
    order = partial(ordering.order, day, ordering.asked(2, vary="pool"))
    assert cut_off(day.fleet.faults, order, "jenkins buildWithParameters", number=2)
    assert [event.what for event in day.fleet.history.events if event.by.startswith("run ")] == ["start-run"]


def test_the_real_functions_tell_people_of_the_steps_of_a_pass_that_was_cut_off(monkeypatch):
    with deployed_in_memory() as here:
        here.call("scale_up", event("tick"))
        here.world.controllers["main"].submit("job", "mxnetlinux-gpu", 60.0)
        monkeypatch.setattr(Ec2Compute, "terminate", dies)
        with pytest.raises(Died):
            here.pass_minutes(120)
        events = here.call("operate", {"action": "events", "hours": 3})["events"]
        steps = [facts["step"] for name, facts in here.logged if name == "step"]
        assert ([one["by"] for one in events if one["what"] == "cordon"], steps.count("cordon")) == (["scale_down"], 1)


def dies(*_arguments):
    raise Died("terminate")
