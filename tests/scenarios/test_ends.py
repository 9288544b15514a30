"""Time-lines of machines that EC2 does not end, that it shows long after their end, and that somebody else ends."""

import pytest

from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool, an_offering
from support.deployed import essential_thresholds
from support.timeline import Day
from support.worlds import in_memory, now

FOR_EVER = 10**9
PRICED = {"offerings": (an_offering(usd_per_hour=1.0),), "queue_maturity_seconds": 0.0}


def a_day(thresholds=None, **facts):
    pool = a_pool("cpu", **(PRICED | {"idle_seconds": 600.0, "max_agents": 3} | facts))
    return Day(in_memory(pool, thresholds=thresholds)).minutes(2)


def subjects(day, word):
    return [message.subject for message in day.fleet.notifier.sent if word in f"{message.subject} {message.text}"]


def longest_wait(builds):
    return max(build.started_at - build.queued_at for build in builds)


@pytest.mark.parametrize(
    ("code", "status"), [("UnauthorizedOperation", 403), ("SomethingNew", 400), ("Unavailable", 503), ("RequestLimitExceeded", 503)]
)
def test_an_end_that_ec2_refuses_is_asked_for_ever_more_rarely_counted_and_told_once_in_its_words(code, status):
    day = a_day()
    refusal = Fault("ec2 TerminateInstances", status=status, code=code, times=FOR_EVER)
    day.fleet.faults.plan(refusal)
    day.queue(3, seconds=300.0)
    day.minutes(60)
    [refused] = set(subjects(day, code))
    assert now(day, "AgentsStuck") == 3.0
    more = day.queue(3, seconds=300.0)
    day.minutes(4 * 60)
    assert longest_wait(more) <= 45 * 60.0  # after an hour it holds no place of max_agents
    calls = sum("TerminateInstances" in call for call in day.fleet.faults.seen)
    assert calls <= len(day.world.ec2.instances) * (7 + 4)  # seven times in the first hour of each, then hourly
    assert subjects(day, code) == [refused]
    node = day.nodes()[0] if day.nodes() else day.world.alive()[0].id
    assert any(code in line for line in day.why(node))
    refusal.times = 0
    day.minutes(90)
    assert (day.agents(), now(day, "AgentsStuck")) == (0, 0.0)


def test_without_alarms_of_cloudwatch_it_is_told_once_too():
    day = a_day(essential_thresholds())
    day.fleet.faults.plan(Fault("ec2 TerminateInstances", status=403, code="UnauthorizedOperation", times=FOR_EVER))
    day.queue(1, seconds=300.0)
    day.minutes(6 * 60)
    assert len(day.fleet.notifier.sent) == 1


def test_a_passing_refusal_of_an_end_is_no_reason_to_wait_an_hour():
    day = a_day()
    day.fleet.faults.plan(Fault("ec2 TerminateInstances", status=503, code="Unavailable", times=3))
    day.queue(3, seconds=300.0)
    day.minutes(40)
    assert (day.agents(), subjects(day, "Unavailable")) == (0, [])


def test_machines_that_ec2_shows_as_running_an_hour_after_their_end_hold_no_place():
    day = a_day()
    day.world.ec2.listing = Listing(ended_seconds=3600.0)
    first = day.queue(3, seconds=300.0)
    for _ in range(30):
        day.world.ec2.changes += 1
        day.minutes(1)
    assert day.agents() == 0
    more = day.queue(3, seconds=300.0)
    for _ in range(90):
        day.world.ec2.changes += 1
        day.minutes(1)
    assert longest_wait(more) <= 2 * longest_wait(first)
    assert {build.ended for build in (*first, *more)} == {Ended.FINISHED}


@pytest.mark.parametrize("ends", [lambda ec2, one: ec2.end(one), lambda ec2, one: ec2.stop(one.id)], ids=["ends", "stops"])
def test_machines_that_somebody_else_ends_or_stops_are_counted_and_told_once_with_the_builds_that_were_lost(ends):
    """Janitors (cloud-nuke, Cloud Custodian) end what lacks their tag once it is an hour old; schedulers stop it."""
    day, builds, taken = a_day(max_agents=6, idle_seconds=3600.0), [], set()

    def janitor():
        for one in list(day.world.alive()):
            if one.state == "running" and day.world.timeline.now - one.launched_at > 3600.0:
                ends(day.world.ec2, one)
                taken.add(one.id)
                one.state_reason = "Client.UserInitiatedShutdown"

    for minute in range(6 * 60):
        if minute % 15 == 0:
            builds.append(day.jenkins.submit(f"unit-{minute}", "cpu", 2400.0))
        janitor()
        day.minutes(1)
    killed = [build.job for build in day.jenkins.builds if build.killed_by]
    assert len(killed) >= 3
    [told] = [message for message in day.fleet.notifier.sent if "Client.UserInitiatedShutdown" in message.text]
    assert "cpu" in told.subject
    assert any(job in told.text for job in killed)
    assert any(f" {len(taken)} agents " in line and "Client.UserInitiatedShutdown" in line for line in day.why("cpu"))
    assert sum(value for _, datum in day.fleet.metrics.published if datum.name == "AgentsEndedByOthers" for value in datum.values) >= 3


def test_a_reason_that_ec2_could_not_be_asked_for_is_asked_for_again(monkeypatch):
    day = a_day(idle_seconds=3600.0)
    day.queue(1, seconds=2400.0)
    day.minutes(20)
    asked, real = [], day.fleet.ports.compute.end_reasons

    def fails_first(ids):
        asked.append(ids)
        if len(asked) < 3:
            raise TransientError("DescribeInstances: Unavailable")
        return real(ids)

    monkeypatch.setattr(type(day.fleet.ports.compute), "end_reasons", lambda _compute, ids: fails_first(ids))
    monkeypatch.setattr(type(day.world.ec2), "announce", lambda *_: None)
    [machine] = day.world.alive()
    day.world.ec2.end(machine)
    machine.state_reason, machine.state = "Client.UserInitiatedShutdown", "terminated"
    day.minutes(8)
    assert len(asked) >= 3
    assert any("Client.UserInitiatedShutdown" in message.text for message in day.fleet.notifier.sent)


def test_machines_that_somebody_stops_as_soon_as_they_have_connected_are_no_failed_boots():
    """Schedulers and janitors stop what is idle: EC2 shows that it was stopped, so that it did not go away by itself."""
    day = a_day(min_agents=2)
    for _ in range(60):
        for one in list(day.world.alive()):
            if one.state == "running" and day.world.timeline.now - one.launched_at > 240.0:
                day.world.ec2.stop(one.id)
        day.minutes(1)
    more = day.queue(3, seconds=60.0)
    day.minutes(15)
    assert subjects(day, "do not boot") == []
    assert longest_wait(more) <= 8 * 60.0
