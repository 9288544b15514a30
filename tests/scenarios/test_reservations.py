"""Time-lines of agents that people reserve: builds stay away, the pool keeps its minimum, and each reservation ends by itself."""

from contextlib import suppress
from dataclasses import replace

import pytest

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import Market, WarmPool
from autoscaler.domain.facts.orders import DrainNodes, Release, Reserve
from autoscaler.domain.facts.overrides import Hold, Scope, hold
from autoscaler.domain.facts.plan import EndReservation, Launch, Start, Terminate
from autoscaler.domain.facts.plan import Reserve as ReserveStep
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.controller import CURRENT_VERSION, DROPS_BUILDS
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0


def a_day(**facts):
    limits = {key: facts.pop(key) for key in ("max_usd_per_month", "max_agents_of_the_fleet", "slots") if key in facts}
    if "max_agents_of_the_fleet" in limits:
        limits["max_agents"] = limits.pop("max_agents_of_the_fleet")
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 600.0} | facts)), **limits)).minutes(2)


def an_idle_day(agents=1, **facts):
    """A day on which so many agents have just had a build each, and are kept for a while."""
    day = a_day(**({"idle_seconds": 7200.0} | facts))
    day.queue(agents, seconds=60.0)
    day.minutes(6)
    assert [len(node.builds) for node in connected(day)] == [0] * agents
    return day


def connected(day):
    return [day.jenkins.nodes[name] for name in day.nodes() if day.jenkins.nodes[name].connected]


def order(day, what):
    [report] = passes.carry_out(day.fleet.ports, day.fleet.fleet, replace(day.fleet.invocation(), by_a_person=True), what)
    day.fleet.reports.append(report)
    return report


def reserve(day, target="cpu", hours=1.0, person="alice", request="r-1"):
    what = Reserve(target=target, controller=None, seconds=hours * HOUR, person=person, by="ada", reason="a test hangs", request_id=request)
    return order(day, what)


def release(day, target):
    return order(day, Release(target=target, reason="done"))


def reserved(day):
    return [record for record in day.fleet.state.records.values() if record.reservation]


def outcomes(report):
    return [(type(result.step), str(result.outcome)) for result in report.results]


def refusals(report):
    return [held.reason for held in report.plan.held]


def instance_of(day, node):
    return next(instance for instance in day.world.alive() if instance.tags.get("autoscaler:node") == node)


def metric(day, name):
    """The fleet's values of a metric."""
    wanted = (("Fleet", "f"),)
    return [value for _, one in day.fleet.metrics.published if (one.name, one.dimensions) == (name, wanted) for value in one.values]


def all_went_well(day):
    killed = [build for build in day.jenkins.builds if build.killed_by]
    return (killed, leaked_instances(day.world), leaked_nodes(day.world), day.failed) == ([], [], [], 0)


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
    assert day.fleet.state.memory.breakers == {}


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
    assert (str(result.outcome), result.detail) == ("done", "1 builds go on")
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
    now = day.world.timeline.now
    state = day.fleet.state
    state.save_overrides(
        hold(state.read().overrides, Hold(scope=Scope.POOL, name="cpu", since_at=now, until_at=None, by="ada", reason="r"))
    )
    assert refusals(reserve(day, request="r-2")) == [Reason.HELD]
    day.minutes(66)
    assert node.name not in day.jenkins.nodes


def test_neither_age_nor_a_new_template_nor_failures_touch_it():
    day = an_idle_day(max_agent_hours=1.0)
    [node] = connected(day)
    reserve(day, hours=12.0)
    day.world.ec2.template_versions["cpu"] = 2
    for _ in range(8):
        day.queue(2, seconds=300.0)
        day.minutes(60)
    assert node.name in day.jenkins.nodes
    assert node.reason.split(":")[2] == "reserved"


def test_somebody_who_brings_it_online_in_jenkins_gives_it_no_builds_for_long():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, hours=4.0)
    day.minutes(5)
    day.jenkins.toggle(node.name, "", "bob")
    assert not node.offline
    day.minutes(1)
    assert node.temporarily_offline
    day.minutes(30)
    assert node.name in day.jenkins.nodes


def test_its_machine_may_be_stopped_and_its_node_deleted_by_the_person_and_it_ends_all_the_same():
    day = an_idle_day(agents=2)
    first, second = connected(day)
    reserve(day, first.name, hours=2.0)
    reserve(day, second.name, hours=2.0, request="r-2")
    machines = [instance_of(day, node.name) for node in (first, second)]
    day.world.ec2.stop(machines[0].id)
    day.jenkins.delete_node(second.name)
    day.minutes(100)
    assert (machines[0].state, machines[1].alive()) == ("stopped", True)
    day.minutes(40)
    assert [machine.alive() for machine in machines] == [False, False]
    assert day.fleet.state.memory.breakers == {}


