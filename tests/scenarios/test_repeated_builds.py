"""Time-lines of lost builds that a person starts again, too; and of builds whose parameter claims what they are not."""

import pytest

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.started_builds import RerunPolicy
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Started
from support import ordering
from support.lost import RUN_ID, a_day, answers, builds, define, instance_of, reasons, running

ONE_OF_THEM = [(1, Ended.KILLED), (2, Ended.FINISHED)]


def given_to(declares):
    return dict.fromkeys(set(declares) - {RUN_ID}, "x") if declares else None


def lose(day, instance, seconds=2.0):
    day.world.ec2.end(instance)
    day.world.timeline.sleep(seconds)


def sent(day):
    return [message.subject for message in day.fleet.notifier.sent]


@pytest.mark.parametrize("declares", [(), (RUN_ID,), ("REF", RUN_ID)], ids=["none", "id", "ref and id"])
@pytest.mark.parametrize("after", [2.0, 42.0, 102.0])
def test_what_a_person_has_started_again_is_not_started_beside_that(declares, after):
    day = a_day(min_agents=2)
    jobs = define(day, "job", *declares)
    _, instance = running(day, jobs, given=given_to(declares))
    lose(day, instance, after)
    jobs.build("job", given_to(declares), "anna")
    day.minutes(60)
    assert builds(day) == ONE_OF_THEM
    assert (reasons(day), answers(day)) == ([Reason.REPEATED_BY_PERSON], [("job/job/1", "repeated", 0)])
    assert not any("lost build" in subject for subject in sent(day))
    told = day.why("job")
    assert any("since a person had started it again as queue item 2" in line for line in told)


def test_a_rebuild_with_other_parameters_of_the_lost_build_answers_for_it_and_not_for_another_one():
    day = a_day(executors=2)
    jobs = define(day, "job", "REF")
    first = jobs.build("job", {"REF": "a"}, "anna")
    jobs.build("job", {"REF": "b"}, "anna")
    day.minutes(6)
    lose(day, instance_of(day, first))
    again = jobs.build("job", {"REF": "c"}, "anna")
    again.started_with = Started(parameters=(("REF", "c"),), users=("anna",), repeats=("job/job/1",))
    day.minutes(60)
    assert answers(day) == [("job/job/1", "repeated", 0), ("job/job/2", "started", 1)]
    assert len(builds(day)) == 4


def test_one_press_without_a_word_of_which_build_answers_for_the_first_of_two_equal_ones():
    day = a_day(executors=2)
    jobs = define(day)
    first = jobs.build("job", None, "anna")
    day.minutes(6)
    jobs.build("job", None, "ben")
    day.minutes(2)
    lose(day, instance_of(day, first))
    pressed = jobs.build("job", None, "anna")
    day.minutes(60)
    assert answers(day)[0] == ("job/job/1", "repeated", 0)
    assert answers(day)[1] == ("job/job/2", "started", 1)
    # Jenkins merges equal items of its queue: what we asked for is the same build here.
    assert {one.item for one in day.fleet.state.reruns.values()} == {pressed.id}


def test_one_press_answers_for_one_of_two_equal_builds():
    day = a_day(executors=2)
    jobs = define(day, "job", RUN_ID)
    first = jobs.build("job", {RUN_ID: "1"}, "anna")
    jobs.build("job", {RUN_ID: "2"}, "ben")
    day.minutes(6)
    lose(day, instance_of(day, first))
    jobs.rebuild(first, "anna")
    day.minutes(60)
    assert answers(day) == [("job/job/1", "repeated", 0), ("job/job/2", "started", 1)]


@pytest.mark.parametrize(
    "started",
    [
        Started(users=("autoscaler",)),
        Started(),  # by a schedule
        Started(upstream=("job/up/7",)),
    ],
    ids=["our account", "nobody", "another build"],
)
def test_a_build_that_no_person_started_answers_for_nothing(started):
    day = a_day(min_agents=2)
    _, instance = running(day, define(day))
    lose(day, instance)
    day.jenkins.submit("job", "cpu", 60.0, started_with=started)
    day.minutes(45)
    assert answers(day) == [("job/job/1", "started", 1)]


def test_what_a_person_started_before_the_loss_answers_for_nothing():
    day = a_day(min_agents=2)
    jobs = define(day)
    _, instance = running(day, jobs)
    jobs.build("job", None, "ben")
    day.world.timeline.sleep(30.0)
    lose(day, instance)
    day.minutes(60)
    assert answers(day) == [("job/job/1", "started", 1)]
    assert len(builds(day)) == 3


def test_a_pipeline_that_a_person_starts_again_while_jenkins_waits_for_its_agent_is_not_started_beside_that():
    day = a_day(min_agents=2)
    jobs = define(day, kind=Kind.PIPELINE)
    build, instance = running(day, jobs, minutes=8)
    lose(day, instance, 90.0)
    assert build.ended is None
    jobs.rebuild(build, "anna")
    day.minutes(60)
    assert answers(day) == [("job/job/1", "repeated", 0)]
    assert len(builds(day)) == 2


def test_what_a_person_started_again_and_is_lost_begins_anew():
    day = a_day(RerunPolicy(times=1), min_agents=2)
    jobs = define(day, "job", RUN_ID, seconds=1800.0)
    first, instance = running(day, jobs, given={})
    lose(day, instance)
    second = jobs.rebuild(first, "anna")
    day.minutes(6)
    day.world.ec2.end(instance_of(day, second))
    day.minutes(60)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.KILLED), (3, Ended.FINISHED)]
    assert answers(day) == [("job/job/1", "repeated", 0), ("job/job/2", "started", 1)]


