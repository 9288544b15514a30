"""What mutants of the decision survived once: each of these would kill a build, leak an agent, or spend beyond a limit."""

from dataclasses import replace

import pytest

from autoscaler.domain import decide
from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.memory import ControllerSession
from autoscaler.domain.facts.plan import Cordon, Launch, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, RecordState, Wait
from autoscaler.domain.repair.two_looks import Condition, Seen, next_observations
from autoscaler.domain.situation.controller_restarts import next_session
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_look,
    a_mark,
    a_memory,
    a_node,
    a_pool,
    a_record,
    a_snapshot,
    a_view,
    an_agent,
    an_empty_window,
    an_instance,
    an_item,
    cordoned,
)

FLEET = a_fleet()


def steps_of(record, node, *, fleet=FLEET, view=None, **facts):
    given = {"memory": a_memory(windows=an_empty_window())}
    nodes = (node,) if node else ()
    return decide.scale_down(a_snapshot(a_view(*nodes, **(view or {})), records=(record,), **(given | facts)), fleet).steps


def test_a_record_is_not_closed_while_its_controller_cannot_be_read_though_its_instance_is_gone():
    gone = {"instances": (), "fates": {"i-1": InstanceState.TERMINATED}}
    condemned = replace(an_agent()[0], state=RecordState.CONDEMNED)
    assert steps_of(condemned, None, view={"problem": "503", "session": ""}, **gone) == ()
    assert steps_of(condemned, None, view={"unread": frozenset({"cpu-1"})}, **gone) == ()


@pytest.mark.parametrize("state", ["busy", "online"])
def test_a_condemned_agent_that_is_not_at_rest_is_not_terminated(state):
    record, node = an_agent(builds=(a_build(),)) if state == "busy" else an_agent()
    looked = a_memory(windows=an_empty_window(), observations={"i-1": a_look(Condition.DRAINED)})
    condemned = replace(record, state=RecordState.CONDEMNED)
    steps = steps_of(condemned, cordoned(node) if state == "busy" else node, memory=looked)
    assert Terminate not in {type(step) for step in steps}


def test_a_sweep_that_stops_in_one_pool_goes_on_in_another():
    fleet = a_fleet(a_pool("cpu", max_agents=20), a_pool("gpu", max_agents=20))
    records = [a_record(f"i-{n}", launched_at=NOW - 1000) for n in range(10)] + [a_record("i-g", pool="gpu", launched_at=NOW - 1000)]
    looks = {record.instance_id: a_look("overdue", session="") for record in records}
    plan = decide.scale_down(a_snapshot(a_view(), records=tuple(records), memory=a_memory(observations=looks)), fleet)
    assert [step.pool for step in plan.steps].count("gpu") == 1


def test_idle_counts_as_seen_before_only_where_the_agent_was_cordoned_after_it():
    looks = {"i-1": a_look(Condition.LOST, seconds_ago=300.0)}
    [look] = next_observations(looks, {"i-1": Seen(Condition.DRAINED, "s1")}, NOW, "now").values()
    assert look.idle_before_at is None


def test_a_restart_remembers_who_is_busy_in_the_new_life():
    before = ControllerSession(session="s0", since_at=0.0)
    busy = a_node("k-1", builds=(a_build(),))
    assert next_session(before, a_view(busy), (), NOW, 7200.0).busy == {"k-1": ("job/job/1",)}


def test_an_outdated_agent_goes_before_one_that_was_idle_for_longer():
    agents = [an_agent(1), an_agent(2)]
    memory = a_memory(windows=an_empty_window(most=1), idle_since={"i-1": LONG_AGO, "i-2": NOW - 600}, proven={"cpu": "2"})
    instances = (an_instance("i-1", template_version="2"), an_instance("i-2", template_version="1"))
    records = tuple(record for record, _ in agents)
    snapshot = a_snapshot(
        a_view(*(node for _, node in agents)), records=records, instances=instances, memory=memory, template_versions={"cpu": "2"}
    )
    cordons = [step.node for step in decide.scale_down(snapshot, FLEET).steps if isinstance(step, Cordon)]
    assert cordons == ["cpu-2"]


