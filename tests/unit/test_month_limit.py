"""What is decided once the month's money is spent."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import AtMonthLimit
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from autoscaler.domain.facts.plan import Cordon, Launch, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Wait
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_look,
    a_mark,
    a_memory,
    a_month,
    a_pool,
    a_record,
    a_session,
    a_snapshot,
    a_view,
    an_agent,
    an_empty_window,
    an_item,
    cordoned,
)
from support.decisions import scale_down, scale_up
from support.remembered import tables
from support.told import explain

POOL = a_pool("cpu", min_agents=2)
FLEET = a_fleet(POOL, max_usd_per_month=100.0)
SPENT = a_month(name="2027-01", usd=100.0, metered_at=NOW)
STOPPED = a_mark(MarkClass.MONTH_LIMIT)
HOLD = Hold(scope=Scope.POOL, name="cpu", since_at=LONG_AGO, until_at=None, by="ada", reason="r")


def seen(*agents, month=SPENT, items=(), records=(), life=None, observations=None, **facts):
    memory = a_memory(month=month, windows=an_empty_window(most=3), observations=observations or {})
    if life:
        memory = replace(memory, sessions={"main": life})
    records = (*(record for record, _ in agents), *records)
    return a_snapshot(a_view(*(node for _, node in agents), items=items), records=records, memory=memory, **facts)


def stopped(number, *, mark=STOPPED, **facts):
    record, node = an_agent(number, **facts)
    return record, cordoned(node, mark)


def cordons(plan):
    return {step.node: (step.mark.kind, step.reason) for step in plan.steps if isinstance(step, Cordon)}


STOP = MarkClass.MONTH_LIMIT, Reason.USD_PER_MONTH


def test_every_agent_is_cordoned_busy_or_idle_below_the_minimum_and_kept_by_a_person():
    kept = replace(an_agent(2)[0], keep_until=NOW + 3600.0), an_agent(2)[1]
    plan = scale_down(seen(an_agent(1, builds=(a_build(),)), kept), FLEET)
    assert cordons(plan) == {"cpu-1": STOP, "cpu-2": STOP}


def test_an_operators_hold_is_no_exemption_and_a_freeze_is():
    plans = [scale_down(seen(an_agent(1), overrides=Overrides(holds=(replace(HOLD, freeze=freeze),))), FLEET) for freeze in (False, True)]
    assert [len(cordons(plan)) for plan in plans] == [1, 0]


def test_a_cent_below_the_limit_and_in_another_month_nothing_is_stopped():
    for month in (replace(SPENT, usd=99.99), replace(SPENT, name="2026-12")):
        assert cordons(scale_down(seen(an_agent(1), month=month), FLEET)) == {}


def test_where_only_launches_end_no_agent_is_cordoned():
    fleet = replace(FLEET, limits=replace(FLEET.limits, at_month_limit=AtMonthLimit.LAUNCH_NOTHING))
    assert cordons(scale_down(seen(an_agent(1)), fleet)) == {}


def test_a_machine_that_has_not_registered_goes_at_once_and_is_no_failed_boot():
    plan = scale_down(seen(records=(a_record("i-9"),)), FLEET)
    assert [(step.instance_id, step.reason) for step in plan.steps if isinstance(step, Terminate)] == [("i-9", Reason.USD_PER_MONTH)]
    assert plan.boot_failures == ()


def test_nothing_is_launched_not_even_for_the_minimum_and_what_retires_stays_so():
    retiring = an_agent(1)[0], cordoned(an_agent(1)[1])
    plan = scale_up(seen(retiring, items=(an_item(1, label="cpu"), an_item(2, label="cpu"))), FLEET)
    assert [step for step in plan.steps if isinstance(step, Launch | Uncordon)] == []
    assert Reason.USD_PER_MONTH in {held.reason for held in plan.held}


def test_what_retires_goes_though_jobs_wait_for_its_pool():
    looks = {"i-1": a_look("drained")}
    retiring = an_agent(1)[0], cordoned(an_agent(1)[1])
    plan = scale_down(seen(retiring, observations=looks, items=(an_item(1, label="cpu"),)), FLEET)
    assert [step.instance_id for step in plan.steps if isinstance(step, Terminate)] == ["i-1"]


def waits_for(name, **facts):
    """What Jenkins shows of a job whose label only this node has, and of a part of a pipeline that must run there."""
    return an_item(1, why=Wait(for_executor=True, named=name, nodes=(name,)), **facts)


def test_a_job_that_asks_for_a_label_which_one_node_has_keeps_nothing():
    looks = {"i-1": a_look("drained")}
    plan = scale_down(seen(stopped(1), observations=looks, items=(waits_for("cpu-1"),)), FLEET)
    assert [step.instance_id for step in plan.steps if isinstance(step, Terminate)] == ["i-1"]


@pytest.mark.parametrize("decision", [scale_up, scale_down])
def test_a_part_of_a_pipeline_that_runs_gets_the_node_it_waits_for(decision):
    item = waits_for("cpu-1", run="job/m/4")
    plan = decision(seen(stopped(1, builds=(a_build("m", run="job/m/4"),)), items=(item,)), FLEET)
    assert [(step.node, step.reason) for step in plan.steps if isinstance(step, Uncordon)] == [("cpu-1", Reason.PINNED)]


def test_a_pipeline_that_may_have_run_there_before_a_restart_gets_its_node():
    life = a_session(since_at=NOW - 1800.0, restarted=True)
    item = waits_for("cpu-1", run="job/m/4", waiting_seconds=1200.0)
    looks = {"i-1": a_look("drained")}
    plan = scale_down(seen(stopped(1), items=(item,), life=life, observations=looks), FLEET)
    assert [type(step) for step in plan.steps] == [Uncordon]


def test_an_agent_that_comes_back_is_not_given_up_and_counts_for_the_jobs_that_wait():
    agents, spare = stopped(1), replace(SPENT, usd=1.0)
    looks = {"i-1": a_look("drained")}
    one = a_fleet(a_pool("cpu"), max_usd_per_month=100.0)
    snapshot = seen(agents, month=spare, observations=looks, items=(an_item(1, label="cpu"),))
    for decision in (scale_up, scale_down):
        assert [(type(step), step.reason) for step in decision(snapshot, one).steps] == [(Uncordon, Reason.MONTH_LIMIT_LIFTED)]


def test_on_hold_it_does_not_come_back():
    snapshot = seen(stopped(1), month=replace(SPENT, usd=1.0), overrides=Overrides(holds=(HOLD,)))
    assert [step for step in scale_up(snapshot, FLEET).steps if isinstance(step, Uncordon)] == []


def test_what_came_back_for_a_build_is_not_owed_its_cordon_once_the_limit_holds_no_more():
    item = waits_for("cpu-1", run="job/m/4")
    plan = scale_down(seen(stopped(1, builds=(a_build("m", run="job/m/4"),)), items=(item,)), FLEET)
    assert tables(plan.memory).owed == {}


def test_why_says_that_the_month_is_spent():
    assert "$100.00 of $100.00 are spent this month" in explain(seen(an_agent(1)), FLEET, "cpu-1")[0]
