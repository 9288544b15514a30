"""Which agents are replaced because they are not what would be launched now."""

from dataclasses import replace

import pytest

from autoscaler.domain import decide
from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.memory import ControllerSession
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from support.builders import LONG_AGO, NOW, a_fleet, a_memory, a_pool, a_snapshot, a_view, an_agent, an_empty_window, an_instance
from support.decisions import decide_down, steps_of

FLEET = a_fleet(a_pool("cpu", controllers=("main", "other"), min_agents=10, max_agents=20))


def old_agents(controller, numbers):
    pairs = [an_agent(number) for number in numbers]
    return [replace(record, controller=controller) for record, _ in pairs], [node for _, node in pairs]


def cordoned(**facts):
    mine, my_nodes = old_agents("main", range(1, 4))
    theirs, their_nodes = old_agents("other", range(4, 7))
    records = (*mine, *theirs)
    sessions = {name: ControllerSession(session="s1", since_at=LONG_AGO) for name in ("main", "other")}
    memory = a_memory(sessions=sessions, connected=frozenset(record.instance_id for record in records), **facts)
    instances = tuple(an_instance(r.instance_id, controller=r.controller, template_version="1") for r in records)
    views = a_view(*my_nodes), a_view(*their_nodes, name="other")
    snapshot = a_snapshot(*views, records=records, instances=instances, memory=memory, template_versions={"cpu": "2"})
    steps = decide.scale_down(snapshot, FLEET).steps
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
