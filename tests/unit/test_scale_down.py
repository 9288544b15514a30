"""When an agent is cordoned, when it is given up, and what keeps it."""

from dataclasses import replace

import pytest

from autoscaler.domain import commands
from autoscaler.domain.facts.fleet import agent_spec
from autoscaler.domain.facts.memory import Burst, CapacityDelay
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import DrainAll, DrainNodes, DrainSome
from autoscaler.domain.facts.plan import Adopt, Cordon, DeleteNode, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, RecordState, Wait
from autoscaler.domain.learn import assess
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_look,
    a_mark,
    a_memory,
    a_node,
    a_pool,
    a_record,
    a_session,
    a_snapshot,
    a_view,
    a_window,
    an_agent,
    an_empty_window,
    an_instance,
    an_item,
    beacons,
    cordoned,
)
from support.decisions import decide_down, held, kinds, scale_down
from support.remembered import tables

FLEET = a_fleet()
SHORT = CapacityDelay(asks=3.0, seconds=3600.0, squares=3600.0**2, asked_at=NOW - 5000)


def drained_memory(instance_id="i-1", **look):
    return a_memory(windows=an_empty_window(), observations={instance_id: a_look("drained", **look)})


def a_drained_agent(mark=None):
    record, node = an_agent()
    return record, cordoned(node, mark)


def test_cordons_what_was_not_needed_inside_the_window():
    [step] = decide_down(an_agent()).steps
    assert (type(step), step.mark.kind, step.reason) == (Cordon, MarkClass.RETIRE, Reason.SURPLUS)
    assert "no more than 0 of 1 agents" in step.detail


def test_keeps_as_many_as_were_needed_at_once():
    memory = a_memory(windows=an_empty_window(most=2))
    plan = decide_down(an_agent(1), an_agent(2), an_agent(3), memory=memory)
    assert len(plan.steps) == 1


def test_agents_that_were_adopted_and_so_took_no_time_to_boot_do_no_harm():
    begun = Burst(peaks=((NOW - 600, 0),), rises=((NOW - 400, 2, 2.0),))
    memory = a_memory(windows=an_empty_window(burst=begun), boots={"cpu": (0.0,) * 20})
    assert "1" in tables(decide_down(items=(an_item(label="cpu"),), memory=memory).memory).idle_returns["main/cpu"]


def test_a_burst_is_learned_from_once_and_only_when_it_is_over():
    memory, learned = a_memory(windows=an_empty_window()), []
    for minute in range(6):
        snapshot = a_snapshot(a_view(items=(an_item(label="cpu"),)), memory=memory, taken_at=NOW + 60 * minute)
        memory = scale_down(snapshot, FLEET).memory
        learned.append(sum(sum(seen.times) for seen in tables(memory).idle_returns.get("main/cpu", {}).values()))
    assert learned == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]


def test_the_more_often_it_looks_the_less_waiting_a_kept_agent_spares():
    """A job waits for half a look until it is seen, and for the boot."""
    often, seldom = (
        assess(a_snapshot(a_view(), look_every_seconds=every), FLEET).pools["main", "cpu"].keep.costs.wait_usd for every in (20.0, 60.0)
    )
    assert seldom - often == pytest.approx(FLEET.pools["cpu"].wait_usd_per_hour * 20.0 / 3600)


def test_where_machines_were_short_keeping_an_agent_spares_more_waiting():
    for shortages in ({}, {"gpu": SHORT}):
        snapshot = a_snapshot(a_view(), memory=a_memory(capacity_delays=shortages))
        assert assess(snapshot, FLEET).pools["main", "cpu"].short_seconds == 0.0
    short = assess(a_snapshot(a_view(), memory=a_memory(capacity_delays={"cpu": SHORT})), FLEET).pools["main", "cpu"]
    spared_usd = short.keep.costs.wait_usd - assess(a_snapshot(a_view()), FLEET).pools["main", "cpu"].keep.costs.wait_usd
    assert spared_usd == pytest.approx(short.spec.wait_usd_per_hour * short.short_seconds / 3600)
    assert short.short_seconds > 600


def test_a_window_that_is_not_full_retires_nothing():
    memory = a_memory(windows={"main/cpu": a_window(opened_at=NOW - 60, seen_at=NOW - 30, peaks=((NOW - 30, 0),))})
    plan = decide_down(an_agent(), memory=memory)
    assert (plan.steps, held(plan)) == ((), {Reason.WINDOW_OPEN})


