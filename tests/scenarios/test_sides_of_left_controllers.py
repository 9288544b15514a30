"""Time-lines of machines that controllers share, while one of these leaves the fleet file: nobody sees its builds any more."""

from dataclasses import replace

import pytest

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.orders import EndInstance
from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.learn import assess
from autoscaler.domain.scale_in.sides import confirmed_unseen
from autoscaler.domain.situation.situation import plan_of
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.left_keys import deploy, without_controller
from support.timeline import Day
from support.worlds import in_memory

THREE = ("main", "other", "third")


def a_day(*names, hosts=(), **facts):
    given = {"controllers": names or THREE, "share": Share.COOPERATIVE, "executors": 2, "max_agents": 1, "idle_seconds": 600.0} | facts
    pool = a_pool_of_hosts("gpu", **given) if hosts else a_pool("gpu", **given)
    return Day(in_memory(pool, hosts=hosts)).minutes(3)


def a_shared_day(*names, **facts):
    """A day on which one machine was launched for a job of the first controller, and is idle on all of them."""
    day = a_day(*names, **facts)
    [first] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(12)
    assert first.ended is Ended.FINISHED
    day.file = day.fleet.fleet
    return day


def leave(day, name):
    """Take a controller from the fleet file; a pool that serves one alone shares nothing."""
    file = without_controller(day.fleet.fleet, name)
    pools = {pool.name: pool if len(pool.controllers) > 1 else replace(pool, share=Share.NONE) for pool in file.pools.values()}
    deploy(day.fleet, replace(file, pools=pools))
    return day


def put_back(day):
    deploy(day.fleet, day.file)
    return day


def on(day, controller, seconds=7200.0):
    return day.world.controllers[controller].submit(f"on-{controller}", "gpu", seconds)


def nodes(day, controller):
    return [node for name, node in day.world.controllers[controller].nodes.items() if not name.startswith("autoscaler-beacon")]


def confirm(day, target):
    """Say for a person that nothing of the controller that left runs on this machine."""

    def decision(snapshot, fleet):
        situation = assess(snapshot, fleet)
        return plan_of(situation, list(confirmed_unseen(situation, target, "it is idle there")))

    return passes.one_pass(day.fleet.ports_of("operate"), day.fleet.fleet, day.fleet.invocation(), decision)


@pytest.mark.parametrize("names", [("main", "other"), THREE])
@pytest.mark.parametrize("left", ["main", "other"])
def test_the_other_sides_are_drained_and_the_machine_stays_with_the_build_that_nobody_sees(names, left):
    day = a_shared_day(*names)
    build = on(day, left, seconds=4 * 3600.0)
    day.minutes(3)
    assert build.started_at is not None
    leave(day, left).hours(3.5)
    [machine] = day.world.alive()
    assert (build.ended, [step for step in day.done(Terminate) if step.instance_id == machine.id]) == (None, [])
    assert [node.temporarily_offline for name in names if name != left for node in nodes(day, name)] == [True] * (len(names) - 1)
    told = day.why(machine.id)
    assert any(f"{left} left the fleet file" in line and "autoscaler end" in line for line in told), told
    day.hours(1)
    assert (build.ended, build.killed_by, day.agents()) == (Ended.FINISHED, "", 1)


@pytest.mark.parametrize("left", ["main", "third"])
def test_a_message_names_the_controller_once_and_it_is_over_when_it_is_put_back(left):
    day = leave(a_shared_day(), left).minutes(30)
    [told] = [message for message in day.fleet.notifier.sent if f"controller {left} left the fleet file" in message.text]
    assert "autoscaler end" in told.text
    put_back(day).minutes(30)
    assert [message.about for message in day.fleet.notifier.sent if "over: " in message.subject and message.about == told.about] == [
        told.about
    ]


@pytest.mark.parametrize("left", ["main", "third"])
def test_put_back_the_machine_is_drained_on_all_sides_and_goes(left):
    day = leave(a_shared_day(), left).hours(2)
    assert day.agents() == 1
    put_back(day).hours(2)
    assert (day.agents(), leaked_instances(day.world), leaked_nodes(day.world)) == (0, [], [])
    assert day.fleet.state.records == {}


def test_a_build_on_a_side_that_is_drained_ends_first():
    day = a_shared_day()
    build = on(day, "other", seconds=1800.0)
    leave(day.minutes(3), "third").minutes(10)
    assert (build.ended, [node.temporarily_offline for node in nodes(day, "other")]) == (None, [True])
    day.minutes(40)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")


