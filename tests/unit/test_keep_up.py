"""Launching what is needed again so soon that it is kept afterwards, though the jobs that wait now would rather wait."""

import pytest

from autoscaler.domain.facts.memory import IdleReturns
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.keeping import EDGES
from support.builders import a_build, a_fleet, a_learned, a_memory, a_pool, a_snapshot, a_view, an_agent, an_item, key_of
from support.decisions import scale_up


def comes_back_within(seconds, *, times=50.0, waits=1.0):
    """Returns of both the first and the second agent; ``waits``: for a boot, that each would have spared."""
    counts = tuple(times * (edge == seconds) for edge in (*EDGES, 0.0))
    seen = IdleReturns(times=counts, jobs=tuple(count * waits for count in counts))
    return {"main/cpu": {"1": seen, "2": seen}}


def launched(returns, *, items=1, pool=None, busy_seconds=150.0, executors=1, **limits):
    """One agent that will be free half a minute before a boot would be over, and items behind its build."""
    record, node = an_agent(executors=executors, builds=(a_build(elapsed_seconds=0.0),))
    snapshot = a_snapshot(
        a_view(node, items=tuple(an_item(number, label="cpu") for number in range(1, items + 1))),
        records=(record,),
        learned={"main": a_learned(samples={key_of("cpu"): (busy_seconds,) * 5})},
        memory=a_memory(idle_returns=returns),
    )
    plan = scale_up(snapshot, a_fleet(pool or a_pool("cpu", executors=executors), **limits))
    return [(step.count, step.reason) for step in plan.steps if isinstance(step, Launch)]


def test_an_agent_that_comes_too_late_for_the_job_that_waits_is_launched_for_those_that_come_next():
    assert launched(comes_back_within(240.0)) == [(1, Reason.FORESEEN)]


def test_it_is_not_where_nothing_was_learned_yet_or_demand_comes_back_late_or_seldom_waits():
    for returns in ({}, comes_back_within(28_800.0), comes_back_within(240.0, waits=0.01)):
        assert launched(returns) == []


def test_no_more_are_launched_than_the_jobs_that_run_and_wait_would_fill():
    assert launched(comes_back_within(240.0), items=3, executors=4) == []
    assert launched(comes_back_within(240.0), items=2, busy_seconds=60.0) == [(2, Reason.FORESEEN)]


def test_where_an_operator_has_fixed_how_long_agents_are_kept_nothing_is_launched_for_it():
    assert launched(comes_back_within(240.0), pool=a_pool("cpu", idle_seconds=600.0)) == []


@pytest.mark.parametrize("limit", [{"max_agents": 3}, {"max_launches_per_hour": 1}])
def test_it_leaves_half_of_every_shared_limit_to_others(limit):
    assert launched(comes_back_within(240.0), **limit) == []


def test_it_leaves_half_of_a_pool_to_other_controllers_that_share_it():
    for controllers, count in ((("main",), [(1, Reason.FORESEEN)]), (("main", "second"), [])):
        assert launched(comes_back_within(240.0), pool=a_pool("cpu", max_agents=3, controllers=controllers)) == count
