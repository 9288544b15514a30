"""Time-lines of builds that begin and end between two looks: no look sees them on an executor."""

import pytest

from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.jenkins.script import Parallel, Sh, node, submit_script
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

SHORT = 3.0


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", **({"min_agents": 4, "max_agents": 8} | facts)))).minutes(10)


def break_a_machine(day):
    """Let each build on one machine fail within seconds."""
    broken = next(on for on in day.jenkins.nodes.values() if on.connected)
    broken.fails_builds = True

    def begin(build, go_on):
        build.seconds = SHORT if build.node == broken.name else build.seconds
        go_on()

    day.jenkins.begins = begin
    return broken


def work(day, minutes, kind=Kind.FREESTYLE, count=2, seconds=200.0):
    for minute in range(minutes):
        for number in range(count):
            day.jenkins.submit(f"job-{(count * minute + number) % 40}", "cpu", seconds, kind=kind)
        day.minutes(1)


def quarantined(day):
    return [step.node for step in day.done(Cordon) if step.reason is Reason.FAILURE_STREAK]


def results(day):
    published = [datum for _, datum in day.fleet.metrics.published if len(datum.dimensions) == 1]
    return [sum(v for datum in published if datum.name == name for v in datum.values) for name in ("BuildsSucceeded", "BuildsFailed")]


@pytest.mark.parametrize("kind", Kind)
def test_a_machine_on_which_builds_fail_within_seconds_is_found_within_minutes(kind):
    day = a_day()
    broken = break_a_machine(day)
    work(day, 12, kind)
    assert quarantined(day) == [broken.name]
    work(day, 20, kind)
    assert sum(not build.succeeded for build in day.jenkins.builds if build.ended) <= 6


def test_it_is_found_behind_a_long_queue_too():
    day = a_day(max_agents=4)
    broken = break_a_machine(day)
    work(day, 1, count=40, seconds=300.0)
    work(day, 8, count=3, seconds=300.0)
    assert quarantined(day) == [broken.name]


def test_it_is_found_by_branches_of_runs_that_go_on_elsewhere():
    day = a_day(max_agents=4, executors=4)
    broken = break_a_machine(day)
    for minute in range(20):
        fails = {"short": (node("cpu", Sh(SHORT)),)}
        submit_script(day.jenkins, f"job-{minute}", Parallel(fails | {"long": (node("cpu", Sh(240.0)),)}))
        day.minutes(1)
    assert quarantined(day) == [broken.name]


def test_each_build_counts_once_however_long_it_takes():
    day = a_day(max_agents=4)
    for number in range(60):
        seconds = (3.0, 40.0, 61.0, 130.0)[number % 4]
        day.jenkins.submit(f"job-{number}", "cpu", seconds).fails = number % 5 == 0
        day.minutes(1)
    day.minutes(10)
    assert results(day) == [48, 12]
    ends = day.fleet.state.read().learned["main"].ends
    assert (ends.ended, ends.counted) == (60, 60)


def asked(day, minutes, count):
    """How many items each look asked about, while so many short builds come each minute."""
    counts = []
    builds = day.fleet.ports.builds["main"]
    ask = builds.item
    builds.item = lambda item: counts.append(item) or ask(item)
    for _ in range(minutes):
        work(day, 1, count=count, seconds=SHORT)
    return counts


def test_a_look_asks_about_twenty_items_at_most_and_about_three_if_nothing_comes():
    day = a_day()
    work(day, 2)
    day.minutes(10)
    assert len(asked(day, 10, count=0)) == 30
    busy = asked(day, 12, count=60)
    assert len(busy) <= 12 * 22
    assert max(busy) > 600, "it goes on with the newest ones when it has fallen behind"


def test_what_jenkins_does_not_answer_is_asked_about_again():
    day = a_day()
    work(day, 1)
    day.minutes(6)
    day.jenkins.submit("short", "cpu", SHORT).fails = True
    day.fleet.faults.plan(Fault("jenkins queue/item", status=500, times=2))
    day.minutes(4)
    assert results(day) == [2, 1]


def test_after_a_restart_of_jenkins_it_begins_anew():
    day = a_day()
    work(day, 3, seconds=70.0)
    day.minutes(3)
    day.jenkins.restart()
    day.minutes(10)
    work(day, 2, seconds=70.0)
    day.minutes(3)
    day.jenkins.submit("short", "cpu", SHORT).fails = True
    day.minutes(3)
    assert results(day)[1] == 1


def test_builds_that_no_look_saw_count_for_max_builds():
    day = a_day(max_builds=2, min_agents=1, max_agents=2)
    first = next(on for on in day.jenkins.nodes.values() if on.connected)
    work(day, 1, count=1, seconds=70.0)
    day.minutes(3)
    for _ in range(3):
        work(day, 1, count=1, seconds=SHORT)
    day.minutes(4)
    assert first.name not in day.jenkins.nodes or first.temporarily_offline
