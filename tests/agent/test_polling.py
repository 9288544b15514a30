"""The Linux agent asks again while it is connected, and is connected to exactly the controllers that it is told."""

import json

import pytest

from agent.conftest import SECRET
from support import processes

GONE = 410, {"message": "the agent was given up"}
# A user whom every Debian has, and nobody else here uses: its processes are killed when its controller leaves.
SHARED = "games"


def told(around, *controllers, poll_seconds=1, **facts):
    """An answer that lists these controllers."""
    connections = [
        {"controller": name, "url": f"{around.url}/jenkins/", "name": f"{name}-1", "secret": SECRET, "web_socket": True} | facts
        for name in controllers
    ]
    return 200, {"node": "cpu-1", "connections": connections, "poll_seconds": poll_seconds}


def names(around):
    """The nodes as which Java was started, one after another."""
    return [call["arguments"].split("-name ")[1].split()[0] for call in around.java_calls()]


def test_it_asks_again_while_it_is_connected_and_says_who_it_is(around):
    around.builds_run("sleep 5")
    around.answers = [told(around, "main")]
    around.run(seconds=4.5)
    assert len(around.asked) >= 3
    assert names(around) == ["main-1"]
    first = json.loads(around.bodies[0])
    assert (first["agent_version"], len(first["boot_id"])) == ("4", 36)


def test_without_a_time_to_ask_again_it_asks_when_the_connection_has_ended(around):
    around.builds_run("sleep 3")
    around.answers = [told(around, "main", poll_seconds=0), GONE]
    around.run(seconds=8)
    assert (len(around.asked), around.powered_off) == (2, True)


def test_told_of_another_controller_it_leaves_the_first_one_and_connects_there(around):
    around.builds_run("sleep 60")
    around.answers = [told(around, "main"), told(around, "main"), told(around, "other")]
    said = around.run(seconds=6)
    assert names(around) == ["main-1", "other-1"]
    assert around.directory.joinpath("ended").read_text(encoding="utf-8").split() == ["main-1"]
    assert "powering off" not in said


def test_a_controller_that_has_another_address_by_now_ends_no_build_that_runs(around):
    """The address is changed in the fleet file while a build runs: the same node of the same controller is no other one."""
    around.builds_run("sleep 60")
    moved = told(around, "main", url=f"{around.url}/moved/")
    around.answers = [told(around, "main"), moved]
    around.run(seconds=4)
    assert len(around.asked) >= 3
    assert (names(around), around.directory.joinpath("ended").read_text(encoding="utf-8")) == (["main-1"], "")


def test_an_answer_that_is_cut_short_or_makes_no_sense_ends_no_build_that_runs(around):
    """Were the service to fall over, systemd would end all that it has started."""
    around.builds_run("sleep 60")
    nonsense = 200, told(around, "main")[1] | {"poll_seconds": {"a": 1}}
    around.answers = [told(around, "main"), (200, {"CutShort": True}), (503, {"CutShort": True}), nonsense]
    said = around.run(seconds=5)
    assert len(around.asked) >= 4
    assert (names(around), around.directory.joinpath("ended").read_text(encoding="utf-8")) == (["main-1"], "")
    assert "Traceback" not in said


def test_it_is_connected_to_several_controllers_at_once(around):
    around.builds_run("sleep 60")
    around.answers = [told(around, "main", "other")]
    around.run(seconds=4)
    assert sorted(names(around)) == ["main-1", "other-1"]


def test_one_of_several_that_ends_is_connected_again_and_the_other_one_stays(around):
    around.builds_run('case "$*" in *main-1*) sleep 1 ;; *) sleep 60 ;; esac')
    around.answers = [told(around, "main", "other", poll_seconds=60)]
    around.run(seconds=9)
    assert sorted(names(around)[:2]) == ["main-1", "other-1"]
    assert set(names(around)[2:]) == {"main-1"}
    assert len(names(around)) <= 5  # not in a circle


def test_while_it_is_connected_nothing_but_a_good_answer_changes_anything(around):
    around.builds_run("sleep 4")
    around.answers = [
        told(around, "main"),
        GONE,
        (403, {"message": "no"}),
        (503, {}),
        (200, {"message": "log in"}),
        told(around, "main"),
        GONE,
    ]
    said = around.run(seconds=12)
    assert names(around)[0] == "main-1"
    assert not around.directory.joinpath("ended").read_text(encoding="utf-8")  # by nobody but itself
    assert "asked while connected, and told 410: the agent was given up" in said


def test_once_java_says_something_it_asks_what_is_wanted_long_before_it_is_time(around):
    around.builds_run("sleep 1; echo 'the connection was lost'; sleep 60")
    around.answers = [told(around, "main", poll_seconds=600), told(around, "other", poll_seconds=600)]
    around.run(seconds=6, NEWS_SECONDS="2")
    assert names(around) == ["main-1", "other-1"]


@pytest.mark.needs("root")
def test_of_a_controller_that_shared_the_machine_nothing_is_left(around):
    work = around.directory / "games"
    around.builds_run(f"touch {work}/workspace; (setsid sleep 300 &); sleep 60")
    shared = told(around, "main", user=SHARED, remote_dir=str(work))
    around.answers = [shared, shared, told(around, "other")]
    said = around.run(seconds=6)
    assert names(around) == ["main-1", "other-1"]
    assert "what main left is removed" in said
    assert not work.exists()
    assert processes.of_user(SHARED) == []


@pytest.mark.needs("root")
def test_in_a_new_life_it_begins_anew_on_the_same_controller(around):
    """The autoscaler handed a host back: nothing of what was there before stays."""
    work = around.directory / "games"
    around.builds_run(f"touch {work}/workspace; sleep 60")
    shared = {"user": SHARED, "remote_dir": str(work)}
    around.answers = [
        told(around, "main", life=0, **shared),
        told(around, "main", life=0, **shared),
        told(around, "main", life=1, **shared),
    ]
    said = around.run(seconds=6)
    assert names(around) == ["main-1", "main-1"]
    assert "what main left is removed" in said
    assert json.loads(around.bodies[-1])["connected"] == ["main/main-1/1"]
