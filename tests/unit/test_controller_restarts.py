"""Sessions of a controller, and which nodes are doubted after a restart."""

from dataclasses import replace

import pytest

from autoscaler.domain.situation.looks import in_grace, is_recovering, next_session, runs_to_ask_for
from support.builders import NOW, a_build, a_node, a_session, a_view, an_item, cordoned

RUN, OTHER = "job/job/1", "job/other/7"
TIMEOUT = 7200.0


def life_after(life, *nodes, ended=(), seconds=600.0, **facts):
    return next_session(life, a_view(*nodes, **facts), frozenset(ended), NOW + seconds, TIMEOUT)


def restarted(**suspects):
    return a_session(session="s1", since_at=NOW, restarted=True, suspects={name.replace("_", "-"): runs for name, runs in suspects.items()})


def busy(name, *runs):
    return a_node(name, builds=tuple(a_build(key=f"{name}/{number}", run=run) for number, run in enumerate(runs)))


def test_a_controller_never_seen_before_is_in_grace_but_not_recovering():
    life = next_session(None, a_view(), (), NOW, TIMEOUT)
    assert in_grace(life, NOW)
    assert not is_recovering(life, NOW)
    assert not in_grace(life, NOW + 120)


def test_a_new_session_is_a_restart_and_doubts_who_was_busy():
    before = a_session(session="s0", since_at=0.0, busy={"k-1": (RUN,), "deleted-since": (RUN,)}, marked=("k-1",))
    life = life_after(before, cordoned(a_node("k-1")), seconds=0.0)
    assert (life.session, life.suspects["k-1"], life.restarted) == ("s1", (RUN,), True)
    assert "deleted-since" not in life.suspects
    assert is_recovering(life, NOW + 119)


def test_what_ran_when_last_seen_is_remembered():
    life = life_after(restarted(), busy("k-1", RUN, OTHER), cordoned(a_node("k-2")), seconds=60.0)
    assert (life.busy, life.marked) == ({"k-1": (RUN, OTHER)}, ("k-2",))


def test_a_build_may_have_begun_after_the_last_look_before_a_restart_except_on_what_was_marked_offline():
    before = a_session(session="s0", since_at=0.0, marked=("marked",))
    life = life_after(before, a_node("idle"), cordoned(a_node("marked")), seconds=0.0)
    assert "idle" in life.suspects
    assert "marked" not in life.suspects


def test_looking_idle_clears_no_suspect():
    life = restarted(k_1=(RUN,))
    for seconds in range(60, 7200, 60):
        life = life_after(life, a_node("k-1"), seconds=float(seconds))
    assert life.suspects == {"k-1": (RUN,)}


@pytest.mark.parametrize(
    ("node", "ended"), [(busy("k-1", RUN), ()), (a_node("k-1"), (RUN,))], ids=["its run is seen there again", "its run has ended"]
)
def test_a_suspect_is_cleared_when(node, ended):
    assert life_after(restarted(k_1=(RUN,)), node, ended=ended).suspects == {}


def test_another_build_on_a_suspect_clears_nothing():
    assert life_after(restarted(k_1=(RUN,)), busy("k-1", OTHER)).suspects == {"k-1": (RUN,)}


def test_a_run_that_had_two_executors_must_be_seen_on_both():
    life = life_after(restarted(k_1=(RUN, RUN)), busy("k-1", RUN))
    assert life.suspects == {"k-1": (RUN,)}
    assert life_after(life, busy("k-1", RUN, RUN)).suspects == {}


def test_its_run_on_another_node_clears_nothing():
    life = life_after(restarted(k_1=(RUN,)), a_node("k-1"), busy("k-2", RUN))
    assert life.suspects == {"k-1": (RUN,)}


@pytest.mark.parametrize(("run", "seconds"), [(RUN, TIMEOUT), ("", 1800.0)], ids=["a named run", "a run nobody saw"])
def test_nothing_is_doubted_for_ever(run, seconds):
    life = restarted(k_1=(run,))
    assert life_after(life, a_node("k-1"), seconds=seconds - 1.0).suspects == {"k-1": (run,)}
    assert life_after(life, a_node("k-1"), seconds=seconds).suspects == {}


def test_a_second_restart_doubts_what_the_first_one_left():
    life = next_session(restarted(k_1=(RUN,)), a_view(a_node("k-1"), session="s2"), (), NOW + 60, TIMEOUT)
    assert RUN in life.suspects["k-1"]
    assert life.since_at == NOW + 60


def test_a_controller_met_for_the_first_time_may_have_restarted_unseen():
    assert life_after(None, a_node("k-1"), cordoned(a_node("k-2"))).suspects.keys() >= {"k-1", "k-2"}


def test_only_runs_that_nothing_shows_are_asked_for():
    life = restarted(k_1=(RUN,), k_2=(OTHER,), k_3=("job/hidden/3", ""))
    view = a_view(busy("k-1", RUN), a_node("k-2"), a_node("k-3"), items=(an_item(1, run=OTHER),))
    assert runs_to_ask_for(life, view) == ("job/hidden/3",)
    assert runs_to_ask_for(life, replace(view, session="s2")) == ()


def test_an_incomplete_view_changes_nothing():
    life = a_session(since_at=NOW)
    assert next_session(life, replace(a_view(), problem="503", session=""), (), NOW, TIMEOUT) is life


def test_a_restart_remembers_who_is_busy_in_the_new_session():
    before = a_session(session="s0", since_at=0.0)
    busy = a_node("k-1", builds=(a_build(),))
    assert next_session(before, a_view(busy), (), NOW, 7200.0).busy == {"k-1": ("job/job/1",)}
