"""Rivals that stop instances and start them again behave as their sources say, and pay what EC2 bills."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler_workbench.experiment.compare import Workload, entries, play_entry
from autoscaler_workbench.experiment.experiment import POLICIES
from autoscaler_workbench.experiment.policy.perfect_forecast import forecast_trace
from autoscaler_workbench.experiment.rivals import RIVALS, WARM_RIVALS
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.measures import killed
from autoscaler_workbench.simulate.result import dollars
from autoscaler_workbench.simulate.traces import MXNET, Row, Trace
from support.builders import an_offering
from support.rivalry import Alone

LINKERD = MXNET.parent / "linkerd_gha.csv.gz"
HOUR = 3600.0
LEAD = 1_700_001_000.0  # when `Alone` begins
DEAR_DISK = an_offering(usd_per_hour=3.6, volume_usd_per_hour=0.36)


def a_trace(*rows):
    """Rows of (seconds after the beginning, duration)."""
    told = {"label": "cpu", "job": "j", "run": "", "stage": "", "depends_on": ""}
    rows = tuple(Row(queued_at=LEAD + at, duration_seconds=seconds, **told) for at, seconds in rows)
    return forecast_trace(Trace(name="t", start_at=0.0, judged_at=0.0, dropped=0, rows=rows), {"cpu": "cpu"})


def states(alone):
    return sorted(instance.state for instance in alone.world.ec2.instances.values() if instance.alive())


def stopped(alone):
    return len(alone.pool.startable)


def with_work_that_ends(name, count=1, *, runs=400.0, **facts):
    """A rival whose agents served a job each, and have nothing to do then."""
    alone = Alone(name, **facts)
    alone.submit(count, seconds=runs)
    return alone


# The fleet


def test_a_stopped_agent_costs_its_disk_only():
    alone = Alone("static", online=1, offerings=(DEAR_DISK,))
    assert alone.site.stop(list(alone.pool.agents.values())) == []
    alone.world.move_to(alone.world.timeline.now + 100)
    before = dollars(alone.world)
    alone.world.move_to(alone.world.timeline.now + HOUR)
    assert dollars(alone.world) - before == pytest.approx(0.36)


@pytest.mark.parametrize("node_stays", [True, False])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_stop_kills_what_runs_on_the_agent_and_that_is_counted(kind, node_stays):
    alone = Alone("static", online=2)
    for _ in range(2):
        alone.jenkins.submit("job", "cpu", 1000.0, kind=kind)
    alone.world.move_to(alone.world.timeline.now + 1)
    agents = list(alone.pool.agents.values())
    assert [agent.idle for agent in agents] == [False, False]
    assert alone.site.stop(agents[:1], node_stays=node_stays) == []
    alone.world.move_to(alone.world.timeline.now + 100)
    assert alone.site.start(alone.pool, agents[:1]) == agents[:1]
    alone.world.move_to(alone.world.timeline.now + 2000)
    assert killed(alone.jenkins.builds) == alone.killed() == 1
    assert "was stopped" in next(build.killed_by for build in alone.jenkins.builds if build.killed_by)


def test_a_started_agent_is_the_same_instance_and_connects_sooner_than_a_new_one():
    alone = Alone("static", online=1)
    [agent] = alone.pool.agents.values()
    alone.site.stop([agent])
    alone.world.move_to(alone.world.timeline.now + 100)
    assert alone.site.start(alone.pool, alone.pool.startable) == [agent]
    assert alone.pool.booting == [agent]
    alone.world.move_to(alone.world.timeline.now + 3 + 0.15 * 0.75 * 120)
    assert not agent.online
    alone.world.move_to(alone.world.timeline.now + 15 + 0.5 * 1.35 * 120 + 9)
    assert agent.online
    assert len(alone.world.ec2.instances) == 1


@pytest.mark.parametrize("node_stays", [True, False])
def test_the_node_of_a_stopped_agent_is_offline_or_gone_and_comes_back_either_way(node_stays):
    alone = Alone("static", online=1)
    [agent] = alone.pool.agents.values()
    name = agent.node.name
    alone.site.stop([agent], node_stays=node_stays)
    alone.world.move_to(alone.world.timeline.now + 100)
    assert (name in alone.jenkins.nodes) is node_stays
    alone.site.start(alone.pool, alone.pool.startable)
    alone.world.move_to(alone.world.timeline.now + 200)
    assert not alone.jenkins.nodes[name].offline


def test_the_node_of_a_stopped_agent_goes_with_its_instance():
    alone = Alone("static", online=1)
    alone.site.stop(list(alone.pool.agents.values()), node_stays=True)
    alone.site.end(list(alone.pool.stopped.values()))
    assert alone.jenkins.nodes == {}
    assert states(alone) == []
    assert not alone.pool.stopped


def test_without_capacity_a_start_leaves_the_agent_stopped():
    alone = Alone("static", online=1)
    alone.site.stop(list(alone.pool.agents.values()))
    alone.world.move_to(alone.world.timeline.now + 100)
    alone.world.ec2.capacity[alone.pool.pool.offerings[0].key] = 0
    assert alone.site.start(alone.pool, alone.pool.startable) == []
    assert states(alone) == ["stopped"]


def test_an_agent_that_stops_before_it_connected_never_does():
    alone = Alone("static")
    alone.site.launch(alone.pool, 1)
    while alone.world.ec2.instances and not next(iter(alone.world.ec2.instances.values())).booted_at:
        alone.world.move_to(alone.world.timeline.now + 1)
    alone.site.stop(list(alone.pool.agents.values()))
    alone.world.move_to(alone.world.timeline.now + 200)
    assert states(alone) == ["stopped"]
    assert alone.jenkins.nodes == {}


def test_spot_agents_do_not_stop():
    alone = Alone("static", online=1, offerings=(an_offering(market=Market.SPOT),))
    assert alone.site.stop(list(alone.pool.agents.values())) == list(alone.pool.agents.values())
    assert states(alone) == ["running"]


# Jenkins' EC2 plugin


def test_the_ec2_plugin_stops_what_was_idle_for_half_an_hour_and_keeps_its_node():
    alone = Alone("ec2-plugin-stops", online=2)
    alone.lives(1900)
    assert states(alone) == ["stopped", "stopped"]
    assert all(node.offline for node in alone.jenkins.nodes.values())
    assert len(alone.jenkins.nodes) == 2


def test_the_ec2_plugin_starts_what_is_stopped_before_it_launches():
    alone = Alone("ec2-plugin-stops", online=2)
    alone.lives(1900)
    alone.submit(3)
    alone.lives(15)
    assert len(alone.launched) == 1
    assert stopped(alone) == 0


def test_the_ec2_plugin_never_ends_what_is_stopped():
    alone = Alone("ec2-plugin-stops", online=2)
    alone.lives(14 * 24 * HOUR)
    assert stopped(alone) == 2


def test_the_ec2_plugins_cap_counts_what_is_stopping_and_not_what_is_stopped():
    alone = Alone("ec2-plugin-stops", online=2, max_agents=2)
    alone.site.stop(list(alone.pool.agents.values()))
    assert alone.site.room(alone.pool) == 0
    alone.world.move_to(alone.world.timeline.now + 100)
    assert alone.site.room(alone.pool) == 2


def test_the_ec2_plugin_loses_the_whole_request_where_a_start_is_refused():
    alone = Alone("ec2-plugin-stops", online=1)
    alone.lives(1900)
    next(iter(alone.world.ec2.instances.values())).subnet = "full"
    alone.world.ec2.capacity["c5.18xlarge/full/on-demand"] = 0
    alone.submit(3)
    alone.lives(300)
    assert alone.launched == []
    assert stopped(alone) == 1


def test_the_ec2_plugin_terminates_spot_agents_all_the_same():
    alone = Alone("ec2-plugin-stops", online=2, offerings=(an_offering(market=Market.SPOT),))
    alone.lives(1900)
    assert states(alone) == []


# terraform-aws-github-runner


def test_a_sweep_stops_three_idle_runners_and_terminates_the_rest():
    alone = with_work_that_ends("github-runners-warm", 5)
    alone.lives(1500)
    assert states(alone) == ["stopped"] * 3
    assert alone.jenkins.nodes == {}
    assert alone.killed() == 0


def test_a_job_starts_the_longest_stopped_runner_before_anything_is_launched():
    alone = with_work_that_ends("github-runners-warm", 2)
    alone.lives(1500)
    first = alone.pool.startable[0]
    launched = len(alone.launched)
    alone.submit(1)
    alone.lives(31)
    assert list(alone.pool.agents.values()) == [first]
    alone.submit(2)
    alone.lives(40)
    assert len(alone.launched) == launched + 1


def test_a_warm_runner_is_terminated_after_a_week():
    alone = with_work_that_ends("github-runners-warm")
    alone.lives(160 * HOUR)
    assert stopped(alone) == 1
    alone.lives(9 * HOUR)
    assert states(alone) == []


def test_a_runner_that_fails_to_start_is_forgotten_and_its_disk_paid_on():
    alone = with_work_that_ends("github-runners-warm")
    alone.lives(1500)
    key = alone.pool.pool.offerings[0].key
    alone.world.ec2.capacity[key] = 0
    alone.submit(1)
    alone.lives(60)
    del alone.world.ec2.capacity[key]
    alone.submit(1)
    alone.lives(200 * HOUR)
    assert states(alone) == ["running", "stopped"]
    assert len(alone.launched) == 2


def test_stopped_runners_fill_no_limit():
    alone = with_work_that_ends("github-runners-warm", 2, max_agents=2)
    alone.lives(1500)
    assert stopped(alone) == 2
    assert alone.site.room(alone.pool) == 2


def test_runners_on_spot_are_terminated():
    alone = with_work_that_ends("github-runners-warm", offerings=(an_offering(market=Market.SPOT),))
    alone.lives(1500)
    assert states(alone) == []


# The Elastic CI Stack with a warm pool


def test_a_warm_pool_boots_its_instances_once_and_none_of_them_connects():
    alone = Alone("buildkite-stack-warm", settings={"prepared": 3})
    alone.lives(300)
    assert states(alone) == ["stopped"] * 3
    assert alone.jenkins.nodes == {}
    assert all(len(instance.spells) == 1 for instance in alone.world.ec2.instances.values())


def test_the_group_takes_from_its_warm_pool_and_launches_the_rest_cold():
    alone = Alone("buildkite-stack-warm", settings={"prepared": 3})
    alone.lives(300)
    alone.submit(5)
    alone.lives(15)
    assert alone.agents == 5
    assert len(alone.launched) == 5
    assert not alone.pool.stopped  # the group is larger than what is prepared


def test_what_still_boots_for_the_warm_pool_is_not_taken():
    alone = Alone("buildkite-stack-warm", settings={"prepared": 2})
    alone.submit(1)
    alone.lives(15)
    assert (alone.agents, len(alone.pool.stopped)) == (1, 1)
    alone.lives(400)
    assert (alone.agents, stopped(alone)) == (1, 1)


def test_a_used_instance_is_terminated_and_the_warm_pool_refilled():
    alone = Alone("buildkite-stack-warm", settings={"prepared": 2})
    alone.lives(300)
    first = set(alone.world.ec2.instances)
    alone.submit(1, seconds=60.0)
    alone.lives(1500)
    assert states(alone) == ["stopped", "stopped"]
    assert len(first - {one.instance.id for one in alone.pool.startable}) == 1


def test_with_reuse_a_used_instance_goes_back_to_the_warm_pool():
    alone = Alone("buildkite-stack-warm", settings={"prepared": 2, "reuse_on_scale_in": True})
    alone.lives(300)
    alone.submit(1, seconds=60.0)
    alone.lives(1500)
    assert states(alone) == ["stopped", "stopped"]
    assert len(alone.world.ec2.instances) == 2


def test_the_warm_pool_has_its_minimum_however_large_the_group_is():
    alone = Alone("buildkite-stack-warm", settings={"prepared": 2, "min_warm": 1})
    alone.submit(4)
    alone.lives(600)
    assert (alone.agents, stopped(alone)) == (4, 1)


def test_a_spot_group_has_no_warm_pool():
    alone = Alone("buildkite-stack-warm", offerings=(an_offering(market=Market.SPOT),))
    alone.lives(300)
    assert states(alone) == []


# The clairvoyant


def played(gap, **facts):
    """A job of 400 s, another one after a gap, and the world in the middle of it."""
    offering = an_offering(usd_per_hour=3.6, **facts)
    alone = Alone("clairvoyant-warm", foreseen=a_trace((600, 400), (1000 + gap, 400)), offerings=(offering,))
    alone.lives(600)
    first = alone.submit(1, seconds=400)
    alone.lives(400 + min(gap / 2, 120.0))
    between = states(alone)
    alone.lives(gap - min(gap / 2, 120.0))
    second = alone.submit(1, seconds=400)
    alone.lives(3000)
    return alone, between, [*first, *second]


@pytest.mark.parametrize(
    ("gap", "disk", "between", "machines"),
    [
        (100, 0.0, ["running"], 1),
        (7200, 0.01, ["stopped"], 1),
        (7200, 1.0, [], 2),  # its disk would cost $2, a boot $0.20
    ],
)
def test_it_keeps_an_agent_hot_stopped_or_not_at_all_as_is_cheapest(gap, disk, between, machines):
    alone, found, builds = played(gap, volume_usd_per_hour=disk)
    assert found == between
    assert len(alone.world.ec2.instances) == machines
    assert [build.started_at for build in builds] == [build.buildable_at for build in builds]
    assert states(alone) == []
    assert alone.killed() == 0


def test_it_keeps_what_still_boots_for_a_later_need_than_what_is_idle():
    foreseen = a_trace((600, 100), (730, 400), (980, 400))
    alone = Alone("clairvoyant-warm", foreseen=foreseen)
    for at, seconds in ((600, 100), (730, 400), (980, 400)):
        alone.lives(LEAD + at - alone.world.timeline.now)
        alone.submit(1, seconds=seconds)
    alone.lives(1000)
    assert [build.started_at - build.buildable_at for build in alone.jenkins.builds] == [0.0, 0.0, 0.0]
    assert len(alone.world.ec2.instances) == 2


# All of them


@pytest.mark.parametrize("name", list(WARM_RIVALS))
def test_every_warm_rival_has_a_knob_and_is_played_only_where_it_is_named(name):
    field, values = WARM_RIVALS[name].KNOB
    assert len(values) >= 4
    assert all(getattr(WARM_RIVALS[name].of({field: value}, 1), field) == value for value in values)
    assert name not in POLICIES
    assert name not in RIVALS
    assert [entry.policy for entry in entries([Workload(file=LINKERD, hours=1.0)], [name], 1, sweep=False)] == [name]


def test_they_are_played_by_themselves_where_the_fleet_has_a_warm_pool(tmp_path):
    text = EXAMPLE_FLEET.read_text(encoding="utf-8")
    for warm in (False, True):
        fleet = tmp_path / f"{warm}.yaml"
        fleet.write_text(text.replace("defaults: {", "defaults: {warm_pool: {}, ") if warm else text, encoding="utf-8")
        todo = entries([Workload(file=MXNET, fleet=fleet, hours=1.0)], (), 1, sweep=False)
        assert list(dict.fromkeys(entry.policy for entry in todo)) == [*POLICIES, *(WARM_RIVALS if warm else ())]


@pytest.mark.parametrize("physics", [Physics(), Physics(no_capacity=0.2, failing_calls=0.05), Physics(start_from=0.9, start_to=1.1)])
@pytest.mark.parametrize("name", list(WARM_RIVALS))
def test_every_warm_rival_finishes_a_day_and_kills_nothing(name, physics):
    [entry] = entries([Workload(file=LINKERD, hours=24.0, physics=physics)], [name], 1, sweep=False)
    row = play_entry(entry)
    assert (row["finished"], row["killed"]) == (row["jobs"], 0)
