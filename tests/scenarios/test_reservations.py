"""Time-lines of agents that people reserve: builds stay away, the pool keeps its minimum, and each reservation ends by itself."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.orders import DrainNodes, Scope
from autoscaler.domain.facts.plan import EndReservation, Launch, Start
from autoscaler.domain.facts.plan import Reserve as ReserveStep
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.jenkins.controller import CURRENT_VERSION, DROPS_BUILDS
from support.builders import a_pool, an_offering
from support.reserving import (
    a_day,
    all_went_well,
    an_idle_day,
    connected,
    instance_of,
    metric,
    order,
    outcomes,
    refusals,
    release,
    reserve,
    reserved,
)
from support.timeline import Day
from support.worlds import in_memory


def test_an_idle_agent_is_taken_and_no_build_begins_there_until_it_is_gone():
    day = an_idle_day()
    [node] = connected(day)
    assert outcomes(reserve(day, hours=2.0)) == [(ReserveStep, "done")]
    assert (node.temporarily_offline, node.reason.split(":")[2]) == (True, "reserved")
    builds = day.queue(3, seconds=300.0)
    day.minutes(119)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert node.name not in {build.node for build in builds}
    assert node.name in day.jenkins.nodes
    day.minutes(4)
    assert node.name not in day.jenkins.nodes
    assert all_went_well(day)


def test_jobs_that_ask_for_its_label_are_told_of_no_node_and_get_an_agent_of_their_own():
    day = an_idle_day(max_agents=2)
    [node] = connected(day)
    reserve(day)
    assert "cpu" not in node.labels
    [build] = day.queue(1, seconds=60.0)
    day.minutes(10)
    assert build.ended is Ended.FINISHED


def test_nobody_elses_reservation_ends_and_whose_it_is_is_said():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, person="alice")
    report = release(day, node.name, person="bob")
    assert (outcomes(report), refusals(report)) == ([], [Reason.RESERVED])
    assert f"{node.name} is reserved for alice, not for bob" in report.plan.held[0].detail
    day.minutes(10)
    assert node.name in day.jenkins.nodes
    assert outcomes(release(day, node.name, person="alice")) == [(EndReservation, "done")]
    day.minutes(10)
    assert node.name not in day.jenkins.nodes


def test_where_nothing_is_idle_one_is_launched_and_it_never_takes_a_build():
    day = a_day()
    assert outcomes(reserve(day)) == [(Launch, "done")]
    builds = day.queue(4, seconds=120.0)
    day.minutes(30)
    [record] = reserved(day)
    node = day.jenkins.nodes[record.node]
    assert (node.connected, node.temporarily_offline, node.reason.split(":")[2]) == (True, True, "reserved")
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert record.node not in {build.node for build in builds}
    day.minutes(40)
    assert (reserved(day), day.agents()) == ([], 0)
    assert all_went_well(day)


def test_neither_a_job_that_excludes_other_labels_nor_one_that_names_it_begins_on_one_that_was_launched_for_a_person():
    day = a_day()
    reserve(day)
    for _ in range(20):
        day.queue(1, label="!windows&&!arm")
        day.queue(1, label="autoscaler-fleet-f")
        day.minutes(1)
    [record] = reserved(day)
    day.queue(1, label=record.node)
    day.minutes(5)
    assert [build for build in day.jenkins.builds if build.node == record.node] == []


def test_it_ends_by_itself_with_a_warning_before_and_is_terminated():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, hours=1.0)
    day.minutes(29)
    assert day.fleet.notifier.sent == []
    assert metric(day, "ReservationEndsSeconds")[-1] == pytest.approx(31 * 60.0)
    assert metric(day, "AgentsReserved")[-1] == 1
    day.minutes(2)
    [message] = day.fleet.notifier.sent
    assert f"{node.name} is reserved for alice until" in message.subject
    assert "autoscaler reserve" in message.text
    assert "The agent is terminated then, once its builds have ended" in message.text, "one that was busy may be so still"
    day.minutes(35)
    assert node.name not in day.jenkins.nodes
    assert [message.subject.startswith("[f] over:") for message in day.fleet.notifier.sent] == [False, True]
    assert all_went_well(day)


def test_what_is_reserved_again_by_the_same_person_ends_later_and_nobody_else_gets_it():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, hours=1.0)
    day.minutes(40)
    assert refusals(reserve(day, node.name, person="bob", request="r-2")) == [Reason.RESERVED]
    assert outcomes(reserve(day, node.name, hours=1.0, request="r-3")) == [(EndReservation, "done")]
    day.minutes(55)
    assert node.name in day.jenkins.nodes
    day.minutes(10)
    assert node.name not in day.jenkins.nodes


def test_what_is_released_is_terminated_and_not_handed_back():
    day = an_idle_day(warm_pool=WarmPool(min_agents=0, max_agents=5, max_age_seconds=86_400.0))
    [node] = connected(day)
    instance = instance_of(day, node.name)
    reserve(day, hours=8.0)
    day.minutes(10)
    release(day, node.name)
    build = day.queue(1, seconds=60.0)[0]
    day.minutes(10)
    assert (instance.alive(), build.ended, build.node != node.name) == (False, Ended.FINISHED, True)
    assert refusals(release(day, node.name)) == [Reason.NOT_FOUND]
    assert all_went_well(day)


def test_one_that_boots_yet_is_released_by_its_instance_id():
    day = a_day(boot_seconds=400.0)
    reserve(day)
    [record] = reserved(day)
    assert record.node is None
    release(day, record.instance_id)
    day.minutes(3)
    assert (day.agents(), day.nodes()) == (0, [])
    assert "boot/cpu" not in day.fleet.state.memory.trials


def test_the_minimum_of_a_pool_is_for_builds_and_another_one_is_launched():
    day = a_day(min_agents=2, max_agents=3).minutes(8)
    assert len(connected(day)) == 2
    assert outcomes(reserve(day)) == [(Launch, "done")]
    day.minutes(20)
    assert len([node for node in connected(day) if not node.temporarily_offline]) == 2
    assert Reason.MAX_AGENTS in refusals(reserve(day, request="r-2"))
    assert refusals(reserve(day, connected(day)[0].name, request="r-3")) == [Reason.CI_FIRST]


def test_where_the_minimum_takes_all_that_a_pool_may_have_nothing_is_reserved():
    day = a_day(min_agents=2, max_agents=2)
    report = reserve(day)
    assert (outcomes(report), set(refusals(report))) == ([], {Reason.MAX_AGENTS, Reason.CI_FIRST})
    day.minutes(10)
    assert (len(connected(day)), reserved(day)) == (2, [])


def test_the_fleets_room_is_for_the_minimum_first_though_its_agents_are_not_there_yet():
    day = Day(in_memory(a_pool("cpu"), a_pool("gpu", min_agents=2), max_agents=2))
    assert refusals(reserve(day)) == [Reason.FLEET_MAX_AGENTS]
    day.minutes(10)
    assert day.agents("gpu") == 2


def test_a_reserved_agent_is_no_part_of_the_minimum():
    day = an_idle_day(agents=2, min_agents=1, max_agents=3)
    assert outcomes(reserve(day)) == [(ReserveStep, "done")]
    day.minutes(200)
    day = an_idle_day(agents=2, min_agents=1, max_agents=3)
    reserve(day, hours=100.0)
    for instance in day.world.alive():
        if not day.world.node_of(instance).temporarily_offline:
            day.world.ec2.end(instance)
    day.minutes(15)
    assert len([node for node in connected(day) if not node.temporarily_offline]) == 1


def test_the_same_request_reserves_once():
    day = an_idle_day(agents=2)
    reserve(day)
    assert refusals(reserve(day)) == [Reason.ALREADY_DONE]
    day.minutes(70)
    assert refusals(reserve(day)) == [Reason.ALREADY_DONE]
    assert reserved(day) == []


def test_a_launch_of_the_same_request_is_made_once_too():
    day = a_day()
    reserve(day)
    assert refusals(reserve(day)) == [Reason.ALREADY_DONE]
    day.minutes(100)
    assert refusals(reserve(day)) == [Reason.ALREADY_DONE]
    assert len(day.done(Launch)) == 1


@pytest.mark.parametrize("version", [CURRENT_VERSION, DROPS_BUILDS])
def test_a_busy_agent_that_is_named_is_the_persons_once_its_build_is_done(version):
    day = a_day()
    day.jenkins.version = version
    [build] = day.queue(1, seconds=900.0)
    day.minutes(6)
    assert build.node
    [result] = reserve(day, build.node, hours=3.0).results
    assert (str(result.outcome), result.detail) == ("done", "one build goes on")
    others = day.queue(3, seconds=60.0)
    day.minutes(40)
    assert {one.ended for one in (build, *others)} == {Ended.FINISHED}
    assert build.node not in {one.node for one in others}
    assert day.jenkins.nodes[build.node].temporarily_offline
    day.minutes(160)
    assert (day.agents(), reserved(day)) == (0, [])
    assert all_went_well(day)


@pytest.mark.parametrize("version", [CURRENT_VERSION, DROPS_BUILDS])
def test_a_build_that_begins_in_the_instant_of_the_reservation_is_not_lost(version):
    day = an_idle_day(agents=1)
    day.jenkins.version = version
    [node] = connected(day)

    def meanwhile(call):
        if call in {"jenkins changeOfflineCause", "jenkins config.xml"} and not day.jenkins.queue:
            day.queue(1, seconds=200.0)
            day.jenkins.schedule()

    day.fleet.faults.meanwhile = meanwhile
    reserve(day, hours=2.0)
    day.fleet.faults.meanwhile = lambda _call: None
    day.minutes(30)
    assert {build.ended for build in day.jenkins.builds} == {Ended.FINISHED}
    assert (node.temporarily_offline, node.builds) == (True, {})
    assert all_went_well(day)


def test_of_a_pool_nothing_that_is_at_work_or_that_jobs_wait_for_is_taken():
    day = a_day()
    day.queue(1, seconds=3000.0)
    day.minutes(6)
    assert outcomes(reserve(day)) == [(Launch, "done")]


def test_one_that_stands_in_quarantine_may_be_reserved_to_look_at_it():
    day = an_idle_day(agents=2)
    node = connected(day)[0]
    order(day, DrainNodes(nodes=(node.name,), reason="odd", request_id="r-0"))
    assert outcomes(reserve(day, node.name)) == [(ReserveStep, "done")]
    day.minutes(30)
    assert node.reason.split(":")[2] == "reserved"


def test_a_stopped_agent_is_started_for_a_person_and_takes_no_build():
    day = an_idle_day(idle_seconds=300.0, warm_pool=WarmPool(min_agents=1, max_agents=2, max_age_seconds=86_400.0))
    day.minutes(60)
    assert [instance.state for instance in day.world.alive()] == ["stopped"]
    assert outcomes(reserve(day)) == [(Start, "done")]
    builds = day.queue(2, seconds=120.0)
    day.minutes(30)
    [record] = reserved(day)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert record.node not in {build.node for build in builds}
    day.minutes(40)
    assert reserved(day) == []


def test_what_ec2_refuses_to_start_for_a_person_is_launched_for_them():
    day = an_idle_day(
        idle_seconds=300.0,
        offerings=(an_offering(), an_offering("c6i.16xlarge")),
        warm_pool=WarmPool(min_agents=1, max_agents=2, max_age_seconds=86_400.0),
    )
    day.minutes(60)
    day.world.ec2.capacity[an_offering().key] = 0
    report = reserve(day)
    assert outcomes(report) == [(Start, "failed"), (Launch, "done")]
    [record] = reserved(day)
    assert record.instance_type == "c6i.16xlarge"


def test_it_counts_in_every_limit_and_in_the_money():
    day = a_day(max_agents=1)
    reserve(day, hours=5.0)
    day.queue(1)
    before = day.fleet.state.memory.month.usd
    day.minutes(60)
    assert day.agents() == 1
    assert day.fleet.state.memory.month.usd - before == pytest.approx(3.0, rel=0.1)
    assert refusals(reserve(day, request="r-2")) == [Reason.MAX_AGENTS]


def test_once_the_months_money_is_spent_it_ends_half_an_hour_later_and_none_begins():
    day = an_idle_day(max_usd_per_month=100.0)
    [node] = connected(day)
    reserve(day, hours=50.0)
    state = day.fleet.state
    state.memory = replace(state.memory, month=replace(state.memory.month, usd=100.0))
    assert refusals(reserve(day, request="r-2")) == [Reason.USD_PER_MONTH]
    day.minutes(2)
    assert any("is reserved for alice until" in message.subject for message in day.fleet.notifier.sent)
    day.minutes(24)
    assert node.name in day.jenkins.nodes
    day.minutes(12)
    assert (day.agents(), reserved(day)) == (0, [])


def test_a_hold_keeps_one_from_being_launched_and_not_from_ending():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day)
    day.hold(scope=Scope.POOL, name="cpu")
    assert refusals(reserve(day, request="r-2")) == [Reason.HELD]
    day.minutes(66)
    assert node.name not in day.jenkins.nodes
