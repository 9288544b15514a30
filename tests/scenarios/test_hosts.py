"""Time-lines of hosts: machines of one's own that connect, and are never launched or ended."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Lending, Share
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import DrainNodes, Resume, Scope
from autoscaler.domain.facts.plan import Launch, Rotate, Terminate
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler_workbench.fakes.world.faults import Fault, Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.remembered import tables
from support.timeline import Day
from support.worlds import a_world_node, in_memory

TWO = ("main", "other")


def a_day(*pools, hosts=None, **facts):
    day = Day(in_memory(*(pools or (a_pool_of_hosts(**facts),)), hosts=hosts or (a_host(),)))
    day.other = day.world.controllers.get("other")
    return day.minutes(3)


def records(day):
    return {record.instance_id: record.state for record in day.fleet.state.read().records}


def drain(day, *nodes):
    """Drain these nodes for a person."""
    order = DrainNodes(nodes=nodes, reason="new fans", request_id=None)
    [report] = day.order(order)
    return report


def test_a_host_asks_who_it_is_and_takes_jobs_of_its_kind():
    day = a_day()
    [build] = day.queue(1, label="rocm", seconds=300.0)
    day.minutes(8)
    assert (day.nodes(), build.node, build.ended) == (["rocm-1"], "rocm-1", Ended.FINISHED)
    assert (day.done(Launch), day.failed) == ([], 0)
    description = day.jenkins.nodes["rocm-1"].description
    assert "connected by the autoscaler on instance host-rocm-1" in description


def test_jobs_wait_for_it_and_nothing_is_launched_in_its_place():
    day = a_day()
    builds = day.queue(4, label="rocm", seconds=600.0)
    day.minutes(45)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 4
    assert (day.done(Launch), day.agents()) == ([], 0)


def test_what_it_cannot_take_is_launched_where_another_pool_can():
    day = a_day(a_pool_of_hosts(labels=frozenset({"linux"})), a_pool("cpu", labels=frozenset({"linux"})))
    day.queue(4, label="linux", seconds=3600.0)
    day.minutes(10)
    assert {step.pool for step in day.done(Launch)} == {"cpu"}
    assert len(day.jenkins.nodes["rocm-1"].builds) == 1


def test_idle_for_a_week_it_stays_and_costs_nothing():
    day = a_day(max_idle_seconds=60.0)
    day.minutes(200)
    assert not day.jenkins.nodes["rocm-1"].offline
    assert (day.nodes(), day.done(Terminate), day.fleet.state.memory.month.usd) == (["rocm-1"], [], 0.0)


def test_without_power_it_is_no_supply_and_it_comes_back_by_itself():
    day = a_day(a_pool_of_hosts(labels=frozenset({"linux"})), a_pool("cpu", labels=frozenset({"linux"})))
    host = day.world.hosts["rocm-1"]
    day.fleet.agents.power_fails(host)
    [build] = day.queue(1, label="linux", seconds=300.0)
    day.minutes(30)
    assert (build.ended, day.agents() <= 1, len(day.done(Launch))) == (Ended.FINISHED, True, 1)
    assert records(day)["host-rocm-1"] is RecordState.REGISTERED
    day.fleet.agents.power_returns(host)
    day.minutes(3)
    assert not day.jenkins.nodes["rocm-1"].offline


def test_a_node_that_a_person_deletes_is_made_again():
    day = a_day()
    day.jenkins.delete_node("rocm-1")
    day.minutes(12)
    assert not day.jenkins.nodes["rocm-1"].offline


def test_a_node_of_its_name_that_is_somebody_elses_is_left_alone():
    day = Day(in_memory(a_pool_of_hosts(), hosts=(a_host(),)))
    day.jenkins.add_node(a_world_node("rocm-1", "x", description="Anna's box", connected=False))
    day.minutes(20)
    assert (day.jenkins.nodes["rocm-1"].description, day.jenkins.nodes["rocm-1"].connected) == ("Anna's box", False)
    [record] = day.fleet.state.read().records
    assert "that is not ours" in record.trouble


def test_drained_by_a_person_it_stays_drained_until_they_bring_it_back():
    day = a_day()
    [build] = day.queue(1, label="rocm", seconds=600.0)
    day.minutes(2)
    drain(day, "rocm-1")
    day.minutes(30)
    node = day.jenkins.nodes["rocm-1"]
    assert (build.ended, node.temporarily_offline, day.done(Terminate)) == (Ended.FINISHED, True, [])
    day.lift(Resume(scope=Scope.FLEET, name="", nodes=("rocm-1",), reason="done"))
    assert not node.offline


def test_taken_from_the_fleet_file_it_is_drained_and_disconnected_and_its_build_ends_first():
    day = a_day()
    [build] = day.queue(1, label="rocm", seconds=900.0)
    day.minutes(2)
    day.fleet.fleet = replace(day.fleet.fleet, hosts={"rocm-2": a_host("rocm-2")})
    day.minutes(10)
    assert (build.ended, day.jenkins.nodes["rocm-1"].temporarily_offline) == (None, True)
    day.minutes(20)
    assert (build.ended, day.nodes(), records(day)) == (Ended.FINISHED, [], {})
    assert day.world.hosts["rocm-1"].on


def test_shared_by_turns_it_goes_where_jobs_wait():
    day = a_day(controllers=TWO, share=Share.ROTATE)
    build = day.other.submit("theirs", "rocm", 300.0)
    day.minutes(10)
    assert (build.node, build.ended is not None or build.started_at is not None, len(day.done(Rotate))) == ("rocm-1", True, 1)
    assert day.nodes() == []


@pytest.mark.parametrize("hosts", [(), (a_host(),)], ids=["without hosts", "with hosts"])
def test_hosts_take_no_room_under_any_limit(hosts):
    pools = (a_pool("cpu"), *([a_pool_of_hosts()] if hosts else []))
    day = Day(in_memory(*pools, hosts=hosts, max_agents=1)).minutes(3)
    day.queue(1, label="cpu", seconds=600.0)
    day.minutes(6)
    assert day.agents("cpu") == 1


def test_if_its_record_is_lost_in_mid_rotation_no_node_is_left_on_the_controller_that_it_does_not_serve():
    day = a_day(controllers=TWO, share=Share.ROTATE)
    description = day.jenkins.nodes["rocm-1"].description
    day.other.add_node(replace(a_world_node("rocm-1", "rocm"), description=description))
    day.other.disconnect("rocm-1")
    day.minutes(20)
    assert "rocm-1" not in day.other.nodes
    assert day.jenkins.nodes["rocm-1"].connected
    assert day.failed == 0


def test_if_its_record_is_lost_it_stays_connected_until_jenkins_answers_for_its_node():
    day = a_day(controllers=TWO, share=Share.COOPERATIVE)
    build = day.jenkins.submit("nested", "rocm", 7200.0, kind=Kind.PIPELINE)
    day.minutes(3)
    day.fleet.state.records.clear()
    day.fleet.apis["main"].faults = faults = Faults(dice=Fault)
    day.fleet.faults.plan(Fault("state change_record", times=1000))
    while len(records(day)) < len(TWO):
        day.minutes(1)
    assert records(day)["host-rocm-1@main"] is RecordState.STARTING
    day.fleet.faults.planned.clear()
    day.minutes(25)
    assert (build.killed_by, day.jenkins.nodes["rocm-1"].connected) == ("", True)
    faults.dice = None
    day.minutes(100)
    assert build.ended is Ended.FINISHED
    assert records(day) == dict.fromkeys(["host-rocm-1@main", "host-rocm-1@other"], RecordState.REGISTERED)


def test_where_builds_fail_on_it_it_is_cordoned_and_stays_for_a_person():
    day = a_day()
    record = next(iter(day.fleet.state.read().records))
    day.jenkins.set_offline("rocm-1", f"autoscaler:f:{MarkClass.QUARANTINE}:p", "autoscaler")
    day.minutes(20)
    assert (day.done(Terminate), day.nodes()) == ([], ["rocm-1"])
    assert day.fleet.state.read().records[0].life == record.life


def metric(day, name):
    return [value for _, datum in day.fleet.metrics.published if datum.name == name for value in datum.values]


def test_one_that_is_not_connected_is_counted_and_named_to_people_once():
    day = a_day(hosts=(a_host(owner="the ROCm team"),))
    day.fleet.agents.power_fails(day.world.hosts["rocm-1"])
    day.minutes(14)
    assert (metric(day, "HostsOffline")[-1], day.fleet.notifier.sent) == (1.0, [])
    day.minutes(10)
    [message] = day.fleet.notifier.sent
    assert message.subject == "[f] host rocm-1 is not connected"
    assert "Ask the ROCm team." in message.text
    day.fleet.agents.power_returns(day.world.hosts["rocm-1"])
    day.minutes(5)
    assert tables(day.fleet.state.memory).hosts_off == {}
    assert day.fleet.notifier.sent[-1].subject == "[f] over: host rocm-1 is not connected"


def test_one_that_is_drained_or_whose_controller_cannot_be_read_is_not_said_to_be_off():
    day = a_day()
    before = len(metric(day, "HostsOffline"))
    drain(day, "rocm-1")
    day.minutes(20)
    day.jenkins.up = "starting"
    day.minutes(20)
    assert len(metric(day, "HostsOffline")) == before
    assert day.fleet.notifier.sent == []


def test_an_idle_host_of_a_rare_kind_is_lent_to_plain_jobs_and_taken_back():
    rare = a_pool_of_hosts(labels=frozenset({"gfx1030"}), lent_labels=frozenset({"amd64"}), lend=Lending.IDLE)
    day = a_day(rare, a_pool("plain", labels=frozenset({"amd64"}), boot_seconds=1800.0))
    [plain] = day.queue(1, label="amd64", seconds=300.0)
    day.minutes(12)
    assert (plain.node, plain.ended) == ("rocm-1", Ended.FINISHED)
    [own] = day.queue(1, label="gfx1030", seconds=300.0)
    day.minutes(10)
    assert (own.node, own.ended) == ("rocm-1", Ended.FINISHED)
    day.minutes(60)
    assert "amd64" not in day.jenkins.nodes["rocm-1"].labels
