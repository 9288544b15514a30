"""What the ceilings leave, and what counts against them."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.metering import launched_lately
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.learn import assess
from support.builders import (
    LONG_AGO,
    NOW,
    a_fleet,
    a_memory,
    a_pool,
    a_record,
    a_snapshot,
    a_view,
    an_instance,
    an_intent,
    an_item,
    an_offering,
)
from support.decisions import decide_up, held, launches, scale_up

OFFERINGS = (an_offering(usd_per_hour=3.0), an_offering(usd_per_hour=10.0, market=Market.SPOT))


@pytest.mark.parametrize("limit", [{"max_agents": 4}, {"max_usd_per_hour": 45.0}], ids=str)
def test_machines_that_nobody_wrote_down_count_each_and_at_their_pools_dearest_price(limit):
    """Two of them, and jobs for five agents: there is room for two."""
    unknown = (an_instance("i-1", pool="cpu"), an_instance("i-2", pool="cpu"))
    items = tuple(an_item(number, label="cpu") for number in range(1, 6))
    plan = scale_up(a_snapshot(a_view(items=items), instances=unknown), a_fleet(a_pool(offerings=OFFERINGS), **limit))
    assert sum(step.count for step in plan.steps if isinstance(step, Launch)) == 2


def test_a_launch_that_is_noted_and_not_forgotten_yet_counts_once():
    memory = a_memory(gone={"i-1": NOW - 10.0, "i-2": NOW - 3599.0, "i-3": NOW - 3601.0})
    assert launched_lately(a_snapshot(records=(a_record("i-1"),)), memory).total() == 2


SPOT = an_offering(usd_per_hour=1.0, most_usd_per_hour=3.0, volume_usd_per_hour=0.5, market=Market.SPOT)


@pytest.mark.parametrize(
    ("limit", "launched"), [({"max_usd_per_hour": 7.0}, 2), ({"max_usd_per_hour": 6.9}, 1), ({"max_usd_per_month": 7.0}, 2)]
)
def test_a_launch_is_reserved_at_the_most_it_may_cost(limit, launched):
    items = tuple(an_item(number, label="cpu") for number in range(1, 6))
    plan = scale_up(a_snapshot(a_view(items=items)), a_fleet(a_pool(offerings=(SPOT,)), **limit))
    assert sum(step.count for step in plan.steps if isinstance(step, Launch)) == launched


def test_what_runs_is_reserved_at_the_most_it_may_cost_and_a_record_of_an_older_version_at_its_price():
    records = a_record("i-1", usd_per_hour=1.5, most_usd_per_hour=3.5), a_record("i-2", usd_per_hour=2.0)
    assert Budget(assess(a_snapshot(records=records), a_fleet())).fleet.usd_per_hour == 5.5


@pytest.mark.parametrize(
    ("fleet", "reason"),
    [(a_fleet(a_pool(max_agents=1)), Reason.MAX_AGENTS), (a_fleet(max_usd_per_hour=5.0), Reason.USD_PER_HOUR)],
    ids=["pool", "rate"],
)
def test_an_instance_without_a_record_counts_against_its_pool_and_the_rate(fleet, reason):
    plan = decide_up(fleet=fleet, items=(an_item(label="cpu"),), instances=(an_instance("i-7", launched_at=LONG_AGO),))
    assert (launches(plan), held(plan)) == ([], {reason})


@pytest.mark.parametrize("limit", [{"max_agents": 3}, {"max_usd_per_hour": 9.0}], ids=str)
def test_a_launch_that_was_not_answered_yet_takes_room_for_all_that_it_asks_for(limit):
    items = tuple(an_item(number, label="cpu", waiting_seconds=5000.0) for number in range(1, 6))
    plan = scale_up(a_snapshot(a_view(items=items), intents=(an_intent(count=2),)), a_fleet(**limit))
    assert sum(step.count for step in plan.steps if isinstance(step, Launch)) == 1


def test_an_instance_of_a_pool_that_left_the_fleet_file_counts_against_the_fleet():
    stray = an_instance("i-7", pool="left", launched_at=LONG_AGO)
    plan = decide_up(fleet=a_fleet(a_pool(max_agents=1), max_agents=1), items=(an_item(label="cpu"),), instances=(stray,))
    assert (launches(plan), held(plan)) == ([], {Reason.FLEET_MAX_AGENTS})
