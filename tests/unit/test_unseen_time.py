"""Which seconds count towards a deadline, and which nobody could see."""

from dataclasses import replace

import pytest

from autoscaler.domain.decide import scale_down
from autoscaler.domain.facts.memory import Looks
from autoscaler.domain.situation.looks import EC2, SPANS_KEPT, blind_seconds, next_looks
from support.builders import NOW, a_fleet, a_look, a_memory, a_node, a_record, a_snapshot, a_view
from support.remembered import tables

UNREAD = replace(a_view(), problem="401 Unauthorized", session="")


def looks_at(*minutes, known=None, quiet=()):
    """Look at these minutes; those that are negative are not whole."""
    for minute in minutes:
        view = UNREAD if minute < 0 else a_view(quieting_down=minute in quiet)
        known = next_looks(a_snapshot(view, taken_at=NOW + 60 * abs(minute), memory=a_memory(looks=known or {})))
    return known


def seen_minutes(looks, to, since=0):
    now, since_at = NOW + 60 * to, NOW + 60 * since
    return (now - since_at - blind_seconds(looks["main"], since_at, now)) / 60


@pytest.mark.parametrize(
    ("minutes", "seen"),
    [
        (range(21), 20),
        ((0, *range(-1, -20, -1), 20), 1),  # nobody could see for 20 minutes: the minute of the look before counts
        ((0, 20), 1),  # and nobody looked
        ((0, -1, -2, 3, -4, 5, 6), 6),  # gaps that are no longer than two missing looks
        ((0, 1, -2, -3, -4, 5, 6), 3),
        ((0, -1, -2, -3), 1),  # it goes on
        ((0, -1), 1),
    ],
)
def test_seconds_between_whole_looks_count(minutes, seen):
    assert seen_minutes(looks_at(*minutes), max(map(abs, minutes))) == seen


def test_what_counts_never_becomes_less():
    looks, before = None, 0.0
    for minute in (0, -1, 2, -3, -4, -5, 6, 7, -8, -9, 10, -11, -12, -13, -14, 15):
        looks = looks_at(minute, known=looks)
        seen = seen_minutes(looks, abs(minute))
        assert seen >= before
        before = seen


def test_quiet_mode_is_no_look_and_no_gap_of_ec2():
    looks = looks_at(*range(21), quiet=range(1, 20))
    assert seen_minutes(looks, 20) == 1
    assert blind_seconds(looks[EC2], NOW, NOW + 1200) == 0.0


def test_only_what_began_before_a_gap_is_touched_by_it():
    looks = looks_at(*range(6), 20, 21, 22)
    assert seen_minutes(looks, 22, since=20) == 2
    assert seen_minutes(looks, 22, since=10) == 2
    assert seen_minutes(looks, 22, since=4) == 4


def test_a_controller_that_was_never_seen_as_a_whole_has_been_unseen_since_the_first_look():
    looks = looks_at(*range(-1, -30, -1))
    assert seen_minutes(looks, 29, since=1) == 1


def test_a_look_by_a_clock_that_was_ahead_leaves_nothing():
    looks = looks_at(0, 1, 200, 2, 3, 4)
    assert seen_minutes(looks, 4) == 4


def test_a_flapping_controller_leaves_so_many_spans_and_no_second_is_lost():
    looks = looks_at(*range(0, 400, 4))
    assert len(looks["main"].blind) == SPANS_KEPT
    assert seen_minutes(looks, 396, since=-60) == 60 + 99


def test_a_controller_that_left_the_fleet_file_leaves_nothing():
    assert next_looks(a_snapshot(a_view(), memory=a_memory(looks={"gone": Looks(at=NOW)}))).keys() == {EC2, "main"}


@pytest.mark.parametrize("seconds", [60.0, 9000.0])
def test_a_look_that_did_not_come_ends_no_condition_and_makes_no_fact(seconds):
    looks = {"i-1": a_look("lost", seconds_ago=60.0)}
    lost = replace(a_node("cpu-1", "cpu"), offline=True)
    at = {"records": (a_record("i-1", node="cpu-1"),), "memory": a_memory(observations=looks)}
    plan = scale_down(a_snapshot(UNREAD, taken_at=NOW + seconds, **at), a_fleet())
    assert (plan.steps, tables(plan.memory).observations) == ((), looks)
    seen = tables(scale_down(a_snapshot(a_view(lost), taken_at=NOW + seconds, **at), a_fleet()).memory).observations["i-1"]
    assert (seen.first_at, seen.last_at) == (NOW - 60.0, NOW + seconds)
