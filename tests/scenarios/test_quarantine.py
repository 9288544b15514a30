"""Time-lines of agents on which builds fail."""

from random import Random

from autoscaler.domain.facts.fleet import Quarantine
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Started
from autoscaler_workbench.fakes.world.jenkins.matrix import submit_matrix
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
    assert metric(day, "BuildsFailed") >= 3
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


def broken_jobs(day, *names, hours=8):
    """Let jobs fail wherever they run, each every quarter of an hour, beside jobs that succeed. Jenkins gives a job to the same node."""
    chance = Random(2)
    for minute in range(60 * hours):
        if minute % 15 == 0:
            for name in names:
                day.jenkins.submit(name, "cpu", 240.0).fails = True
        if chance.random() < 0.15:
            day.jenkins.submit(f"unit-{chance.randrange(9)}", "cpu", 400.0)
        day.minutes(1)


def quarantined(day):
    return [step.node for step in day.done(Cordon) if step.reason is Reason.FAILURE_STREAK]


def test_one_broken_job_takes_no_machine_however_often_it_fails():
    day = a_day(min_agents=3, max_agents=6)
    day.minutes(8)
    broken_jobs(day, "broken")
    assert sum(build.job == "broken" and not build.succeeded for build in day.jenkins.builds) > 25
    assert quarantined(day) == []


def test_jobs_that_fail_wherever_they_run_take_no_machine_however_many_they_are():
    day = a_day(min_agents=3, max_agents=6)
    day.minutes(8)
    broken_jobs(day, *(f"broken-{number}" for number in range(6)), hours=4)
    assert len(quarantined(day)) <= 1  # before any of them has failed on a second machine, nothing tells them from its own fault


def test_the_parts_of_a_matrix_are_one_job():
    day = a_day(min_agents=3, max_agents=6)
    day.minutes(8)
    parts = tuple(f"os={name}" for name in ("debian", "ubuntu", "fedora", "alpine", "arch", "suse"))
    for number in range(12):
        first = submit_matrix(day.jenkins, "app", "cpu", 200.0, parts, Started())
        for build in day.jenkins.builds:
            build.fails = build.fails or (build.job == "app" and build.number == first.number)
        day.jenkins.submit(f"unit-{number}", "cpu", 100.0)
        day.minutes(15)
    assert sum(not build.succeeded for build in day.jenkins.builds if build.configuration) > 60
    assert quarantined(day) == []


def test_branches_of_a_repository_that_nothing_of_succeeds_are_one_job():
    day = a_day(min_agents=3, max_agents=6)
    day.minutes(8)
    for number in range(40):
        day.jenkins.submit(f"org/app/PR-{number}", "cpu", 200.0).fails = True
        day.jenkins.submit("unit", "cpu", 100.0)
        day.minutes(6)
    assert quarantined(day) == []


def test_a_machine_is_found_by_branches_of_one_repository_that_succeed_elsewhere():
    day = a_day()
    broken = break_a_machine(day)
    for number in range(60):
        day.jenkins.submit(f"org/app/PR-{number}", "cpu", 70.0)
        day.minutes(1)
    assert set(quarantined(day)) == {broken.name}


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