def test_what_was_idle_before_a_gap_and_is_idle_after_it_is_surplus_however_long_the_gap():
    memory = a_memory(windows={"main/cpu": a_window(opened_at=NOW - 9e4, seen_at=NOW - 7e4, peaks=((NOW - 7e4, 0),))})
    [step] = decide_down(an_agent(), memory=memory).steps
    assert (type(step), step.reason) == (Cordon, Reason.SURPLUS)


@pytest.mark.parametrize("gap", [181.0, 4000.0, 7e4])
def test_what_was_needed_before_a_gap_counts_as_needed_until_its_end(gap):
    memory = a_memory(windows={"main/cpu": a_window(opened_at=NOW - 9e4, seen_at=NOW - gap, peaks=((NOW - gap, 2),))})
    plan = decide_down(an_agent(), memory=memory)
    assert plan.steps == ()
    assert tables(plan.memory).windows["main/cpu"].peaks == ((NOW, 2), (NOW, 0))


def test_starved_items_count_as_needed_before_they_are_mature():
    items = (an_item(1, label="cpu", waiting_seconds=1.0),)
    assert decide_down(an_agent(), items=items).steps == ()


def test_the_agent_that_was_idle_longest_goes_first():
    memory = a_memory(windows=an_empty_window(most=1), idle_since={"i-1": NOW - 60, "i-2": NOW - 600})
    [step] = decide_down(an_agent(1), an_agent(2), memory=memory).steps
    assert step.node == "cpu-2"


def test_among_busy_agents_the_one_with_least_work_left_empties_first():
    fleet = a_fleet(a_pool("cpu", executors=2))
    long_one = an_agent(1, executors=2, builds=(a_build("a", elapsed_seconds=10.0, estimate_seconds=7200.0),))
    short_one = an_agent(2, executors=2, builds=(a_build("b", elapsed_seconds=10.0, estimate_seconds=60.0),))
    [step] = decide_down(long_one, short_one, fleet=fleet, memory=a_memory(windows=an_empty_window(most=1))).steps
    assert step.node == "cpu-2"


@pytest.mark.parametrize(("pool", "agents"), [({"min_agents": 1}, 1), ({"warm_executors": 1}, 1)], ids=["minimum", "warm"])
def test_keeps_the_minimum_and_the_warm_executors(pool, agents):
    assert decide_down(*(an_agent(n + 1) for n in range(agents)), fleet=a_fleet(a_pool("cpu", **pool))).steps == ()


def test_keeps_what_a_person_asked_to_keep():
    record, node = an_agent()
    assert decide_down((replace(record, keep_until=NOW + 60), node)).steps == ()


def test_gives_up_an_agent_that_was_idle_before_and_after_the_cordon():
    memory = drained_memory(seconds_ago=0.0, idle_before_at=NOW - 5.0, request_id="now")
    [step] = decide_down(a_drained_agent(), memory=memory).steps
    assert (type(step), step.reason, step.mark) == (Terminate, Reason.DRAINED, a_mark())


def test_settles_for_as_long_as_the_pool_says():
    memory = drained_memory(seconds_ago=0.0, idle_before_at=NOW - 4.9, request_id="now")
    assert held(decide_down(a_drained_agent(), memory=memory)) == {Reason.SECOND_LOOK}


@pytest.mark.parametrize(
    "look",
    [{"request_id": "now"}, {"seconds_ago": 59.0}, {"session": "s0"}],
    ids=["same invocation", "too soon", "another life"],
)
def test_one_that_was_busy_needs_a_later_invocation_of_the_same_life(look):
    plan = decide_down(a_drained_agent(), memory=drained_memory(**look))
    assert (plan.steps, held(plan)) == ((), {Reason.SECOND_LOOK})


def test_two_looks_far_apart_are_two_looks():
    [step] = decide_down(a_drained_agent(), memory=drained_memory(seconds_ago=7000.0, last_at=NOW - 7000.0)).steps
    assert (type(step), step.reason) == (Terminate, Reason.DRAINED)


def test_a_build_that_slipped_in_keeps_the_agent():
    record, node = an_agent(builds=(a_build(),))
    plan = decide_down((record, cordoned(node)), memory=drained_memory())
    assert (plan.steps, held(plan)) == ((), {Reason.STILL_BUSY})


def test_an_agent_whose_idle_flag_is_contradicted_by_an_executor_is_kept():
    record, node = an_agent(builds=(a_build(),))
    assert decide_down((record, replace(cordoned(node), idle=True)), memory=drained_memory()).steps == ()


def test_a_one_off_executor_keeps_the_agent():
    record, node = an_agent()
    assert decide_down((record, replace(cordoned(node), idle=False)), memory=drained_memory()).steps == ()


