"""Which agents are replaced because they are not what would be launched now."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Binding, Wait
from autoscaler.domain.situation.bets import TrialOf
from support.builders import (
    LONG_AGO,
    NOW,
    a_fleet,
    a_mark,
    a_memory,
    a_pool,
    a_session,
    a_snapshot,
    a_trial,
    a_view,
    an_agent,
    an_empty_window,
    an_instance,
    an_item,
    an_offering,
)
from support.builders import cordoned as marked
from support.decisions import decide_down, scale_down, steps_of
from support.remembered import with_tables

FLEET = a_fleet(a_pool("cpu", controllers=("main", "other"), min_agents=10, max_agents=20))


def old_agents(controller, numbers):
    pairs = [an_agent(number) for number in numbers]
    return [replace(record, bindings=(Binding(controller=controller, node=record.node),)) for record, _ in pairs], [
        node for _, node in pairs
    ]


def cordoned(**facts):
    mine, my_nodes = old_agents("main", range(1, 4))
    theirs, their_nodes = old_agents("other", range(4, 7))
    records = (*mine, *theirs)
    sessions = {name: a_session() for name in ("main", "other")}
    memory = a_memory(sessions=sessions, connected=frozenset(record.instance_id for record in records), **facts)
    instances = tuple(an_instance(r.instance_id, controller=r.controller, template_version="1") for r in records)
    views = a_view(*my_nodes), a_view(*their_nodes, name="other")
    snapshot = a_snapshot(*views, records=records, instances=instances, memory=memory, template_versions={"cpu": "2"})
    steps = scale_down(snapshot, FLEET).steps
    return [step.controller for step in steps if isinstance(step, Cordon) and step.mark.kind is MarkClass.OUTDATED]


def test_the_share_of_a_pool_is_one_share_over_all_its_controllers():
    assert cordoned(proven={"cpu": "2"}) == ["main"]


def test_one_agent_makes_room_for_a_canary_over_all_controllers():
    assert cordoned(proven={"cpu": "1"}) == ["main"]


def test_what_was_taken_within_the_hour_counts():
    assert cordoned(proven={"cpu": "2"}, taken={"outdated/cpu": (LONG_AGO, NOW - 60.0)}) == []


def test_an_outdated_agent_goes_before_one_that_was_idle_for_longer():
    memory = a_memory(windows=an_empty_window(most=1), idle_since={"i-1": LONG_AGO, "i-2": NOW - 600}, proven={"cpu": "2"})
    instances = (an_instance("i-1", template_version="2"), an_instance("i-2", template_version="1"))
    plan = decide_down(an_agent(1), an_agent(2), instances=instances, memory=memory, template_versions={"cpu": "2"})
    assert [step.node for step in steps_of(Cordon, plan)] == ["cpu-2"]


@pytest.mark.parametrize(("hours", "goes"), [(2.9, False), (3.1, True)])
def test_an_agent_goes_when_it_is_older_than_the_operator_wants(hours, goes):
    record, node = an_agent()
    old = replace(record, launched_at=NOW - hours * 3600)
    plan = decide_down((old, node), fleet=a_fleet(a_pool("cpu", max_agent_hours=3.0, min_agents=1)))
    assert [step.reason for step in plan.steps] == ([Reason.MAX_AGENT_HOURS] if goes else [])


ONE = a_fleet(a_pool("cpu", max_agents=1))
REFUSED = a_trial(86_000.0, why="EC2 answered UnsupportedOperation")
ALL_REFUSED = a_memory(windows=an_empty_window(), trials={TrialOf.OFFERING.scope("cpu", an_offering().key): REFUSED}, proven={"cpu": "2"})


def plan_for_an_item_that_names_it(*others, kind=MarkClass.OUTDATED, waits=120.0, fleet=None, names=("cpu-1",), **facts):
    """Jenkins names an agent that is drained; its labels are those of a beacon, too."""
    record, node = an_agent()
    drained = record, marked(node, a_mark(kind))
    items = (an_item(job="deploy", why=Wait(for_executor=True, nodes=names), waiting_seconds=waits),)
    return decide_down(drained, *others, items=items, fleet=fleet, **({"memory": ALL_REFUSED} | facts))


@pytest.mark.parametrize("facts", [{}, {"fleet": ONE, "memory": a_memory()}, {"memory": a_memory()}, {"waits": 1.0}])
def test_an_outdated_agent_that_an_item_asks_for_by_name_comes_back_since_no_other_can_take_it(facts):
    [step] = plan_for_an_item_that_names_it(**facts).steps
    assert (type(step), step.node, step.reason) == (Uncordon, "cpu-1", Reason.PINNED)


def test_for_a_label_of_several_agents_it_does_not_come_back():
    assert plan_for_an_item_that_names_it(names=("cpu-1", "cpu-2")).steps == ()


def test_an_agent_that_is_drained_for_anything_else_does_not_come_back():
    of_limits = {MarkClass.MONTH_LIMIT, MarkClass.DAY_LIMIT, MarkClass.HANDS_OVER}
    for kind in set(MarkClass) - {MarkClass.OUTDATED, MarkClass.RETIRE, MarkClass.ROTATE, *of_limits}:
        assert plan_for_an_item_that_names_it(kind=kind).steps == ()


@pytest.mark.parametrize("proven", ["1", "2"], ids=["of a version to try first", "of a proven version"])
def test_no_agent_is_taken_while_no_replacement_can_be_launched(proven):
    facts = {"instances": (an_instance(template_version="1"),), "template_versions": {"cpu": "2"}}
    windows = an_empty_window(most=1)
    plan = decide_down(
        an_agent(), memory=with_tables(ALL_REFUSED, windows=windows, proven={"cpu": proven}, connected=frozenset({"i-1"})), **facts
    )
    assert (plan.steps, [said.detail for said in plan.held if said.reason is Reason.OUTDATED]) == (
        (),
        ["1 more agents are outdated; no replacement can be launched now"],
    )


def test_one_that_made_room_for_a_canary_and_came_back_makes_room_again_an_hour_later():
    assert cordoned(proven={"cpu": "1"}, taken={"outdated/cpu": (NOW - 60.0,)}) == []
    assert cordoned(proven={"cpu": "1"}, taken={"outdated/cpu": (NOW - 3700.0,)}) == ["main"]
