"""``instance_events`` through its real handler: what EC2 announces of an instance is acted on at once."""

import pytest

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.deployed import deployed_in_memory, event


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        yield stood


@pytest.fixture
def agent(here):
    """The utility agent, online and known for long: its instance and its node."""
    here.pass_minutes(10)
    [instance] = here.world.ec2.instances.values()
    return instance, here.world.node_of(instance)


def start(here, seconds, kind=Kind.FREESTYLE):
    """A build that runs on the utility agent."""
    build = here.world.controllers["main"].submit("job", "utility", seconds, kind=kind)
    here.world.move_to(here.world.timeline.now + 1)
    assert build.started_at is not None
    return build


def announce(here, name, instance, **detail):
    said = event(name)
    return here.call("instance_events", said | {"detail": said["detail"] | {"instance-id": instance.id} | detail})


def steps(plan):
    return [(step["step"], step["reason"], step["outcome"]) for step in plan["steps"]]


def test_an_agent_that_is_announced_to_go_takes_no_new_build(here, agent):
    instance, node = agent
    start(here, 600.0)
    plan = announce(here, "spot_interruption", instance)
    assert steps(plan) == [("cordon", "spot-interruption", "done")]
    assert plan["steps"][0]["detail"] == f"EC2 announced it for {instance.id}; 1 builds are at risk"
    assert node.reason.startswith("autoscaler:mxnet-ci:interrupted:")
    assert instance.alive()


def test_demand_never_brings_it_back_and_another_is_launched(here, agent):
    instance, node = agent
    announce(here, "spot_interruption", instance)
    here.world.controllers["main"].submit("job", "utility", 60.0)
    here.pass_minutes(2)
    assert node.temporarily_offline
    assert len([i for i in here.world.alive() if i is not instance]) == 1


def test_our_own_retire_mark_gives_way(here, agent):
    instance, node = agent
    here.world.controllers["main"].set_offline(node.name, "autoscaler:mxnet-ci:retire:p", "autoscaler")
    assert steps(announce(here, "spot_interruption", instance)) == [("cordon", "spot-interruption", "done")]
    assert ":interrupted:" in node.reason


def test_a_persons_mark_stays(here, agent):
    instance, node = agent
    here.world.controllers["main"].set_offline(node.name, "disk swap", "anna")
    assert announce(here, "spot_interruption", instance)["steps"] == []
    assert node.reason == "disk swap"


def test_hearing_it_twice_marks_once(here, agent):
    instance, node = agent
    announce(here, "spot_interruption", instance)
    before = node.reason
    assert announce(here, "spot_interruption", instance)["steps"] == []
    assert node.reason == before


def test_what_was_terminated_from_outside_is_cleaned_up_at_once(here, agent):
    instance, node = agent
    here.world.ec2.end(instance)
    assert steps(announce(here, "instance_terminated", instance)) == [], "it is still shutting down"
    here.world.move_to(here.world.timeline.now + 25.0)
    assert steps(announce(here, "instance_terminated", instance)) == [("delete-node", "instance-gone", "done")]
    assert node.name not in here.world.controllers["main"].nodes


def test_what_ec2_says_now_counts_and_not_what_the_event_said(here, agent):
    instance, node = agent
    assert announce(here, "instance_terminated", instance)["steps"] == []
    assert node.name in here.world.controllers["main"].nodes


def test_a_pipeline_that_may_still_be_bound_to_it_is_left_to_the_repairs(here, agent):
    instance, node = agent
    start(here, 600.0, Kind.PIPELINE)
    here.world.timeline.sleep(5.0)  # its shell has begun
    here.world.ec2.end(instance)
    here.world.move_to(here.world.timeline.now + 25.0)
    plan = announce(here, "instance_terminated", instance)
    assert (plan["steps"], plan["held"][0]["reason"]) == ([], "still-busy")
    assert node.name in here.world.controllers["main"].nodes


def test_an_interrupted_agents_build_may_finish_in_its_two_minutes(here, agent):
    instance, _ = agent
    build = start(here, 90.0)
    announce(here, "spot_interruption", instance)
    here.pass_minutes(2)
    assert build.ended is Ended.FINISHED


@pytest.mark.parametrize("name", ["spot_interruption", "instance_terminated", "instance_stopped"])
def test_others_instances_are_left_after_one_read(here, agent, name):
    before = len(here.server.requests)
    assert here.call("instance_events", event(name)) == {"skipped": "nothing-to-do"}
    assert [path for path, _ in here.server.requests[before:]] == ["/ec2/"]
    instance, node = agent
    instance.tags["autoscaler:fleet"] = "another"
    assert announce(here, name, instance) == {"skipped": "nothing-to-do"}
    assert not node.temporarily_offline


@pytest.mark.parametrize("call", ["jenkins changeOfflineCause", "jenkins computer"])
def test_an_announcement_that_could_not_be_acted_on_fails_so_that_lambda_tries_again(here, agent, call):
    instance, node = agent
    here.server.jenkins["main"].faults.plan(Fault(call, status=500))
    with pytest.raises(TransientError, match="the announcement was not acted on"):
        announce(here, "spot_interruption", instance)
    assert steps(announce(here, "spot_interruption", instance)) == [("cordon", "spot-interruption", "done")]
    assert ":interrupted:" in node.reason


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"detail-type": "Scheduled Event"}, r"detail-type \(Scheduled Event\): must be one of"),
        ({"detail": {}}, "detail.instance-id: missing"),
        ({"detail": {"instance-id": "i-0; rm -rf /"}}, "detail.instance-id .*must match"),
        ({"detail": "x"}, "detail"),
    ],
    ids=str,
)
def test_what_is_no_announcement_is_refused_in_one_line(here, changed, said):
    with pytest.raises(ConfigError, match=said):
        here.call("instance_events", event("spot_interruption") | changed)