def test_a_pinned_agent_is_not_given_up_and_comes_back():
    record, node = a_drained_agent()
    items = (an_item(why=Wait(for_executor=True, nodes=(node.name,))),)
    assert kinds(decide_down((record, node), items=items, memory=drained_memory())) == [Uncordon]


def test_what_was_busy_before_a_restart_is_not_given_up_and_comes_back():
    life = a_session(since_at=NOW - 600, restarted=True, suspects={"cpu-1": ("job/job/1",)})
    memory = replace(drained_memory(), sessions={"main": life})
    [step] = decide_down(a_drained_agent(), memory=memory).steps
    assert (type(step), step.reason) == (Uncordon, Reason.BUSY_BEFORE_RESTART)


@pytest.mark.parametrize("state", [RecordState.REGISTERED, RecordState.CONDEMNED], ids=["drained for good", "condemned"])
@pytest.mark.parametrize("reason", [Reason.PINNED, Reason.BUSY_BEFORE_RESTART])
def test_one_that_drains_for_good_and_that_a_build_may_be_bound_to_is_named(reason, state):
    record, node = a_drained_agent(a_mark(MarkClass.QUARANTINE))
    drained = replace(record, state=state), node
    items = (an_item(job="deploy", why=Wait(for_executor=True, nodes=(node.name,))),) if reason is Reason.PINNED else ()
    suspects = {} if reason is Reason.PINNED else {"cpu-1": ("job/job/1",)}
    session = a_session(since_at=NOW - 600, restarted=True, suspects=suspects)
    plan = decide_down(drained, items=items, memory=replace(drained_memory(), sessions={"main": session}))
    [said] = [held for held in plan.held if "cpu-1" in held.detail]
    assert (plan.steps, said.reason) == ((), reason)
    assert ("deploy" in said.detail) is (reason is Reason.PINNED)


@pytest.mark.parametrize(
    ("view", "lives", "reason"),
    [
        ({"problem": "503"}, {}, Reason.INCOMPLETE),
        ({"quieting_down": True}, {}, Reason.QUIETING_DOWN),
        ({"session": "s2"}, {}, Reason.RESTART_GRACE),
        ({}, {"sessions": {"main": a_session(since_at=NOW - 119)}}, Reason.RESTART_GRACE),
        ({}, {"sessions": {}}, Reason.RESTART_GRACE),
    ],
    ids=["incomplete", "quieting down", "restarted now", "restarted lately", "never seen before"],
)
def test_nothing_is_given_up_where_jenkins_cannot_be_believed(view, lives, reason):
    memory = replace(drained_memory(), **lives)
    plan = decide_down(a_drained_agent(), an_agent(2), view=view, memory=memory)
    assert set(kinds(plan)) <= {Uncordon}
    assert reason in held(plan)


def test_a_look_at_what_cannot_be_believed_does_not_forget_what_was_needed_before():
    """A window starts again after three minutes that nobody saw, not after one answer that did not come."""
    assert tables(decide_down(an_agent(), view={"problem": "503"}).memory).windows == an_empty_window()


def test_what_is_marked_when_a_controller_is_met_for_the_first_time_may_have_been_busy_before_a_restart_that_nobody_saw():
    [step] = decide_down(a_drained_agent(), memory=replace(drained_memory(), sessions={})).steps
    assert (type(step), step.reason) == (Uncordon, Reason.BUSY_BEFORE_RESTART)


def test_a_retiring_agent_is_kept_while_its_pool_starves():
    items = (an_item(1, label="cpu", waiting_seconds=1.0),)
    plan = decide_down(a_drained_agent(), items=items, memory=drained_memory())
    assert (plan.steps, held(plan)) == ((), {Reason.DEMAND_IS_BACK})


def test_an_agent_that_a_person_took_offline_is_left_alone():
    record, node = an_agent()
    theirs = replace(cordoned(node), reason="autoscaler:other-fleet:retire:p")
    assert decide_down((record, theirs), memory=drained_memory()).steps == ()


def test_an_instance_that_never_registered_is_given_up_after_two_looks():
    record = a_record("i-1", launched_at=NOW - 1000)
    assert decide_down((record, None)).steps == ()
    memory = a_memory(observations={"i-1": a_look("overdue", session="")})
    [step] = decide_down((record, None), memory=memory).steps
    assert (type(step), step.reason) == (Terminate, Reason.BOOT_TIMEOUT)


def test_an_instance_that_is_booting_is_left_alone():
    assert decide_down((a_record("i-1", launched_at=NOW - 800), None)).steps == ()


