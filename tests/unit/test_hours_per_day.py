"""How the hours of a day are counted: by machines that run, from midnight on, and only where a limit is about them."""

from autoscaler.domain.facts.fleet import Ceilings
from autoscaler.domain.facts.memory import Day
from autoscaler.domain.facts.metering import hours_in_day, levels, levels_out_of_hours, meter_day
from autoscaler.domain.facts.snapshot import InstanceState
from support.builders import NOW, a_fleet, a_pool, a_record, a_snapshot, a_view, an_instance

MIDNIGHT = NOW - NOW % 86_400
FLEET = a_fleet(a_pool("cpu", ceilings=Ceilings(max_hours_per_day=4.0)), a_pool("gpu"))
TODAY = Day(name="2027-01-15", metered_at=NOW - 1800.0, hours={"cpu": 1.0})


def seen(*states, at=NOW, pool="cpu"):
    records = tuple(a_record(f"i-{number}", pool=pool, node=f"n-{number}") for number, _ in enumerate(states))
    instances = tuple(an_instance(f"i-{number}", pool=pool, state=state) for number, state in enumerate(states))
    return a_snapshot(a_view(), records=records, instances=instances, taken_at=at)


def test_each_machine_that_runs_counts_and_one_that_is_stopped_or_has_ended_does_not():
    states = InstanceState.RUNNING, InstanceState.PENDING, InstanceState.STOPPED, InstanceState.STOPPING, InstanceState.TERMINATED
    assert meter_day(TODAY, seen(*states), FLEET).hours == {"cpu": 2.0}


def test_of_the_time_over_midnight_the_new_day_has_what_came_after_it():
    yesterday = Day(name="2027-01-14", metered_at=MIDNIGHT - 1800.0, hours={"cpu": 9.0})
    day = meter_day(yesterday, seen(InstanceState.RUNNING, at=MIDNIGHT + 900.0), FLEET)
    assert (day.name, day.hours) == ("2027-01-15", {"cpu": 0.25})


def test_the_hours_of_yesterday_use_up_nothing_today():
    [pool, *_] = levels(FLEET)
    used = Day(name="2027-01-14", metered_at=MIDNIGHT - 1.0, hours={"cpu": 9.0})
    assert (hours_in_day(used, pool, MIDNIGHT - 1.0), hours_in_day(used, pool, MIDNIGHT)) == (9.0, 0.0)
    assert [level.name for level in levels_out_of_hours(used, FLEET, MIDNIGHT - 1.0)] == ["cpu"]
    assert levels_out_of_hours(used, FLEET, MIDNIGHT) == ()


def test_before_the_first_look_nothing_is_known_and_nothing_counted():
    assert meter_day(Day(), seen(InstanceState.RUNNING), FLEET).hours == {"cpu": 0.0}


def test_where_no_limit_is_about_hours_none_are_kept():
    assert meter_day(TODAY, seen(InstanceState.RUNNING), a_fleet(a_pool("cpu"))) == Day()