@pytest.mark.parametrize("declares", [("REF",), ("REF", RUN_ID)], ids=["ref", "ref and id"])
def test_a_start_that_never_arrived_is_not_sent_again_where_a_person_has_started_it_meanwhile(declares):
    day = a_day(min_agents=2)
    jobs = define(day, "job", *declares)
    first, instance = running(day, jobs, given={"REF": "x"})
    day.fleet.faults.plan(Fault("jenkins buildWithParameters"))
    day.world.ec2.end(instance)
    while not day.fleet.state.reruns:
        day.minutes(1)
    jobs.rebuild(first, "anna")
    day.minutes(45)
    assert builds(day) == ONE_OF_THEM
    assert answers(day) == [("job/job/1", "repeated", 0)]


def test_what_a_person_starts_between_the_look_and_the_start_counts_too():
    day = a_day(min_agents=2)
    jobs = define(day)
    _, instance = running(day, jobs)
    lose(day, instance, 1.0)
    builds_of = day.fleet.ports.builds["main"]
    sees, looks = builds_of.job, []

    def job(path, since):
        if looks:
            return sees(path, since)
        looks.append(path)
        seen = sees(path, since)
        jobs.build("job", None, "anna")  # as soon as the look has passed
        return seen

    type(builds_of).job, kept = (lambda _, path, since: job(path, since)), type(builds_of).job
    try:
        day.minutes(10)
    finally:
        type(builds_of).job = kept
    day.minutes(50)
    assert builds(day) == ONE_OF_THEM
    assert answers(day) == [("job/job/1", "repeated", 0)]


def test_a_rebuild_of_what_we_started_is_lost_for_the_first_time():
    day = a_day(RerunPolicy(times=1), min_agents=2)
    jobs = define(day, "job", RUN_ID, seconds=1200.0)
    _, instance = running(day, jobs, given={})
    day.world.ec2.end(instance)
    day.minutes(40)
    third = jobs.rebuild(day.jenkins.builds_of["job"][1], "anna")
    day.minutes(6)
    day.world.ec2.end(instance_of(day, third))
    day.minutes(60)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED), (3, Ended.KILLED), (4, Ended.FINISHED)]
    assert answers(day) == [("job/job/1", "started", 1), ("job/job/3", "started", 1)]


@pytest.mark.parametrize(
    "claim",
    ["run-0a1b2c3d4e.0.0", f"run-{'a' * 3000}.1.1", "job/job/1@1800000000~9", f"{'a' * 3000}@1~1", "~1", "日本@7~²"],
    ids=["an order", "a long order", "another lost build", "too long for a key", "nothing", "no number"],
)
def test_what_a_parameter_claims_without_a_record_of_ours_means_nothing(claim):
    day = a_day(RerunPolicy(times=1), min_agents=2)
    _, instance = running(day, define(day, "job", RUN_ID), given={RUN_ID: claim})
    day.world.ec2.end(instance)
    day.minutes(60)
    assert builds(day) == ONE_OF_THEM


@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
def test_a_rebuild_of_an_ordered_build_is_no_build_of_its_order(ended):
    day = ordering.a_day(ordering.a_pool("cpu", rerun=RerunPolicy(), min_agents=2))
    jobs = ordering.define(day, seconds=3600.0)
    entry = ordering.order(day, ordering.asked(1))
    day.minutes(6)
    [ordered] = ordering.builds(day)
    copy = jobs.rebuild(ordered, "anna")
    day.minutes(6)
    if ended:
        day.jenkins.abort(ordered)
        day.minutes(10)
        assert ordering.told(day, entry.id).outcome is not None
    day.world.ec2.end(instance_of(day, copy))
    day.minutes(90)
    again = [build for build in ordering.builds(day) if build not in (ordered, copy)]
    assert [build.ended for build in again] == [Ended.FINISHED]
    assert answers(day) == [("job/job/2", "started", 1)]
    [part] = ordering.told(day, entry.id).parts
    assert part.run == "job/job/1"


def test_a_lost_build_of_an_order_that_has_ended_is_its_orders_still():
    day = ordering.a_day(ordering.a_pool("cpu", rerun=RerunPolicy(), min_agents=2))
    ordering.define(day, seconds=3600.0)
    entry = ordering.order(day, ordering.asked(1), resubmit=0)
    day.minutes(6)
    [ordered] = ordering.builds(day)
    day.world.ec2.end(instance_of(day, ordered))
    day.minutes(45)
    assert ordering.told(day, entry.id).outcome == "unfinished"
    assert (len(ordering.builds(day)), answers(day)) == (1, [])


def test_a_start_of_an_order_that_was_not_answered_is_the_one_that_came_first_and_not_a_rebuild_of_it():
    day = ordering.a_day(ordering.a_pool("cpu", min_agents=3)).minutes(6)
    jobs = ordering.define(day, seconds=3600.0)
    day.fleet.faults.plan(Fault("jenkins buildWithParameters", after=True))
    entry = ordering.order(day, ordering.asked(1))
    day.world.move_to(day.world.timeline.now + 10.0)
    [ordered] = ordering.builds(day)
    jobs.rebuild(ordered, "anna")
    day.minutes(6)
    [part] = ordering.told(day, entry.id).parts
    assert (part.state, part.run, len(ordering.builds(day))) == ("runs", "job/job/1", 2)
    ordering.cancel(day, entry.id)
    day.minutes(6)
    assert [build.ended for build in ordering.builds(day)] == [Ended.ABORTED, None]