def test_a_node_whose_instance_is_gone_is_deleted_after_two_looks():
    record, node = an_agent()
    dead = (record, replace(node, offline=True, cause=OfflineCause.OTHER))
    gone = {"instances": (), "fates": {"i-1": InstanceState.TERMINATED}}
    assert decide_down(dead, **gone).steps == ()
    [step] = decide_down(dead, **gone, memory=a_memory(observations={"i-1": a_look("ended", session="")})).steps
    assert (type(step), step.reason) == (DeleteNode, Reason.INSTANCE_GONE)


def test_absence_from_the_list_is_not_gone():
    record, node = an_agent()
    young = replace(record, launched_at=NOW - 300, registered_at=NOW - 100)
    looked = a_memory(observations={"i-1": a_look("ended", session="")})
    plan = decide_down((young, replace(node, offline=True)), instances=(), fates={"i-1": InstanceState.NOT_FOUND}, memory=looked)
    assert DeleteNode not in kinds(plan)


def test_a_dead_agent_that_is_still_busy_waits_for_the_disconnect_grace():
    record, node = an_agent(builds=(a_build(),))
    dead = (record, replace(node, offline=True))
    gone = {"instances": (), "fates": {"i-1": InstanceState.TERMINATED}}
    early = a_memory(observations={"i-1": a_look("ended", seconds_ago=200.0, session="")})
    late = a_memory(observations={"i-1": a_look("ended", seconds_ago=300.0, session="")})
    assert decide_down(dead, **gone, memory=early).steps == ()
    assert kinds(decide_down(dead, **gone, memory=late)) == [DeleteNode]


def test_a_lost_agent_is_quarantined_not_retired():
    record, node = an_agent()
    lost = (record, replace(node, offline=True, cause=OfflineCause.OTHER))
    memory = a_memory(observations={"i-1": a_look("lost", seconds_ago=300.0)})
    [step] = decide_down(lost, memory=memory).steps
    assert (type(step), step.mark.kind) == (Cordon, MarkClass.QUARANTINE)


def test_an_instance_without_its_node_is_given_up_after_two_looks():
    record, _ = an_agent()
    memory = a_memory(observations={"i-1": a_look("nodeless")})
    [step] = decide_down((record, None), memory=memory).steps
    assert (type(step), step.reason, step.node) == (Terminate, Reason.NODE_GONE, "cpu-1")


def test_a_node_that_could_not_be_read_is_not_missing():
    record, _ = an_agent()
    memory = a_memory(observations={"i-1": a_look("nodeless")})
    assert decide_down((record, None), view={"unread": frozenset({"cpu-1"})}, memory=memory).steps == ()


def test_an_unknown_instance_with_our_tags_is_adopted_with_its_node():
    node = a_node("cpu-7", "cpu", "autoscaler-fleet-f", description=agent_spec(a_fleet(), a_pool("cpu"), "i-7").description)
    memory = a_memory(observations={"i-7": a_look("stray", session="")}, windows=an_empty_window())
    [step] = decide_down(view={"nodes": (node,)}, memory=memory, instances=(an_instance("i-7"),)).steps
    assert (type(step), step.instance_id, step.node) == (Adopt, "i-7", "cpu-7")


def test_a_sweep_over_its_share_of_a_pool_stops():
    records = [a_record(f"i-{n}", launched_at=NOW - 1000) for n in range(10)]
    memory = a_memory(observations={r.instance_id: a_look("overdue", session="") for r in records})
    plan = decide_down(*((record, None) for record in records), memory=memory)
    assert len(plan.steps) == 3
    assert Reason.SWEEP_LIMIT in held(plan)


def test_a_person_drains_named_nodes_for_good():
    snapshot = a_snapshot(a_view(an_agent()[1]), records=(an_agent()[0],))
    plan = commands.drain_for_a_person(snapshot, FLEET, DrainNodes(nodes=("cpu-1", "nope"), reason="disk", request_id=None))
    [step] = plan.steps
    assert (step.node, step.mark.kind, step.detail) == ("cpu-1", MarkClass.OPERATOR, "disk")
    assert held(plan) == {Reason.NOT_FOUND}


def test_a_person_drains_some_and_the_same_request_only_once():
    agents = [an_agent(1), an_agent(2), an_agent(3)]
    snapshot = a_snapshot(a_view(*(node for _, node in agents)), records=tuple(record for record, _ in agents))
    order = DrainSome(pool="cpu", count=2, controller=None, reason="r", request_id="r1")
    plan = commands.drain_for_a_person(snapshot, FLEET, order)
    assert kinds(plan) == [Cordon, Cordon]
    again = commands.drain_for_a_person(replace(snapshot, memory=plan.memory), FLEET, order)
    assert (again.steps, held(again)) == ((), {Reason.ALREADY_DONE})


