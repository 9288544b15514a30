"""The engine of bets: what was lost is tried again, ever more rarely and with few at once, until it is won."""

from dataclasses import replace
from math import inf

import pytest

from autoscaler.domain.facts.fleet import HELD_LABEL
from autoscaler.domain.facts.snapshot import OfflineCause
from autoscaler.domain.situation.bets import Outcome, TrialOf, note, opened
from autoscaler.domain.situation.looks import turned_back
from support.builders import NOW, a_memory, a_snapshot, a_trial, an_agent, an_empty_window, an_item, an_offering, boots_failed
from support.decisions import decide_up, launches

BOOT, ACCOUNT = TrialOf.BOOT.scope("cpu"), "account"
MINUTES = 60.0


def boot(name, at=NOW, *, won=False, **facts):
    return Outcome(scope=BOOT, name=name, at=at, won=won, **facts)


def played(*outcomes, known=None, now=NOW):
    """Note outcomes one after another, a minute apart; what is launched now is launched just before."""
    trials = known or {}
    for n, outcome in enumerate(outcomes):
        trials = note(trials, [outcome], now + n * MINUTES)
    return trials


def lost(*numbers, now=NOW, **facts):
    """Boots that failed one after another, each launched once the one before had failed."""
    return played(*(boot(f"i-{n}", now + at * MINUTES, **facts) for at, n in enumerate(numbers)), now=now)


def width(trials, now=NOW + 86_400.0):
    return trials[BOOT].width(now) if BOOT in trials else inf


@pytest.mark.parametrize(
    ("outcomes", "is_closed"),
    [
        ("L", False),
        ("LL", False),
        ("LLL", True),
        ("LLWWL", True),
        ("WLLWWL", True),
        ("LLWWWL", False),
        ("LWLWLW", False),
        ("LWWWWWLL", False),
    ],
)
def test_a_scope_is_closed_once_at_least_three_are_lost_and_they_outnumber_the_wins(outcomes, is_closed):
    trials = played(*(boot(f"i-{n}", NOW + n * MINUTES, won=letter == "W") for n, letter in enumerate(outcomes)))
    assert trials[BOOT].is_closed is is_closed
    assert (width(trials) < inf) is is_closed


def test_of_the_outcomes_the_last_eight_count():
    trials = played(*(boot(f"i-{n}", NOW + n * MINUTES, won=n >= 3) for n in range(8)))
    assert [*trials[BOOT].outcomes.values()] == [False] * 3 + [True] * 5
    trials = played(*(boot(f"i-{n}", NOW + n * MINUTES, won=True) for n in range(8, 11)), known=trials)
    assert trials == {}, "no loss is left, and there is nothing to remember"


def test_forty_machines_that_fail_together_are_one_loss_for_the_pause_and_all_for_the_share():
    trials = note({}, [boot(f"i-{n}", NOW - 900.0) for n in range(20)], NOW)
    trials = note(trials, [boot(f"i-{n}", NOW - 900.0) for n in range(20, 40)], NOW + 60.0)
    trial = trials[BOOT]
    assert (trial.failures, trial.pauses, trial.is_closed, trial.until_at) == (1, 0, True, NOW)
    assert len(trial.outcomes) == 8


def test_what_was_launched_before_the_last_loss_and_connects_changes_the_share_and_not_the_width():
    trials = lost(1, 2, 3)
    late = note(trials, [boot("i-4", NOW, won=True)], NOW + 300.0)
    assert (late[BOOT].wins, late[BOOT].failures, width(late)) == (0, 3, 1.0)
    assert [*late[BOOT].outcomes.values()] == [False, False, False, True]


def test_a_closed_scope_is_tried_with_one_then_four_then_all():
    trials = lost(1, 2, 3, 4)
    widths = [width(trials)]
    for n in range(5, 9):
        trials = note(trials, [boot(f"i-{n}", NOW + n * 600.0, won=True)], NOW + n * 600.0 + 120.0)
        widths.append(width(trials))
    assert widths == [1.0, 4.0, 16.0, 64.0, inf]


