"""Time-lines of launches whose answer is lost, where EC2 does not know their token any more: what was launched is found by its tag."""

import pytest

from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


@pytest.fixture
def day():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0)))
    day.world.ec2.forgets_tokens = True
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    return day


def test_a_launch_that_was_met_in_part_is_settled_by_what_is_listed(day):
    [offering] = day.fleet.fleet.pools["cpu"].offerings
    day.world.ec2.capacity[offering.key] = 2
    day.minutes(2).queue(3)
    day.minutes(1)
    assert len(day.world.ec2.instances) == 2
    day.world.ec2.capacity.clear()
    day.minutes(5)
    assert len(day.world.ec2.instances) == 3
    day.minutes(7)
    assert day.fleet.state.intents == {}


def test_what_ec2_does_not_list_yet_is_waited_for_before_anything_is_sent_again(day):
    """The schedule may look every 5 s, and DescribeInstances is up to 30 s late."""
    day.world.ec2.lag_seconds = 30.0
    day.minutes(2).queue(4)
    day.minutes(1)
    assert len(day.world.ec2.instances) == 4
    for _ in range(24):
        day.world.move_to(day.world.timeline.now + 5)
        day.fleet.scale_up()
    assert len(day.world.ec2.instances) == 4
    assert day.fleet.state.intents == {}


def lose_the_settling(day):
    """The answer is received and records are written; then the write that settles the launch is lost. Return the calls that follow."""
    calls = []

    def meanwhile(call):
        if call == "state add_record" and call not in calls:
            day.fleet.faults.plan(Fault("state change_intent", times=1))
        calls.append(call)

    day.fleet.faults.meanwhile = meanwhile
    return calls


def hide_newest(day, count, seconds):
    """EC2's lists leave the newest instances out for so long."""
    for instance in list(day.world.ec2.instances.values())[-count:]:
        instance.visible_at = day.world.timeline.now + seconds
    day.world.ec2.changes += 1


@pytest.mark.parametrize("forgets", [True, False])
@pytest.mark.parametrize(("agents", "hidden"), [(1, 1), (3, 1), (3, 3)])
def test_what_is_recorded_is_not_sent_again_though_no_list_shows_it(agents, hidden, forgets):
    day = Day(in_memory(a_pool("gpu", max_agents=agents, queue_maturity_seconds=0.0))).minutes(3)
    day.world.ec2.forgets_tokens = forgets
    builds = day.queue(agents, "gpu", seconds=1800.0)
    calls = lose_the_settling(day)
    day.world.move_to(day.world.timeline.now + 60)
    day.fleet.scale_up()
    assert [intent.open for intent in day.fleet.state.intents.values()] == [True]
    hide_newest(day, hidden, 150.0)
    day.world.move_to(day.world.timeline.now + 75)
    day.fleet.scale_up()
    assert (calls.count("ec2 CreateFleet"), day.agents()) == (1, agents)
    assert [intent.open for intent in day.fleet.state.intents.values()] == [False]
    day.minutes(45)
    assert len(day.world.ec2.instances) == agents
    assert all(build.ended for build in builds)


def test_a_record_that_cannot_be_read_may_be_of_a_launch_that_no_list_shows():
    day = Day(in_memory(a_pool("gpu", max_agents=3, queue_maturity_seconds=0.0))).minutes(3)
    day.world.ec2.forgets_tokens = True
    day.queue(1, "gpu")
    lose_the_settling(day)
    day.minutes(1)
    hide_newest(day, 1, 250.0)
    [instance_id] = day.fleet.state.records
    day.fleet.state.unreadable = {f"record#{instance_id}"}
    day.minutes(4)
    assert len(day.world.ec2.instances) == 1
    day.fleet.state.unreadable = set()
    day.minutes(5)
    assert (len(day.world.ec2.instances), day.fleet.state.intents) == (1, {})


def test_what_one_list_leaves_out_of_a_launch_that_was_not_answered_still_takes_its_room():
    """Lists leave instances out for minutes. Two agents that nobody had on record let a pool have two too many."""
    day = Day(in_memory(a_pool("gpu", max_agents=4, queue_maturity_seconds=0.0))).minutes(3)
    day.world.ec2.forgets_tokens = True
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    day.queue(3, "gpu", seconds=1800.0)
    day.minutes(1)
    hide_newest(day, 2, 100.0)
    day.minutes(1).queue(3, "gpu", seconds=1800.0)
    day.minutes(12)
    assert len(day.world.ec2.instances) == 4
    assert day.fleet.state.intents == {}
    assert len(day.fleet.state.records) == 4


@pytest.mark.parametrize("forgets", [True, False])
def test_a_launch_of_which_the_only_instance_that_was_listed_has_ended_is_not_sent_again(forgets):
    day = Day(in_memory(a_pool("gpu", max_agents=4, queue_maturity_seconds=0.0))).minutes(3)
    day.world.ec2.forgets_tokens = forgets
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    day.queue(3, "gpu", seconds=3000.0)
    day.minutes(1)
    [first, *_] = day.world.ec2.instances
    hide_newest(day, 2, 500.0)
    day.minutes(2)
    day.world.ec2.terminate(first)
    day.minutes(14)
    assert len(day.world.ec2.instances) <= 5
    assert len(day.world.alive()) <= 4


def lose_the_second_record(day):
    """The answer is received and one record is written; the next write is lost, and with it the ids of what else was launched."""
    calls = []

    def meanwhile(call):
        calls.append(call)
        if calls.count("state add_record") == 2:
            day.fleet.faults.plan(Fault("state add_record"))
            day.fleet.faults.meanwhile = lambda _call: None

    day.fleet.faults.meanwhile = meanwhile


def lose_the_answer(day):
    """EC2 launches, its answer is lost, and it has forgotten the token when it is asked again."""
    day.world.ec2.forgets_tokens = True
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))


@pytest.mark.parametrize("lose", [lose_the_second_record, lose_the_answer])
def test_while_ec2_shows_nothing_at_all_what_was_launched_keeps_its_room(lose):
    """After ten minutes without a list that showed anything, agents that nobody had on record let a pool have two too many."""
    day = Day(in_memory(a_pool("gpu", max_agents=4, queue_maturity_seconds=0.0))).minutes(3)
    builds = day.queue(1, "gpu", seconds=3000.0)
    day.minutes(8)
    day.world.ec2.listing = Listing(empty_until=day.world.timeline.now + 1200.0)
    day.minutes(1)
    lose(day)
    builds += day.queue(4, "gpu", seconds=900.0)
    for _ in range(30):
        day.minutes(1)
        assert day.agents() <= 4
    assert day.fleet.state.intents == {}
    day.minutes(60)
    assert all(build.ended and not build.killed_by for build in builds)
