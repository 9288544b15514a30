"""How many of the day's builds count in BuildsSucceeded and BuildsFailed: a stage of a pipeline that goes on has no result."""

from autoscaler.control import operate
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day():
    day = Day(in_memory(a_pool("cpu", min_agents=4)))
    day.minutes(8)
    return day


def results(day):
    return operate.status(day.fleet.ports, day.fleet.fleet, day.fleet.invocation()).results


def test_where_every_build_has_a_result_nothing_is_said():
    day = a_day()
    day.queue(2, seconds=120.0)
    day.minutes(6)
    assert results(day) == ""


def test_stages_of_a_pipeline_that_goes_on_are_told_beside_the_ends_that_count():
    day = a_day()
    day.queue(1, seconds=120.0)
    for seconds in (120.0, 130.0, 1200.0):
        day.jenkins.submit("pipeline", "cpu", seconds, kind=Kind.PIPELINE, number=1)
    day.minutes(8)
    assert results(day) == "results count at the end of a run only: 1 of the 3 builds and stages that ended since midnight UTC"
    day.minutes(20)
    assert results(day) == "results count at the end of a run only: 2 of the 4 builds and stages that ended since midnight UTC"


def test_the_count_begins_anew_each_day():
    day = a_day()
    for seconds in (120.0, 1200.0):
        day.jenkins.submit("pipeline", "cpu", seconds, kind=Kind.PIPELINE, number=1)
    day.minutes(8)
    assert "0 of the 1 build or stage" in results(day)
    day.world.move_to(day.world.timeline.now + 86_400.0)
    assert results(day) == ""
