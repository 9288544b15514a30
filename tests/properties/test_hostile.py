"""Worlds that are unkind in several ways at once: jobs that wait are served or people are told, and nothing is paid for in vain.

The commit draws the worlds, from the switches under which all properties hold so far (`support.hostile.known`). `make soak` draws from all.
A planted bug that one of the `WORLDS` finds names the test by that world's name.
"""

from dataclasses import replace

import pytest

from support.hostile.claims import claim_of
from support.hostile.judge import judge
from support.hostile.known import NOT_YET
from support.hostile.life import LATER, SWITCHES, Life, switches_of
from support.hostile.soak import live, new_in, told
from support.sampling import some

_SEEDS = 400
_WORLDS = 4
_KIND = sorted(SWITCHES.keys() - {switch for switch, _ in NOT_YET})
# Worlds with names, of which each run lives half: a seed and the switches.
WORLDS = {
    "nothing is unkind": (1, ()),
    "nothing is unkind, and jobs exclude labels": (4, ()),
    "agents take nothing": (4, ("suspended",)),
    "a node without executors has gone, and Jenkins is slow": (1800251, ("hosts-leave", "no-executors", "slow-hand-outs")),
    "a pass is cut off while its clock is two hours ahead": (
        1800324,
        ("clock-skewed", "label-is-ignored", "late-listeners", "money-spent", "queue-reordered", "state-throttled"),
    ),
    "a stage that free executors refuse follows another job": (2400023, ("stages-on-two-labels",)),
    "stops hang": (4, ("stops-hang",)),
    "a controller is in quiet mode": (1, ("quiet-mode",)),
    "the table is restored with records of what EC2 has forgotten": (3100356, ("share-leaves", "state-restored")),
    "a disk monitor marks the agent that a job was promised": (920314, ("marked-by-disk-monitor",)),
    "light jobs take the agent that boots for a heavy one behind them": (920717, ()),
    "a job waits for the hours of the next day": (1300143, ("features-leave", "reserved", "zombies")),
    "a monitor finds no agent to mark for ten minutes": (1300200, ("agents-flap", "late-listeners", "marked-by-plugin")),
    "one of two boots hangs, and six hang one after another": (1300377, ("boots-hang", "controller-leaves-file")),
    "two boots fail, and all that the jobs behind them need": (1700023, ("never-connects",)),
    "jobs that a throttle refused take the agents that boot for a younger one": (3, ("throttled-over-folders",)),
}
# By switch: a seed with which it takes an agent away, or out of use.
_TAKEN_AWAY = {
    "marked-by-disk-monitor": 1,
    "marked-by-plugin": 1,
    "marked-by-person": 1,
    "dies-under-pipelines": 7,
    "lost-builds": 6,
    "instance-ended-by-hand": 3,
    "reserved": 8,
    "another-cloud": 1,
    "quicker-cloud": 2,
    "reboots-after-connect": 1,
    "hosts-leave": 1,
}
# A seed with which a switch does anything.
_BITES = {
    "gives-up-in-queue": 1,
    "quicker-cloud": 2,
    "reboots-after-connect": 2,
    "slow-hand-outs": 1,
    "stages-on-two-labels": 2,
    "throttled-over-folders": 2,
    "zone-without-network": 1,
}
_NOON = 1_800_000_000.0


@pytest.mark.parametrize("seed", some(map(str, range(_SEEDS)), most=_WORLDS))
def test_the_properties_hold_in_worlds_drawn_by_the_commit(seed, record_property):
    lived = live(int(seed), switches_of(int(seed), _KIND))
    assert new_in(lived) == [], "\n".join(told(lived))
    record_property("counted", ("obligations in hostile worlds", lived.verdict.obligations.total()))


@pytest.mark.parametrize("name", WORLDS)
def test_the_properties_hold_where(name):
    lived = live(*WORLDS[name])
    assert new_in(lived) == [], "\n".join(told(lived))


def test_every_switch_can_be_drawn_and_lasts_no_longer_than_the_chaos_or_for_ever():
    for seed in range(5):
        life = Life(seed, SWITCHES)
        assert [one.switch for one in life.unkind] == sorted(SWITCHES)
        assert [str(one) for one in life.unkind if life.drawn.calm_at < one.until_at < life.drawn.end_at] == []


def test_a_seed_goes_on_drawing_the_switches_that_it_drew_before_there_were_later_ones():
    before = {"builds-end-late", "ec2-shows-nothing", "graphs-unread", "instance-ended-by-hand", "restarts"}
    assert {*switches_of(6)} - LATER == before == {*switches_of(6, SWITCHES.keys() - LATER)}


@pytest.mark.parametrize("switch", some(_BITES, most=2))
def test_a_switch_does_something(switch):
    assert Life(_BITES[switch], (switch,)).live().bit == {switch}


@pytest.mark.parametrize("switch", some(_TAKEN_AWAY, most=4))
def test_an_agent_that_is_taken_away_is_an_event_that_no_promise_made_before_foresees(switch):
    life = Life(_TAKEN_AWAY[switch], (switch,)).live()
    foreseen = {arrival.at for arrival in life.drawn.arrivals} | {life.unkind[0].from_at, life.unkind[0].until_at}
    assert set(life.notes.events) - foreseen


@pytest.mark.parametrize(("function", "broken"), [("scale_up", {"C1", "C2"}), ("scale_down", {"D"})])
def test_a_function_that_never_runs_is_found(function, broken):
    life = Life(4, ())
    life.functions = tuple(each for each in life.functions if each.__name__ != function)
    assert broken <= set(judge(life.live()).properties)


def test_a_node_deleted_under_its_build_is_found():
    life = Life(1, ())
    jenkins = life.world.controllers["main"]

    def delete(build):
        life.world.timeline.after(20.0, lambda: jenkins.nodes.get(build.node) and jenkins.delete_node(build.node))

    life.jenkins["main"].begun.append(delete)
    assert "A" in judge(life.live()).properties


def test_a_message_about_failed_boots_names_those_that_fail_later_until_it_is_over():
    life = Life(1700361, ("boots-hang", "reboots-after-connect")).live()
    assert judge(life).properties == []
    [(told_at, message)] = [(when, one) for when, one in life.fleet.notifier.timed if one.about == "breaker/gpu"]
    [hang] = [one for one in life.unkind if one.switch == "boots-hang"]
    assert told_at < hang.from_at
    life.fleet.notifier.timed.append((hang.from_at - 1.0, replace(message, subject="[f] over: agents of gpu do not boot")))
    assert judge(life).properties == ["C3"]


@pytest.mark.parametrize(
    ("lines", "seconds", "has_cause"),
    [
        (["x waits", "it would start at once on an executor of cpu; a new agent takes 3 min to boot"], 0.0, True),
        (["it would start in 3 min 20 s on an executor of cpu; a new agent takes 3 min to boot"], 200.0, True),
        (["it starts at 08:10 UTC"], 600.0, True),
        (["it starts by 2027-01-15 09:00 UTC, when the breaker closes"], 3600.0, True),
        (["no running or booting agent can take it"], None, False),
        (["no running or booting agent can take it", "not done: no-capacity: SomethingNew"], None, True),
        ([], None, False),
    ],
)
def test_a_promise_is_read(lines, seconds, has_cause):
    claim = claim_of(lines, _NOON)
    assert (claim.seconds, claim.has_cause) == (seconds, has_cause)
