"""Days of several pools: what all jobs cost together is what the meter counted, and not far from the bill."""

from random import Random

import pytest

from autoscaler.control.statistics import list_days
from autoscaler.domain.facts.fleet import Market, WarmPool
from autoscaler.domain.report.costs import By, in_month, list_costs
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.simulate.result import dollars
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

SPOT = an_offering("m5.large", subnet="subnet-a", market=Market.SPOT, usd_per_hour=1.0, most_usd_per_hour=3.0, volume_usd_per_hour=0.05)
WARM = WarmPool(min_agents=1, max_agents=3, max_age_seconds=86_400.0)
POOLS = (
    a_pool("cpu", executors=4, min_agents=1),
    a_pool("spot", executors=2, offerings=(SPOT,)),
    a_pool("warm", warm_pool=WARM, offerings=(an_offering(usd_per_hour=2.0, volume_usd_per_hour=0.1),)),
)


def costs_of(day, by=By.JOB):
    store, metered = day.fleet.costs, day.fleet.state.memory.month
    return list_costs(in_month(store.month(metered.name), store.batch(), metered), day.fleet.fleet, by)


def a_day(hours=24, *, dearer=False):
    """Every hour some jobs of each pool, at any second; spot may become dearer at noon."""
    day, chance = Day(in_memory(*POOLS)), Random(1)
    for hour in range(hours):
        for number, pool in enumerate(("cpu", "cpu", "cpu", "spot", "spot", "warm")):
            job, seconds = f"{pool}/job-{number}", 300.0 + 400.0 * number
            at = day.world.timeline.now + chance.uniform(0, 1800)
            day.world.timeline.at(at, lambda job=job, pool=pool, seconds=seconds: day.jenkins.submit(job, pool, seconds))
        if dearer and hour == hours // 2:
            day.world.ec2.spot_usd_per_hour[SPOT.key] = 2.0
        day.minutes(60)
    return day


@pytest.mark.long
def test_in_a_day_of_spot_and_stopped_agents_all_jobs_together_cost_what_the_meter_counted():
    day = a_day(dearer=True)
    metered = day.fleet.state.memory.month
    for by in By:
        assert costs_of(day, by).usd == pytest.approx(metered.usd, rel=0.01)
    assert costs_of(day).usd == pytest.approx(metered.usd, rel=1e-9)
    assert {entry.name: entry.usd for entry in costs_of(day, By.POOL).entries} == pytest.approx(dict(metered.by_pool))
    days = list_days(day.fleet.ports, day.fleet.fleet, 2, By.JOB)
    assert (days.days_with_costs, days.month.count(" to ")) == (2, 1)
    assert days.usd == pytest.approx(metered.usd, rel=0.01)
    today, both = list_days(day.fleet.ports, day.fleet.fleet, 1, By.JOB).usd, days.usd
    since_midnight = day.world.timeline.now % 86_400 / 86_400
    assert today == pytest.approx(both * since_midnight, rel=0.35)
    assert {entry.name for entry in costs_of(day).entries} == {
        *(f"cpu/job-{number}" for number in range(3)),
        *(f"spot/job-{number}" for number in (3, 4)),
        "warm/job-5",
    }


@pytest.mark.long
def test_builds_have_the_hours_that_they_ran_and_all_that_was_billed():
    day = a_day(hours=12)
    assert costs_of(day).usd == pytest.approx(dollars(day.world), rel=0.04), "which has no volumes of machines that are on"
    ran = {}
    for build in day.jenkins.builds:
        ran[build.job] = ran.get(build.job, 0.0) + (build.ended_at or day.world.timeline.now) - build.started_at
    told = {entry.name: entry.hours for entry in costs_of(day).entries}
    assert told == pytest.approx({job: seconds / 3600 for job, seconds in ran.items()}, rel=0.1)


def test_a_store_that_fails_for_hours_costs_nothing_of_the_sum():
    day = Day(in_memory(*POOLS))
    day.queue(3, seconds=9000.0)
    day.minutes(30)
    day.fleet.costs.faults.plan(Fault("costs batch", status=500, times=100))
    day.fleet.costs.faults.plan(Fault("costs book", after=True))
    day.minutes(150)
    assert any(event == "costs_not_noted" for event, _ in day.fleet.logged)
    assert costs_of(day).usd == pytest.approx(day.fleet.state.memory.month.usd)
    assert day.fleet.costs.kept.version > 40


def test_a_fleet_at_rest_is_not_written_for():
    day = Day(in_memory(a_pool("cpu")))
    day.queue(1)
    day.minutes(90)
    assert day.agents() == 0
    day.minutes(20)
    writes = day.fleet.costs.writes
    day.minutes(60)
    assert day.fleet.costs.writes == writes
    assert costs_of(day).usd == pytest.approx(day.fleet.state.memory.month.usd)
