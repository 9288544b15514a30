"""What the simulated world does by itself, where a mistake of its own would look like one of ours."""

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler_workbench.fakes.world.agents import Agents, IdentityAnswer, Told
from autoscaler_workbench.fakes.world.ec2.instance import Instance, Spell
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.nodes import Node, secret_of
from autoscaler_workbench.fakes.world.world import NODE_TAG, build_world
from autoscaler_workbench.simulate.result import beyond_floor, dollars_an_hour, dollars_of, leaked_instances
from support.builders import NOW, a_fleet, a_pool, an_offering


def an_instance_of(name, node):
    tags = {"autoscaler:pool": "cpu", "autoscaler:controller": "main", NODE_TAG: node}
    return Instance(
        id=name,
        instance_type="c5.18xlarge",
        subnet="",
        market="on-demand",
        template="cpu",
        tags=tags,
        launched_at=NOW,
        visible_at=NOW,
        state="running",
    )


ON_SLOT_1 = IdentityAnswer(status=200, connections=(Told(controller="main", node="slot-1", secret=secret_of("slot-1")),))


@pytest.mark.parametrize(("who_ends", "killed"), [("i-connected", "i-connected was terminated"), ("i-named-only", "")])
def test_a_machine_that_never_connected_takes_no_build_with_it(who_ends, killed):
    world = build_world(a_fleet(a_pool("cpu")), start_at=NOW, seed=1)
    controller = world.controllers["main"]
    controller.add_node(Node(name="slot-1", labels=("cpu",), executors=1, exclusive=True, description="", remote_dir="/"))
    agents = Agents(world, lambda *_: ON_SLOT_1)
    agents.register(an_instance_of("i-connected", "slot-1"))
    world.timeline.sleep(60.0)
    build = controller.submit("job", "cpu", 600.0)
    world.timeline.sleep(30.0)
    agents.ended(an_instance_of(who_ends, "slot-1"))
    assert (build.started_at is not None, build.killed_by) == (True, killed)


def test_a_stopped_machine_costs_its_disk_and_each_time_that_it_is_on_a_minute_at_least():
    offering = an_offering(usd_per_hour=36.0, volume_usd_per_hour=0.36)
    fleet = a_fleet(a_pool("cpu", offerings=(offering,)))
    world = build_world(fleet, start_at=NOW, seed=1)
    instance = an_instance_of("i-1", "cpu-1")
    instance.spells = [Spell(NOW, NOW + 600.0), Spell(NOW + 4200.0, NOW + 4210.0)]
    instance.state, instance.ended_at = "terminated", NOW + 7810.0
    assert dollars_of(world, instance) == pytest.approx(36.0 * (600 + 60) / 3600 + 0.36 * 2)
    assert dollars_of(world, instance, since=NOW + 4200.0) == pytest.approx(36.0 * 60 / 3600 + 0.36)


@pytest.mark.parametrize(
    ("warm", "leaked", "beyond"),
    [
        (None, ["i-0", "i-1", "i-2"], ["i-0", "i-1", "i-2"]),
        (WarmPool(min_agents=0, max_agents=3, max_age_seconds=4000.0), [], []),
        (WarmPool(min_agents=0, max_agents=2, max_age_seconds=4000.0), [], ["i-2"]),
    ],
    ids=["no stopped ones are wanted", "as many as may be", "one too many"],
)
def test_a_stopped_machine_is_left_over_where_its_pool_does_not_keep_it(warm, leaked, beyond):
    offering = an_offering(usd_per_hour=36.0, volume_usd_per_hour=0.36)
    world = build_world(a_fleet(a_pool("cpu", offerings=(offering,), warm_pool=warm)), start_at=NOW, seed=1)
    for number in range(3):
        instance = world.ec2.instances[f"i-{number}"] = world.ec2.remembered[f"i-{number}"] = an_instance_of(f"i-{number}", "")
        instance.state, instance.spells = "stopped", [Spell(NOW, NOW + 600.0)]
    world.timeline.sleep(4200.0)
    assert [instance.id for instance in leaked_instances(world)] == leaked
    assert [instance.id for instance in beyond_floor(world)] == beyond
    assert dollars_an_hour(world) == pytest.approx(3 * 0.36)


@pytest.mark.parametrize("seconds", [100.0, 2000.0])
def test_a_pipeline_is_not_finished_on_a_machine_that_was_stopped_under_it_and_started_again(seconds):
    world = build_world(a_fleet(a_pool("cpu")), start_at=NOW, seed=1)
    controller = world.controllers["main"]
    controller.add_node(Node(name="slot-1", labels=("cpu",), executors=1, exclusive=True, description="", remote_dir="/"))
    agents = Agents(world, lambda *_: ON_SLOT_1)
    instance = world.ec2.instances["i-1"] = an_instance_of("i-1", "slot-1")
    instance.spells.append(Spell(NOW))
    agents.register(instance)
    world.timeline.sleep(60.0)
    build = controller.submit("job", "cpu", seconds, kind=Kind.PIPELINE)
    world.timeline.sleep(30.0)
    world.ec2.stop("i-1")
    world.timeline.sleep(200.0)
    world.ec2.start("i-1")
    world.timeline.sleep(5000.0)
    assert controller.nodes["slot-1"].connected
    assert (build.ended, build.killed_by) == (Ended.KILLED, "i-1 was stopped")
