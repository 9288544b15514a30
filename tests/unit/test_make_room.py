"""Idle agents that are kept for what may come back, where a limit that they count against keeps jobs waiting."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Lending
from autoscaler.domain.facts.memory import FreeNode, Stuck
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Wait
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_mark,
    a_memory,
    a_pool,
    a_session,
    a_snapshot,
    a_view,
    a_window,
    an_agent,
    an_item,
    an_offering,
    cordoned,
)
from support.decisions import scale_down, scale_up

GPU_JOB = (an_item(1, label="gpu"),)


def needed_lately(most=3):
    """Windows in which so many cpu agents were needed a minute ago: none is surplus."""
    return {"main/cpu": a_window(peaks=((NOW - 60, most),))}


def plan_of(*agents, items=GPU_JOB, pools=None, memory=None, view=None, decision=scale_down, **limits):
    """Decide for a pool of cpu agents that are kept, and one of gpu agents that has none."""
    fleet = a_fleet(*(pools or (a_pool("cpu"), a_pool("gpu"))), **limits)
    shown = a_view(*(node for _, node in agents), items=items, **(view or {}))
    remembered = a_memory(windows=needed_lately(), **(memory or {}))
    return decision(a_snapshot(shown, records=tuple(record for record, _ in agents), memory=remembered), fleet)


def waits_for(node):
    """A pipeline that goes on where it was: on this very node."""
    return an_item(2, why=Wait(for_executor=False, nodes=(node,)), buildable=False)


def gone(*agents, **facts):
    """The nodes that give way."""
    return {step.node for step in plan_of(*agents, **facts).steps if isinstance(step, Cordon) and step.reason is Reason.GIVES_WAY}


def test_an_idle_agent_gives_way_to_a_job_that_the_limit_keeps_waiting():
    [step] = plan_of(an_agent(1), an_agent(2), max_agents=2).steps
    assert (step.reason, step.mark.kind) == (Reason.GIVES_WAY, "retire")
    assert step.detail == (
        "it is idle, and takes the room of an agent that jobs wait for: one more would make 3 agents in the fleet, the limit is 2"
    )


def test_none_does_while_there_is_room():
    assert gone(an_agent(1), an_agent(2), max_agents=3) == set()


def test_none_does_for_a_job_that_is_not_ripe_or_that_no_launch_would_help():
    agents = an_agent(1), an_agent(2)
    assert gone(*agents, items=(an_item(1, label="gpu", waiting_seconds=1.0),), max_agents=2) == set()
    assert gone(*agents, items=(an_item(1, label="sparc"),), max_agents=2) == set()
    assert gone(*agents, max_agents=2, max_launches_per_hour=0) == set()


def test_none_does_where_the_controller_takes_no_new_builds():
    assert gone(an_agent(1), max_agents=1, view={"quieting_down": True}) == set()


def test_the_one_that_was_idle_longest_goes():
    memory = {"idle_since": {"i-1": NOW - 60, "i-2": NOW - 600, "i-3": NOW - 300}}
    assert gone(an_agent(1), an_agent(2), an_agent(3), memory=memory, max_agents=3) == {"cpu-2"}


def test_as_many_go_as_jobs_need_the_room_of():
    items = tuple(an_item(number, label="gpu") for number in (1, 2))
    assert len(gone(an_agent(1), an_agent(2), an_agent(3), items=items, max_agents=3)) == 2


def test_those_that_leave_already_are_counted_first():
    record, node = an_agent(2)
    assert gone(an_agent(1), (record, cordoned(node)), max_agents=2) == set()


@pytest.mark.parametrize(
    "remembered",
    [{"kept": frozenset({"i-2"})}, {"stuck": {"i-2": Stuck(since_at=NOW - 600, tried_at=NOW - 60)}}],
    ids=["kept for a person to look at", "EC2 does not let it be terminated"],
)
def test_one_that_is_out_of_use_and_does_not_leave_makes_no_room(remembered):
    record, node = an_agent(2)
    agents = an_agent(1), (record, cordoned(node, a_mark(MarkClass.QUARANTINE)))
    assert gone(*agents, memory=remembered, max_agents=2) == {"cpu-1"}


def test_one_that_is_out_of_use_while_a_queue_item_waits_for_it_makes_no_room():
    record, node = an_agent(2)
    items = (*GPU_JOB, waits_for("cpu-2"))
    agents = an_agent(1), (record, cordoned(node, a_mark(MarkClass.OPERATOR)))
    assert gone(*agents, items=items, max_agents=2) == {"cpu-1"}


def test_of_dollars_as_many_go_as_one_dear_agent_takes():
    pools = a_pool("cpu"), a_pool("gpu", offerings=(an_offering("p4d.24xlarge", usd_per_hour=6.0),))
    assert len(gone(an_agent(1), an_agent(2), an_agent(3), pools=pools, max_usd_per_hour=10.0)) == 2
    assert gone(an_agent(1), an_agent(2), an_agent(3), pools=pools, max_usd_per_hour=5.0) == set()


def test_a_dear_agent_goes_alone_for_several_cheap_ones():
    pools = a_pool("cpu", offerings=(an_offering("p4d.24xlarge", usd_per_hour=9.0),)), a_pool("gpu")
    agents = [(replace(record, usd_per_hour=9.0), node) for record, node in (an_agent(1), an_agent(2))]
    items = tuple(an_item(number, label="gpu") for number in (1, 2, 3))
    assert len(gone(*agents, pools=pools, items=items, max_usd_per_hour=18.0)) == 1


def test_an_agent_that_works_or_is_needed_soon_stays():
    assert gone(an_agent(1, builds=(a_build(),)), max_agents=1) == set()
    record, node = an_agent(1)
    free = FreeNode(since_at=NOW - 600.0, seen_at=NOW - 60.0, looks=9, session="s1", labels=tuple(sorted(node.labels)))
    items = (*GPU_JOB, an_item(2, label="cpu", waiting_seconds=1.0))
    assert gone((record, node), items=items, max_agents=1, memory={"free_nodes": {"main/cpu-1": free}}) == set()


def test_an_agent_that_has_just_become_free_beside_a_job_may_still_take_it():
    items = (*GPU_JOB, an_item(2, label="cpu", waiting_seconds=1.0))
    assert gone(an_agent(1), an_agent(2), items=items, max_agents=2) == set()


@pytest.mark.parametrize("asked", [{"min_agents": 1}, {"warm_executors": 1}], ids=str)
def test_what_an_operator_wants_to_be_there_stays(asked):
    pools = a_pool("cpu", **asked), a_pool("gpu")
    assert len(gone(an_agent(1), an_agent(2), pools=pools, max_agents=2)) == 1
    assert gone(an_agent(1), pools=pools, max_agents=1) == set()


def test_an_agent_that_a_queue_item_names_stays():
    items = (*GPU_JOB, waits_for("cpu-1"))
    assert gone(an_agent(1), items=items, max_agents=1) == set()


def two_controllers(*, waiting=("main",)):
    """A pool of one agent, which is idle on ``main``, and of which ``second`` has none; jobs wait on these controllers."""
    record, node = an_agent(1)
    views = (
        a_view(node, items=()),
        a_view(name="second", items=(an_item(1, label="cpu"),) if "second" in waiting else ()),
    )
    sessions = {name: a_session() for name in ("main", "second")}
    return a_snapshot(*views, records=(record,), memory=a_memory(windows=needed_lately(), sessions=sessions))


def test_an_agent_on_one_controller_gives_way_to_a_job_on_another_that_shares_the_pool():
    fleet = a_fleet(a_pool("cpu", max_agents=1, controllers=("main", "second")))
    [step] = scale_down(two_controllers(waiting=("second",)), fleet).steps
    assert (step.controller, step.node, step.reason) == ("main", "cpu-1", Reason.GIVES_WAY)
    assert scale_down(two_controllers(waiting=()), fleet).steps == ()


def test_where_both_the_fleet_and_a_pool_are_full_the_agent_of_that_pool_goes_first():
    """The one that is idle longer would make room in the fleet, but none for the job that needs the pool's."""
    fleet = a_fleet(a_pool("cpu"), a_pool("gpu", max_agents=1, controllers=("main", "second")), a_pool("arm"), max_agents=2)
    cpu, gpu = an_agent(1), an_agent(2, pool="gpu")
    views = a_view(cpu[1], gpu[1], items=(an_item(1, label="arm"),)), a_view(name="second", items=(an_item(2, label="gpu"),))
    windows = {f"main/{pool}": a_window(peaks=((NOW - 60, 1),)) for pool in ("cpu", "gpu")}
    sessions = {name: a_session() for name in ("main", "second")}
    memory = a_memory(windows=windows, sessions=sessions, idle_since={"i-1": NOW - 600, "i-2": NOW - 60})
    steps = scale_down(a_snapshot(*views, records=(cpu[0], gpu[0]), memory=memory), fleet).steps
    assert {step.node for step in steps if isinstance(step, Cordon)} == {"cpu-1", "gpu-2"}
    few = replace(views[0], items=())
    [step] = scale_down(a_snapshot(few, views[1], records=(cpu[0], gpu[0]), memory=memory), fleet).steps
    assert step.node == "gpu-2"


