"""Time-lines of held labels and what else happens to agents: drains, stops, starts, rotations, loans, weights, beacons, hosts."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import FULL_LABEL, HELD_LABEL, Lending, Share, WarmPool
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.orders import DrainNodes, Resume, Scope
from autoscaler.domain.facts.plan import Launch, Lend, Rotate, Start, Stop, Terminate
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Started
from autoscaler_workbench.fakes.world.jenkins.pipeline import submit_pipeline
from autoscaler_workbench.simulate.drive import InMemory
from scenarios.test_held_labels import LABELS, a_day, agent_nodes, held, labels, released, told
from support.builders import a_fleet, a_host, a_pool, a_pool_of_hosts, an_offering
from support.remembered import tables
from support.timeline import Day
from support.worlds import a_world, a_world_node, in_memory


def drain(day, *nodes):
    order = DrainNodes(nodes=nodes, reason="new fans", request_id=None)
    day.order(order)


def bring_back(day, *nodes):
    order = Resume(scope=Scope.FLEET, name="", nodes=nodes, reason="done")
    day.lift(order)


@pytest.mark.parametrize("version", [(2, 504, 3), (2, 530)], ids=["marked by labels", "marked offline"])
def test_an_agent_that_was_drained_and_comes_back_during_the_hold_takes_no_job_of_it(version):
    day = a_day()
    day.jenkins.version = ".".join(map(str, version))
    [running] = day.queue(1, label="gpu", seconds=3600.0)
    day.minutes(2)
    [node] = agent_nodes(day)
    drain(day, node.name)
    day.minutes(2)
    held(day).minutes(2)
    [job] = day.queue(1, label="gpu")
    bring_back(day, node.name)
    day.minutes(80)
    assert (running.ended, job.started_at, labels(day) & {*LABELS, HELD_LABEL}) == (Ended.FINISHED, None, {"linux", HELD_LABEL})
    released(day).minutes(2)
    assert job.started_at is not None


def test_an_agent_that_registers_during_the_hold_is_without_the_label_and_takes_other_jobs():
    day = held(Day(in_memory(a_pool("cpu", labels=LABELS, executors=1, max_agents=2, idle_seconds=3600.0, max_idle_seconds=7200.0))))
    [gpu] = day.queue(1, label="gpu")
    [linux] = day.queue(1, label="linux", seconds=300.0)
    day.minutes(15)
    assert (linux.ended, gpu.started_at, HELD_LABEL in labels(day), len(day.done(Launch))) == (Ended.FINISHED, None, True, 1)
    released(day).minutes(3)
    assert (gpu.started_at is not None, len(day.done(Launch))) == (True, 1)


def test_an_agent_that_was_stopped_and_is_started_during_the_hold_is_without_the_label():
    warm = WarmPool(max_agents=2, min_agents=0, max_age_seconds=168 * 3600.0)
    day = Day(in_memory(a_pool("cpu", labels=LABELS, executors=1, max_agents=1, idle_seconds=300.0, warm_pool=warm)))
    day.queue(1, label="linux", seconds=60.0)
    day.minutes(60)
    assert (len(day.done(Stop)), agent_nodes(day)) == (1, [])
    held(day).minutes(1)
    [linux, gpu] = [*day.queue(1, label="linux", seconds=60.0), *day.queue(1, label="gpu")]
    day.minutes(4)
    assert (len(day.done(Start)), linux.ended, gpu.started_at, HELD_LABEL in labels(day)) == (1, Ended.FINISHED, None, True)
    day.minutes(60)
    assert (len(day.done(Stop)), gpu.started_at) == (2, None)  # idle as usual
    released(day).minutes(15)
    assert gpu.started_at is not None


def test_on_two_controllers_jobs_wait_and_an_agent_that_goes_to_the_other_is_without_the_label_there():
    facts = {"controllers": ("main", "other"), "share": Share.ROTATE, "max_idle_seconds": 7200.0, "idle_seconds": 7200.0}
    day = Day(in_memory(a_pool("cpu", labels=LABELS, executors=1, max_agents=1, **facts)))
    day.queue(1, label="linux", seconds=60.0)
    day.minutes(12)
    held(day).minutes(2)
    other = day.world.controllers["other"]
    [gpu, linux] = [other.submit("a", "gpu", 60.0), other.submit("b", "linux", 60.0)]
    day.minutes(12)
    assert (len(day.done(Rotate)), linux.ended, gpu.started_at) == (1, Ended.FINISHED, None)
    [node] = agent_nodes(day, "other")
    assert HELD_LABEL in node.labels
    released(day).minutes(3)
    assert gpu.started_at is not None


def test_an_agent_that_is_lent_lends_no_label_on_hold_and_the_own_label_of_a_rare_kind_is_held_as_any_other():
    rare = {"labels": frozenset({"gfx1030"}), "lent_labels": frozenset({"amd64", "linux"}), "lend": Lending.IDLE}
    dear = {"offerings": (an_offering(usd_per_hour=15.0),), "min_agents": 1, "max_agents": 1}
    day = Day(in_memory(a_pool("cpu", labels=frozenset({"amd64", "linux"}), max_agents=1, executors=1), a_pool("gpu", **rare, **dear)))
    day.minutes(10)
    held(held(day, "amd64"), "gfx1030")
    waiting = [*day.queue(2, label="amd64"), *day.queue(1, label="gfx1030")]
    plain = day.queue(3, label="linux", seconds=600.0)
    day.minutes(30)
    assert ([build.started_at for build in waiting], {build.ended for build in plain}) == ([None] * 3, {Ended.FINISHED})
    assert len(day.done(Lend)) > 0
    released(released(day, "amd64"), "gfx1030").minutes(40)
    assert None not in [build.started_at for build in waiting]


def test_beside_weights_a_full_agent_gets_back_what_nobody_holds():
    fleet = replace(
        a_fleet(a_pool("cpu", labels=LABELS, executors=4, min_agents=1, max_agents=1)), weights=JobWeights(by_pattern=(("heavy", 4),))
    )
    day = Day(InMemory(a_world(fleet), fleet)).minutes(8)
    heavy = day.jenkins.submit("heavy", "linux", 1200.0)
    day.minutes(2)
    assert FULL_LABEL in labels(day)
    held(day).minutes(2)
    assert labels(day) & {*LABELS, HELD_LABEL, FULL_LABEL} == {FULL_LABEL}
    [gpu] = day.queue(1, label="gpu")
    day.minutes(25)
    assert (heavy.ended, gpu.started_at, labels(day) & {*LABELS, HELD_LABEL, FULL_LABEL}) == (Ended.FINISHED, None, {"linux", HELD_LABEL})
    released(day).minutes(2)
    assert (gpu.started_at is not None, labels(day) & {*LABELS, HELD_LABEL}) == (True, LABELS)


@pytest.mark.parametrize("label", ["gpu", "gpu && linux", "gpu && !arm"])
@pytest.mark.parametrize("agents", [0, 1])
def test_a_stage_whose_label_jenkins_does_not_show_waits_and_nothing_is_launched_for_it(label, agents):
    own = {"labels": LABELS, "executors": 1, "min_agents": agents, "max_agents": 3}
    day = held(Day(in_memory(a_pool("cpu", **own), a_pool("arm", labels=frozenset({"linux", "arm"})))).minutes(10)).minutes(2)
    before = len(day.done(Launch))
    stages = [submit_pipeline(day.jenkins, f"pipe-{n}", label, 60.0, Started()) for n in range(2)]
    day.jenkins.queue += [stage for stage in stages if stage not in day.jenkins.queue]
    day.minutes(20)
    assert ([stage.started_at for stage in stages], len(day.done(Launch)) - before) == ([None, None], 0)
    released(day).minutes(25)
    assert None not in [stage.started_at for stage in stages]


def test_an_agent_without_work_because_of_a_hold_ends_as_an_idle_one_and_the_minimum_stays():
    day = Day(in_memory(a_pool("cpu", labels=LABELS, executors=1, min_agents=1, max_agents=3, idle_seconds=600.0)))
    builds = day.queue(3, label="gpu", seconds=300.0)
    day.minutes(12)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    held(day)
    waiting = day.queue(3, label="gpu", seconds=300.0)
    day.minutes(60)
    assert (day.agents(), [build.started_at for build in waiting], len(day.done(Terminate))) == (1, [None] * 3, 2)


def test_an_executor_that_takes_no_held_job_is_not_distrusted():
    day = held(a_day(max_agents=3)).minutes(1)
    [pipe] = [day.jenkins.submit("a", "gpu", 60.0, kind=Kind.PIPELINE)]
    day.queue(2, label="gpu")
    day.minutes(40)
    assert (pipe.started_at, len(day.done(Launch)), tables(day.fleet.state.memory).rations) == (None, 1, {})
    assert all(not node.refused for node in tables(day.fleet.state.memory).free_nodes.values())


def test_a_host_is_held_as_any_other_agent():
    pool = a_pool_of_hosts(labels=frozenset({"rocm", "linux"}))
    day = Day(in_memory(pool, hosts=(a_host(),))).minutes(3)
    held(day, "rocm").minutes(1)
    [rocm, linux] = [*day.queue(1, label="rocm", seconds=60.0), *day.queue(1, label="linux", seconds=60.0)]
    day.minutes(5)
    assert (rocm.started_at, linux.ended) == (None, Ended.FINISHED)
    released(day, "rocm").minutes(2)
    assert rocm.started_at is not None


def test_the_labels_of_an_operators_own_nodes_are_left_alone_and_why_says_that_jobs_begin_there():
    day = a_day()
    day.jenkins.add_node(a_world_node("mine-1", "gpu", executors=1))
    held(day).minutes(2)
    jobs = day.queue(2, label="gpu", seconds=3600.0)
    day.minutes(3)
    assert (sorted(str(job.node) for job in jobs), day.jenkins.nodes["mine-1"].labels) == (["None", "mine-1"], ("gpu",))
    waiting = next(job for job in jobs if job.node is None)
    assert "the labels of mine-1 are its operator's" in told(day, waiting.job)


def test_slots_keep_the_labels_that_their_operator_gave_them():
    slots = {"slot-1": ("gpu", "linux")}
    day = Day(in_memory(a_pool("cpu", labels=LABELS, executors=1, min_agents=1, max_agents=1), slots=slots)).minutes(10)
    held(day).minutes(5)
    assert {"gpu", "linux"} <= frozenset(day.jenkins.nodes["slot-1"].labels)
    assert day.failed == 0


@pytest.mark.parametrize("name", ["gpu && linux", "autoscaler-fleet-f"])
def test_a_hold_of_what_is_no_label_of_its_own_takes_none_and_why_says_so(name):
    day = held(a_day(max_agents=3), name).minutes(2)
    assert labels(day) >= LABELS
    day.queue(1, label="gpu && linux", seconds=3600.0) if "gpu" in name else day.queue(1, label=name, seconds=3600.0)
    day.minutes(1)
    [job] = day.queue(1, label=name)
    day.minutes(5)
    assert (job.started_at, len(day.done(Launch))) == (None, 1)
    assert "free executors still take such jobs" in told(day, job.job)


def test_a_hold_of_a_nodes_own_name_says_what_to_do_instead():
    day = a_day()
    [node] = agent_nodes(day)
    held(day, node.name).minutes(2)
    day.queue(1, label="linux", seconds=3600.0)
    day.minutes(1)
    [job] = day.queue(1, label=node.name)
    day.minutes(5)
    assert labels(day) >= LABELS
    assert "drain it" in told(day, job.job)
