"""Time-lines of items that an old Jenkins drops on their way to an agent: each is started once, and what leaves otherwise is not."""

import pytest

from autoscaler.control.dropped_items import ITEMS_ASKED_A_LOOK
from autoscaler.control.observe import observe
from autoscaler.domain.facts.plan import LeaveLost, RunAgain
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.reruns import RerunPolicy
from autoscaler.domain.repair.dropped_items import MOST_FOLLOWED
from autoscaler.domain.report.explain import explain
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.handing import CURRENT_VERSION, DROPS_BUILDS
from support.lost import RUN_ID, answers, builds, dropped, reasons, waiting


def test_what_jenkins_drops_is_started_once_with_its_parameters():
    day, item = waiting(*("REF", "MODE"), given={"REF": "main & 'so' 日本", "MODE": ""})
    dropped(day, item)
    day.minutes(30)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]
    again = day.jenkins.builds_of["job"][1]
    assert again.started_with.parameters == item.started_with.parameters
    assert again.started_with.users == ("autoscaler",)
    assert answers(day) == [(f"job/job/item-{item.id}", "started", 1)]
    [step] = day.done(RunAgain)
    assert (step.job, step.pool, step.reason) == ("job", "cpu", Reason.DROPPED_ITEM)
    assert (day.failed, day.fleet.state.memory.queued) == (0, {})


def test_what_waited_for_an_agent_and_was_dropped_between_two_looks_is_started_too():
    """Most are: an item is pending for milliseconds, and waits for minutes."""
    day, item = waiting(pending=False)
    assert (item.is_pending, day.fleet.state.memory.queued != {}) == (False, True)
    day.jenkins.handing_seconds = 10.0
    day.jenkins.connect(next(name for name in day.nodes()))
    dropped(day, item)
    day.minutes(30)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]


def test_what_waited_for_longer_than_jenkins_tells_of_it_is_started_too():
    day, item = waiting(pending=False)
    day.jenkins.veto = lambda _build, _node: "a plugin keeps it"
    day.minutes(10)
    day.jenkins.handing_seconds, day.jenkins.veto = 10.0, None
    day.jenkins.schedule()
    dropped(day, item)
    day.minutes(30)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]


def asked(day):
    """The calls of a day from now on."""
    calls = []
    day.fleet.faults.meanwhile = calls.append
    return calls


@pytest.mark.parametrize(
    ("rerun", "version"), [(None, DROPS_BUILDS), (RerunPolicy(), CURRENT_VERSION), (RerunPolicy(jobs=("b",)), DROPS_BUILDS)]
)
def test_nothing_is_remembered_asked_or_written_where_it_is_not_wanted_or_jenkins_drops_nothing(rerun, version):
    day, item = waiting(rerun=rerun, version=version)
    assert day.fleet.state.memory.queued == {}
    calls = asked(day)
    for _ in range(2):
        day.world.move_to(day.world.timeline.now + 60.0)
        day.fleet.publish_metrics()  # it asks what became of items whose builds no look saw, whatever `rerun` says
        calls.clear()
        day.fleet.scale_up()
        day.fleet.scale_down()
        assert calls.count("jenkins queue") == len(("scale_up", "scale_down"))
    assert item.started_at is not None
    assert (day.fleet.state.memory.queued, day.fleet.state.reruns) == ({}, {})


def is_cancelled(day, item):
    day.jenkins.abort(item)


def begins_and_is_discarded(day, item):
    """It was over before the next look, and old builds of its job are not kept."""
    item.seconds = 5.0
    day.world.move_to(day.world.timeline.now + 30.0)
    assert item.ended is Ended.FINISHED
    day.jenkins.runs.pop(item.run_path)
    day.jenkins.builds_of["job"].remove(item)


def begins_ends_and_jenkins_restarts(day, item):
    """What Jenkins knew of it went with its memory."""
    item.seconds = 5.0
    day.world.move_to(day.world.timeline.now + 30.0)
    assert item.ended is Ended.FINISHED
    day.jenkins.restart()


def is_superseded(day, item):
    """A newer build takes its place in the queue, and that one runs."""
    day.jenkins.abort(item)
    day.jenkins.handing_seconds = 0.0
    day.fleet.apis["main"].jobs.build("job", None, "somebody")


