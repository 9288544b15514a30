"""Time-lines of agents on which builds fail."""

from autoscaler.domain.facts.fleet import Quarantine
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", **({"min_agents": 4, "max_agents": 8} | facts))))


def break_a_machine(day):
    day.minutes(10)
    node = next(node for node in day.jenkins.nodes.values() if node.connected)
    node.fails_builds = True
    return node


def work(day, minutes):
    """Each minute some jobs, of names that are spread over the machines, each long enough to be seen by a look."""
    for minute in range(minutes):
        for number in range(2):
            day.jenkins.submit(f"job-{minute % 20}-{number}", "cpu", 70.0)
        day.minutes(1)


def test_a_machine_that_fails_builds_is_drained_and_replaced_and_no_build_is_killed():
    day = a_day()
    broken = break_a_machine(day)
    work(day, 60)
    assert broken.name not in day.jenkins.nodes
    assert day.agents() >= 4
    assert {build.ended for build in day.jenkins.builds} <= {Ended.FINISHED, None}
    ended = [facts for event, facts in day.fleet.logged if event == "build_ended"]
    assert {facts["result"] for facts in ended if facts["node"] == broken.name} == {"failed"}
    assert metric(day, "BuildsFailed") >= 5
    assert metric(day, "BuildsSucceeded") > 100


def test_it_is_kept_for_whoever_wants_to_look_at_it():
    day = a_day(quarantine=Quarantine.KEEP)
    broken = break_a_machine(day)
    work(day, 60)
    assert ":quarantine:" in broken.reason
    assert broken.name in day.jenkins.nodes
    assert last(day, "AgentsInQuarantine") == 1
    assert day.agents() >= 5


def test_code_that_fails_everywhere_takes_no_machine():
    day = a_day()
    day.minutes(10)
    for node in day.jenkins.nodes.values():
        node.fails_builds = True
    work(day, 40)
    assert not any(":quarantine:" in node.reason for node in day.jenkins.nodes.values())
    assert last(day, "NodeFailureStreak") >= 5


def values(day, name):
    return [v for _, datum in day.fleet.metrics.published if datum.name == name and len(datum.dimensions) == 1 for v in datum.values]


def metric(day, name):
    return sum(values(day, name))


def last(day, name):
    return values(day, name)[-1]


def test_a_jenkins_that_answers_slowly_does_not_keep_a_look_from_its_end():
    day = a_day(executors=8)
    day.minutes(10)
    day.queue(30, seconds=70.0)
    day.minutes(1)
    day.fleet.faults.meanwhile = lambda call: day.world.timeline.sleep(3.0) if call == "jenkins job" else None
    day.world.move_to(day.world.timeline.now + 60.0)
    began = day.world.timeline.now
    day.fleet.publish_metrics()
    assert day.world.timeline.now - began < 20.0
    assert day.fleet.state.read().learned["main"].running == {}  # what it saw is learned, and not asked for again