def test_an_instance_that_ends_ends_the_reservation():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, hours=4.0)
    day.world.ec2.end(instance_of(day, node.name))
    day.minutes(20)
    assert (reserved(day), node.name in day.jenkins.nodes) == ([], False)


def test_a_person_is_told_that_ec2_takes_their_spot_instance_back():
    spot = an_offering(market=Market.SPOT, usd_per_hour=1.0)
    day = an_idle_day(offerings=(spot,))
    [node] = connected(day)
    reserve(day, hours=4.0)
    day.world.ec2.interrupt(instance_of(day, node.name))
    day.fleet.publish_metrics()
    [message] = day.fleet.notifier.sent
    assert f"EC2 takes {node.name} from alice" in message.subject
    day.minutes(20)
    assert reserved(day) == []


def test_an_agent_on_demand_is_taken_before_one_of_the_spot_market_and_launched_too():
    spot, firm = an_offering(market=Market.SPOT, usd_per_hour=1.0), an_offering(usd_per_hour=3.0)
    day = a_day(offerings=(spot, firm))
    reserve(day)
    [launch] = day.done(Launch)
    assert launch.market is Market.ON_DEMAND


def test_a_static_node_is_reserved_and_free_again_after_it():
    slots = {"slot-1": ("cpu",), "slot-2": ("cpu",)}
    day = a_day(slots=slots)
    reserve(day)
    day.minutes(10)
    [record] = reserved(day)
    node = day.jenkins.nodes[record.node]
    assert (node.connected, node.temporarily_offline) == (True, True)
    [build] = day.queue(1, seconds=60.0)
    day.minutes(10)
    assert (build.ended, build.node != record.node) == (Ended.FINISHED, True)
    day.minutes(70)
    assert (node.temporarily_offline, node.connected, day.agents()) == (False, False, 0)


def test_a_pipeline_that_was_on_it_when_jenkins_restarted_resumes_and_ends_there():
    day = a_day()
    [build] = day.queue(1, seconds=1200.0, kind=Kind.PIPELINE)
    day.minutes(8)
    node = build.node
    reserve(day, node, hours=3.0)
    day.minutes(2)
    day.jenkins.restart()
    day.minutes(40)
    assert build.ended is Ended.FINISHED
    day.minutes(10)
    assert day.jenkins.nodes[node].temporarily_offline
    day.minutes(150)
    assert node not in day.jenkins.nodes


def test_boots_that_fail_open_the_breaker_for_people_too():
    day = a_day(boot_timeout_seconds=300.0)
    day.world.ec2.on_running = lambda instance: None
    reserve(day, hours=5.0)
    day.minutes(15)
    assert (reserved(day), day.fleet.state.memory.breakers["cpu"].failures) == ([], 1)


def test_what_a_person_has_does_not_keep_a_new_image_or_template_from_being_tried():
    day = a_day()
    day.queue(1, seconds=60.0)
    day.minutes(8)
    day.world.ec2.template_versions["cpu"] = 2
    day.minutes(30)
    reserve(day, hours=10.0)
    day.minutes(10)
    builds = day.queue(3, seconds=60.0)
    day.minutes(30)
    assert {build.ended for build in builds} == {Ended.FINISHED}


@pytest.mark.parametrize("call", ["jenkins computer", "jenkins changeOfflineCause", "jenkins config.xml", "state change_record"])
@pytest.mark.parametrize("after", [False, True])
def test_a_reservation_that_is_cut_off_is_made_good_or_was_never_there(call, after):
    day = an_idle_day(agents=2)
    names = {node.name for node in connected(day)}
    day.fleet.faults.plan(Fault(call, after=after, status=0))
    with suppress(AutoscalerError):
        reserve(day, hours=3.0)
    day.fleet.faults.planned.clear()
    builds = day.queue(2, seconds=60.0)
    day.minutes(10)
    marked = [name for name in names if day.jenkins.nodes[name].temporarily_offline]
    assert len(marked) == len(reserved(day)) <= 1
    assert {build.ended for build in builds} == {Ended.FINISHED}
    day.minutes(190)
    assert reserved(day) == []


def test_done_terminations_are_of_the_reservation_alone():
    day = an_idle_day()
    reserve(day)
    day.minutes(70)
    assert [step.reason for step in day.done(Terminate)] == [Reason.DRAINED]


def test_a_node_that_a_person_deletes_of_what_was_launched_for_them_is_no_boot_that_failed():
    day = a_day()
    reserve(day)
    day.minutes(10)
    [record] = reserved(day)
    day.jenkins.delete_node(record.node)
    day.minutes(70)
    assert (day.agents(), day.fleet.state.memory.breakers) == (0, {})
