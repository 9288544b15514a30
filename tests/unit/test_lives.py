"""The lives of a controller, and who is doubted after a restart."""

from dataclasses import replace

from autoscaler.domain.lives import in_grace, is_recovering, next_life
from autoscaler.domain.memory import Life
from support.builders import NOW, a_build, a_node, a_view, cordoned

NOBODY: frozenset[str] = frozenset()


def test_a_controller_never_seen_before_is_in_grace_but_not_recovering():
    life = next_life(None, a_view(), NOBODY, NOW)
    assert in_grace(life, NOW)
    assert not is_recovering(life, NOW)
    assert not in_grace(life, NOW + 120)


def test_a_new_session_is_a_restart_and_doubts_who_was_busy():
    before = Life(session="s0", since_at=0.0, busy=("k-1", "deleted-since"))
    life = next_life(before, a_view(cordoned(a_node("k-1"))), NOBODY, NOW)
    assert (life.session, life.suspects, life.restarted) == ("s1", ("k-1",), True)
    assert is_recovering(life, NOW + 119)


def test_a_suspect_is_cleared_when_seen_connected_and_idle_in_two_passes():
    life = Life(session="s1", since_at=NOW, restarted=True, suspects=("k-1",))
    once = next_life(life, a_view(a_node("k-1")), NOBODY, NOW)
    twice = next_life(once, a_view(a_node("k-1")), NOBODY, NOW)
    assert (once.suspects, twice.suspects) == (("k-1",), ())


def test_a_suspect_is_not_cleared_while_pinned_or_offline():
    life = Life(session="s1", since_at=NOW, restarted=True, suspects=("k-1",), cleared_once=("k-1",))
    pinned = next_life(life, a_view(a_node("k-1")), frozenset({"k-1"}), NOW)
    offline = next_life(life, a_view(cordoned(a_node("k-1"))), NOBODY, NOW)
    assert pinned.suspects == offline.suspects == ("k-1",)


def test_a_suspect_seen_at_work_is_no_riddle_any_more():
    life = Life(session="s1", since_at=NOW, restarted=True, suspects=("k-1",))
    assert next_life(life, a_view(a_node("k-1", builds=(a_build(),))), NOBODY, NOW).suspects == ()


def test_an_incomplete_view_changes_nothing():
    life = Life(session="s1", since_at=NOW)
    assert next_life(life, replace(a_view(), problem="503", session=""), NOBODY, NOW) is life
