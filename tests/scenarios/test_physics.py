"""The world's physics: what can be set, what it does, and that a hard world makes nothing unsafe."""

from random import Random

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.assignments import physics_of
from autoscaler_workbench.experiment.compare import Workload, compare, entries
from autoscaler_workbench.experiment.experiment import Experiment, OurPolicy, play
from autoscaler_workbench.fakes.world.faults import failing
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.physics import CALM, NodeChoice, Physics
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.traces import MXNET, load_trace
from support.builders import NOW, a_fleet, a_pool

LINKERD = MXNET.parent / "linkerd_gha.csv.gz"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gravity": 9.81}, r"--physics gravity=9.81: is none of pending_from_seconds, "),
        ({"no_capacity": 2}, r"--physics no_capacity=2: Input should be less than or equal to 0.9"),
        ({"boot_from": 2.0}, r"--physics boot_from=2.0: boot_from must be at most boot_to"),
        ({"node_choice": "any"}, r"--physics node_choice=any: Input should be 'hash' or 'least-loaded'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(settings, message):
    with pytest.raises(ConfigError, match=message):
        physics_of(settings)


def test_an_offering_is_gone_for_spells_and_for_everybody_alike():
    physics = Physics(no_capacity=0.3)
    spells = [physics.can_be_had("c5.large//spot", 600.0 * number + 300.0, seed=1) for number in range(1000)]
    assert 0.65 < sum(spells) / 1000 < 0.75
    assert [physics.can_be_had("c5.large//spot", 600.0 * number, seed=1) for number in range(1000)] == spells
    assert [physics.can_be_had("c5.large//spot", 600.0 * number, seed=2) for number in range(1000)] != spells


def launched(physics, market):
    """An hour of three instances."""
    world = build_world(a_fleet(a_pool("cpu")), start_at=NOW, seed=1, physics=physics)
    tags = [{"Key": "autoscaler:pool", "Value": "cpu"}]
    request = {
        "ClientToken": "one",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 3, "DefaultTargetCapacityType": market},
        "LaunchTemplateConfigs": [
            {"LaunchTemplateSpecification": {"LaunchTemplateName": "cpu"}, "Overrides": [{"InstanceType": "c5.large"}]}
        ],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
    }
    answer = world.ec2.create_fleet(request)
    world.timeline.sleep(3600.0)
    return answer, list(world.ec2.instances.values())


def test_spot_instances_are_taken_back_and_others_never():
    often = Physics(interruptions_per_hour=20.0)
    assert [i.interrupted for i in launched(often, Market.SPOT)[1]] == [True, True, True]
    assert [i.interrupted for i in launched(often, Market.ON_DEMAND)[1]] == [False, False, False]


def test_what_cannot_be_had_is_an_error_of_the_answer():
    scarce = Physics(no_capacity=0.9, no_capacity_seconds=86_400)
    answer, instances = launched(scarce, Market.SPOT)
    assert (instances, answer["Errors"][0]["ErrorCode"]) == ([], "InsufficientInstanceCapacity")


def a_controller_of_two_nodes(physics):
    controller = build_world(a_fleet(a_pool("cpu")), start_at=NOW, seed=1, physics=physics).controllers["main"]
    for name in ("one", "two"):
        controller.add_node(Node(name=name, labels=("cpu",), executors=4, exclusive=True, description="", remote_dir="/"))
        controller.connect(name)
    return controller


@pytest.mark.parametrize(("physics", "on_each"), [(CALM, {0, 4}), (Physics(node_choice=NodeChoice.LEAST_LOADED), {2})])
def test_jenkins_keeps_a_job_on_a_node_unless_a_plugin_spreads_it(physics, on_each):
    controller = a_controller_of_two_nodes(physics)
    for _ in range(4):
        controller.submit("job", "cpu", 600.0)
    controller.timeline.sleep(1.0)
    assert {len(node.builds) for node in controller.nodes.values()} == on_each


def test_jenkins_may_take_its_time():
    controller = a_controller_of_two_nodes(Physics(scheduling_seconds=5.0))
    controller.timeline.sleep(30.0)
    build = controller.submit("job", "cpu", 600.0)
    controller.timeline.sleep(60.0)
    assert build.started_at - build.queued_at == 5.0


def test_a_call_in_ten_fails_half_of_them_after_they_took_effect():
    dice = failing(0.1, seed=1)
    faults = [fault for fault in (dice("ec2 CreateFleet") for _ in range(10_000)) if fault]
    assert (len(faults) // 100, sum(fault.after for fault in faults) // 50) == (pytest.approx(10, abs=1), pytest.approx(10, abs=1))
    assert failing(0.0, seed=1) is None


def test_after_a_call_that_failed_the_next_look_is_not_left_out_as_if_all_were_well():
    """Nine calls in ten fail, and so do most of the 36 passes of a minute in which nothing happens."""
    fleet = a_fleet(a_pool("cpu"))
    world = build_world(fleet, start_at=NOW, seed=1, physics=Physics(failing_calls=0.9))
    ours = OurPolicy(world, fleet, looks_every_seconds=5.0, without=None, seed=1)
    for _ in range(12):
        ours.tick()
        world.timeline.sleep(5.0)
    assert ours.failed > 20


def spot_fleet_for(trace):
    settings = fleet_for(trace)
    pools = {name: pool.model_copy(update={"market": "spot"}) for name, pool in settings.pools.items()}
    return settings.model_copy(update={"pools": pools})


@pytest.mark.parametrize("seed", [1, 2])
def test_a_hard_world_costs_time_and_no_build(seed):
    trace = load_trace(LINKERD, hours=24.0)
    hard = Physics(no_capacity=0.2, interruptions_per_hour=0.5, failing_calls=0.01, scheduling_seconds=2.0)
    row = play(Experiment(trace=trace, fleet=spot_fleet_for(trace), hours=24.0, seed=seed, physics=hard))
    assert (row["killed"], row["finished"] + row["interrupted"]) == (0, row["jobs"])
    assert row["failed_passes"] > 0
    assert row["interrupted"] > 0


def test_a_directory_holds_one_physics(tmp_path):
    list(compare(entries([Workload(file=LINKERD, hours=5.0)], ["reactive"], 1, sweep=False), tmp_path, jobs=1))
    other = Workload(file=LINKERD, hours=5.0, physics=Physics(no_capacity=0.5))
    with pytest.raises(ConfigError, match=r"other content, fleet, hours or physics"):
        list(compare(entries([other], ["reactive"], 1, sweep=False), tmp_path, jobs=1))


def test_the_calm_world_draws_as_it_says():
    chance = Random(1)
    assert all(4.0 <= CALM.pending_seconds(chance) <= 18.0 for _ in range(100))
    assert all(90.0 <= CALM.boot_seconds(120.0, chance) <= 162.0 for _ in range(100))
    assert all(3.0 <= CALM.connects_in_seconds(chance) <= 9.0 for _ in range(100))
