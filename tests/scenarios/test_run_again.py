"""Time-lines of lost builds that are run again: once each, whatever call fails; and of those that are left to a person."""

import pytest

from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.started_builds import RerunPolicy, RerunState
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Started
from support.lost import RUN_ID, a_day, answers, builds, define, instance_of, reasons, running


def test_a_build_that_is_lost_again_gets_an_on_demand_agent_and_is_then_left_to_a_person():
    day = a_day(RerunPolicy(times=1, then_on_demand=True))
    jobs = define(day, seconds=3600.0)
    running(day, jobs)
    for number in (1, 2, 3):
        build = day.jenkins.builds_of["job"][-1]
        assert (build.number, build.ended) == (number, None)
        instance = instance_of(day, build)
        assert instance.market == ("on-demand" if number == 3 else "spot")
        day.world.ec2.end(instance)
        day.minutes(12)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.KILLED), (3, Ended.KILLED)]
    assert answers(day) == [("job/job/1", "started", 1), ("job/job/2", "started", 2), ("job/job/3", "left", 0)]
    assert reasons(day) == [Reason.LOST_TOO_OFTEN]


def test_how_often_it_was_run_again_is_known_without_our_memory_where_the_job_declares_the_parameter():
    day = a_day(RerunPolicy(times=1))
    jobs = define(day, "job", RUN_ID, seconds=3600.0)
    _, instance = running(day, jobs, given={})
    day.world.ec2.end(instance)
    day.minutes(12)
    day.fleet.state.memory = type(day.fleet.state.memory)(version=day.fleet.state.memory.version)
    day.minutes(6)
    day.world.ec2.end(instance_of(day, day.jenkins.builds_of["job"][1]))
    day.minutes(20)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.KILLED)]
    assert reasons(day) == [Reason.LOST_TOO_OFTEN]


@pytest.mark.parametrize("declares", [(), (RUN_ID,), ("REF",), ("REF", RUN_ID)], ids=["none", "id", "ref", "ref and id"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_start_that_jenkins_does_not_answer_is_found_or_sent_again_and_never_both(declares, after):
    day = a_day(min_agents=2)  # another agent is idle: what was started begins at once, and Jenkins merges nothing
    jobs = define(day, "job", *declares)
    _, instance = running(day, jobs, given=dict.fromkeys(declares, "x") if declares else None)
    day.fleet.faults.plan(Fault("jenkins buildWithParameters" if declares else "jenkins build", after=after))
    day.world.ec2.end(instance)
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]
    assert answers(day) == [("job/job/1", "started", 1)]


@pytest.mark.parametrize("call", ["state add_rerun", "state change_rerun", "state rerun", "state save_memory"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whatever_call_to_the_state_fails_the_build_is_run_again_once(call, after):
    day = a_day()
    _, instance = running(day, define(day))
    day.world.ec2.end(instance)
    day.world.timeline.sleep(30.0)
    day.fleet.faults.plan(Fault(call, after=after))
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]


def test_what_our_account_started_twice_meanwhile_is_in_doubt_and_nothing_is_sent():
    day = a_day()
    jobs = define(day, "job", "REF")
    _, instance = running(day, jobs, given={"REF": "x"})
    day.fleet.faults.plan(Fault("jenkins buildWithParameters"))
    day.world.ec2.end(instance)
    while not day.fleet.state.reruns:
        day.minutes(1)
    for _ in range(2):
        build = day.jenkins.submit("job", "cpu", 60.0, started_with=Started(parameters=(("REF", "x"),), users=("autoscaler",)))
        assert build.ended is None
    day.minutes(10)
    assert len(builds(day)) == 3
    assert reasons(day) == [Reason.RERUN_IN_DOUBT]
    assert [one.state for one in day.fleet.state.reruns.values()] == [RerunState.LEFT]


def test_two_builds_of_one_job_that_are_lost_at_once_are_each_answered_for():
    """Jenkins merges equal items of its queue: what runs again for both is one build, and both know it."""
    day = a_day(executors=2)
    jobs = define(day)
    first = jobs.build("job", None, "a")
    day.minutes(6)
    second = jobs.build("job", None, "b")
    day.minutes(2)
    assert first.node == second.node
    day.world.ec2.end(instance_of(day, first))
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.KILLED), (3, Ended.FINISHED)]
    assert answers(day) == [("job/job/1", "started", 1), ("job/job/2", "started", 1)]
    assert len({one.item for one in day.fleet.state.reruns.values()}) == 1


def test_a_job_with_the_parameter_is_run_again_for_each():
    day = a_day(executors=2)
    jobs = define(day, "job", RUN_ID)
    first = jobs.build("job", {RUN_ID: "1"}, "a")
    day.minutes(6)
    jobs.build("job", {RUN_ID: "2"}, "b")
    day.minutes(2)
    day.world.ec2.end(instance_of(day, first))
    day.minutes(45)
    assert [ended for _, ended in builds(day)] == [Ended.KILLED, Ended.KILLED, Ended.FINISHED, Ended.FINISHED]


def disable(day, build):
    jobs = day.fleet.apis["main"].jobs
    jobs.jobs["job"] = Job(Kind.FREESTYLE, "cpu", 60.0, declares={"REF": ""}, disabled=True)