def test_a_person_drains_a_whole_pool_but_for_agents_that_a_build_may_be_bound_to():
    fleet = a_fleet(a_pool("cpu"), a_pool("gpu"))
    agents = [an_agent(1), an_agent(2), an_agent(3, pool="gpu")]
    pinned = an_item(1, label=None, wait=Wait(for_executor=True, nodes=("cpu-2",)))
    view = a_view(*(node for _, node in agents), *beacons(fleet)[1:], items=(pinned,))
    snapshot = a_snapshot(view, records=tuple(record for record, _ in agents))

    def drained(**about):
        order = DrainAll(reason="r", request_id=None, **({"pool": None, "controller": None} | about))
        plan = commands.drain_for_a_person(snapshot, fleet, order)
        return {step.node for step in plan.steps}, held(plan)

    assert drained(pool="cpu") == ({"cpu-1"}, {Reason.PINNED})
    assert drained() == ({"cpu-1", "gpu-3"}, {Reason.PINNED})
    assert drained(controller="main") == drained()
    assert drained(controller="other") == (set(), {Reason.NOT_FOUND})


def lost(minutes, **facts):
    record, node = an_agent()
    looks = {"i-1": a_look("lost", seconds_ago=minutes * 60.0)}
    memory = a_memory(windows=an_empty_window(), observations=looks, connected=frozenset({"i-1"}))
    return decide_down((record, replace(node, offline=True)), memory=memory, **facts)


def test_an_agent_that_lost_its_connection_is_waited_for_and_then_drained_for_good():
    """A peer takes it for idle and kills what it runs."""
    assert kinds(lost(3)) == []
    [step] = lost(6).steps
    assert (type(step), step.mark.kind, step.reason) == (Cordon, MarkClass.QUARANTINE, Reason.DISCONNECTED)


def test_an_agent_that_lost_its_connection_and_is_waited_for_by_name_is_left_alone():
    pinning = an_item(1, why=Wait(for_executor=False, nodes=("cpu-1",)))
    assert kinds(lost(30, items=(pinning,))) == []


def test_a_sweep_that_stops_in_one_pool_goes_on_in_another():
    fleet = a_fleet(a_pool("cpu", max_agents=20), a_pool("gpu", max_agents=20))
    records = [a_record(f"i-{n}", launched_at=NOW - 1000) for n in range(10)] + [a_record("i-g", pool="gpu", launched_at=NOW - 1000)]
    looks = {record.instance_id: a_look("overdue", session="") for record in records}
    plan = scale_down(a_snapshot(a_view(), records=tuple(records), memory=a_memory(observations=looks)), fleet)
    assert [step.pool for step in plan.steps].count("gpu") == 1


def test_idle_counts_as_seen_before_only_where_the_agent_was_cordoned_after_it():
    looks = {"i-1": a_look("lost", seconds_ago=300.0)}
    record, node = an_agent()
    plan = scale_down(a_snapshot(a_view(cordoned(node)), records=(record,), memory=a_memory(observations=looks)), FLEET)
    assert tables(plan.memory).observations["i-1"].idle_before_at is None


def test_what_was_drained_for_good_does_not_come_back_for_an_item_that_no_restart_made_wait():
    record, node = an_agent()
    pinning = an_item(1, why=Wait(for_executor=False, nodes=("cpu-1",)))
    snapshot = a_snapshot(a_view(cordoned(node, a_mark(MarkClass.OPERATOR)), items=(pinning,)), records=(record,))
    assert Uncordon not in {type(step) for step in scale_down(snapshot, FLEET).steps}


def test_the_node_of_an_ended_machine_goes_though_its_agent_is_to_come_back_for_a_build():
    """If Jenkins refuses to bring it back, the node would be left for ever otherwise."""
    record, node = an_agent()
    pinning = an_item(1, why=Wait(for_executor=False, nodes=("cpu-1",)))
    snapshot = a_snapshot(
        a_view(cordoned(node, a_mark(MarkClass.OPERATOR)), items=(pinning,)),
        records=(record,),
        instances=(),
        fates={"i-1": InstanceState.TERMINATED},
        memory=a_memory(
            sessions={"main": a_session(since_at=NOW - 600, restarted=True, suspects={"cpu-1": ("job/job/1",)})},
            observations={"i-1": a_look("ended", seconds_ago=600.0, session="")},
            connected=frozenset({record.life_id}),
        ),
    )
    assert {Uncordon, DeleteNode} <= {type(step) for step in scale_down(snapshot, FLEET).steps}
