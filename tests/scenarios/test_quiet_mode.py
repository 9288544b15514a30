"""Time-lines of controllers that stay in quiet mode: people are told which, why, and for how long."""

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

WAIT_MINUTES = 30
TOLD = "[f] main is in quiet mode, and jobs wait"


def a_day(reason=None, kind=Kind.FREESTYLE):
    given = {"max_agents": 10, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0, "max_wait_seconds": WAIT_MINUTES * 60.0}
    day = Day(in_memory(a_pool("cpu", **given))).minutes(5)
    day.jenkins.quiet_down(reason)
    return day, day.queue(5, kind=kind)


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_quiet_mode_is_told_once_a_job_has_waited_for_too_long_with_jenkins_reason(kind):
    """A backup left it on: jobs waited for eight hours, nobody was told, and `why` said that no pool serves them."""
    day, _ = a_day("backup of the home directory", kind)
    day.minutes(WAIT_MINUTES - 2)
    assert subjects(day) == []
    day.minutes(5)
    [told] = day.fleet.notifier.sent
    assert told.subject == TOLD
    assert "since 2027-01-15 08:05 UTC. Jenkins' reason: backup of the home directory.\n5 jobs wait, job-0 for 3" in told.text
    day.minutes(8 * 60)
    assert subjects(day) == [TOLD]


def test_why_begins_with_it():
    day, _ = a_day("moving to a new disk")
    day.minutes(60)
    said = day.why("job-0")
    assert said[0] == "1 build waits: main is in quiet mode since 2027-01-15 08:05 UTC (moving to a new disk)."
    assert sum("quiet mode since" in line for line in said) == 1
    said = day.why("cpu")
    assert said[0].startswith("main is in quiet mode since 2027-01-15 08:05 UTC (moving to a new disk): it begins no build")
    assert not [line for line in said if "no pool" in line or "no executor" in line]


def test_it_is_told_again_each_day_and_over_once_it_is_over():
    day, _ = a_day()
    day.hours(50)
    assert subjects(day) == [TOLD, TOLD, TOLD]
    assert "Jenkins names no reason" in day.fleet.notifier.sent[0].text
    day.jenkins.cancel_quiet_down()
    day.minutes(30)
    assert subjects(day)[3:] == ["[f] over: main is in quiet mode, and jobs wait"]


def test_neither_an_unread_controller_nor_jobs_that_go_end_it():
    day, jobs = a_day()
    day.minutes(WAIT_MINUTES + 5)
    for job in jobs:
        day.jenkins.abort(job)
    day.minutes(10)
    day.fleet.apis["main"].accounts["nobody"] = "x"
    day.minutes(10)
    assert subjects(day) == [TOLD]


def test_a_quiet_mode_that_costs_nothing_and_that_nobody_waits_for_is_told_to_nobody():
    day = Day(in_memory(a_pool("cpu"))).minutes(5)
    day.jenkins.quiet_down()
    day.minutes(3 * 60)
    assert subjects(day) == []


def test_agents_that_are_idle_in_quiet_mode_for_an_hour_are_told_with_their_cost():
    """A pool's two agents were paid for 79 and 87 min, and nobody was told since no job waited."""
    day = Day(in_memory(a_pool("cpu", idle_seconds=900.0, queue_maturity_seconds=0.0)))
    day.queue(1)
    day.minutes(10)
    day.jenkins.quiet_down("nightly backup")
    day.minutes(55)
    assert subjects(day) == []
    day.minutes(15)
    [told] = day.fleet.notifier.sent
    assert told.subject == "[f] main is in quiet mode, and agents are idle"
    [agent] = [name for name in day.jenkins.nodes if name.startswith("cpu-")]
    assert "Jenkins' reason: nightly backup.\n1 idle agent cost $" in told.text
    assert f" an hour: {agent}.\n" in told.text
    day.jenkins.cancel_quiet_down()
    day.minutes(30)
    assert subjects(day)[1:] == ["[f] over: main is in quiet mode, and agents are idle"]


def test_a_short_one_before_a_restart_is_told_to_nobody_and_kills_no_build():
    day, jobs = a_day()
    day.minutes(10)
    day.jenkins.restart()
    day.minutes(60)
    assert [job.ended is None for job in jobs] == [False] * 5
    assert subjects(day) == []