def test_the_machine_stays_connected_to_the_controller_that_left():
    day = a_shared_day()
    build = on(day, "third", seconds=3 * 3600.0)
    leave(day.minutes(3), "third").hours(2)
    assert [node.connected for node in nodes(day, "third")] == [True]
    assert (build.ended, build.killed_by) == (None, "")


def test_a_host_goes_on_serving_the_controllers_that_are_left_and_keeps_its_connection():
    day = a_day(hosts=(a_host(pool="gpu"),)).minutes(5)
    build = on(day, "third", seconds=3 * 3600.0)
    leave(day.minutes(3), "third").minutes(30)
    [mine] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(5)
    assert mine.ended is Ended.FINISHED
    assert [node.connected for node in nodes(day, "third")] == [True]
    assert (build.ended, build.killed_by, day.failed) == (None, "", 0)
    assert any("third left the fleet file" in line for line in day.why("rocm-1"))


def a_rotating_day(hosts=()):
    """A day on which an agent has begun to leave main for other, and its node on main cannot be deleted yet."""
    shared = {"controllers": ("main", "other"), "share": Share.ROTATE}
    bought = {"max_agents": 1, "max_idle_seconds": 7200.0, "idle_seconds": 7200.0}
    pool = a_pool_of_hosts("gpu", **shared) if hosts else a_pool("gpu", **shared, **bought)
    day = Day(in_memory(pool, hosts=hosts)).minutes(5)
    day.file = day.fleet.fleet
    [first] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(12)
    assert first.ended is Ended.FINISHED
    day.other = day.world.controllers["other"]
    day.job = day.other.submit("elsewhere", "gpu", 300.0)
    day.fleet.faults.plan(Fault("jenkins doDelete", times=10**6))
    for _ in range(10):
        if any(record.leaves for record in day.fleet.state.records.values()):
            return day
        day.minutes(1)
    raise AssertionError("it did not begin to leave")


@pytest.mark.parametrize("hosts", [(), (a_host(pool="gpu"),)], ids=["instance", "host"])
def test_in_mid_rotation_it_waits_and_is_named_and_goes_on_once_the_controller_is_put_back(hosts):
    day = a_rotating_day(hosts)
    day.fleet.faults.planned.clear()
    leave(day, "main").hours(1)
    [record] = day.fleet.state.records.values()
    assert (day.done(Terminate), day.job.started_at) == ([], None)
    assert any("main left the fleet file" in line and "autoscaler end" in line for line in day.why(record.instance_id))
    assert any("main left the fleet file" in message.subject for message in day.fleet.notifier.sent)
    put_back(day).minutes(20)
    assert (day.job.ended, nodes(day, "main")) == (Ended.FINISHED, [])


def test_in_mid_rotation_a_build_that_slipped_in_on_the_controller_that_left_is_not_killed():
    day = a_rotating_day()
    [node] = nodes(day, "main")
    day.jenkins.toggle(node.name, "", "anna")
    [slipped] = day.queue(1, label="gpu", seconds=2 * 3600.0)
    day.minutes(2)
    assert slipped.started_at is not None
    leave(day, "main").hours(3)
    assert (slipped.ended, slipped.killed_by, day.agents()) == (Ended.FINISHED, "", 1)


@pytest.mark.parametrize("hosts", [(), (a_host(pool="gpu"),)], ids=["instance", "host"])
def test_if_the_controller_that_it_goes_to_left_jobs_of_the_other_one_are_served(hosts):
    day = a_rotating_day(hosts)
    day.fleet.faults.planned.clear()
    leave(day, "other").minutes(3)
    [own] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(40)
    assert own.ended is Ended.FINISHED
    assert day.agents() <= 1


@pytest.mark.parametrize("hosts", [(), (a_host(pool="gpu"),)], ids=["instance", "host"])
def test_in_mid_rotation_it_goes_on_once_a_person_confirms_that_nothing_runs_there(hosts):
    day = a_rotating_day(hosts)
    day.fleet.faults.planned.clear()
    leave(day, "main").hours(0.5)
    [record] = day.fleet.state.records.values()
    assert day.job.started_at is None
    confirm(day, record.machine)
    day.minutes(20)
    assert day.job.ended is Ended.FINISHED
    assert [message.subject for message in day.fleet.notifier.sent if message.subject.startswith("[f] over: main left")] != []


