"""Runs that people order, on a live controller: started with a label, found, stopped, cancelled, and started again where they are lost."""

from dataclasses import dataclass, replace

import pytest

from autoscaler.control import operate
from autoscaler.domain.facts.started_builds import RerunPolicy, RunPolicy, Until
from autoscaler.domain.labels import parse
from autoscaler.domain.run_orders.choice import Asked, CancelRun, OrderRuns, Vary
from autoscaler.errors import UnansweredError
from autoscaler.ports import Builds
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.live_scene import needs_label_parameters

LABEL, RUN_ID = "AGENT_LABEL", "AUTOSCALER_RUN_ID"
KINDS = pytest.mark.parametrize("kind", list(Kind), ids=str)


@dataclass(slots=True)
class LosesAnAnswer:
    """The builds of a controller. Jenkins does what it is asked; the answer to the next start is lost on its way."""

    builds: Builds
    answers: int = 1

    def __getattr__(self, name):
        return getattr(self.builds, name)

    def start(self, job, parameters):
        item = self.builds.start(job, parameters)
        if self.answers:
            self.answers -= 1
            raise UnansweredError("the connection to Jenkins failed")
        return item


@pytest.fixture
def pools(scene):
    """The two pools of a fleet whose file lets people order runs, and has lost builds run again, too."""
    rerun = {name: replace(pool, rerun=RerunPolicy()) for name, pool in scene.fleet.pools.items()}
    scene.fleet = replace(scene.fleet, pools=rerun, runs=RunPolicy(label_parameter=LABEL, max_open=5))
    return list(rerun)


def define(scene, kind, seconds):
    """A job that may be ordered."""
    path = scene.live.define("kernel", f"params.{LABEL}", seconds, kind, (LABEL, "REF", RUN_ID))
    needs_label_parameters(scene.live, path, LABEL)
    return path


def order(scene, runs, *, pool=None, until=Until.EACH, resubmit=1):
    """Order it as `operate` does; its id."""
    on, vary = (parse(pool), None) if pool else (None, Vary.POOL)
    request = OrderRuns(
        asked=Asked(job=f"{scene.live.prefix}/kernel", runs=runs, expression=on, vary=vary, strict=True),
        parameters=(("REF", "main & 'so'"),),
        until=until,
        resubmit=resubmit,
        replace=None,
        by="alice",
        reason="",
        request_id=f"{scene.live.prefix}-{scene.live.now()}",
    )
    entry = operate.order_runs(scene.ports, scene.fleet, scene.invocation(), request)
    return entry.id


def told(scene, order_id):
    [entry] = operate.list_runs(scene.ports, scene.fleet, 1, order_id)
    return entry


def states(scene, order_id):
    return sorted(part.state for part in told(scene, order_id).parts)


def ended(scene, order_id):
    scene.until(lambda: told(scene, order_id).outcome is not None, "the order ends")
    return told(scene, order_id)


def left_over(scene, job):
    """What still waits or runs of a job."""
    entries = scene.ports.builds["main"].job(job, 0.0).entries
    return [entry for entry in entries if not entry.run or scene.ports.builds["main"].run(entry.run).building]


@KINDS
def test_an_order_passes_on_two_labels_each_on_the_pool_that_it_names(scene, pools, kind):
    live, job = scene.live, define(scene, kind, 2 * scene.live.build_seconds)
    nodes = {pool: scene.node_of(scene.launch_by_hand(pool)) for pool in pools}
    order_id = order(scene, 2)
    live.until(lambda: all(not live.node(node).idle for node in nodes.values()), "each pool has a run")
    given = {part.run: part.pool for part in shown(scene, order_id)}
    assert {run: pool for pool, node in nodes.items() for build in live.node(node).builds for run in [build.run]} == given
    entry = ended(scene, order_id)
    assert (entry.outcome, entry.summary) == ("passed", "2 of 2 passed")
    entries = scene.ports.builds["main"].job(job, 0.0).entries
    assert sorted(entry.has("REF", "main & 'so'") for entry in entries) == [True, True]
    if kind is Kind.FREESTYLE:  # of pipelines Jenkins does not say where they ran
        assert {part.pool: part.node for part in entry.parts} == nodes


def shown(scene, order_id):
    """The runs of an order once Jenkins has begun all of them."""
    scene.until(lambda: all(part.run for part in told(scene, order_id).parts), "all have begun")
    return told(scene, order_id).parts


