"""Time-lines of a pool whose agents may run so many hours a day: for tests that are to stay rare."""

import re

import pytest

from autoscaler.control.observe import observe
from autoscaler.domain.facts.fleet import Ceilings, WarmPool
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Launch, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.told import explain, status
from support.worlds import in_memory

# The world begins at 08:00 UTC.
HOUR, UNTIL_MIDNIGHT = 60, 16 * 60


def a_day(hours=2.0, **facts):
    given = {"ceilings": Ceilings(max_hours_per_day=hours), "boot_seconds": 120.0, "idle_seconds": 300.0}
    return Day(in_memory(a_pool("rare", **(given | facts)), a_pool("cpu")))


def submitted_every(day, minutes, every, seconds):
    """Jobs that come again and again: agents of the pool would never be idle."""
    builds = []
    for _ in range(minutes // every):
        builds += day.queue(1, "rare", seconds)
        day.minutes(every)
    return builds


def hours_of(day, pool="rare"):
    """Hours that its instances have run, by what the world says."""
    mine = [one for one in day.world.ec2.instances.values() if one.tags["autoscaler:pool"] == pool]
    return sum((one.ended_at or day.world.timeline.now) - one.launched_at for one in mine) / 3600.0


def test_once_the_hours_of_the_day_are_used_nothing_new_starts_and_no_build_is_cut_short():
    day = a_day(2.0)
    builds = submitted_every(day, 4 * HOUR, 20, seconds=1500.0)
    day.minutes(30)
    assert day.agents("rare") == 0
    assert 2.0 <= hours_of(day) < 2.6
    assert {build.ended for build in builds} == {Ended.FINISHED, None}
    assert any(build.started_at is None for build in builds)
    cordoned = {(step.mark.kind, step.reason) for step in day.done(Cordon) if step.mark.kind is not MarkClass.RETIRE}
    assert cordoned == {(MarkClass.DAY_LIMIT, Reason.HOURS_PER_DAY)}


@pytest.mark.parametrize("limit", ["max_hours_per_day", "max_usd_per_month"])
def test_why_gives_no_time_on_an_executor_that_is_free_once_the_limit_is_used_up(limit):
    usd_per_hour = a_pool("rare").offerings[0].usd_per_hour
    day = a_day(ceilings=Ceilings(**{limit: 2.0 * (usd_per_hour if "usd" in limit else 1.0)}))
    day.jenkins.submit("nightly", "rare", 1800.0)
    day.minutes(36)
    builds = [day.jenkins.submit("nightly", "rare", 1800.0) for _ in range(4)]
    day.minutes(5)
    told = ["\n".join(day.why(str(build.id))) for build in builds[1:]]
    assert ["would start in" in text for text in told] == [True, True, False]
    assert f"may have used up its {limit}" in told[-1]
    day.minutes(3 * HOUR)
    assert [build.started_at is not None for build in builds] == [True, True, True, False]


@pytest.mark.long
def test_at_midnight_the_hours_begin_anew():
    day = a_day(1.0)
    builds = submitted_every(day, 3 * HOUR, 20, seconds=1500.0)
    day.minutes(UNTIL_MIDNIGHT - 3 * HOUR - 5)
    assert (day.agents("rare"), hours_of(day) < 1.6) == (0, True)
    waiting = sum(build.started_at is None for build in builds)
    assert waiting
    day.minutes(30)
    assert day.agents("rare") > 0
    assert sum(build.started_at is None for build in builds) < waiting


@pytest.mark.long
def test_an_agent_that_still_runs_at_midnight_takes_builds_again():
    day = a_day(1.0)
    day.minutes(UNTIL_MIDNIGHT - 2 * HOUR)
    day.queue(1, "rare", seconds=3 * 3600.0)
    day.minutes(90)
    assert [step.mark.kind for step in day.done(Cordon)] == [MarkClass.DAY_LIMIT]
    day.minutes(35)
    assert [step.reason for step in day.done(Uncordon)] == [Reason.NEW_DAY]


def test_an_hour_is_reserved_for_each_agent_so_that_none_is_launched_for_minutes():
    day = a_day(3.0)
    day.queue(6, "rare", seconds=7200.0)
    day.minutes(10)
    assert day.agents("rare") == 3
    held = [held.detail for held in day.fleet.reports[-2].plan.held if held.reason is Reason.HOURS_PER_DAY]
    assert held
    assert held[0].endswith("hours in the day in pool rare, the limit is 3")


def test_the_minimum_and_a_person_are_no_exemption_and_other_pools_are_untouched():
    day = a_day(1.0, min_agents=1)
    day.minutes(3 * HOUR)
    assert (day.agents("rare"), hours_of(day) < 1.2) == (0, True)
    day.queue(1, "cpu", seconds=600.0)
    day.minutes(5)
    assert day.agents("cpu") == 1


def test_where_agents_are_stopped_they_stay_so_at_the_price_of_their_disks():
    warm = WarmPool(min_agents=0, max_agents=3, max_age_seconds=86_400.0 * 3)
    day = a_day(1.0, warm_pool=warm, offerings=(an_offering(volume_usd_per_hour=0.01),), max_idle_seconds=7200.0)
    submitted_every(day, 2 * HOUR, 20, seconds=1100.0)
    day.minutes(30)
    assert [instance.state for instance in day.world.alive()] == ["stopped"]
    assert len(day.done(Launch)) == 1


def test_status_and_why_say_how_many_hours_are_used():
    day = a_day(1.0)
    submitted_every(day, 40, 20, seconds=1500.0)
    assert [line for line in explained(day) if "hours are used today" in line] == ["0.65 of 1 hours are used today by pool rare"]
    submitted_every(day, 80, 20, seconds=1500.0)
    told = status(observed(day), day.fleet.fleet).stopped
    assert re.fullmatch(r"1\.\d+ of 1 hours are used today by pool rare: nothing new of it starts until midnight UTC", told)
    assert told in explained(day)


def observed(day):
    return observe(day.fleet.ports, day.fleet.fleet, day.fleet.state.read(), day.fleet.invocation())


def explained(day):
    return explain(observed(day), day.fleet.fleet, "rare")