def declare_others(day, build):
    define(day, "job", "BRANCH")


def refuse(day, build):
    day.fleet.apis["main"].lacks.add("hudson.model.Item.Build")


def has_a_parent(day, build):
    parent = day.jenkins.submit("parent", "gpu", 36_000.0, kind=Kind.PIPELINE)
    build.started_with = Started(parameters=build.started_with.parameters, upstream=(parent.run_path.rstrip("/"),))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (disable, Reason.NOT_BUILDABLE),
        (declare_others, Reason.OTHER_PARAMETERS),
        (has_a_parent, Reason.PARENT_WAITS),
    ],
)
def test_what_cannot_be_run_again_is_left_to_a_person_once(change, reason):
    day = a_day()
    build, instance = running(day, define(day, "job", "REF"), given={"REF": "x"})
    change(day, build)
    day.world.ec2.end(instance)
    day.minutes(20)
    assert (reasons(day), len(builds(day))) == ([reason], 1)
    assert [one.state for one in day.fleet.state.reruns.values()] == [RerunState.LEFT]


def test_a_parent_that_had_ended_before_does_not_wait():
    day = a_day()
    build, instance = running(day, define(day))
    parent = day.jenkins.submit("parent", "cpu", 1.0, kind=Kind.PIPELINE)
    day.jenkins.abort(parent)
    build.started_with = Started(upstream=(parent.run_path.rstrip("/"),))
    day.world.timeline.sleep(60.0)
    day.world.ec2.end(instance)
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]


def test_a_password_cannot_be_repeated():
    day = a_day()
    _, instance = running(day, define(day, "job", "REF", "TOKEN", hides=("TOKEN",)), given={"REF": "x", "TOKEN": "s3cret"})
    day.world.ec2.end(instance)
    day.minutes(20)
    assert (reasons(day), len(builds(day))) == ([Reason.HIDDEN_PARAMETERS], 1)


def test_an_account_that_may_not_build_leaves_it_to_a_person_who_is_told_which_permission_it_lacks():
    day = a_day()
    build, instance = running(day, define(day))
    refuse(day, build)
    day.world.ec2.end(instance)
    day.minutes(20)
    [one] = day.fleet.state.reruns.values()
    assert (one.state, "hudson.model.Item.Build" in one.why, len(builds(day))) == (RerunState.LEFT, True, 1)


def test_only_jobs_that_the_patterns_name_are_run_again():
    day = a_day(RerunPolicy(jobs=("nightly/*",)))
    define(day, "nightly/a")
    jobs = define(day, "daily/a")
    for job in ("nightly/a", "daily/a"):
        jobs.build(job, None, "somebody")
    day.minutes(6)
    for instance in day.world.alive():
        day.world.ec2.end(instance)
    day.minutes(45)
    assert [len(builds(day, job)) for job in ("nightly/a", "daily/a")] == [2, 1]


def test_a_look_that_nobody_took_for_long_leaves_it_in_doubt_where_jenkins_does_not_tell_when_the_agent_went():
    day = a_day()
    build, instance = running(day, define(day, seconds=7200.0))
    day.jenkins.set_offline(build.node, "disk swap", "Anna")  # her mark hides when the connection was lost
    day.minutes(1)
    day.world.ec2.announce = lambda *_: None
    day.world.ec2.end(instance)
    day.world.timeline.sleep(1800.0)  # no pass runs
    day.minutes(15)
    assert (reasons(day), len(builds(day))) == ([Reason.RERUN_IN_DOUBT], 1)


def test_in_a_frozen_pool_nothing_is_started_until_it_is_thawed():
    day = a_day()
    _, instance = running(day, define(day))
    day.world.ec2.end(instance)
    now = day.world.timeline.now
    hold = Hold(scope=Scope.POOL, name="cpu", by="Anna", reason="a test", since_at=now, until_at=now + 900.0, freeze=True)
    day.fleet.state.overrides = Overrides(holds=(hold,))
    day.minutes(10)
    assert builds(day) == [(1, Ended.KILLED)]
    day.minutes(10)
    assert [number for number, _ in builds(day)] == [1, 2]


def test_a_lost_build_whose_parameters_wait_already_is_that_item_and_nothing_is_left_to_a_person():
    """A schedule has asked for the same: Jenkins answers with its item (303)."""
    day = a_day()
    jobs = define(day, "job", "REF")
    _, instance = running(day, jobs, given={"REF": "x"})
    day.world.ec2.end(instance)
    waits = jobs.build("job", {"REF": "x"})
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]
    assert answers(day) == [("job/job/1", "started", 1)]
    assert [one.item for one in day.fleet.state.reruns.values()] == [waits.id]
    assert reasons(day) == []


def test_two_lost_builds_with_equal_parameters_are_one_item_that_answers_for_both():
    day = a_day(executors=2)
    jobs = define(day, "job", "REF")
    first = jobs.build("job", {"REF": "x"}, "a")
    day.minutes(6)
    jobs.build("job", {"REF": "x"}, "b")
    day.minutes(2)
    day.world.ec2.end(instance_of(day, first))
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.KILLED), (3, Ended.FINISHED)]
    assert answers(day) == [("job/job/1", "started", 1), ("job/job/2", "started", 1)]
