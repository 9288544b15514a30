"""Time-lines of loans while what they rest upon leaves the fleet file: the labels that were lent are taken back, whatever it says now."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Lending
from autoscaler.domain.facts.plan import TakeBack
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool, an_offering
from support.file_changes import pool_is_now
from support.timeline import Day
from support.worlds import in_memory

LENT = frozenset({"amd64"})
SLOW = replace(CALM, scheduling_seconds=200.0)  # until then nothing is matched, so that a loan lasts that long
NOTHING = frozenset()
CHANGES = {
    "kinds leave": {"lent_labels": NOTHING, "lend": Lending.NEVER, "kind": ""},
    "lend leaves": {"lend": Lending.NEVER},
    "the general kind has another label": {"lent_labels": frozenset({"x86"})},
    "the general kind has a label less": {"lent_labels": frozenset({"linux"})},
}


def a_day(physics=CALM, lent=LENT):
    """A general pool that is full soon, and one agent of a speciality that is there in any case, dear, and lent while it is idle."""
    plain = a_pool("cpu", labels=LENT, max_agents=1)
    rare = {"labels": frozenset({"gfx1030"}), "lent_labels": lent, "lend": Lending.IDLE, "min_agents": 1, "max_agents": 1}
    return Day(in_memory(plain, a_pool("gpu", offerings=(an_offering(usd_per_hour=15.0),), **rare), physics=physics)).minutes(10)


def lent_again_by(change, day):
    pool_is_now(day, "gpu", **CHANGES[change])
    if change == "the general kind has another label":
        pool_is_now(day, "cpu", labels=LENT | {"x86"})


def rare_node(day):
    return next(node for name, node in day.jenkins.nodes.items() if name.startswith("gpu-"))


def labels_of_others(day):
    return frozenset(rare_node(day).labels) & {"amd64", "x86", "linux"}


def on_the_rare_one(day, builds):
    return [build for build in builds if build.node == rare_node(day).name]


@pytest.mark.parametrize("change", CHANGES)
def test_a_loan_that_the_file_allows_no_more_ends_at_once_and_no_other_plain_job_runs_there(change):
    day = a_day(physics=SLOW, lent=LENT | {"linux"})
    day.queue(1, label="amd64", seconds=600.0)
    day.minutes(1)
    assert labels_of_others(day) == {"amd64", "linux"}
    lent_again_by(change, day)
    day.minutes(2)
    assert (labels_of_others(day), [step.reason for step in day.done(TakeBack)]) == (NOTHING, [Reason.LENDS_NO_MORE])
    pool_is_now(day, "gpu", lend=Lending.NEVER)
    later = day.queue(6, label="amd64", seconds=1200.0)
    day.minutes(90)
    assert (on_the_rare_one(day, later), labels_of_others(day), day.failed) == ([], NOTHING, 0)


@pytest.mark.parametrize("change", CHANGES)
def test_the_build_of_a_borrower_goes_on_and_the_labels_are_gone(change):
    day = a_day()
    [borrower] = day.queue(1, label="amd64", seconds=1800.0)
    [node] = [rare_node(day).name]
    while borrower.node is None:
        day.minutes(1)
    lent_again_by(change, day)
    day.minutes(3)
    assert (borrower.node, labels_of_others(day)) == (node, NOTHING)
    day.minutes(40)
    assert borrower.ended is Ended.FINISHED


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("call", [1, 2], ids=["lending", "taking back"])
def test_what_was_cut_off_between_record_and_node_is_made_good_though_the_file_has_changed(change, call, after):
    day, seen = a_day(), []

    def meanwhile(what):
        if what == "jenkins config.xml":
            seen.append(what)
            if len(seen) == call:
                day.fleet.faults.plan(Fault(what, after=after))
                lent_again_by(change, day)

    day.fleet.faults.meanwhile = meanwhile
    day.queue(1, label="amd64", seconds=300.0)
    day.minutes(5)
    pool_is_now(day, "gpu", lend=Lending.NEVER)
    day.minutes(15)
    assert day.fleet.faults.seen
    assert labels_of_others(day) == NOTHING


@pytest.mark.parametrize("change", CHANGES)
def test_labels_that_stayed_since_a_person_had_marked_the_node_go_once_the_mark_has_gone(change):
    day = a_day(physics=SLOW)
    day.queue(1, label="amd64", seconds=600.0)
    day.minutes(1)
    day.jenkins.toggle(rare_node(day).name, "looking at the card", "ada")
    day.minutes(20)
    lent_again_by(change, day)
    day.minutes(5)
    day.jenkins.toggle(rare_node(day).name, "", "ada")
    pool_is_now(day, "gpu", lend=Lending.NEVER)
    day.minutes(5)
    assert labels_of_others(day) == NOTHING


def test_why_names_the_labels_that_it_was_lent_with_and_the_next_loan_is_by_those_of_the_file():
    day = a_day(physics=SLOW)
    day.queue(1, label="amd64", seconds=600.0)
    day.minutes(1)
    [line] = [line for line in day.why(rare_node(day).name) if "lent to" in line]
    assert "lent to jobs that ask for amd64" in line
    lent_again_by("the general kind has another label", day)
    day.minutes(20)
    day.queue(2, label="x86", seconds=600.0)
    day.minutes(1)
    assert labels_of_others(day) == {"x86"}


def test_jobs_of_a_general_label_that_becomes_the_pools_own_run_there():
    day = a_day(physics=SLOW)
    day.queue(1, label="amd64", seconds=600.0)
    day.minutes(1)
    own = frozenset({"gfx1030", "amd64"})
    pool_is_now(day, "gpu", lent_labels=NOTHING, lend=Lending.NEVER, labels=own)
    later = day.queue(6, label="amd64", seconds=600.0) + day.queue(2, label="gfx1030&&amd64", seconds=600.0)
    day.minutes(150)
    assert {build.ended for build in later} == {Ended.FINISHED}
    assert own <= frozenset(rare_node(day).labels)


def told(day):
    return [message.subject for message in day.fleet.notifier.sent if "lent too long" in message.subject or "over" in message.subject]


def test_a_loan_whose_labels_jenkins_does_not_take_back_is_told_after_an_hour_and_once_they_are_gone_it_is_over():
    day = a_day(physics=SLOW)
    day.queue(1, label="amd64", seconds=600.0)
    day.minutes(1)
    day.fleet.faults.plan(Fault("jenkins config.xml", status=403, times=10**6))
    lent_again_by("kinds leave", day)
    name = rare_node(day).name
    day.minutes(59)
    assert told(day) == []
    day.minutes(6)
    assert [subject for subject in told(day) if name in subject] == [f"[f] {name} of gpu: lent too long"]
    [text] = [message.text for message in day.fleet.notifier.sent if message.subject == f"[f] {name} of gpu: lent too long"]
    assert "ended" in text
    assert "amd64" in text
    assert "403" in text
    day.fleet.faults.planned.clear()
    day.minutes(10)
    assert f"[f] over: {name} of gpu: lent too long" in told(day)
    assert labels_of_others(day) == NOTHING