def is_dropped_and_jenkins_restarts(day, item):
    dropped(day, item)
    day.jenkins.restart()


def is_dropped_and_nobody_looks(day, item):
    dropped(day, item)
    day.world.timeline.sleep(300.0)


def is_dropped_and_its_job_deleted(day, item):
    dropped(day, item)
    day.fleet.apis["main"].jobs.delete("job")


@pytest.mark.parametrize(
    "happens",
    [
        is_cancelled,
        begins_and_is_discarded,
        begins_ends_and_jenkins_restarts,
        is_superseded,
        is_dropped_and_jenkins_restarts,
        is_dropped_and_nobody_looks,
        is_dropped_and_its_job_deleted,
    ],
)
def test_what_left_the_queue_otherwise_or_may_have_is_not_started(happens):
    day, item = waiting()
    happens(day, item)
    day.minutes(20)
    assert (answers(day), day.done(RunAgain), day.done(LeaveLost)) == ([], [], [])
    assert day.fleet.state.memory.queued == {}


def test_what_jenkins_did_not_know_in_one_look_alone_is_not_started():
    day, item = waiting(seconds=3600.0)
    day.world.move_to(day.world.timeline.now + 30.0)
    assert item.started_at is not None
    item.is_dropped = True  # so it answers
    day.minutes(1)
    [known] = day.fleet.state.memory.queued.values()
    assert known.missed_at is not None
    item.is_dropped = False
    day.minutes(5)
    assert (answers(day), day.fleet.state.memory.queued) == ([], {})


def test_what_was_missed_in_one_session_of_jenkins_is_not_started_in_the_next():
    """What a new life knows of the queue it has read from a file that may be older."""
    day, item = waiting()
    dropped(day, item)
    day.minutes(1)
    [known] = day.fleet.state.memory.queued.values()
    assert known.missed_at is not None
    day.jenkins.restart()
    day.minutes(10)
    assert (answers(day), day.fleet.state.memory.queued) == ([], {})


def test_looks_that_see_nothing_of_jenkins_change_nothing():
    day, item = waiting()
    dropped(day, item)
    day.fleet.faults.plan(Fault("jenkins computer", times=2 * len(("publish_metrics", "scale_up", "scale_down"))))
    day.minutes(2)
    assert [one.item for one in day.fleet.state.memory.queued.values()] == [item.id]
    day.minutes(20)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]


def test_nothing_is_started_while_jenkins_is_about_to_restart():
    day, item = waiting()
    dropped(day, item)
    day.jenkins.quiet_down()
    day.minutes(10)
    assert (builds(day), answers(day)) == ([(1, Ended.KILLED)], [])
    day.jenkins.cancel_quiet_down()
    day.minutes(20)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]


def test_of_a_long_queue_the_next_items_are_followed_and_the_others_in_their_turn():
    day, first = waiting(pending=False)
    later = [day.jenkins.submit("job", "cpu", 60.0) for _ in range(MOST_FOLLOWED)]
    day.minutes(1)
    followed = [one.item for one in day.fleet.state.memory.queued.values()]
    assert followed == [build.id for build in (first, *later[:-1])]
    day.jenkins.abort(first)
    day.minutes(1)
    followed = [one.item for one in day.fleet.state.memory.queued.values()]
    assert followed == [build.id for build in later]


def test_what_left_the_queue_together_is_asked_for_in_turns():
    day, first = waiting(pending=False)
    later = [day.jenkins.submit("job", "cpu", 60.0) for _ in range(2 * ITEMS_ASKED_A_LOOK)]
    day.minutes(1)
    for build in (first, *later):
        day.jenkins.abort(build)
    left = []
    for _ in range(4):
        day.minutes(1)
        left.append(len(day.fleet.state.memory.queued))
    assert left == [1 + ITEMS_ASKED_A_LOOK, 1, 0, 0]


def test_of_what_left_the_queue_only_the_latest_is_remembered():
    day, first = waiting(pending=False)
    for _ in range(3):
        wave = [day.jenkins.submit("job", "cpu", 60.0) for _ in range(MOST_FOLLOWED)]
        day.minutes(1)
        for build in wave:
            day.jenkins.abort(build)
    day.minutes(1)
    assert len(day.fleet.state.memory.queued) == MOST_FOLLOWED + len([first])