@pytest.mark.parametrize(("hours", "goes"), [(2.9, False), (3.1, True)])
def test_an_agent_goes_when_it_is_older_than_the_operator_wants(hours, goes):
    fleet = a_fleet(a_pool("cpu", max_agent_hours=3.0, min_agents=1))
    record, node = an_agent()
    steps = steps_of(replace(record, launched_at=NOW - hours * 3600), node, fleet=fleet)
    assert [step.reason for step in steps] == ([Reason.MAX_AGENT_HOURS] if goes else [])


def test_an_instance_without_a_record_counts_against_its_pool_and_the_rate():
    stray = an_instance("i-7", launched_at=LONG_AGO)
    for fleet, reason in ((a_fleet(a_pool(max_agents=1)), Reason.MAX_AGENTS), (a_fleet(max_usd_per_hour=5.0), Reason.USD_PER_HOUR)):
        plan = decide.scale_up(a_snapshot(a_view(items=(an_item(label="cpu"),)), instances=(stray,)), fleet)
        assert [step for step in plan.steps if isinstance(step, Launch)] == []
        assert reason in {held.reason for held in plan.held}


def test_an_instance_of_a_pool_that_left_the_fleet_file_counts_against_the_fleet():
    fleet = a_fleet(a_pool(max_agents=1), max_agents=1)
    stray = an_instance("i-7", pool="left", launched_at=LONG_AGO)
    plan = decide.scale_up(a_snapshot(a_view(items=(an_item(label="cpu"),)), instances=(stray,)), fleet)
    assert [step for step in plan.steps if isinstance(step, Launch)] == []


def test_how_long_an_agent_booted_is_noted_once():
    record, node = an_agent()
    young = replace(record, launched_at=NOW - 300, registered_at=NOW - 100)
    snapshot = a_snapshot(a_view(node), records=(young,), memory=a_memory(windows=an_empty_window()))
    memory = decide.scale_down(snapshot, FLEET).memory
    assert memory.boots["cpu"] == (200.0,)
    assert decide.scale_down(replace(snapshot, memory=memory), FLEET).memory.boots["cpu"] == (200.0,)


def a_condemned(number, **facts):
    record, node = an_agent(number)
    return replace(record, state=RecordState.CONDEMNED), cordoned(replace(node, **facts))


def test_a_condemned_agent_that_a_build_waits_for_is_not_terminated_and_keeps_nobody_else_from_it():
    (waited_for, first), (loose, second) = a_condemned(1), a_condemned(2)
    looks = {name: a_look(Condition.DRAINED) for name in ("i-1", "i-2")}
    pinning = an_item(1, why=Wait(for_executor=False, nodes=("cpu-1",)))
    snapshot = a_snapshot(
        a_view(first, second, items=(pinning,)), records=(waited_for, loose), memory=a_memory(windows=an_empty_window(), observations=looks)
    )
    assert [s.instance_id for s in decide.scale_down(snapshot, FLEET).steps if isinstance(s, Terminate)] == ["i-2"]


def test_what_was_drained_for_good_does_not_come_back_for_an_item_that_no_restart_made_wait():
    record, node = an_agent()
    pinning = an_item(1, why=Wait(for_executor=False, nodes=("cpu-1",)))
    snapshot = a_snapshot(a_view(cordoned(node, a_mark(MarkClass.OPERATOR)), items=(pinning,)), records=(record,))
    assert Uncordon not in {type(step) for step in decide.scale_down(snapshot, FLEET).steps}


def test_a_pool_that_is_full_leaves_its_items_to_another():
    cheap, dear = a_pool("cheap", labels=frozenset({"cpu"}), max_agents=1), a_pool("dear", labels=frozenset({"cpu", "more"}))
    record, node = an_agent(1, pool="cheap")
    theirs = replace(node, offline=True, temporarily_offline=True, cause=OfflineCause.PERSON, reason="disk swap")
    snapshot = a_snapshot(a_view(theirs, items=(an_item(1, label="cpu"),)), records=(record,))
    assert [step.pool for step in decide.scale_up(snapshot, a_fleet(cheap, dear)).steps if isinstance(step, Launch)] == ["dear"]
