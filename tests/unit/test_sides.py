"""A machine that serves several controllers at once: what is free on each side, and that it goes only when all are drained."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.metering import launched_lately
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held, Launch, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler.domain.facts.telemetry import DEVICES_FRESH_SECONDS
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.supply import build_supply
from support.builders import (
    NOW,
    a_fleet,
    a_look,
    a_mark,
    a_record,
    an_instance,
    an_intent,
    an_item,
    cordoned,
)
from support.decisions import scale_down, scale_up
from support.remembered import with_tables
from support.sides import DRAINED, NAME, POOL, WINDOWS, a_side, down, free, gpu_node, seen, steps, told


def test_without_devices_as_many_builds_as_it_has_executors_run_on_all_sides_together():
    assert free(seen(gpu_node(1), gpu_node(2))) == {"main": 1, "other": 1}
    assert free(seen(gpu_node(3), gpu_node(2))) == {"main": 0, "other": 0}


@pytest.mark.parametrize(
    ("states", "seconds_ago", "left"),
    [
        (("free", "free", "held"), 60.0, {"main": 2, "other": 2}),
        (("free",) * 8, 60.0, {"main": 3, "other": 2}),  # no more than it has executors there
        (("held", "in use"), 60.0, {"main": 0, "other": 0}),
        (("held", "in use"), DEVICES_FRESH_SECONDS + 1.0, {"main": 1, "other": 1}),
        (("free", "free"), 150.0, {"main": 0, "other": 0}),  # three builds have begun since
    ],
    ids=["two are free", "more devices than executors", "none is free", "told too long ago", "builds have begun since"],
)
def test_executors_are_free_as_far_as_devices_are(states, seconds_ago, left):
    assert free(seen(gpu_node(1), gpu_node(2), devices=told(*states, seconds_ago=seconds_ago))) == left


def test_two_controllers_do_not_plan_on_the_same_executor():
    waiting = tuple(an_item(n, label="gpu") for n in range(3))
    situation = assess(seen(gpu_node(), gpu_node(), items=waiting), a_fleet(POOL))
    assert [build_supply(situation, name).executors("gpu") for name in POOL.controllers] == [4, 1]


def test_one_machine_counts_once():
    snapshot = seen(gpu_node(), gpu_node())
    assert [record.instance_id for record in snapshot.living] == ["i-1"]
    assert Budget(assess(snapshot, a_fleet(POOL))).fleet.agents == 1
    lately = replace(snapshot, records=tuple(replace(record, launched_at=NOW - 60.0) for record in snapshot.records))
    assert launched_lately(lately, lately.memory).total() == 1


def test_drained_on_both_sides_it_is_terminated():
    gone = cordoned(gpu_node())
    [step] = steps(down(seen(gone, gone, looks=DRAINED)), Terminate)
    assert (step.instance_id, step.reason) == ("i-1", Reason.DRAINED)


@pytest.mark.parametrize(
    ("other", "facts"),
    [
        (gpu_node(1), {}),
        (gpu_node(), {}),
        (cordoned(gpu_node(1)), {}),
        (cordoned(gpu_node()), {"looks": {"i-1": DRAINED["i-1"]}}),
        (cordoned(gpu_node()), {"records": (a_side("main"),)}),
        (
            cordoned(gpu_node(), a_mark(MarkClass.OPERATOR)),
            {"looks": {"i-1": DRAINED["i-1"], "i-1@other": a_look("drained", seconds_ago=0.0, request_id="now")}},
        ),
    ],
    ids=["busy", "in use", "a build is not done", "seen once", "its record was lost", "a second look is due"],
)
def test_drained_on_one_side_only_it_stays(other, facts):
    plan = down(seen(cordoned(gpu_node()), other, **({"looks": DRAINED} | facts)))
    assert steps(plan, Terminate) == []
    assert Reason.USED_ELSEWHERE in {held.reason for held in plan.held}


@pytest.mark.parametrize("doubt", [{"problem": "503"}, {"quieting_down": True}, {"session": "s9"}, {"unread": frozenset({NAME})}], ids=str)
def test_where_the_other_side_cannot_be_believed_it_stays(doubt):
    gone = cordoned(gpu_node())
    snapshot = seen(gone, gone, looks=DRAINED)
    nodes = {"nodes": ()} if "problem" in doubt or "unread" in doubt else {}
    views = {**snapshot.controllers, "other": replace(snapshot.controllers["other"], **doubt, **nodes)}
    assert steps(down(replace(snapshot, controllers=views)), Terminate) == []


def test_whatever_the_reason_a_machine_that_is_used_elsewhere_is_not_terminated():
    """Its node was deleted on the first controller, in two looks: where it serves one alone, it is terminated for that."""
    nodeless = {"i-1": a_look("nodeless", seconds_ago=400.0)}
    plan = down(seen(None, gpu_node(1), looks=nodeless))
    assert steps(plan, Terminate) == []
    assert Reason.USED_ELSEWHERE in {held.reason for held in plan.held}
    alone = scale_down(seen(None, None, records=(a_side("main"),), looks=nodeless), a_fleet(POOL))
    assert [step.reason for step in steps(alone, Terminate)] == [Reason.NODE_GONE]


@pytest.mark.parametrize("kind", [MarkClass.INTERRUPTED, MarkClass.OPERATOR, MarkClass.QUARANTINE, MarkClass.OUTDATED])
def test_drained_for_good_on_one_side_it_is_drained_on_all(kind):
    [step] = steps(down(seen(cordoned(gpu_node(), a_mark(kind)), gpu_node(1))), Cordon)
    assert (step.controller, step.mark.kind, step.reason) == ("other", kind, Reason.DRAINS_ELSEWHERE)


def test_retired_on_one_side_it_stays_in_use_on_the_other():
    busy = replace(gpu_node(1))
    assert steps(down(seen(cordoned(gpu_node()), busy)), Cordon) == []


def test_needed_by_none_it_is_cordoned_on_both_sides():
    assert {step.controller for step in steps(down(seen(gpu_node(), gpu_node())), Cordon)} == {"main", "other"}


def test_what_each_controller_needs_is_added_up():
    """Of two machines each controller has needed one: both stay."""
    windows = {name: replace(window, peaks=((NOW - 60, 1),)) for name, window in WINDOWS.items()}
    snapshot = seen(gpu_node(), gpu_node())
    two = tuple(
        replace(record, instance_id=record.instance_id.replace("i-1", "i-2"), bindings=(replace(record.bindings[0], node="gpu-2"),))
        for record in snapshot.records
    )
    second = replace(gpu_node(), name="gpu-2", labels=frozenset({"gpu-2", "gpu", "autoscaler-fleet-f"}))
    views = {name: replace(view, nodes=(*view.nodes, second)) for name, view in snapshot.controllers.items()}
    instances = (an_instance("i-1", pool="gpu"), an_instance("i-2", pool="gpu"))
    memory = with_tables(snapshot.memory, windows=windows)
    both = replace(snapshot, records=(*snapshot.records, *two), controllers=views, instances=instances, memory=memory)
    assert steps(down(both), Cordon) == []
    fewer = {**windows, "other/gpu": WINDOWS["other/gpu"]}
    assert len(steps(down(replace(both, memory=with_tables(memory, windows=fewer))), Cordon)) == 2


def test_a_side_whose_instance_ended_is_taken_for_ended_too():
    snapshot = seen(gpu_node(), gpu_node(), instances=(an_instance("i-1", pool="gpu", state=InstanceState.TERMINATED),))
    assert {agent.instance for agent in assess(snapshot, a_fleet(POOL)).agents} == {InstanceState.TERMINATED}


def test_a_side_alone_is_never_terminated_while_its_machine_serves_the_other():
    plan = down(seen(gpu_node(1), cordoned(gpu_node()), looks=DRAINED))
    assert [step for step in plan.steps if isinstance(step, Terminate)] == []
    assert any(isinstance(held, Held) and held.controller == "other" for held in plan.held)


def test_a_machine_that_boots_for_one_controller_comes_to_all():
    """One job waits on each, and a machine of four executors was launched for the first one's."""
    boots = a_record("i-1", pool="gpu", controller="main")
    snapshot = seen(None, None, records=(boots,), items=(an_item(label="gpu"),))
    theirs = replace(snapshot.controllers["other"], items=(an_item(2, label="gpu"),))
    both = replace(snapshot, controllers={**snapshot.controllers, "other": theirs})
    assert scale_up(both, a_fleet(POOL)).steps == ()
    alone = replace(both, records=(), instances=())
    assert [step.count for step in steps(scale_up(alone, a_fleet(POOL)), Launch)] == [1]


def test_a_launch_without_an_answer_for_one_controller_comes_to_all():
    snapshot = seen(None, None, records=(), instances=(), intents=(an_intent(pool="gpu", controller="main"),))
    situation = assess(snapshot, a_fleet(POOL))
    assert [build_supply(situation, name).executors("gpu") for name in POOL.controllers] == [4, 4]
