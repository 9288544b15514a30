"""More agents than are needed, where boots are so unlike one another that nobody need wait for the slowest."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.forecast import worth_adding
from autoscaler.domain.situation.breakers import of_offering
from support.builders import NOW, a_fleet, a_memory, a_node, a_pool, a_record, a_snapshot, a_trial, a_view, an_item, an_offering
from support.decisions import scale_up

# From two minutes and a quarter to four, evenly.
UNEVEN = tuple(135.0 + 108.0 * n / 19 for n in range(20))
# A second of a job's waiting at $20 an hour, and a boot of a machine of $1.32 an hour.
HOW = {"usd_a_second": 20 / 3600, "agent_usd": 1.32 * 200 / 3600}


def added(items=1, agents=1, executors=1, boots=UNEVEN, **how):
    return worth_adding(boots, items=items, agents=agents, executors=executors, **(HOW | how))


def drawn_seconds(items, agents, executors):
    """The mean of many draws: how long the items wait together when each takes whichever executor is there first."""
    chance, total = Random(1), 0.0
    for _ in range(4000):
        ready = sorted(chance.uniform(135.0, 243.0) for _ in range(agents))
        total += sum(sorted(at for at in ready for _ in range(executors))[:items])
    return total / 4000


def test_boots_that_are_all_alike_are_not_hedged():
    assert added(items=8, agents=8, boots=(180.0,) * 20) == 0


def test_nothing_is_hedged_before_boots_were_seen():
    assert added(boots=()) == 0


def test_nothing_is_hedged_where_nobody_waits():
    assert added(items=0, agents=3) == 0


def test_cheap_machines_are_hedged_more_than_dear_ones():
    assert [added(items=40, agents=40, agent_usd=usd) for usd in (0.08, 0.2, 0.5)] == [20, 11, 0]


def test_the_dearer_waiting_the_more_is_hedged():
    assert [added(items=40, agents=40, usd_a_second=usd / 3600) for usd in (0.2, 6, 20)] == [0, 6, 20]


def test_jobs_that_share_an_agent_are_worth_more_together():
    assert [added(items=items, executors=4, agent_usd=0.2) for items in (1, 4)] == [0, 2]


@pytest.mark.parametrize(
    ("items", "agents", "executors", "agent_usd"), [(1, 1, 1, 0.15), (5, 5, 1, 0.15), (12, 3, 4, 0.8), (40, 40, 1, 0.2)]
)
def test_what_is_added_is_what_drawing_boots_by_lot_says_is_worth_it(items, agents, executors, agent_usd):
    """Each one added is worth its price, and one more would not be; a cent for what the spread is rounded by."""
    more = added(items, agents, executors, agent_usd=agent_usd)
    waits = [drawn_seconds(items, agents + n, executors) * HOW["usd_a_second"] for n in range(more + 2)]
    gains = [before - after for before, after in pairwise(waits)]
    assert all(gain > agent_usd - 0.02 for gain in gains[:more])
    assert gains[more] < agent_usd + 0.02


def test_a_burst_of_hundreds_is_reckoned_with_too():
    assert added(items=600, agents=600, agent_usd=0.2) == pytest.approx(15 * added(items=40, agents=40, agent_usd=0.2), rel=0.2)


@pytest.mark.parametrize(("agents", "most"), [(1, 2), (3, 2), (10, 5)])
def test_at_most_half_as_many_are_added_or_two(agents, most):
    assert added(items=agents, agents=agents, agent_usd=0.0001) == most


def launched(count, *, fleet=None, items=1, boots=UNEVEN, trials=None, booting=(), executors=1, nodes=()):
    """Whether so many agents are launched for so many items, and the plan. ``booting``: of each agent on its way, since when in seconds."""
    queue = tuple(an_item(number, label="cpu") for number in range(items))
    records = tuple(a_record(f"i-{number}", launched_at=NOW - seconds) for number, seconds in enumerate(booting))
    plan = scale_up(
        a_snapshot(a_view(*nodes, items=queue), records=records, memory=a_memory(boots={"cpu": boots}, trials=trials or {})),
        fleet or a_fleet(a_pool("cpu", executors=executors, **CHEAP)),
    )
    return sum(step.count for step in plan.steps if isinstance(step, Launch)) == count, plan


CHEAP = {"offerings": (an_offering(usd_per_hour=1.0),), "max_agents": 60}


def test_one_job_gets_two_cheap_agents_and_the_plan_says_why():
    done, plan = launched(2)
    assert done
    assert plan.steps[0].detail.endswith("; and 1 more, for 1 item not to wait for the slowest boot")


def test_what_was_added_a_look_ago_and_later_jobs_have_taken_is_added_again():
    """Four were launched for two jobs; two more jobs wait for them now."""
    done, plan = launched(2, items=4, booting=(5.0,) * 4)
    assert done
    assert plan.steps[0].reason is Reason.UNEVEN_BOOTS
    assert plan.steps[0].detail == "for 4 items not to wait for the slowest boot"


@pytest.mark.parametrize(("booting", "executors", "items"), [(4, 1, 2), (3, 1, 1), (3, 4, 3), (9, 1, 6)])
def test_what_was_added_a_look_ago_and_nobody_has_taken_is_not_added_again(booting, executors, items):
    assert launched(0, items=items, booting=(5.0,) * booting, executors=executors)[0]


def test_agents_that_are_nearly_there_are_not_hedged():
    """An agent takes some 190 seconds; one that was launched now would come too late to be of use."""
    assert launched(0, items=4, booting=(150.0,) * 4)[0]
    assert not launched(0, items=4, booting=(100.0,) * 4)[0]


def test_agents_whose_boots_are_alike_or_not_known_are_launched_as_needed():
    assert launched(1, boots=(180.0,) * 20)[0]
    assert launched(1, boots=UNEVEN[:9])[0]


def test_where_machines_were_short_in_the_last_hour_no_more_are_asked_for_than_are_needed():
    short = {of_offering("cpu", CHEAP["offerings"][0]): a_trial(-60.0, failures=0)}
    assert launched(1, trials=short)[0]


@pytest.mark.parametrize(
    ("pool", "limits"),
    [
        ({"max_agents": 40}, {}),
        ({}, {"max_agents": 40}),
        ({}, {"max_launches_per_hour": 40}),
        ({}, {"max_usd_per_hour": 40.0}),
    ],
    ids=str,
)
def test_two_thirds_of_every_limit_are_left_to_what_is_needed_and_nothing_is_said_to_be_held(pool, limits):
    """Ten are needed, and with boots like these five more would be worth it."""
    assert launched(15, items=10)[0]
    done, plan = launched(13, items=10, fleet=a_fleet(a_pool("cpu", **(CHEAP | pool)), **limits))
    assert done
    assert {held.reason for held in plan.held} <= {Reason.WORTH_WAITING}


@pytest.mark.parametrize(("slots", "count"), [(46, 15), (40, 13), (30, 10)])
def test_two_thirds_of_the_slots_that_are_free_are_left_too(slots, count):
    fleet = replace(a_fleet(a_pool("cpu", **CHEAP)), slot_controllers=frozenset({"main"}))
    nodes = (a_node(f"slot-{number}", "cpu", fleet.ownership_label, offline=True) for number in range(slots))
    assert launched(count, items=10, fleet=fleet, nodes=nodes)[0]