def test_a_pipeline_that_waits_in_vain_is_named_once_and_nothing_is_started():
    day, item = waiting(kind=Kind.PIPELINE)
    dropped(day, item)
    day.minutes(20)
    assert builds(day) == [(1, None)]
    [step] = day.done(LeaveLost)
    assert (step.job, step.pool, step.reason) == ("job", "cpu", Reason.NODE_BLOCK_DROPPED)
    assert step.detail.endswith("job/job/1 waits for a node block that is neither running nor scheduled: abort it, and start it again")
    assert answers(day) == [(f"job/job/item-{item.id}", "left", 0)]
    assert (day.done(RunAgain), len(day.fleet.state.memory.left), day.fleet.state.memory.queued) == ([], 1, {})


def test_a_pipeline_that_somebody_aborted_meanwhile_is_not_named():
    day, item = waiting(kind=Kind.PIPELINE)
    dropped(day, item)
    day.minutes(1)
    day.jenkins.abort(item)
    day.minutes(10)
    assert (day.done(LeaveLost), day.fleet.state.memory.queued) == ([], {})


@pytest.mark.parametrize(
    ("declares", "given", "reason"),
    [
        (("REF", "PASSWORD"), {"REF": "x", "PASSWORD": "s3cret"}, Reason.HIDDEN_PARAMETERS),
        (("REF",), {"REF": "x" * 1001}, Reason.HIDDEN_PARAMETERS),
    ],
)
def test_what_cannot_be_repeated_is_left_to_a_person_once(declares, given, reason):
    day, item = waiting(*declares, given=given)
    dropped(day, item)
    day.minutes(20)
    assert (reasons(day), builds(day)) == ([reason], [(1, Ended.KILLED)])


def test_what_another_build_waits_for_is_left_to_a_person():
    day, item = waiting(parent=True)
    dropped(day, item)
    day.minutes(20)
    assert (reasons(day), builds(day)) == ([Reason.PARENT_WAITS], [(1, Ended.KILLED)])


def test_what_a_build_caused_that_has_ended_since_is_started():
    day, item = waiting(parent=True)
    [parent] = day.jenkins.builds_of["parent"]
    day.jenkins.abort(parent)
    dropped(day, item)
    day.minutes(20)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]


def test_a_part_of_a_matrix_cannot_be_started_by_itself():
    day, item = waiting(configurations=("os=linux",))
    dropped(day, item)
    day.minutes(20)
    assert reasons(day) == [Reason.PARENT_WAITS]
    assert day.done(RunAgain) == []


def test_what_is_dropped_as_often_as_is_allowed_is_left_to_a_person():
    day, item = waiting()
    dropped(day, item)
    day.jenkins.handing_seconds = 70.0
    day.minutes(3)
    again = day.jenkins.builds_of["job"][-1]
    assert (again.number, again.is_pending) == (2, True)
    dropped(day, again)
    day.minutes(10)
    assert reasons(day) == [Reason.LOST_TOO_OFTEN]
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.KILLED)]


@pytest.mark.parametrize("declares", [(), (RUN_ID,), ("REF",)], ids=["none", "id", "ref"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_start_that_jenkins_does_not_answer_is_found_or_sent_again_and_never_both(declares, after):
    day, item = waiting(*declares, given=dict.fromkeys(declares, "x") if declares else None)
    dropped(day, item)
    day.fleet.faults.plan(Fault("jenkins buildWithParameters" if declares else "jenkins build", after=after))
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]
    assert [state for _, state, _ in answers(day)] == ["started"]


def test_why_names_what_is_waited_for_and_what_was_left():
    day, item = waiting(kind=Kind.PIPELINE)
    dropped(day, item)
    day.minutes(1)
    assert [one.item for one in day.fleet.state.memory.queued.values()] == [item.id]
    assert any(f"queue item {item.id} left the queue, and Jenkins does not know it" in line for line in why(day))
    day.minutes(1)
    assert day.fleet.state.memory.queued == {}
    assert any("is left to a person: job/job/1 waits for a node block" in line for line in why(day))


def why(day):
    fleet = day.fleet
    return explain(observe(fleet.ports, fleet.fleet, fleet.state.read(), fleet.invocation()), fleet.fleet, "job")