def test_the_side_of_a_host_is_closed_once_a_person_confirms_that_nothing_runs_there():
    day = leave(a_day(hosts=(a_host(pool="gpu"),)).minutes(5), "third").minutes(30)
    assert "host-rocm-1@third" in day.fleet.state.records
    confirm(day, "rocm-1")
    day.minutes(10)
    assert sorted(day.fleet.state.records) == ["host-rocm-1@main", "host-rocm-1@other"]
    [own] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(5)
    assert own.ended is Ended.FINISHED


def test_a_person_cannot_confirm_what_a_controller_of_the_file_sees():
    day = a_shared_day()
    [machine] = day.world.alive()
    confirm(day, machine.id)
    assert sorted(record.controller for record in day.fleet.state.records.values()) == sorted(THREE)


@pytest.mark.parametrize("happens", ["cannot be read", "restarts"])
def test_a_person_does_not_end_a_machine_that_a_build_of_another_controller_may_need(happens):
    """Its login was refused for half an hour: the build that ran there died with a machine that was idle on the controller that left."""
    day = a_shared_day("main", "other")
    build = day.world.controllers["other"].submit("on-other", "gpu", 3600.0, kind=Kind.PIPELINE)
    leave(day.minutes(3), "main")
    [machine] = day.minutes(3).world.alive()
    if happens == "restarts":
        day.world.controllers["other"].restart()
    else:
        day.world.controllers["other"].up = "starting"
        day.minutes(3)
    order = EndInstance(target=machine.id, reason="nothing runs there")
    invocation = replace(day.fleet.invocation(), by_a_person=True)
    [report] = passes.carry_out(day.fleet.ports_of("operate"), day.fleet.fleet, invocation, order)
    assert [(held.reason, held.controller) for held in report.plan.held] == [(Reason.USED_ELSEWHERE, "other")]
    day.world.controllers["other"].up = "up"
    day.minutes(90)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")


def lose_state(day):
    """Forget every record, and what was learned."""
    state = day.fleet.state
    state.records.clear()
    state.intents.clear()
    state.memory = type(state.memory)(version=state.memory.version)
    return day


@pytest.mark.parametrize("share", [Share.ROTATE, Share.NONE])
@pytest.mark.parametrize("kind", list(Kind)[:2])
@pytest.mark.parametrize("busy", ["main", "other"])
@pytest.mark.parametrize("failing", [0, 3])
def test_a_build_on_a_machine_that_is_shared_no_more_ends_by_itself_though_the_state_was_lost(share, kind, busy, failing):
    """No record says that the machine serves both: it says so itself, and its node on the other controller is in use."""
    day = a_shared_day("main", "other")
    build = day.world.controllers[busy].submit("long", "gpu", 3600.0, kind=kind)
    day.minutes(3)
    assert build.started_at is not None
    lose_state(day)
    file = day.fleet.fleet
    deploy(day.fleet, replace(file, pools={name: replace(pool, share=share) for name, pool in file.pools.items()}))
    if failing:
        day.fleet.faults.plan(Fault("state change_record", times=failing))
    day.minutes(70)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")
    day.hours(2)
    # One that asks no more after a failed write stays registered nowhere, and is told of as overdue: only one that rotates asks again.
    asks_again = share is Share.ROTATE or not failing or busy == "main"
    assert (day.agents(), leaked_nodes(day.world)) == (0 if asks_again else 1, [])


@pytest.mark.parametrize("is_after", [None, False, True], ids=["nothing fails", "the record is not written", "the answer of that is lost"])
@pytest.mark.parametrize("kind", list(Kind)[:2])
def test_a_build_on_a_controller_that_left_ends_by_itself_though_the_state_was_lost_just_before(kind, is_after):
    """No record says that the machine served that controller: adopted for the other one, it was drained there, and ended."""
    day = a_shared_day("main", "other")
    build = day.world.controllers["other"].submit("long", "gpu", 7200.0, kind=kind)
    day.minutes(3)
    assert build.started_at is not None
    leave(lose_state(day), "other")
    if is_after is not None:
        day.fleet.faults.plan(Fault("state add_record", after=is_after, times=3))
    day.minutes(150)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")
    [machine] = day.world.alive()
    assert any("other left the fleet file" in message.text for message in day.fleet.notifier.sent)
    order = EndInstance(target=machine.id, reason="nothing runs there")
    passes.carry_out(day.fleet.ports_of("operate"), day.fleet.fleet, replace(day.fleet.invocation(), by_a_person=True), order)
    day.hours(2)
    assert day.agents() == 0
