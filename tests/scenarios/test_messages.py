"""What people are told: once when it begins, once when it is over, and again only where sending failed."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest

from autoscaler.control.measure import notify
from autoscaler.control.observe import observe_without_instances
from autoscaler.domain.facts.fleet import Ceilings, Team
from autoscaler.domain.learn import assess
from autoscaler.domain.report.told import Message
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 600.0, "boot_timeout_seconds": 300.0} | facts))))


def break_the_image(day):
    """Instances run, write a last line, and nothing on them ever asks who it is. Returns how to mend it."""
    comes_up = day.world.ec2.on_running

    def hangs(instance):
        instance.console = "mounting disks\nFATAL: no java found\n\n"

    day.world.ec2.on_running = hangs

    def mend():
        day.world.ec2.on_running = comes_up

    return mend


@dataclass(frozen=True)
class Refusing:
    """A notifier that sends by this function."""

    send: Callable[[Message], None]
    runbooks: str = "docs"


def told(day):
    return [message.subject for message in day.fleet.notifier.sent]


def test_a_breaker_that_opens_is_told_once_with_pool_cause_and_runbook():
    day = a_day()
    break_the_image(day)
    day.minutes(2).queue(3)
    day.minutes(3 * 60)
    assert told(day) == ["[f] agents of cpu do not boot"]
    text = day.fleet.notifier.sent[0].text
    last = day.fleet.state.memory.trials["boot/cpu"].failed[2]
    assert f"The last one: {last}, whose console ends with: FATAL: no java found." in text
    assert "docs/operations.md#breakers-open" in text
    assert "autoscaler why cpu" in text
    assert text.endswith("\nOnce it is mended: autoscaler resume --breaker cpu\n")


def test_an_agent_that_connects_ends_it_with_one_message():
    day = a_day()
    mend = break_the_image(day)
    day.minutes(2).queue(3)
    day.minutes(60)
    mend()
    day.minutes(120)
    assert told(day) == ["[f] agents of cpu do not boot", "[f] over: agents of cpu do not boot"]
    assert "breaker/cpu" not in day.fleet.state.told.troubles


def test_boots_that_fail_again_soon_after_one_that_worked_are_the_same_message():
    day = a_day(boot_timeout_seconds=120.0)
    mend = break_the_image(day)
    builds = day.minutes(2).queue(3, seconds=3600.0)
    day.minutes(60)
    mend()
    while not any(build.started_at for build in builds):
        day.minutes(1)
    break_the_image(day)
    day.minutes(50)
    assert [build.started_at is None for build in builds] == [False, True, True]
    assert told(day) == ["[f] agents of cpu do not boot"]


def test_what_could_not_be_sent_is_sent_at_the_next_look():
    day = a_day()
    break_the_image(day)
    day.fleet.faults.plan(Fault("sns Publish", times=3))
    day.minutes(2).queue(3)
    day.minutes(40)
    assert told(day) == ["[f] agents of cpu do not boot"]
    assert [event for event, _ in day.fleet.logged if event == "message_failed"] == ["message_failed"] * 3


def test_what_was_sent_and_not_remembered_is_sent_again_and_not_a_third_time():
    day = a_day()
    break_the_image(day)
    day.minutes(2).queue(3)
    day.fleet.faults.plan(Fault("state save_told"))
    day.minutes(60)
    assert told(day) == ["[f] agents of cpu do not boot"] * 2


def test_a_limit_is_told_of_while_jobs_wait_for_it_and_not_each_time_that_it_is_touched():
    day = Day(in_memory(a_pool("cpu", executors=1, idle_seconds=600.0), max_agents=2))
    day.minutes(2).queue(2, seconds=3600.0)
    day.minutes(20)
    assert told(day) == []  # two of two agents, and nobody waits
    day.queue(1, seconds=600.0)
    day.minutes(30)
    assert told(day) == ["[f] the limit max_agents is reached"]
    day.minutes(120)
    assert told(day) == ["[f] the limit max_agents is reached", "[f] over: the limit max_agents is reached"]


def test_the_month_that_is_spent_is_told_of():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0), max_usd_per_month=8.0))
    day.minutes(2).queue(3, seconds=7200.0)
    day.minutes(120)
    assert told(day) == ["[f] the month's limit is reached"]
    assert "operations.md#usd-per-month" in day.fleet.notifier.sent[0].text


def test_a_limit_of_a_team_is_told_of_while_its_own_jobs_wait_for_it():
    day = Day(in_memory(a_pool("cpu", executors=1), a_pool("gpu", executors=1)))
    day.fleet.fleet = replace(day.fleet.fleet, teams={"web": Team(name="web", pools=frozenset({"cpu"}), ceilings=Ceilings(max_agents=2))})
    day.minutes(2).queue(2, seconds=7200.0)
    day.queue(3, label="gpu", seconds=7200.0)
    day.minutes(20)
    assert told(day) == []  # two of two agents, and only jobs of others came after them
    day.queue(1, seconds=600.0)
    day.minutes(20)
    assert told(day) == ["[f] the limit max_agents of team web is reached"]
    [message] = day.fleet.notifier.sent
    assert "Jobs of team web wait, 2 agents are there, and max_agents (2) leaves no room" in message.text
    assert "operations.md#team-limits" in message.text


@pytest.mark.long
def test_the_hours_of_a_day_that_are_used_are_told_of_and_the_next_day_too():
    day = Day(in_memory(a_pool("cpu", executors=1, idle_seconds=600.0, ceilings=Ceilings(max_hours_per_day=2.0)), a_pool("gpu")))
    day.minutes(2).queue(1, seconds=7200.0)
    day.minutes(150)
    assert told(day) == ["[f] the day's hours of pool cpu are used"]
    [message] = day.fleet.notifier.sent
    assert "have run 2.0 of 2 hours today" in message.text
    assert "schedules.md#hours-a-day" in message.text
    day.minutes(24 * 60)
    assert told(day)[1:] == ["[f] over: the day's hours of pool cpu are used"]


def test_one_that_cannot_be_sent_keeps_no_other_from_being_told_once():
    """A topic that refuses one message for ever must not send the others each minute."""
    day = Day(in_memory(a_pool("cpu", boot_timeout_seconds=300.0), a_pool("gpu", boot_timeout_seconds=300.0)))
    break_the_image(day)
    send = day.fleet.notifier.send

    def refuse_gpu(message):
        if "gpu" in message.subject:
            raise TransientError("InvalidParameter")
        send(message)

    day.fleet.ports = replace(day.fleet.ports, notifier=Refusing(refuse_gpu))
    day.minutes(2).queue(3)
    day.queue(3, "gpu")
    day.minutes(60)
    assert told(day) == ["[f] agents of cpu do not boot"]
    assert set(day.fleet.state.told.troubles) == {"breaker/cpu"}


def test_what_there_is_no_time_for_is_told_at_the_next_look():
    day = a_day()
    break_the_image(day)
    day.minutes(2).queue(3)
    day.minutes(16)
    ports, state = day.fleet.ports, day.fleet.state
    situation = assess(observe_without_instances(ports, day.fleet.fleet, state.read(), day.fleet.invocation()), day.fleet.fleet)
    before, sent = replace(state.told, troubles={}), len(told(day))
    state.told = before
    now = day.world.timeline.now
    assert notify(ports, before, situation, now + 20.0) == 0
    assert (len(told(day)), state.told.troubles) == (sent, {})
    assert notify(ports, before, situation, now + 55.0) == 1


def test_metrics_that_cannot_be_sent_keep_nobody_from_being_told():
    day = a_day()
    break_the_image(day)
    day.minutes(2).queue(3)
    for _ in range(30):
        day.fleet.faults.plan(Fault("metrics PutMetricData"))
        with suppress(TransientError):
            day.minutes(1)
        day.fleet.scale_up()
        day.fleet.scale_down()
    assert told(day) == ["[f] agents of cpu do not boot"]