def test_a_win_that_a_clock_two_hours_ahead_noted_makes_nobody_wait_for_those_hours():
    """Times are moved back by as much as the loss is ahead; the win alone was noted ahead, and the pool was shut for 2 h."""
    ahead = note(lost(1, 2, 3, 4), [boot("i-5", NOW + 600.0, won=True)], NOW + 7200.0 + 700.0)
    seen = turned_back(a_snapshot(memory=a_memory(trials=ahead), taken_at=NOW + 760.0))
    assert width(seen.memory.trials, NOW + 760.0) == 4.0


def test_a_loss_after_wins_lets_one_be_tried_again_and_the_pauses_begin_anew():
    trials = played(boot("i-5", NOW + 600.0, won=True), known=lost(1, 2, 3, 4), now=NOW + 700.0)
    assert width(trials) == 4.0
    trials = note(trials, [boot("i-6", NOW + 800.0)], NOW + 810.0)
    assert (width(trials), trials[BOOT].until_at) == (1.0, NOW + 800.0 + 60.0)


def test_the_pauses_of_boots_count_from_the_launch_of_the_try():
    trials, at, pauses = lost(1, 2), NOW + 3000.0, []
    for n in range(3, 9):
        trials = note(trials, [boot(f"i-{n}", at)], at + 30.0)
        pauses.append((trials[BOOT].until_at - at) / MINUTES)
        at = trials[BOOT].until_at
    assert pauses == [1.0, 5.0, 10.0, 20.0, 20.0, 20.0]


def test_a_try_that_fails_only_after_its_pause_is_followed_at_once_and_by_nothing_in_the_meantime():
    trials = note(lost(1, 2), [boot("i-3", NOW + 200.0)], NOW + 1100.0)
    assert (trials[BOOT].until_at, trials[BOOT].width(NOW + 1100.0)) == (NOW + 1100.0, 1.0)


def test_nothing_is_tried_while_a_closed_scope_pauses():
    trial = lost(1, 2, 3)[BOOT]
    assert (trial.width(trial.until_at - 1.0), trial.width(trial.until_at)) == (0.0, 1.0)


def test_a_machine_fails_once_however_often_that_is_noted():
    trials = lost(1, 2)
    assert note(trials, [boot("i-2", NOW + 600.0)], NOW + 900.0) == trials


def test_a_later_outcome_of_a_machine_takes_the_place_of_the_earlier_one():
    trials = lost(1, 2, 3)
    trials = note(trials, [boot("i-2", NOW + 60.0, won=True)], NOW + 300.0)
    assert trials[BOOT].outcomes == {"i-1": False, "i-3": False, "i-2": True}
    assert not trials[BOOT].is_closed


def test_a_win_where_nothing_was_lost_is_not_remembered():
    assert note({}, [boot("i-1", won=True)], NOW) == {}


def test_another_version_begins_anew_and_no_machine_counts_for_both():
    trials = lost(1, 2, 3, version="1")
    trials = note(trials, [boot("i-4", NOW + 600.0, version="2"), boot("i-3", NOW, version="2")], NOW + 700.0)
    assert (trials[BOOT].failures, trials[BOOT].version, trials[BOOT].is_closed) == (1, "2", False)


def test_what_says_nothing_of_its_scope_is_remembered_by_its_machine_alone():
    trials = note({}, [boot("i-1", counts=False)], NOW)
    assert (trials[BOOT].failed, trials[BOOT].failures, trials[BOOT].outcomes) == (("i-1",), 0, {})


def test_a_person_opens_a_scope_at_once_and_what_is_known_to_fail_by_then_counts_no_more():
    mended = opened(lost(1, 2, 3), [BOOT, ACCOUNT], ["i-4"], NOW + 600.0)
    assert (width(mended, NOW + 600.0), mended[BOOT].failures, [*mended]) == (inf, 0, [BOOT])
    assert note(mended, [boot("i-4", NOW + 100.0)], NOW + 700.0) == mended
    again = note(mended, [boot(f"i-{n}", NOW + 610.0 + n) for n in (5, 6)], NOW + 900.0)
    assert not again[BOOT].is_closed, "two boots that fail afterwards are as few as any"


