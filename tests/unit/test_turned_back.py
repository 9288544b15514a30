"""Times noted by a clock that was ahead, after it is right again."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.memory import FreeNode, InState, Missing
from autoscaler.domain.facts.started_builds import LostBuild
from autoscaler.domain.report.told import Span, Told, Trouble, told_by_now
from autoscaler.domain.situation.looks import turned_back
from support.builders import NOW, a_learned, a_look, a_memory, a_record, a_sighting, a_snapshot, an_instance
from support.remembered import tables

LATER = NOW + 31 * 86_400.0


def by_now(**memory):
    return turned_back(a_snapshot(memory=a_memory(**memory))).memory


@pytest.mark.parametrize(("noted", "counts"), [(NOW - 60.0, NOW - 60.0), (NOW + 100.0, NOW + 100.0), (NOW + 7200.0, NOW), (LATER, NOW)])
def test_what_lasts_is_as_if_it_had_begun_now_unless_clocks_differ_by_as_much_anyway(noted, counts):
    assert tables(by_now(states={"i-1": InState(state="node-left", since_at=noted)})).states["i-1"].since_at == counts


def test_what_has_lasted_by_a_clock_that_was_ahead_has_lasted_as_long():
    noted = by_now(missing={"i-1": Missing(since_at=LATER - 900.0, asked_at=LATER)})
    assert tables(noted).missing["i-1"] == Missing(since_at=NOW - 900.0, asked_at=NOW)


def test_what_each_look_sees_anew_begins_again():
    """What cannot be undone is done after two looks of which it is known how far they are apart."""
    free = FreeNode(since_at=LATER, seen_at=LATER, looks=3, session="s1", labels=("cpu",), refused={"job": LATER})
    memory = by_now(
        observations={"i-1": a_look("lost"), "i-2": replace(a_look("lost"), first_at=LATER, last_at=LATER)},
        free_nodes={"main/cpu-1": free, "main/cpu-2": replace(free, since_at=NOW - 60.0, seen_at=NOW, refused={})},
    )
    assert (set(tables(memory).observations), set(tables(memory).free_nodes)) == ({"i-1"}, {"main/cpu-2"})


def test_times_by_the_clock_of_a_controller_that_is_ahead_for_good_stay_as_they_are():
    lost = LostBuild(
        controller="main",
        run="job/a/1",
        pool="cpu",
        node="cpu-1",
        instance_id="i-1",
        how="its agent is gone",
        since_at=NOW - 5.0,
        seen_at=NOW - 60.0,
        lost_at=NOW + 600.0,
    )
    assert by_now(lost={lost.key: lost}).lost[lost.key] == lost
    ahead = replace(lost, since_at=LATER)
    assert by_now(lost={lost.key: ahead}).lost[lost.key] == replace(lost, since_at=NOW)


def test_a_build_that_was_first_seen_then_began_now():
    seen = a_learned(running={"cpu-1/0": a_sighting(job="job", pool="cpu", since_at=LATER)}, succeeded_at={"cpu": LATER}, seen_at=LATER)
    learned = turned_back(a_snapshot(learned={"main": seen})).learned["main"]
    assert (learned.running["cpu-1/0"].since_at, learned.succeeded_at, learned.seen_at) == (NOW, {"cpu": NOW}, NOW)


@pytest.mark.parametrize(("noted", "launched"), [(LATER, NOW - 300.0), (NOW - 290.0, NOW - 290.0)])
def test_when_an_instance_was_launched_ec2_knows_best(noted, launched):
    records, instances = (a_record(launched_at=noted),), (an_instance(launched_at=NOW - 300.0),)
    [record] = turned_back(a_snapshot(records=records, instances=instances)).records
    assert record.launched_at == launched


@pytest.mark.parametrize(
    ("noted", "since_at", "changed"), [(LATER, NOW - 60.0, NOW - 60.0), (LATER, LATER, NOW), (NOW - 90.0, NOW, NOW - 90.0)]
)
def test_a_record_that_changed_then_changed_when_its_state_was_first_seen(noted, since_at, changed):
    states = {"i-1": InState(state="stopping", since_at=since_at)}
    [record] = turned_back(a_snapshot(records=(a_record(changed_at=noted),), memory=a_memory(states=states))).records
    assert record.changed_at == changed


@pytest.mark.parametrize("life", [{"starts": (NOW - 7200.0, LATER)}, {"rotated_at": LATER}], ids=["started", "rotated"])
@pytest.mark.parametrize(("since_at", "began"), [(NOW - 60.0, NOW - 60.0), (LATER, NOW)])
def test_an_agent_that_was_started_or_rotated_then_began_to_boot_when_that_was_first_seen(life, since_at, began):
    """An agent that was started in a zone without network had a day to boot, and was the only one that was tried for so long."""
    record = a_record(launched_at=NOW - 9000.0, **life)
    states = {record.instance_id: InState(state="boots", since_at=since_at)}
    [mended] = turned_back(a_snapshot(records=(record,), memory=a_memory(states=states))).records
    assert mended.began_at == began
    assert mended.starts[:-1] == record.starts[:-1]


def test_a_look_in_which_nothing_is_ahead_is_the_very_same():
    look = a_snapshot(records=(a_record(node="cpu-1"),), memory=a_memory(observations={"i-1": a_look("idle")}))
    assert turned_back(look) is look


def test_what_people_were_told_of_then_was_told_now():
    told = Told(
        troubles={"x": Trouble(title="x", since_at=NOW - 60.0, seen_at=LATER, told_at=LATER)},
        spans={"y": Span(since_at=LATER, seen_at=LATER)},
    )
    after = told_by_now(told, NOW)
    assert after.troubles["x"] == Trouble(title="x", since_at=NOW - 60.0, seen_at=NOW, told_at=NOW)
    assert after.spans["y"] == Span(since_at=NOW, seen_at=NOW)
