"""Time-lines of people who have a device of a machine while `share`, a controller or the host leaves the fleet file."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Share, WarmPool
from autoscaler.domain.facts.orders import EndInstance
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Reservation
from support.builders import a_host, a_pool, a_pool_of_hosts, an_offering
from support.cards import give_cards
from support.left_keys import deploy, without_controller
from support.reserving import HOUR, order, refusals, release, reserve
from support.timeline import Day
from support.worlds import in_memory

BOTH = {"controllers": ("main", "other"), "share": Share.COOPERATIVE, "idle_seconds": 600.0, "executors": 2}


def a_machine(hours=3.0):
    """An instance that served two controllers at once, and of which alice has a device."""
    day = Day(in_memory(a_pool("gpu", **BOTH))).minutes(2)
    day.queue(1, label="gpu", seconds=60.0)
    day.minutes(8)
    [first] = [record for record in day.fleet.state.records.values() if record.is_instance]
    now = day.world.timeline.now
    mine = Reservation(person="alice", reason="a test hangs", by="ada", since_at=now, until_at=now + hours * HOUR, request="r-1")
    day.fleet.state.records[first.instance_id] = replace(first, devices_for=(mine,))
    return day


def a_host_with_cards(hours=3.0):
    """A host that served two controllers at once, and of which alice has a card."""
    day = Day(in_memory(a_pool_of_hosts("gpu", **BOTH), hosts=(a_host(pool="gpu"),)))
    day.cards = give_cards(day.world, "rocm-1", 2)
    day.minutes(6)
    report = reserve(day, "rocm-1", hours=hours)
    assert refusals(report) == []
    return day.minutes(6)


WARM = WarmPool(min_agents=1, max_agents=2, max_age_seconds=86_400.0)
FIRM = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
CHANGES = {
    "share leaves": lambda file, pool: replace(pool, share=Share.NONE),
    "share becomes rotate": lambda file, pool: replace(pool, share=Share.ROTATE),
    "share leaves, with a controller": lambda file, pool: replace(pool, share=Share.NONE, controllers=("main",)),
    "share leaves, with the first controller": lambda file, pool: replace(pool, share=Share.NONE, controllers=("other",)),
    "share leaves, and agents are stopped now": lambda file, pool: replace(pool, share=Share.NONE, warm_pool=WARM, offerings=(FIRM,)),
    "share leaves, and each agent has one build": lambda file, pool: replace(pool, share=Share.NONE, max_builds=1),
    "share leaves, and agents are too old": lambda file, pool: replace(pool, share=Share.NONE, max_agent_hours=0.01),
}


def change(day, what):
    pool = CHANGES[what](day.fleet.fleet, day.fleet.fleet.pools["gpu"])
    deploy(day.fleet, replace(day.fleet.fleet, pools={"gpu": pool}))
    return day


def people(day):
    return [
        one.person for record in day.fleet.state.records.values() for one in record.devices_for if one.until_at > day.world.timeline.now
    ]


@pytest.mark.parametrize("what", CHANGES)
def test_a_machine_is_kept_until_the_persons_time_ends_and_goes_then(what):
    day = change(a_machine(), what)
    day.hours(2.5)
    assert [instance.is_on() for instance in day.world.alive()] == [True]
    assert people(day) == ["alice"]
    day.hours(3)
    assert [instance.id for instance in day.world.alive() if instance.is_on()] == []
    assert [message.subject for message in day.fleet.notifier.sent if "too long" in message.subject] == []


@pytest.mark.parametrize("what", CHANGES)
def test_release_works_and_the_machine_goes(what):
    day = change(a_machine(), what).minutes(60)
    name = next(record.node for record in day.fleet.state.records.values() if record.devices_for)
    assert refusals(release(day, name, person="bob")) == [Reason.RESERVED]
    assert refusals(release(day, name, person="alice")) == []
    assert people(day) == []
    day.hours(3)
    assert [instance.id for instance in day.world.alive() if instance.is_on()] == []


def test_the_person_may_have_it_for_longer_and_nobody_else_gets_the_whole_agent():
    day = change(a_machine(), "share leaves").minutes(3)
    name = next(record.node for record in day.fleet.state.records.values() if record.devices_for)
    assert refusals(reserve(day, name, person="bob", request="r-2")) == [Reason.RESERVED]
    assert refusals(reserve(day, name, hours=6.0, request="r-3")) == []
    day.hours(5)
    assert (people(day), day.agents()) == (["alice"], 1)


@pytest.mark.parametrize("what", [name for name in CHANGES if "stopped" not in name and "build" not in name and "old" not in name])
def test_a_person_keeps_the_card_of_a_host(what):
    day = change(a_host_with_cards(), what).hours(2.5)
    assert (people(day), day.cards.holders()) == (["alice"], ["alice"])
    day.hours(2)
    assert (people(day), day.cards.holders()) == ([], [])


@pytest.mark.parametrize("what", ["share leaves", "share becomes rotate", "the host leaves"])
def test_release_works_for_the_card_of_a_host(what):
    day = a_host_with_cards()
    if what == "the host leaves":
        deploy(day.fleet, replace(day.fleet.fleet, hosts={}))
    else:
        change(day, what)
    day.minutes(60)
    assert people(day) == ["alice"]
    assert refusals(release(day, "rocm-1")) == []
    assert people(day) == []
    day.minutes(60)
    if what == "the host leaves":
        assert day.fleet.state.records == {}


@pytest.mark.parametrize("left", ["main", "other"])
def test_a_controller_that_leaves_takes_no_card_from_a_person(left):
    day = a_host_with_cards()
    file = without_controller(day.fleet.fleet, left)
    deploy(day.fleet, replace(file, pools={"gpu": replace(file.pools["gpu"], share=Share.NONE)}))
    day.hours(2.5)
    assert (people(day), day.cards.holders()) == (["alice"], ["alice"])


@pytest.mark.parametrize(("left", "refused"), [("main", [Reason.RESERVED]), ("other", [])])
def test_the_side_in_whose_record_a_persons_card_stands_is_not_closed_before_they_release_it(left, refused):
    day = a_host_with_cards()
    deploy(day.fleet, without_controller(day.fleet.fleet, left))
    day.minutes(5)
    confirmed = EndInstance(target="rocm-1", reason="nothing runs there")
    assert refusals(order(day, confirmed)) == refused
    assert people(day.hours(1)) == ["alice"]
    release(day, "rocm-1")
    order(day, confirmed)
    assert [record.controller for record in day.minutes(5).fleet.state.records.values()] == [{"main": "other", "other": "main"}[left]]
