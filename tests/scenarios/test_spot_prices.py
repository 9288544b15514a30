"""Time-lines of spot prices that move: the month counts what is paid, and what nobody tells counts at the most that may be paid."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.simulate.result import dollars_an_hour
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

EXPECTED, MOST = 1.0, 3.0
SPOT = an_offering(subnet="subnet-a", market=Market.SPOT, usd_per_hour=EXPECTED, most_usd_per_hour=MOST, volume_usd_per_hour=0.25)
ASKED = "ec2 DescribeSpotPriceHistory"


def a_day(*offerings):
    """One agent, for ever."""
    return Day(in_memory(a_pool("cpu", offerings=offerings or (SPOT,), min_agents=1))).minutes(12)


def asked_in_an_hour(day):
    calls = []
    day.fleet.faults.meanwhile = calls.append
    day.minutes(60)
    return calls.count(ASKED)


def spent(day):
    return day.fleet.state.memory.month.usd


def spent_in_an_hour(day):
    before = spent(day)
    day.minutes(60)
    return spent(day) - before


def test_the_month_counts_what_spot_costs_and_not_what_it_was_expected_to_cost():
    day = a_day()
    assert spent_in_an_hour(day) == pytest.approx(EXPECTED + 0.25)
    day.world.ec2.spot_usd_per_hour[SPOT.key] = 2.0
    day.minutes(11)
    assert spent_in_an_hour(day) == pytest.approx(2.25) == dollars_an_hour(day.world) + 0.25


def test_each_zone_has_its_own_price():
    other = an_offering(subnet="subnet-b", market=Market.SPOT, usd_per_hour=EXPECTED, most_usd_per_hour=MOST)
    day = Day(in_memory(a_pool("cpu", offerings=(SPOT, other), min_agents=2)))
    day.world.ec2.zones["subnet-b"] = "us-west-2b"
    day.world.ec2.spot_usd_per_hour |= {SPOT.key: 2.0, other.key: 0.5}
    day.world.ec2.capacity[SPOT.key] = 1
    day.minutes(12)
    assert spent_in_an_hour(day) == pytest.approx(2.0 + 0.5 + 2 * 0.25)


def test_on_demand_counts_at_its_own_price():
    assert spent_in_an_hour(a_day(an_offering(usd_per_hour=MOST))) == pytest.approx(MOST)


def test_while_ec2_does_not_answer_the_last_price_counts():
    day = a_day()
    day.world.ec2.spot_usd_per_hour[SPOT.key] = 2.0
    day.fleet.faults.plan(Fault(ASKED, times=10_000))
    assert spent_in_an_hour(day) == pytest.approx(EXPECTED + 0.25)


def test_a_price_that_ec2_never_told_counts_as_the_most_that_may_be_paid():
    day = Day(in_memory(a_pool("cpu", offerings=(SPOT,), min_agents=1)))
    day.world.ec2.spot_usd_per_hour.clear()
    day.minutes(12)
    assert spent_in_an_hour(day) == pytest.approx(MOST + 0.25)


def test_both_functions_ask_for_prices_every_ten_minutes_and_not_where_nothing_runs_on_spot():
    assert asked_in_an_hour(a_day()) == 2 * 6
    assert asked_in_an_hour(a_day(an_offering(usd_per_hour=MOST))) == 0