def test_a_start_that_ec2_refuses_whatever_the_machine_is_counts_each_time():
    refused = Outcome(scope=TrialOf.START.scope("cpu"), why="EC2 answered UnauthorizedOperation")
    closed = [played(*[refused] * times)[TrialOf.START.scope("cpu")].is_closed for times in (1, 2, 3)]
    assert closed == [False, False, True]


def test_what_ec2_refuses_is_closed_at_once_asked_for_ever_more_rarely_and_ended_by_one_win():
    refused = Outcome(scope=ACCOUNT, pauses=(60.0, 120.0, 300.0), why="EC2 answered RequestLimitExceeded")
    pauses = [played(*[refused] * times)[ACCOUNT].until_at - NOW - (times - 1) * MINUTES for times in (1, 2, 3, 4)]
    assert pauses == [60.0, 120.0, 300.0, 300.0]
    trials = played(*[refused] * 9)
    assert trials[ACCOUNT].is_closed
    assert note(trials, [Outcome(scope=ACCOUNT, won=True)], NOW + 900.0) == {}


def test_a_step_is_given_up_after_three_in_a_row_and_then_tried_each_five_minutes():
    scope = TrialOf.STEP.scope("cordon main/cpu-1")
    failed = Outcome(scope=scope, why="403")
    trials = [played(*[failed] * times)[scope] for times in (1, 2, 3, 4)]
    assert [trial.is_closed for trial in trials] == [False, False, True, True]
    assert [trial.until_at - trial.failed_at for trial in trials[2:]] == [300.0, 300.0]
    assert note({scope: trials[-1]}, [Outcome(scope=scope, won=True)], NOW) == {}


def test_a_launch_that_ec2_accepts_after_it_ended_one_is_won_once_its_machine_runs():
    scope = TrialOf.OFFERING.scope("cpu", an_offering().key)
    trials = note({}, [Outcome(scope=scope, why="EC2 answered VolumeLimitExceeded", launch="l-1", pauses=(300.0,))], NOW)
    accepted = note(trials, [Outcome(scope=scope, won=True)], NOW + 400.0)
    assert accepted == {scope: replace(trials[scope], until_at=NOW + 460.0)}
    assert note(accepted, [Outcome(scope=scope, won=True, name="i-1")], NOW + 500.0) == {}


def test_an_agent_that_does_not_get_its_labels_back_is_waited_for_until_that_has_failed_thrice():
    """`why` said "at once" of it for 25 minutes, and no other agent was launched."""
    record, node = an_agent()
    without = replace(node, labels=frozenset({HELD_LABEL, "autoscaler-fleet-f"}))

    def launched(is_closed):
        fails = a_trial(600.0, is_closed=is_closed, why="UnansweredError")
        memory = a_memory(windows=an_empty_window(), trials={TrialOf.STEP.scope("relabel main/cpu-1"): fails})
        agent = replace(record, labels=("cpu", "autoscaler-fleet-f")), without
        return launches(decide_up(agent, items=(an_item(label="cpu", waiting_seconds=900.0),), memory=memory))

    assert launched(is_closed=False) == []
    assert [pool for pool, _, _ in launched(is_closed=True)] == ["cpu"]


@pytest.mark.parametrize(("is_set_aside", "pools"), [(True, ["cpu"]), (False, [])])
def test_an_agent_that_a_person_took_offline_is_not_the_one_that_is_tried(is_set_aside, pools):
    """It was adopted after the state was lost, and nobody saw it connect: no other agent of its pool came for as long as it stayed."""
    record, node = an_agent()
    away = replace(node, offline=True, temporarily_offline=is_set_aside, cause=OfflineCause.PERSON if is_set_aside else OfflineCause.LOST)
    adopted = replace(record, launched_at=NOW - 9000.0, registered_at=NOW - 60.0, rotated_at=NOW - 60.0)
    broken = boots_failed(-60.0, failed_at=NOW - 3600.0, since_at=NOW - 7200.0)
    memory = a_memory(windows=an_empty_window(), trials={BOOT: broken})
    plan = decide_up((adopted, away), items=(an_item(label="cpu", waiting_seconds=900.0),), memory=memory)
    assert [pool for pool, _, _ in launches(plan)] == pools
