"""Time-lines of launches that EC2 accepts and ends while they are pending: something is short.

It is the same as if EC2 had refused them, and no boot has failed.
"""

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.plan import Launch, Terminate
from autoscaler.domain.facts.reasons import Reason
from support.builders import a_pool, an_offering
from support.deployed import essential_thresholds
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

WARM = WarmPool(min_agents=0, max_agents=10, max_age_seconds=168 * 3600.0)
VOLUMES = "Client.VolumeLimitExceeded"
REFUSED = "[f] EC2 refuses launches of cpu"


def a_day(*more, kinds=("c5.large", "m5.large")):
    offerings = tuple(an_offering(kind, subnet="subnet-a", usd_per_hour=1.0) for kind in kinds)
    pool = a_pool("cpu", offerings=offerings, idle_seconds=300.0, max_agents=10)
    return Day(in_memory(*more, pool, thresholds=essential_thresholds())).minutes(2)


def with_four_stopped():
    """Four agents of another pool are stopped, and EC2 ends what is launched beside them."""
    disk = an_offering("m7g.large", subnet="subnet-a", usd_per_hour=1.0, volume_usd_per_hour=0.01)
    arm = a_pool("arm", offerings=(disk,), idle_seconds=300.0, max_agents=10, warm_pool=WARM)
    day = starts_proven(a_day(arm), "arm")
    day.queue(4, "arm", seconds=300.0)
    day.minutes(35)
    assert sorted(instance.state for instance in day.world.alive()) == ["stopped"] * 4
    return day


def ends_beyond(day, most, code):
    """Let EC2 end what is pending while there are more instances than a quota allows."""
    day.world.ec2.ends_pending = lambda _instance: code if len(list(day.world.alive())) > most else ""


def ends_all(day, code):
    day.world.ec2.ends_pending = lambda _instance: code


def launched(day):
    return sum(step.count for step in day.done(Launch))


def boots_failed(day):
    return [facts for event, facts in day.fleet.logged if event == "boot_failed"]


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def open_trials(day):
    trials = day.fleet.state.memory.trials
    return {scope: trial.code for scope, trial in trials.items() if trial.is_failing}


@pytest.mark.parametrize("code", [VOLUMES, f"{VOLUMES}.Iops"])
def test_stopped_agents_make_way_for_launches_that_ec2_ends_for_the_quota_of_volumes(code):
    """The boots counted as failed, the agents stayed stopped, and no job started in four hours."""
    day = with_four_stopped()
    ends_beyond(day, 4, code)
    builds = day.queue(3, seconds=300.0)
    day.minutes(20)
    assert all(build.ended is not None for build in builds)
    made_way = [step for step in day.done(Terminate) if step.reason is Reason.MAKES_WAY]
    assert (len(made_way), boots_failed(day)) == (3, [])


def test_the_quota_is_told_and_no_failed_boot_and_one_agent_is_tried_each_five_minutes():
    day = a_day()
    ends_all(day, VOLUMES)
    day.queue(3, seconds=300.0)
    day.minutes(60)
    assert (subjects(day), boots_failed(day)) == ([REFUSED], [])
    assert "EC2 answered VolumeLimitExceeded" in day.fleet.notifier.sent[0].text
    assert launched(day) <= 3 + 60 / 5
    assert any("EC2 answered VolumeLimitExceeded" in line for line in day.why("cpu"))


def test_soon_after_the_quota_is_raised_all_jobs_run_and_the_message_is_over():
    day = a_day()
    ends_all(day, VOLUMES)
    builds = day.queue(3, seconds=300.0)
    day.minutes(60)
    ends_all(day, "")
    day.minutes(14)
    assert all(build.started_at is not None for build in builds)
    day.minutes(10)
    assert subjects(day) == [REFUSED, f"[f] over: {REFUSED.removeprefix('[f] ')}"]
    assert open_trials(day) == {}


def test_while_the_agent_that_is_tried_is_pending_no_other_is_launched():
    """EC2 has accepted it, which says nothing here."""
    day = a_day()
    ends_all(day, VOLUMES)
    day.queue(3, seconds=300.0)
    day.minutes(2)
    before = launched(day)
    while launched(day) == before:
        day.minutes(1)
    day.fleet.scale_up()
    day.fleet.scale_up()
    assert launched(day) == before + 1


def test_launches_that_end_in_several_looks_are_one_failure():
    """They were launched before the first end was known."""
    day = a_day()
    day.queue(2, seconds=300.0)
    day.minutes(1)
    for instance in list(day.world.alive()):
        instance.state_reason = VOLUMES
        day.world.ec2.end(instance)
        day.minutes(1)
    assert day.fleet.state.memory.trials["pool/cpu"].failures == 1


@pytest.mark.parametrize(
    "code",
    [
        "Server.InsufficientInstanceCapacity",
        "Client.VcpuLimitExceeded",
        "Client.InsufficientFreeAddressesInSubnet",
        VOLUMES,
    ],
)
def test_an_end_while_pending_means_what_the_same_code_means_as_an_answer(code):
    refused, ended = a_day(kinds=("c5.large",)), a_day(kinds=("c5.large",))
    if code == VOLUMES:  # which names no offering
        refused.world.ec2.refuse = (code.partition(".")[2], "")
    refused.world.ec2.answers["c5.large/subnet-a/on-demand"] = code.partition(".")[2]
    ends_all(ended, code)
    for day in (refused, ended):
        day.queue(2, seconds=300.0)
        day.minutes(3)
    assert open_trials(ended) == open_trials(refused) != {}
    assert boots_failed(ended) == []
