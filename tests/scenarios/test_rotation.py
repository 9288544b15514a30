"""Time-lines of agents that several controllers share: an idle one goes where jobs wait, without a new boot."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.plan import Cordon, FinishRotation, Launch, Rotate, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.identity import ask_pass
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool
from support.remembered import tables
from support.timeline import Day
from support.worlds import in_memory


def a_day(share=Share.ROTATE, physics=CALM, **facts):
    """Two controllers that share a pool of one agent, which has had a job on the first one and is idle there."""
    given = {"controllers": ("main", "other"), "share": share, "max_agents": 1, "max_idle_seconds": 7200.0, "idle_seconds": 7200.0}
    day = Day(in_memory(a_pool("gpu", **(given | facts)), physics=physics))
    day.other = day.world.controllers["other"]
    [first] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(12)
    assert first.ended is Ended.FINISHED
    return day


def elsewhere(day, seconds=300.0, label="gpu"):
    return day.other.submit("elsewhere", label, seconds)


def nodes_of(controller):
    return [name for name in controller.nodes if not name.startswith("autoscaler-beacon")]


def reasons(day, kind):
    return [step.reason for step in day.done(kind)]


def test_an_idle_agent_goes_to_the_controller_whose_job_waits_and_no_other_machine_boots():
    day = a_day()
    build = elsewhere(day)
    day.minutes(6)
    assert build.started_at is not None
    assert build.started_at - build.queued_at < 180.0  # a boot
    assert (nodes_of(day.jenkins), nodes_of(day.other)) == ([], [build.node])
    assert (len(day.done(Launch)), len(day.done(Rotate)), day.done(Terminate), day.failed) == (1, 1, [], 0)
    day.minutes(10)
    assert build.ended is Ended.FINISHED


def test_it_comes_back_when_jobs_wait_there_again():
    day = a_day()
    elsewhere(day, seconds=60.0)
    day.minutes(15)
    [again] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(6)
    assert again.ended is Ended.FINISHED
    assert (len(day.done(Launch)), len(day.done(Rotate)), nodes_of(day.other)) == (1, 2, [])
    [record] = day.fleet.state.read().records
    assert (record.life, record.starts) == (2, ())
    assert tables(day.fleet.state.memory).starts == {}  # that took no machine's time


def test_an_agent_that_does_not_rotate_stays_and_another_one_is_launched():
    day = a_day(share=Share.NONE, max_agents=2)
    build = elsewhere(day)
    day.minutes(8)
    assert build.started_at is not None
    assert (len(day.done(Launch)), day.done(Rotate), len(nodes_of(day.jenkins))) == (2, [], 1)


def test_a_busy_agent_is_left_where_it_is():
    day = a_day()
    [long] = day.queue(1, label="gpu", seconds=1500.0)
    day.minutes(2)
    build = elsewhere(day)
    day.minutes(15)
    assert (long.ended, build.started_at, day.done(Cordon)) == (None, None, [])
    day.minutes(20)
    assert (long.ended, build.ended) == (Ended.FINISHED, Ended.FINISHED)


def test_an_agent_that_its_own_jobs_wait_for_stays():
    day = a_day(executors=1)
    day.queue(2, label="gpu", seconds=900.0)
    day.minutes(1)
    build = elsewhere(day)
    day.minutes(25)
    assert (build.started_at, day.done(Rotate)) == (None, [])


def test_of_two_that_are_idle_the_one_that_is_needed_here_stays():
    day = a_day(max_agents=2, min_agents=2, physics=replace(CALM, scheduling_seconds=200.0))  # until then nothing is matched
    day.minutes(6)
    assert len(nodes_of(day.jenkins)) == 2
    day.queue(1, label="gpu", seconds=60.0)
    for _ in range(2):
        elsewhere(day)
    day.world.move_to(day.world.timeline.now + 60)
    day.fleet.scale_up()
    assert reasons(day, Cordon) == [Reason.ROTATES]


def test_while_its_old_node_is_there_it_is_told_to_ask_again():
    day = a_day()
    elsewhere(day)
    day.fleet.faults.plan(Fault("jenkins doDelete", times=1))
    day.minutes(1)
    [record] = day.fleet.state.read().records
    assert [left.controller for left in record.leaves] == ["main"]
    [instance] = day.world.alive()
    told = ask_pass(lambda: day.fleet.ports, lambda: day.fleet.fleet)(instance, ())
    assert (told.status, nodes_of(day.other)) == (425, [])


def test_a_build_that_slips_in_before_the_node_is_deleted_is_not_lost():
    day = a_day()
    build = elsewhere(day)
    [slipped] = day.queue(1, label="gpu", seconds=240.0)  # in the same instant, on the controller that has the agent
    day.minutes(25)
    assert (slipped.ended, build.ended, day.failed) == (Ended.FINISHED, Ended.FINISHED, 0)


def test_an_own_job_that_comes_once_it_is_cordoned_has_it_first_and_then_the_other_one():
    day = a_day()
    build = elsewhere(day)
    day.world.move_to(day.world.timeline.now + 60)
    day.fleet.scale_up()
    assert reasons(day, Cordon) == [Reason.ROTATES]
    [own] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(20)
    assert (own.ended, build.ended, len(day.done(Launch))) == (Ended.FINISHED, Ended.FINISHED, 1)


def test_an_own_job_that_asks_for_it_by_name_once_it_is_cordoned_gets_it_back():
    day = a_day()
    elsewhere(day)
    day.world.move_to(day.world.timeline.now + 60)
    day.fleet.scale_up()
    [name] = nodes_of(day.jenkins)
    [own] = day.queue(1, label=name, seconds=60.0)
    day.minutes(6)
    assert (own.ended, reasons(day, Uncordon)[0]) == (Ended.FINISHED, Reason.PINNED)


def test_where_nobody_waits_any_more_it_stays():
    day = a_day()
    build = elsewhere(day)
    day.world.move_to(day.world.timeline.now + 60)
    day.fleet.scale_up()
    assert reasons(day, Cordon) == [Reason.ROTATES]
    day.other.abort(build)
    day.minutes(2)
    assert (reasons(day, Uncordon), day.done(Rotate), len(nodes_of(day.jenkins))) == ([Reason.NOT_WANTED_ELSEWHERE], [], 1)


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("call", ["state change_record", "jenkins doDelete"])
@pytest.mark.parametrize("time", [1, 2])
def test_cut_off_anywhere_it_arrives_all_the_same(call, after, time):
    day, seen = a_day(), []

    def meanwhile(what):
        if what == call:
            seen.append(what)
            if len(seen) == time:
                day.fleet.faults.plan(Fault(what, after=after))

    day.fleet.faults.meanwhile = meanwhile
    build = elsewhere(day)
    day.minutes(30)
    assert build.ended is Ended.FINISHED
    assert (nodes_of(day.jenkins), nodes_of(day.other), len(day.done(Launch))) == ([], [build.node], 1)
    assert [record.leaves for record in day.fleet.state.read().records] == [()]


def test_after_it_was_given_away_its_old_node_is_deleted_by_the_next_pass():
    day = a_day()
    build = elsewhere(day)
    day.fleet.faults.plan(Fault("jenkins doDelete", times=3))
    day.minutes(30)
    assert (build.ended, nodes_of(day.jenkins)) == (Ended.FINISHED, [])
    assert day.done(FinishRotation)


def test_a_machine_that_ends_on_its_way_leaves_nothing():
    day = a_day()
    elsewhere(day, seconds=60.0)
    day.minutes(2)
    for instance in day.world.alive():
        day.world.ec2.end(instance)
    day.minutes(30)
    assert nodes_of(day.jenkins) == []
    assert {record.instance_id for record in day.fleet.state.read().records} <= {instance.id for instance in day.world.alive()}
