"""Instances with the tags of a fleet that it did not launch: people are told, and nobody touches them."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.orders import EndInstance
from autoscaler.domain.facts.plan import Adopt, Launch
from autoscaler.domain.facts.snapshot import RecordState
from support.builders import a_pool, a_record
from support.by_hand import launched_by_hand
from support.timeline import Day
from support.worlds import in_memory

POOL = a_pool("cpu", max_agents=2, idle_seconds=600.0, queue_maturity_seconds=0.0)


def a_day(*pools, **facts):
    return Day(in_memory(*(pools or (POOL,)), **facts)).minutes(5)


def sent(day):
    return [message.subject for message in day.fleet.notifier.sent]


def is_untouched(day, instance):
    steps = [result.step for report in day.fleet.reports for result in report.results]
    return instance.state == "running" and not [step for step in steps if instance.id in str(step)]


@pytest.mark.parametrize("days", [400.0, 0.001], ids=["an old machine", "launched now"])
@pytest.mark.parametrize(
    "tags",
    [{}, {"autoscaler:launch": "launch-0"}, {"autoscaler:node": "cpu-1"}, {"autoscaler:controller": "left"}, {"autoscaler:pool": "left"}],
    ids=["three tags", "a launch", "a node", "another controller", "another pool"],
)
def test_a_machine_that_somebody_gave_our_tags_is_left_alone_and_told(days, tags):
    day = a_day()
    instance = launched_by_hand(day.world, "f", days=days, tags=tags)
    day.minutes(90)
    assert is_untouched(day, instance)
    assert sent(day) == [f"[f] {instance.id}: tags of fleet f, and not launched by it"]
    [message] = day.fleet.notifier.sent
    assert f"aws ec2 delete-tags --resources {instance.id} --tags Key=autoscaler:fleet. Or" in message.text
    assert f"aws ec2 terminate-instances --instance-ids {instance.id}" in message.text


def test_an_instance_of_an_auto_scaling_group_is_not_ours_whatever_people_tagged_it_with():
    day = a_day()
    tags = {"aws:ec2:fleet-id": "fleet-1", "aws:autoscaling:groupName": "eks-nodes"}
    instance = launched_by_hand(day.world, "f", tags=tags)
    day.minutes(30)
    assert is_untouched(day, instance)
    assert len(sent(day)) == 1


def test_it_is_told_each_day_and_over_once_the_tag_is_off():
    day = a_day()
    instance = launched_by_hand(day.world, "f")
    day.hours(26)
    assert len(sent(day)) == 2
    del instance.tags["autoscaler:fleet"]
    day.world.ec2.changes += 1
    day.minutes(5)
    assert sent(day)[2:] == [f"[f] over: {instance.id}: tags of fleet f, and not launched by it"]
    assert is_untouched(day, instance)


def test_status_why_and_the_order_to_end_it_name_the_command_that_does():
    day = a_day()
    instance = launched_by_hand(day.world, "f")
    day.minutes(2)
    command = f"aws ec2 terminate-instances --instance-ids {instance.id}"
    status = day.status()
    assert [line for line in status.left if line.startswith(f"EC2 shows the tags of fleet f on {instance.id}, ") and command in line]
    assert [line for line in day.why(instance.id) if command in line]
    order = EndInstance(target=instance.id, reason="nobody needs it")
    [report] = day.order(order)
    assert [held.detail for held in report.plan.held if command in held.detail]
    assert is_untouched(day, instance)


def test_it_takes_no_room_of_any_limit():
    day = a_day(replace(POOL, max_agents=1), max_agents=1, max_usd_per_hour=3.5)
    launched_by_hand(day.world, "f")
    day.minutes(3)
    [build] = day.queue(1)
    day.minutes(15)
    assert build.started_at is not None


def test_a_stopped_one_and_one_that_ends_are_left_alone():
    day = a_day(replace(POOL, warm_pool=WarmPool(min_agents=0, max_agents=2, max_age_seconds=86_400.0)))
    stopped = launched_by_hand(day.world, "f", state="stopped", spells=[])
    ending = launched_by_hand(day.world, "f", days=0.001)
    day.minutes(5)
    day.world.ec2.end(ending)
    day.queue(3)
    day.minutes(60)
    assert stopped.state == "stopped"
    assert not day.done(Adopt)


@pytest.mark.parametrize("state", [RecordState.REQUESTED, RecordState.REGISTERED, RecordState.CONDEMNED, RecordState.STOPPED])
@pytest.mark.parametrize("is_untagged", [False, True], ids=["tagged", "its tags are taken off"])
def test_a_record_that_an_earlier_release_made_of_it_ends_nothing(state, is_untagged):
    day = a_day()
    instance = launched_by_hand(day.world, "f")
    node = None if state is RecordState.REQUESTED else "cpu-0"
    record = a_record(instance.id, state=state, node=node, launched_at=instance.launched_at, launch="")
    day.fleet.state.records[instance.id] = record
    if is_untagged:
        instance.tags.clear()
    day.minutes(90)
    assert is_untouched(day, instance)
    assert len(sent(day)) == 1
    [build] = day.queue(1)
    day.minutes(15)
    assert build.started_at is not None
    day.world.ec2.end(instance)
    day.minutes(30)
    assert instance.id not in day.fleet.state.records or day.fleet.state.records[instance.id].state is RecordState.GONE


def test_an_own_instance_whose_tags_ec2_shows_late_stays_an_agent():
    """EC2's answers come from several machines: one may show a new instance before it knows its tags."""
    day = a_day()
    [build] = day.queue(1)
    day.minutes(1)
    [instance] = day.world.ec2.instances.values()
    tags, instance.tags = instance.tags, {}
    day.minutes(2)
    assert len(day.done(Launch)) == 1
    instance.tags = tags
    day.minutes(8)
    assert (len(day.done(Launch)), build.started_at is None) == (1, False)


def test_an_agent_that_is_adopted_after_the_state_was_lost_gets_its_time_to_boot_from_then():
    day = a_day(replace(POOL, boot_seconds=600.0))
    day.queue(1)
    day.minutes(1)
    [instance] = day.world.ec2.instances.values()
    instance.launched_at -= 1200.0
    instance.spells[0].began_at -= 1200.0
    day.world.ec2.changes += 1
    day.fleet.state.records.clear()
    day.fleet.state.intents.clear()
    day.minutes(30)
    assert len(day.done(Adopt)) == 1
    assert instance.booted_at is not None
    assert not [result for report in day.fleet.reports for result in report.results if getattr(result.step, "reason", "") == "boot-timeout"]
