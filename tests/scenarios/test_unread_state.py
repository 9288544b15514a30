"""Time-lines in which something of our own state cannot be read: nothing stops, nothing is done to it, and a person is told."""

from dataclasses import replace

import pytest

from autoscaler.control.registration import register
from autoscaler.domain.facts.plan import Adopt
from autoscaler.domain.report.registration import Caller, Refused, Status
from autoscaler_workbench.fakes.identity import TRUST
from autoscaler_workbench.fakes.world.ec2.region import ACCOUNT, AGENT_ROLE_ID
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory, now


@pytest.fixture
def day():
    return Day(in_memory(a_pool("cpu", idle_seconds=120.0, max_agents=2)))


def one_agent(day, seconds=60.0):
    day.minutes(2).queue(1, seconds=seconds)
    day.minutes(6)
    [instance] = day.world.alive()
    return instance


def test_an_instance_whose_record_cannot_be_read_counts_as_alive_and_is_neither_adopted_nor_given_up(day):
    instance = one_agent(day, seconds=1800.0)
    day.fleet.state.unreadable.add(f"record#{instance.id}")
    day.queue(3, seconds=600.0)
    day.minutes(12)
    assert day.agents() == 2  # the limit, with it
    assert now(day, "StateUnread") == 1.0
    assert ("state_unread", {"count": 1, "names": (f"record#{instance.id}",)}) in day.fleet.logged
    assert day.status().unread == (f"record#{instance.id}",)
    day.minutes(90)
    assert [one.id for one in day.world.alive()] == [instance.id]
    assert {build.ended for build in day.jenkins.builds} == {Ended.FINISHED}
    assert day.done(Adopt) == []
    day.fleet.state.unreadable.clear()
    day.minutes(15)
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.agents(), day.nodes()) == ([], [], 0, [])


def test_one_that_ec2_does_not_list_counts_too(day):
    day.minutes(2)
    day.fleet.state.unreadable |= {"record#i-0123456789abcdef0", "record#i-0123456789abcdef1", "intent#l-1"}
    assert day.status().agents == 3


@pytest.mark.parametrize("limits", [{}, {"max_usd_per_hour": 6.0}], ids=["of its pool", "of dollars"])
def test_one_that_ec2_does_not_list_takes_room_in_every_limit_since_nobody_knows_its_pool(limits):
    day = Day(in_memory(a_pool("cpu", idle_seconds=120.0, max_agents=10 if limits else 2), **limits))
    instance = one_agent(day, seconds=3600.0)
    day.fleet.state.unreadable.add(f"record#{instance.id}")
    day.world.ec2.listing = replace(day.world.ec2.listing, empty_until=day.world.timeline.now + 1200.0)
    day.queue(5, seconds=600.0)
    day.minutes(15)
    assert day.agents() == 2  # the limit, with it


def test_its_node_is_kept_when_its_machine_ends(day):
    instance = one_agent(day)
    [node] = day.nodes()
    day.fleet.state.unreadable.add(f"record#{instance.id}")
    day.world.ec2.end(instance)
    day.minutes(30)
    assert day.nodes() == [node]


def test_it_is_told_to_ask_again(day):
    instance = one_agent(day, seconds=1800.0)
    day.fleet.state.unreadable.add(f"record#{instance.id}")
    told = register(day.fleet.ports, day.fleet.fleet, Caller(account=ACCOUNT, role_id=AGENT_ROLE_ID, session=instance.id), TRUST)
    assert isinstance(told, Refused)
    assert told.status is Status.UNAVAILABLE


@pytest.mark.parametrize("name", ["memory", "learned#main"])
def test_what_was_remembered_begins_anew_and_nothing_is_killed(day, name):
    one_agent(day, seconds=900.0)
    day.fleet.state.unreadable.add(name)
    day.minutes(2)
    assert day.fleet.state.unreadable == set()
    day.minutes(40)
    assert (day.jenkins.builds[0].ended, day.agents()) == (Ended.FINISHED, 0)


def test_orders_that_cannot_be_read_hold_launches_and_say_so(day):
    day.minutes(2)
    day.fleet.state.unreadable.add("overrides")
    day.queue(1)
    day.minutes(5)
    assert day.agents() == 0
    details = [held.detail for report in day.fleet.reports[-2:] for held in report.plan.held]
    assert any("what operators have ordered cannot be read" in detail for detail in details)