def test_an_agent_of_another_pool_does_not_where_only_the_pool_is_full():
    cpu, gpu = an_agent(1), an_agent(2, pool="gpu", builds=(a_build(elapsed_seconds=0.0, estimate_seconds=9000.0),))
    assert gone(cpu, gpu, pools=(a_pool("cpu"), a_pool("gpu", max_agents=1))) == set()


@pytest.mark.parametrize("first", ["main", "second"])
def test_the_controller_whose_job_has_waited_longest_launches_first(first):
    pool = a_pool("cpu", max_agents=1, controllers=("main", "second"))
    views = (
        a_view(name=name, items=(an_item(1, label="cpu", waiting_seconds=300.0 if name == first else 200.0),)) for name in pool.controllers
    )
    plan = scale_up(a_snapshot(*views), a_fleet(pool))
    assert [step.controller for step in plan.steps if isinstance(step, Launch)] == [first]


# Agents that no job which waits can take, whatever their pool counts on.


DOCKER = (a_pool("cpu", labels=frozenset({"cpu", "docker"}), min_agents=1),)
DOCKER_JOB = (an_item(1, label="docker"),)


def labelled(number, *labels, **facts):
    """An idle agent of pool cpu whose node has these labels."""
    record, node = an_agent(number, **facts)
    return record, replace(node, labels=frozenset((node.name, "autoscaler-fleet-f", *labels)))


