"""Builds on a live controller that are lost with their agent: each is run again at most once, and accounted for."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import ItemState
from autoscaler.domain.facts.started_builds import RerunPolicy
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.live_scene import Scene, needs_a_restart, needs_matrices, restart

RUN_ID = "AUTOSCALER_RUN_ID"
GIVEN = {"REF": "main & 'so' 日本", RUN_ID: ""}
WAYS = {"spot interruption": Scene.interrupt, "machine stopped": Scene.stop, "agent killed": Scene.cut_off}
RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["", "and Jenkins restarts"])
LOST = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture
def pool(scene):
    """The pool whose lost builds are run again once."""
    name = next(iter(scene.fleet.pools))
    scene.fleet = replace(scene.fleet, pools={name: replace(scene.fleet.pools[name], rerun=RerunPolicy())})
    return name


def running(scene, pool, shape, way=Scene.cut_off, seconds=600.0):
    """A job, and its first build, which has all agents of the pool and was seen there. Returns the job and the instance that will go."""
    live = scene.live
    declares = () if shape == "freestyle" else tuple(GIVEN)
    if shape == "matrix":
        needs_matrices(live)
        job = live.define_matrix("lost", pool, 3 * live.build_seconds, ("linux", "bsd"), declares)
    else:
        job = live.define("lost", pool, seconds, Kind.PIPELINE if shape == "pipeline" else Kind.FREESTYLE, declares)
    market = "spot" if way is Scene.interrupt else "on-demand"
    agents = [scene.launch_by_hand(pool, market) for _ in range(2 if shape == "matrix" else 1)]
    scene.ports.builds["main"].start(job, GIVEN if declares else None)
    live.until(lambda: all(not live.node(scene.node_of(agent)).idle for agent in agents), "the build runs")
    if shape == "pipeline":
        live.until_sh_runs(f"{job}/1")
    scene.look()
    return job, agents[0]


def entries(scene, job):
    return scene.ports.builds["main"].job(job, 0.0).entries


def started_again(scene, job):
    """What was started for the first build of a job, once; a later look starts nothing else."""
    [rerun] = scene.state.reruns.values()
    assert (rerun.run, str(rerun.state), rerun.times) == (f"{job}/1", "started", 1)
    scene.minutes_later()
    assert list(scene.state.reruns.values()) == [rerun]
    [again] = [entry for entry in entries(scene, job) if entry.run != f"{job}/1"]  # a restart may leave nothing of a matrix itself
    assert again.item == rerun.item
    return rerun, again


@RESTARTS
@LOST
@pytest.mark.parametrize("shape", ["freestyle", "with parameters", "matrix"])
def test_a_lost_build_is_run_again_once_with_its_parameters(scene, pool, shape, way, restarts):
    if restarts:
        needs_a_restart(scene.live)
    job, instance = running(scene, pool, shape, way)
    way(scene, instance)
    if restarts:
        restart(scene.live)
        scene.look()
        for _ in range(6):  # an agent that has not come back in so many looks is gone; time that nobody looked in does not count
            scene.minutes_later()
    scene.until(lambda: bool(scene.state.reruns), "it is run again")
    rerun, again = started_again(scene, job)
    if shape != "freestyle":
        assert again.has("REF", GIVEN["REF"])
        assert again.has(RUN_ID, rerun.id)


@pytest.mark.parametrize("way", [Scene.stop, Scene.cut_off], ids=["machine stopped", "agent killed"])
def test_a_pipeline_that_waits_for_its_agent_is_named_and_goes_on_once_that_is_back(scene, pool, way):
    live = scene.live
    job, instance = running(scene, pool, "pipeline", way, 3 * live.build_seconds)
    way(scene, instance)
    scene.look()
    held = [held["detail"].partition(":")[0] for held in scene.minutes_later()["held"] if held["reason"] == Reason.MAY_RESUME]
    assert held == [f"{live.prefix}/lost"]
    live.start_agent(scene.node_of(instance))
    live.until(lambda: live.result("lost") is not None, "it goes on, and ends", each=1.0)
    scene.minutes_later()
    assert (live.result("lost"), len(entries(scene, job)), scene.state.reruns) == ("SUCCESS", 1, {})


@RESTARTS
def test_a_pipeline_whose_machine_is_gone_is_run_again_once_jenkins_has_given_it_up(scene, pool, restarts):
    """Its node is removed with the machine, and Jenkins waits for it for five minutes more."""
    live = scene.live
    if restarts:
        needs_a_restart(live)
    job, instance = running(scene, pool, "pipeline", Scene.interrupt)
    node = scene.node_of(instance)
    scene.interrupt(instance)
    if restarts:
        restart(live)
    scene.look()
    for _ in range(10):
        scene.minutes_later()
    left = live.controller.node(node)
    assert left is None or left.is_deleted, "Jenkins lists it while the pipeline is on it"
    assert scene.state.reruns == {}
    builds = scene.ports.builds["main"]
    live.until(lambda: not builds.run(f"{job}/1").building, "Jenkins gives it up", seconds=480.0, each=5.0)
    scene.until(lambda: bool(scene.state.reruns), "it is run again")
    rerun, again = started_again(scene, job)
    assert again.has("REF", GIVEN["REF"])
    assert again.has(RUN_ID, rerun.id)


def test_what_is_lost_once_too_often_is_left_to_a_person(scene, pool):
    live = scene.live
    job, instance = running(scene, pool, "with parameters")
    scene.cut_off(instance)
    scene.until(lambda: bool(scene.state.reruns), "it is run again")
    rerun, _ = started_again(scene, job)
    other, builds = scene.launch_by_hand(pool), scene.ports.builds["main"]
    live.until(lambda: builds.item(rerun.item).state is ItemState.STARTED, "it runs on another agent")
    run = builds.item(rerun.item).run
    assert builds.run(run).node == scene.node_of(other)
    scene.look()
    scene.cut_off(other)
    scene.until(lambda: len(scene.state.reruns) == 2, "it is answered for, too")
    assert {(one.run, str(one.state)) for one in scene.state.reruns.values()} == {(f"{job}/1", "started"), (run, "left")}
    assert [one.run for one in scene.state.memory.fleet.left.values()] == [run]
    assert len(entries(scene, job)) == 2


def test_what_a_person_stopped_is_not_lost_though_its_agent_goes(scene, pool):
    job, instance = running(scene, pool, "freestyle")
    builds = scene.ports.builds["main"]
    builds.stop(f"{job}/1")
    scene.live.until(lambda: not builds.run(f"{job}/1").building, "it has stopped")
    scene.cut_off(instance)
    scene.look()
    scene.minutes_later()
    assert (scene.state.reruns, len(entries(scene, job)), scene.state.memory.lost) == ({}, 1, {})


def test_what_a_restart_of_jenkins_ended_is_not_lost_where_its_agent_comes_back(scene, pool):
    needs_a_restart(scene.live)
    job, instance = running(scene, pool, "freestyle")
    restart(scene.live)
    scene.live.until(lambda: not scene.live.node(scene.node_of(instance)).offline, "its agent is back")
    scene.look()
    for _ in range(6):
        scene.minutes_later()
    assert (scene.state.reruns, len(entries(scene, job)), scene.state.memory.lost) == ({}, 1, {})
