"""Time-lines over the end of a month: people are told once what it cost, whatever fails."""

from datetime import UTC, datetime

import pytest

from autoscaler.domain.facts.job_settings import MonthCosts
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

EVENING = datetime(2027, 1, 31, 22, 30, tzinfo=UTC).timestamp()
OFFERING = an_offering(usd_per_hour=6.0, volume_usd_per_hour=0.5)


def an_evening(month_before=0.0):
    """The last ninety minutes of January: a build of an hour."""
    day = Day(in_memory(a_pool("cpu", offerings=(OFFERING,), idle_seconds=600.0)))
    day.world.move_to(EVENING)
    day.minutes(2).jenkins.submit("app/main", "cpu", 3600.0)
    if month_before:
        day.fleet.costs.months["2026-12"] = MonthCosts(name="2026-12", unused={"cpu": month_before}, metered_usd=month_before)
    return day.minutes(85)


def told(day):
    return [message.subject for message in day.fleet.notifier.sent]


def test_at_the_first_looks_of_a_month_one_message_says_what_the_last_one_cost():
    day = an_evening(month_before=10.0)
    usd = day.fleet.state.memory.month.usd
    assert told(day) == []
    day.minutes(60)
    [message] = day.fleet.notifier.sent
    assert message.subject.startswith("[f] January 2027: $")
    assert f"January 2027 (UTC): ${usd:.2f}, " in message.text
    assert "than the month before ($10.00)" in message.text
    assert "app/main" in message.text
    assert "boots" in message.text
    assert "autoscaler costs --month 2027-01" in message.text
    assert day.minutes(60).fleet.state.told.month == "2027-01"
    assert len(told(day)) == 1


@pytest.mark.parametrize(
    "fault",
    [Fault("sns Publish", times=20), Fault("costs batch", times=20), Fault("costs month", times=20), Fault("costs book", times=20)],
    ids=lambda fault: fault.call,
)
def test_what_fails_at_midnight_is_told_once_later(fault):
    day = an_evening()
    day.fleet.costs.faults = day.fleet.faults
    day.minutes(2)
    usd = day.fleet.state.memory.month.usd
    day.fleet.faults.plan(fault)
    day.minutes(3)
    assert told(day) == []
    day.minutes(40)
    [message] = day.fleet.notifier.sent
    assert f"${usd:.2f}" in message.subject


class Died(BaseException):
    """The invocation ends here, as where its time is over."""


@pytest.mark.parametrize(("call", "messages"), [("costs book", 1), ("costs month", 1), ("sns Publish", 1), ("state save_told", 2)])
def test_cut_off_anywhere_it_is_told_at_a_later_look_and_only_what_is_not_remembered_twice(call, messages):
    day = an_evening()
    day.fleet.costs.faults = day.fleet.faults
    day.minutes(2)
    left = [call]

    def cut_off(made):
        if left and made == left[0] and day.world.timeline.now >= EVENING + 5400.0:
            left.clear()
            raise Died

    day.fleet.faults.meanwhile = cut_off
    with pytest.raises(Died):
        day.minutes(10)
    assert len(told(day.minutes(40))) == messages


def test_what_was_sent_and_not_remembered_is_sent_again_and_not_a_third_time():
    day = an_evening()
    day.fleet.faults.plan(Fault("state save_told"))
    assert len(told(day.minutes(40))) == 2


def test_of_a_month_in_which_nothing_ran_nobody_is_told_and_it_is_asked_for_once():
    day = Day(in_memory(a_pool("cpu")))
    day.world.move_to(EVENING)
    calls = []
    day.fleet.costs.faults.meanwhile = calls.append
    day.minutes(120)
    assert told(day) == []
    assert calls.count("costs month") <= 8, "two months at the first look, two at midnight, and what the month itself reads"
    assert day.fleet.state.told.month == "2027-01"


def test_a_fleet_whose_passes_have_stopped_for_weeks_tells_of_the_last_month_once_they_go_on():
    day = an_evening()
    day.world.move_to(datetime(2027, 2, 20, tzinfo=UTC).timestamp())
    day.minutes(30)
    assert len(told(day)) == 1
    assert day.fleet.state.memory.month.name == "2027-02"