@KINDS
def test_the_first_of_a_gang_that_passes_ends_the_others_whether_they_run_or_wait(scene, pools, kind):
    live = scene.live
    seconds = 3 * live.build_seconds  # on a busy machine a pass takes seconds, and the second build is to run on meanwhile
    job = define(scene, kind, seconds)
    first = scene.node_of(scene.launch_by_hand(pools[0]))
    order_id = order(scene, 4, pool=pools[0], until=Until.FIRST_SUCCESS)
    live.until(lambda: not live.node(first).idle, "one runs, the others wait")
    live.pass_time(seconds / 2)
    scene.launch_by_hand(pools[0])
    entry = ended(scene, order_id)
    assert (entry.outcome, entry.summary) == ("passed", f"passed first on {pools[0]}")
    assert states(scene, order_id) == ["passed", "stopped", "stopped", "stopped"]
    assert left_over(scene, job) == []


@KINDS
def test_a_cancelled_order_ends_what_runs_and_what_waits(scene, pools, kind):
    live, job = scene.live, define(scene, kind, 600.0)
    node = scene.node_of(scene.launch_by_hand(pools[0]))
    order_id = order(scene, 2, pool=pools[0])
    live.until(lambda: not live.node(node).idle, "one runs, the other one waits")
    scene.look()
    cancelled = CancelRun(id=order_id, by="bob", reason="")
    operate.cancel_runs(scene.ports, scene.fleet, scene.invocation(), cancelled)
    assert ended(scene, order_id).outcome == "cancelled"
    assert (states(scene, order_id), left_over(scene, job)) == (["stopped", "stopped"], [])
    live.until(lambda: live.node(node).idle, "its executor is free")


def test_a_lost_build_is_started_again_by_its_order_alone_and_as_often_as_that_says(scene, pools):
    job = define(scene, Kind.FREESTYLE, 600.0)
    order_id = order(scene, 1, pool=pools[0], resubmit=1)
    for _ in range(2):
        agent = scene.launch_by_hand(pools[0])
        scene.live.until(lambda agent=agent: not scene.live.node(scene.node_of(agent)).idle, "it runs")
        scene.look()
        scene.cut_off(agent)
        tries = told(scene, order_id).parts[0].tries
        scene.until(lambda tries=tries: gone_on(scene, order_id, tries), "the order knows of it")
    entry = told(scene, order_id)
    assert (entry.outcome, entry.summary, entry.parts[0].tries) == ("unfinished", "1 of 1 lost", 2)
    scene.minutes_later()
    assert (scene.state.reruns, len(scene.ports.builds["main"].job(job, 0.0).entries)) == ({}, 2)


def gone_on(scene, order_id, tries):
    entry = told(scene, order_id)
    return entry.outcome is not None or entry.parts[0].tries > tries


def test_a_pipeline_that_is_lost_is_started_again_by_its_order_once_jenkins_has_given_it_up(scene, pools):
    """Its node is removed with the machine, and Jenkins waits for it for five minutes more."""
    live, job = scene.live, define(scene, Kind.PIPELINE, 600.0)
    order_id = order(scene, 1, pool=pools[0])
    agent = scene.launch_by_hand(pools[0], "spot")
    live.until(lambda: not live.node(scene.node_of(agent)).idle, "it runs")
    [lost] = shown(scene, order_id)
    live.until_sh_runs(lost.run)
    scene.interrupt(agent)
    for _ in range(10):
        scene.minutes_later()
    assert told(scene, order_id).parts[0].tries == 1, "it may resume"
    live.until(lambda: not scene.ports.builds["main"].run(lost.run).building, "Jenkins gives it up", seconds=480.0, each=5.0)
    scene.until(lambda: told(scene, order_id).parts[0].tries == 2, "its order starts it again")
    scene.minutes_later()
    assert (scene.state.reruns, len(scene.ports.builds["main"].job(job, 0.0).entries)) == ({}, 2)
    operate.cancel_runs(scene.ports, scene.fleet, scene.invocation(), CancelRun(id=order_id, by="bob", reason=""))
    assert ended(scene, order_id).outcome == "cancelled"


@KINDS
def test_a_start_whose_answer_is_lost_is_found_by_its_parameter_and_not_started_twice(scene, pools, kind):
    job = define(scene, kind, 600.0)
    scene.ports = replace(scene.ports, builds={"main": LosesAnAnswer(scene.ports.builds["main"])})
    order_id = order(scene, 1, pool=pools[0])
    assert states(scene, order_id) == ["being started"]
    scene.minutes_later(1.5)
    assert states(scene, order_id) == ["waits" if kind is Kind.FREESTYLE else "runs"]
    scene.minutes_later(1.5)
    entries = scene.ports.builds["main"].job(job, 0.0).entries
    assert [entry.has(RUN_ID, f"{order_id}.1.1") for entry in entries] == [True]
    operate.cancel_runs(scene.ports, scene.fleet, scene.invocation(), CancelRun(id=order_id, by="bob", reason=""))
    assert ended(scene, order_id).outcome == "cancelled"
    assert left_over(scene, job) == []