def marks_of(*agents, **facts):
    steps = plan_of(*agents, **facts).steps
    return {step.node: step.mark.kind for step in steps if isinstance(step, Cordon) and step.reason is Reason.GIVES_WAY}


def test_an_agent_without_the_label_that_its_pool_has_now_gives_way_for_good_though_the_pool_needs_one():
    agents = labelled(1, "cpu"), labelled(2, "cpu", "docker", builds=(a_build(),))
    assert marks_of(*agents, items=DOCKER_JOB, pools=DOCKER, max_agents=2) == {"cpu-1": MarkClass.HANDS_OVER}


def test_it_goes_before_one_that_is_idle_for_longer_and_may_be_needed_again():
    pools = (*DOCKER, a_pool("gpu"))
    memory = {"idle_since": {"i-1": NOW - 60, "i-2": NOW - 600}}
    idle_gpu = an_agent(2, pool="gpu")
    assert set(marks_of(labelled(1, "cpu"), idle_gpu, items=DOCKER_JOB, pools=pools, memory=memory, max_agents=2)) == {"cpu-1"}


def test_it_stays_if_it_is_its_pools_minimum_and_the_jobs_that_wait_are_for_others():
    pools = (*DOCKER, a_pool("gpu"))
    assert marks_of(labelled(1, "cpu"), items=GPU_JOB, pools=pools, max_agents=1) == {}
    assert set(marks_of(labelled(1, "cpu"), labelled(2, "cpu"), items=GPU_JOB, pools=pools, max_agents=2)) <= {"cpu-1", "cpu-2"}


@pytest.mark.parametrize(
    "items",
    [(an_item(1, label="cpu"),), (an_item(1, why=Wait(for_executor=True)),), (an_item(1, why=Wait(for_executor=True, named="cpu-1")),)],
)
def test_an_agent_that_may_take_what_waits_stays(items):
    """By a label that it has, without any label, or by its name."""
    pools = (a_pool("cpu", labels=frozenset({"cpu", "docker"}), exclusive=False),)
    assert marks_of(labelled(1, "cpu"), items=(*items, *DOCKER_JOB), pools=pools, max_agents=1) == {}


def test_an_agent_whose_labels_are_away_for_a_while_or_that_may_be_lent_stays():
    full = labelled(1, "autoscaler-full")
    assert marks_of(full, items=DOCKER_JOB, pools=DOCKER, max_agents=1) == {}
    rare = a_pool("gpu", lend=Lending.IDLE, lent_labels=frozenset({"cpu"}))
    record, node = an_agent(1, pool="gpu")
    agent = replace(record, labels=("gpu",)), node
    assert marks_of(agent, items=(an_item(1, label="cpu"),), pools=(a_pool("cpu"), rare), max_agents=1) == {}


def test_it_does_not_go_for_a_job_that_no_launch_would_help():
    assert marks_of(labelled(1, "cpu"), items=DOCKER_JOB, pools=DOCKER, max_agents=1, max_launches_per_hour=0) == {}
    assert marks_of(labelled(1, "cpu"), items=DOCKER_JOB, pools=DOCKER, max_agents=2) == {}
