"""Of how many of the day's builds and stages the result counts in BuildsSucceeded and BuildsFailed."""

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day():
    day = Day(in_memory(a_pool("cpu", min_agents=4)))
    day.minutes(8)
    return day


def results(day):
    return day.status().results


def test_where_every_build_has_a_result_nothing_is_said():
    day = a_day()
    day.queue(2, seconds=120.0)
    day.minutes(6)
    assert results(day) == ""


def test_stages_of_a_pipeline_that_goes_on_count_when_they_leave_their_executors():
    day = a_day()
    for seconds in (120.0, 130.0, 1200.0):
        day.jenkins.submit("pipeline", "cpu", seconds, kind=Kind.PIPELINE, number=1)
    day.minutes(8)
    assert results(day) == ""


def aborted(day):
    """One build is aborted, another succeeds."""
    build, _ = day.queue(2, seconds=180.0)
    day.minutes(2)
    day.jenkins.abort(build)
    return day.minutes(6)


def test_what_has_no_result_is_told_beside_what_has():
    assert results(aborted(a_day())) == "results are known of 1 of the 2 builds and stages that ended since midnight UTC"


def test_the_count_begins_anew_each_day():
    day = aborted(a_day())
    day.world.move_to(day.world.timeline.now + 86_400.0)
    assert results(day) == ""
