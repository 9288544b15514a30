"""Time-lines of ordinary days."""

from dataclasses import replace

from autoscaler.control.observe import observe
from autoscaler.domain.facts.plan import Launch, Uncordon
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.drive import InMemory, drive
from autoscaler_workbench.simulate.measures import measure
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.result import is_at_rest
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, load_trace
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def test_a_job_comes_an_agent_is_launched_and_given_up_when_nothing_needs_it():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0)))
    [build] = day.minutes(1).queue(1)
    assert day.minutes(1).agents() == 1
    day.minutes(8)
    assert (build.started_at is not None, day.agents(), len(day.nodes())) == (True, 1, 1)
    day.minutes(12)
    assert (build.ended, day.agents()) == (Ended.FINISHED, 1)
    day.minutes(12)
    assert (day.agents(), day.nodes(), day.failed) == (0, [], 0)


def test_pipelines_are_served_from_zero_agents():
    day = Day(in_memory(a_pool("cpu"), a_pool("gpu", labels=frozenset({"gpu", "linux"}))))
    [build] = day.queue(1, "linux && !cpu", kind=Kind.PIPELINE)
    day.minutes(15)
    assert build.node.startswith("gpu-")


def test_demand_that_comes_back_takes_the_retiring_agent():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0)))
    day.minutes(1).queue(1, seconds=120.0)
    day.minutes(10)
    [node] = day.nodes()
    day.jenkins.set_offline(node, "autoscaler:f:retire:some-pass", "autoscaler")
    [build] = day.queue(1, seconds=60.0)
    day.minutes(2)
    assert (len(day.done(Uncordon)), len(day.done(Launch)), build.node) == (1, 1, node)


def test_the_fleet_stays_at_its_minimum():
    day = Day(in_memory(a_pool("cpu", min_agents=2, idle_seconds=300.0)))
    day.minutes(40)
    assert (day.agents(), len(day.done(Launch))) == (2, 1)


def test_no_flapping_once_demand_has_stopped():
    day = Day(in_memory(a_pool("cpu", idle_seconds=300.0, executors=2)))
    day.minutes(1).queue(7, seconds=300.0)
    day.minutes(60)
    launched = len(day.done(Launch))
    day.minutes(60)
    assert (day.agents(), len(day.done(Launch))) == (0, launched)


def test_a_nightly_job_waits_in_its_first_two_nights_and_finds_an_agent_in_the_third():
    day, waits = Day(in_memory(a_pool("cpu", idle_seconds=300.0))), []
    for _ in range(3):
        [build] = day.hours(23).minutes(30).queue(1)
        day.minutes(30)
        waits.append(build.started_at - build.queued_at)
    assert min(waits[:2]) > 100
    assert waits[2] == 0


def test_a_day_of_the_mxnet_ci_is_served_whole(example_fleet):
    trace = load_trace(MXNET, hours=24, start_at=MXNET_DAY)
    world = build_world(example_fleet, start_at=trace.start_at, seed=3)
    replay = Replay(trace, world.controllers["main"])
    fleet = InMemory(world, example_fleet)
    fleet.read_in_process()
    for progress in drive(world, replay, fleet, hours=24):
        assert progress.errors == 0
    truth = measure(world, replay.builds)
    assert is_at_rest(world, replay.builds)
    assert (truth.finished, truth.killed, truth.unservable) == (truth.jobs, 0, 0)
    assert truth.jobs == len(trace.rows)
    assert (truth.leaked_instances, truth.leaked_nodes) == (0, 0)
    assert truth.terminations == truth.launches - 1  # the utility agent stays


def test_two_controllers_share_a_pool_and_one_of_them_may_be_down():
    day = Day(in_memory(a_pool("cpu", controllers=("main", "other"), idle_seconds=1800.0)))
    other = day.world.controllers["other"]
    day.jenkins.up = "starting"
    other.submit("job", "cpu", 60.0)
    day.minutes(10)
    assert [build.ended for build in other.builds] == [Ended.FINISHED]
    assert day.agents() == 1


def test_a_pass_knows_how_often_its_schedule_looks():
    fleet = in_memory(a_pool("cpu"))
    ports = replace(fleet.ports, look_every_seconds=15.0)
    assert observe(ports, fleet.fleet, ports.state.read(), fleet.invocation()).look_every_seconds == 15.0
