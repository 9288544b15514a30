"""Time-lines of capacity that is paid for anyway: it is used first, and left in time."""

import pytest

from autoscaler.domain.facts.fleet import CapacityReservation
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.report.costs import By, in_month, list_costs
from autoscaler_workbench.fakes.world.ec2.reserved import BLOCK
from autoscaler_workbench.simulate.result import billed_dollars
from support.builders import NOW, a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0
FREE = an_offering("p5.48xlarge", subnet="subnet-a", usd_per_hour=0.0, volume_usd_per_hour=0.02)
GPU = frozenset({"gpu"})


def kept(**facts):
    return CapacityReservation(**({"id": "cr-0123456789abcdef0", "count": 2, "usd_per_hour": 55.0, "starts_at": NOW} | facts))


def a_day(**facts):
    """A block or a reservation of two machines, and a pool of the same labels on demand. Builds take an executor each."""
    reserved = a_pool("reserved", labels=GPU, offerings=(FREE,), max_agents=2, capacity=kept(**facts), boot_seconds=120.0)
    bought = a_pool("bought", labels=GPU, offerings=(an_offering("p5.48xlarge", usd_per_hour=55.0, volume_usd_per_hour=0.02),))
    return Day(in_memory(reserved, bought))


def metered(day):
    return dict(day.fleet.state.memory.month.by_pool)


def test_reserved_machines_are_used_first_and_others_are_bought_only_beyond_them():
    day = a_day()
    day.minutes(2).queue(2, "gpu", 7200.0)
    day.minutes(20)
    assert (day.agents("reserved"), day.agents("bought")) == (2, 0)
    day.queue(1, "gpu", 7200.0)
    day.minutes(20)
    assert (day.agents("reserved"), day.agents("bought")) == (2, 1)
    assert {one.reserved for one in day.world.alive()} == {"cr-0123456789abcdef0", ""}


@pytest.mark.parametrize("block", [False, True])
def test_the_month_counts_them_used_or_not_as_the_bill_does(block):
    day = a_day(block=block, ends_at=NOW + 5 * HOUR)
    day.minutes(2).queue(1, "gpu", 1800.0)
    day.minutes(240)
    assert metered(day)["reserved"] == pytest.approx(billed_dollars(day.world), rel=0.02)
    assert metered(day)["reserved"] == pytest.approx(2 * 55.0 * 242 / 60, rel=0.02)


def test_what_runs_on_in_a_reservation_that_is_over_costs_as_much_by_itself():
    day = a_day(ends_at=NOW + 2 * HOUR)
    day.minutes(2).queue(1, "gpu", 4 * HOUR)
    day.minutes(178)
    assert metered(day)["reserved"] == pytest.approx(2 * 2 * 55.0 + 55.0, rel=0.02)
    assert billed_dollars(day.world) == pytest.approx(2 * 2 * 55.0 + 55.0, rel=0.02)


def test_all_jobs_and_what_nobody_used_together_cost_what_was_counted():
    day = a_day()
    day.minutes(2).queue(1, "gpu", HOUR)
    day.minutes(180)
    store, month = day.fleet.costs, day.fleet.state.memory.month
    listed = list_costs(in_month(store.month(month.name), store.batch(), month), day.fleet.fleet, By.JOB)
    [job] = listed.entries
    assert listed.usd == pytest.approx(month.usd)
    assert job.builds_usd == pytest.approx(55.0, rel=0.1), "an hour of one machine; the other one was there for nobody"


def test_no_build_is_lost_with_a_block_that_ends_if_builds_take_no_longer_than_usual():
    day = a_day(block=True, ends_at=NOW + 6 * HOUR)
    day.minutes(2)
    while day.world.timeline.now < NOW + 6 * HOUR:
        day.queue(2, "gpu", 1500.0)
        day.minutes(26)
    day.minutes(60)
    assert [build.killed_by for build in day.jenkins.builds if build.killed_by] == []
    cordons = [step for step in day.done(Cordon) if step.reason is Reason.CAPACITY_ENDS]
    assert len(cordons) >= 1
    assert "EC2 ends the machines of cr-0123456789abcdef0 in" in cordons[0].detail
    assert day.agents("reserved") == 0
    markets = {(bool(one.reserved), one.market) for one in day.world.ec2.instances.values()}
    assert markets == {(True, BLOCK), (False, "on-demand")}, "who waits then gets a machine all the same"


def test_nothing_is_launched_before_a_block_begins_or_when_it_ends_before_a_build_would():
    early = a_day(block=True, starts_at=NOW + 10 * HOUR, ends_at=NOW + 34 * HOUR)
    late = a_day(block=True, ends_at=NOW + 2 * HOUR)  # builds are believed to take an hour, and EC2 ends machines half an hour before
    for day in (early, late):
        day.minutes(32).queue(1, "gpu", 600.0)
        day.minutes(5)
        assert (day.agents("reserved"), day.agents("bought")) == (0, 1)


@pytest.mark.parametrize(("at_hours", "pool"), [(8.2, "reserved"), (8.7, "bought")])
def test_a_block_takes_its_last_build_as_early_as_its_builds_are_long(at_hours, pool):
    day = a_day(block=True, ends_at=NOW + 12 * HOUR)  # EC2 ends the machines half an hour before that
    day.minutes(2).queue(2, "gpu", 3 * HOUR)
    day.minutes(int(at_hours * 60) - 2)
    [build] = day.queue(1, "gpu", 3 * HOUR)
    day.minutes(10)
    assert (build.node or "").startswith(pool)
    day.minutes(240)
    assert not build.killed_by
