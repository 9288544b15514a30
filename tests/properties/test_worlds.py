"""Random worlds with random faults: whatever fails and whenever, nothing is killed, and in the end nothing is left over."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.builders import a_pool
from support.worlds import in_memory
from workbench.truth import beyond_floor, leaked_instances, leaked_nodes
from workbench.world.faults import Fault
from workbench.world.jenkins import Ended, Kind

CALLS = st.floats(0.0, 0.25)


def pools():
    cpu = a_pool("cpu", labels=frozenset({"cpu", "linux"}), executors=3, idle_seconds=300.0, max_agents=6, boot_timeout_seconds=600.0)
    gpu = a_pool("gpu", labels=frozenset({"gpu", "linux"}), idle_seconds=300.0, max_agents=4, boot_timeout_seconds=600.0)
    return cpu, gpu


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), share=CALLS, restarts=st.integers(0, 2), people=st.booleans(), interruptions=st.booleans())
def test_nothing_is_killed_and_nothing_leaks(seed, share, restarts, people, interruptions):
    chance = Random(seed)
    fleet = in_memory(*pools(), seed=seed)
    world, jenkins = fleet.world, fleet.world.controllers["main"]
    world.ec2.lag_seconds = chance.choice([0.0, 20.0])
    restart_at = {chance.randrange(5, 90) for _ in range(restarts)}
    for minute in range(300):
        quiet = minute > 100
        # After a hundred minutes the world behaves, and no more jobs come: then the fleet must come to rest.
        fleet.faults.dice = None if quiet else lambda call: _fault(chance, call, share)
        if not quiet and chance.random() < 0.3:
            label = chance.choice(["cpu", "gpu", "linux", "linux&&!gpu"])
            jenkins.submit(
                f"job-{chance.randrange(6)}", label, chance.uniform(20, 1500), kind=chance.choice([Kind.PIPELINE, Kind.FREESTYLE])
            )
        if minute in restart_at and jenkins.up == "up":
            jenkins.restart()
        if people and minute == 50 and len(jenkins.nodes) > 1:
            name = chance.choice(sorted(jenkins.nodes))
            if not jenkins.nodes[name].temporarily_offline:
                jenkins.set_offline(name, "a person's words", "anna")
                world.timeline.after(1800.0, lambda name=name: _give_back(jenkins, name))
        if interruptions and not quiet and chance.random() < 0.1 and world.alive():
            world.ec2.interrupt(chance.choice(world.alive()))
        _minute(fleet)
        assert len([i for i in world.alive() if i.tags["autoscaler:pool"] == "cpu"]) <= 6
        assert len([i for i in world.alive() if i.tags["autoscaler:pool"] == "gpu"]) <= 4
    # What EC2 takes back, nobody can keep; everything else that ended before its time was us.
    taken = [build for build in jenkins.builds if "was interrupted" in build.killed_by]
    killed = [build for build in jenkins.builds if build not in taken and (build.killed_by or build.ended is Ended.KILLED)]
    assert killed == []
    assert {build.ended for build in jenkins.builds if build not in taken} <= {Ended.FINISHED, Ended.RESTARTED}
    assert (leaked_instances(world), leaked_nodes(world), beyond_floor(world)) == ([], [], [])
    assert fleet.state.records == {}


def _fault(chance: Random, call: str, share: float) -> Fault | None:
    if chance.random() >= share:
        return None
    return Fault(call, after=chance.random() < 0.5, status=chance.choice([0, 0, 503]), code="Unavailable")


def _give_back(jenkins, name):
    if name in jenkins.nodes and jenkins.nodes[name].reason == "a person's words":
        jenkins.toggle(name, "", "anna")


def _minute(fleet):
    fleet.world.move_to(fleet.world.timeline.now + 60)
    for function in (fleet.publish_metrics, fleet.scale_up, fleet.scale_down):
        try:
            function()
        except Exception as error:  # noqa: BLE001 - Lambda's own boundary: an error in the log, and the next tick comes
            assert type(error).__module__.startswith("autoscaler."), repr(error)
