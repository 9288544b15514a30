"""What has become of an order's builds by what Jenkins says, and what is done next."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.runs import Entry, Interruption, Item, ItemState, Job, Parameter, Run
from autoscaler.domain.facts.started_builds import LostBuild, LostFacts, Part, RunOrder, Target, Try, TryState, Until, Verdict
from autoscaler.domain.repair.lost_builds import MISSING, is_lost
from autoscaler.domain.run_orders.carrying_on import MOST_SECONDS, Cancel, Judged, Start, Stop, TryFacts, carry_on, judge

NOW = 1_800_000_000.0
ID, RUN = "run-1.1.1", "job/job/7"
TARGET = Target(controller="main", pool="cpu", label="cpu", value="cpu")


def a_try(state=TryState.RUNNING, **facts):
    known = {TryState.WRITTEN: {}, TryState.QUEUED: {"item": 5}}.get(state, {"item": 5, "run": RUN, "began_at": NOW - 600})
    return Try(**{"id": ID, "state": state, "at": NOW - 700} | known | facts)


def an_order(*tries, **facts):
    parts = tuple(Part(target=TARGET, tries=(one,)) for one in tries) or (Part(target=TARGET),)
    given = {"job": "job", "parameters": (), "label_parameter": "LABEL", "run_parameter": "ID", "by": "alice", "reason": ""}
    return RunOrder(id="run-1", created_at=NOW - 700, parts=facts.pop("parts", parts), **given | facts)


def a_run(result="", *, ended_at=None, interruptions=()):
    return Run(
        path=RUN,
        is_pipeline=False,
        building=not result,
        result=result,
        started_at=NOW - 600,
        ended_at=ended_at or (NOW if result else None),
        node="cpu-1",
        item=5,
        interruptions=interruptions,
    )


def a_job(*entries, is_whole=True):
    return Job(path="job/job", buildable=True, declares=frozenset({"ID"}), entries=entries, is_whole=is_whole)


def an_entry(run="", value=ID):
    return Entry(item=5, run=run, at=NOW, is_ours=True, parameters=(Parameter(name="ID", value=value),))


def judged(one, facts, now=NOW, **order):
    """The try as it is known now, and whether Jenkins surely has nothing of it."""
    found = judge(an_order(one, **order), {ID: facts}, now)
    return found.order.parts[0].last, ID in found.unsent


def lost(how="its instance ended", since_at=NOW - 60):
    return LostBuild(
        controller="main",
        run=RUN,
        pool="cpu",
        node="cpu-1",
        instance_id="i-1",
        how=how,
        since_at=since_at,
        seen_at=NOW - 120,
        lost_at=NOW - 60,
    )


@pytest.mark.parametrize(("run", "state"), [("", TryState.QUEUED), (RUN, TryState.RUNNING)])
def test_what_jenkins_did_not_answer_is_found_by_its_parameter(run, state):
    one, unsent = judged(a_try(TryState.WRITTEN), TryFacts(job=a_job(an_entry("job/job/6", "other"), an_entry(run)), job_asked=True))
    assert (one.state, one.item, one.run, unsent) == (state, 5, run, False)


def test_what_jenkins_surely_does_not_have_may_be_sent_again_and_nothing_earlier():
    facts = TryFacts(job=a_job(), job_asked=True)
    assert judged(a_try(TryState.WRITTEN), facts)[1]
    assert not judged(a_try(TryState.WRITTEN, at=NOW - 59), facts)[1]


def test_among_too_many_builds_nobody_can_tell_and_nothing_is_sent():
    one, unsent = judged(a_try(TryState.WRITTEN), TryFacts(job=a_job(is_whole=False), job_asked=True))
    assert (one.verdict, unsent) == (Verdict.IN_DOUBT, False)


@pytest.mark.parametrize(
    ("item", "facts", "verdict"),
    [
        (ItemState.CANCELLED, {}, Verdict.ABORTED),
        (ItemState.UNKNOWN, {"job": a_job(), "job_asked": True}, Verdict.LOST),
        (ItemState.UNKNOWN, {"job": a_job(is_whole=False), "job_asked": True}, Verdict.IN_DOUBT),
        (ItemState.UNKNOWN, {"job_asked": True}, Verdict.IN_DOUBT),
        (ItemState.UNKNOWN, {}, None),
        (ItemState.WAITING, {}, None),
    ],
)
def test_what_became_of_an_item_of_the_queue(item, facts, verdict):
    assert judged(a_try(TryState.QUEUED), TryFacts(item=Item(state=item), **facts))[0].verdict is verdict


@pytest.mark.parametrize(
    ("result", "verdict"), [("SUCCESS", Verdict.PASSED), ("UNSTABLE", Verdict.UNSTABLE), ("NOT_BUILT", Verdict.FAILED), ("", None)]
)
def test_what_jenkins_says_at_once_holds_at_once(result, verdict):
    one, _ = judged(a_try(), TryFacts(run=a_run(result), run_asked=True))
    assert (one.verdict, one.took_seconds) == (verdict, 600.0 if result else None)


def test_a_failed_build_may_still_turn_out_to_be_lost():
    facts = TryFacts(run=a_run("FAILURE"), run_asked=True)
    one, _ = judged(a_try(), facts)
    assert (one.verdict, one.ended_at) == (None, NOW)
    assert judged(one, facts, NOW + 119)[0].verdict is None
    assert judged(one, facts, NOW + 121)[0].verdict is Verdict.FAILED
    assert judged(one, TryFacts(run=a_run("FAILURE"), run_asked=True, lost=lost()), NOW + 60)[0].verdict is Verdict.LOST


def test_after_a_restart_of_jenkins_an_agent_may_come_back():
    facts = TryFacts(run=a_run("ABORTED"), run_asked=True, lost=lost(MISSING, NOW))
    assert judged(a_try(), facts)[0].verdict is None
    assert judged(a_try(), facts, NOW + 301)[0].verdict is Verdict.LOST


@pytest.mark.parametrize(
    ("why", "order", "verdict"),
    [
        (Interruption.AGENT_GONE, {}, Verdict.LOST),
        (Interruption.PERSON, {}, Verdict.ABORTED),
        (Interruption.PERSON, {"cancelled_by": "bob"}, Verdict.STOPPED),
        (Interruption.OTHER, {}, Verdict.ABORTED),
    ],
)
def test_what_stopped_a_build_that_was_aborted(why, order, verdict):
    assert judged(a_try(), TryFacts(run=a_run("ABORTED", interruptions=(why,)), run_asked=True), **order)[0].verdict is verdict


@pytest.mark.parametrize(
    ("gone_at", "elsewhere", "why", "verdict"),
    [
        (NOW - 400, False, (Interruption.BLOCK_CANCELLED,), Verdict.LOST),
        (NOW - 400, False, (Interruption.BLOCK_CANCELLED, Interruption.OTHER), Verdict.LOST),
        (NOW - 400, False, (Interruption.BLOCK_CANCELLED, Interruption.PERSON), Verdict.ABORTED),
        (NOW - 400, True, (Interruption.BLOCK_CANCELLED,), Verdict.ABORTED),
        (NOW + 60, False, (Interruption.BLOCK_CANCELLED,), Verdict.ABORTED),
        (None, False, (Interruption.BLOCK_CANCELLED,), Verdict.ABORTED),
    ],
)
def test_a_cancelled_block_is_lost_if_its_node_was_known_to_be_gone_before_and_else_a_person_cancelled_it(gone_at, elsewhere, why, verdict):
    run = replace(a_run("ABORTED", interruptions=why), is_pipeline=True, node="")
    known = replace(lost(), node_gone_at=gone_at, elsewhere=elsewhere)
    assert is_lost(known, LostFacts(run=run, unit=run)) is (verdict is Verdict.LOST)
    assert judged(a_try(), TryFacts(run=run, run_asked=True, lost=known))[0].verdict is verdict


def test_a_cancelled_block_of_which_no_agent_went_was_cancelled_by_a_person():
    run = a_run("ABORTED", interruptions=(Interruption.BLOCK_CANCELLED,))
    assert judged(a_try(), TryFacts(run=run, run_asked=True))[0].verdict is Verdict.ABORTED


def test_a_build_that_jenkins_does_not_show_is_in_doubt_after_five_minutes_and_not_if_it_is_back():
    gone, there = TryFacts(run_asked=True), TryFacts(run=a_run(), run_asked=True)
    one, _ = judged(a_try(), gone)
    assert one.verdict is None
    assert judged(one, gone, NOW + 301)[0].verdict is Verdict.IN_DOUBT
    back, _ = judged(one, there, NOW + 60)
    assert judged(back, gone, NOW + 301)[0].verdict is None


def ended(verdict, tries=1):
    return tuple(a_try(TryState.ENDED, verdict=verdict, id=f"run-1.1.{number}") for number in range(1, tries + 1))


def following(order, now=NOW, unsent=()):
    return carry_on(Judged(order=order, unsent=frozenset(unsent)), now, 10)


@pytest.mark.parametrize(
    ("tries", "facts", "starts"),
    [
        ((), {}, 1),
        (ended(Verdict.LOST), {"resubmit": 1}, 1),
        (ended(Verdict.LOST, 2), {"resubmit": 1}, 0),
        (ended(Verdict.LOST), {"resubmit": 0}, 0),
        (ended(Verdict.FAILED), {"replace": 5}, 0),
        (ended(Verdict.FAILED), {"replace": 1, "until": Until.ALL}, 1),
        (ended(Verdict.FAILED, 2), {"replace": 1, "until": Until.ALL}, 0),
        (ended(Verdict.REFUSED), {"replace": 1, "until": Until.ALL}, 0),
        (ended(Verdict.IN_DOUBT), {"resubmit": 9}, 0),
    ],
)
def test_what_is_started(tries, facts, starts):
    after = following(an_order(parts=(Part(target=TARGET, tries=tries),), **facts))
    assert [type(action) for action in after.actions] == [Start] * starts
    assert (after.order.ended_at is None) is bool(starts)
    assert len({one.id for one in after.order.all_tries()}) == len(tries) + starts, "each has a name of its own"


def test_no_more_are_started_in_a_look_than_may_be_and_the_order_goes_on():
    after = carry_on(Judged(order=an_order(parts=(Part(target=TARGET),) * 5)), NOW, 2)
    assert (len(after.actions), after.order.ended_at) == (2, None)


def test_what_is_sent_once_more_keeps_its_name():
    after = following(an_order(a_try(TryState.WRITTEN)), unsent=[ID])
    assert after.actions == (Start(part=0, target=TARGET, try_id=ID),)
    assert after.order.parts[0].last.at == NOW


def test_once_an_order_is_over_what_is_open_is_ended_and_what_was_never_sent_is_not_started():
    tries = [
        a_try(),
        a_try(TryState.QUEUED, id="run-1.2.1"),
        a_try(TryState.WRITTEN, id="run-1.3.1"),
        a_try(TryState.WRITTEN, id="run-1.4.1"),
    ]
    after = following(an_order(*tries, cancelled_by="bob"), unsent=["run-1.4.1"])
    assert after.actions == (Stop(target=TARGET, run=RUN), Cancel(target=TARGET, item=5))
    assert [part.verdict for part in after.order.parts] == [None, None, None, Verdict.STOPPED]
    assert after.order.ended_at is None, "one may have been sent: it is looked for first"


def test_an_order_that_nobody_ends_is_followed_for_two_weeks_and_its_builds_are_left_to_run():
    after = following(an_order(a_try()), NOW + MOST_SECONDS)
    assert (after.actions, after.order.parts[0].verdict, after.order.ended_at) == ((), Verdict.IN_DOUBT, NOW + MOST_SECONDS)
