"""Two autoscalers on one controller, and two controllers behind one address: mistakes, which are named with both names."""

import pytest

from support.builders import a_pool
from support.timeline import Day
from support.worlds import a_world_node, in_memory

MADE = "Agent cpu-9 of fleet {fleet}, launched by the autoscaler on instance i-9{home}."
BEACON = "autoscaler-beacon-other~cpu"


def a_day(**how):
    return Day(in_memory(a_pool("cpu", idle_seconds=300.0)), **how).minutes(4)


def sent(day):
    return [message.subject for message in day.fleet.notifier.sent]


def said_of(day, subject):
    return day.why(subject)


def status(day):
    return day.status()


@pytest.mark.parametrize(
    ("node", "other"),
    [
        (a_world_node("cpu-9", "cpu", description=MADE.format(fleet="other", home="")), "other"),
        (
            a_world_node("cpu-9", "cpu", description=MADE.format(fleet="f", home=" in 210987654321/eu-west-1")),
            "f in 210987654321/eu-west-1",
        ),
        (a_world_node(BEACON, "cpu"), "other"),
        (a_world_node("slot-1", "cpu", "autoscaler-fleet-other"), "other"),
    ],
    ids=["another name", "the same name elsewhere", "a beacon", "a static node"],
)
def test_two_autoscalers_on_one_controller_are_named_once_and_over_once_the_other_has_gone(node, other):
    day = a_day()
    day.jenkins.add_node(node)
    day.minutes(3)
    [message] = day.fleet.notifier.sent
    assert message.subject == f"[f] two autoscalers on main: f and {other}"[:100]
    assert f"and fleet {other}.\n" in message.text
    assert node.name in message.text
    assert "Both serve cpu, and both launch for a job that asks for it." in message.text
    assert [line for line in said_of(day, "cpu") if line.startswith("two autoscalers act on main: fleet f")]
    day.jenkins.delete_node(node.name)
    day.minutes(62)
    assert sent(day)[1:] == [f"[f] over: two autoscalers on main: f and {other}"[:100]]


def test_nodes_of_ours_and_of_people_are_no_other_autoscaler():
    day = a_day()
    day.jenkins.add_node(
        a_world_node("cpu-9", "cpu", description="Agent cpu-8 of fleet other, launched by the autoscaler on instance i-9.")
    )
    day.jenkins.add_node(a_world_node("my-box", "cpu", description="a copy of autoscaler-fleet-other"))
    day.queue(2)
    day.minutes(12)
    assert sent(day) == []


def test_the_beacons_and_agents_of_one_other_autoscaler_are_one_message():
    day = a_day()
    day.jenkins.add_node(a_world_node(BEACON, "cpu", "autoscaler-fleet-other"))
    day.jenkins.add_node(a_world_node("cpu-9", "cpu", description=MADE.format(fleet="other", home=" in 210987654321/eu-west-1")))
    day.minutes(3)
    assert len(sent(day)) == 1


@pytest.mark.parametrize("way", ["each look", "each request"])
def test_two_controllers_behind_one_address_are_named(monkeypatch, way):
    day = a_day(by_adapters=way == "each request")
    asked = [0]

    def session(jenkins):
        asked[0] += 1
        turn = asked[0] if way == "each request" else round(day.world.timeline.now / 60)
        return ("aaaa", "bbbb")[turn % 2]

    monkeypatch.setattr(type(day.jenkins), "session", property(session))
    day.minutes(5)
    assert "[f] two controllers behind the address of main: aaaa and bbbb" in sent(day)
    assert [line for line in status(day).problems.values() if "their sessions are aaaa and bbbb" in line]
    monkeypatch.setattr(type(day.jenkins), "session", property(lambda _: "aaaa"))
    day.minutes(90)
    assert sent(day)[-1].startswith("[f] over: two controllers")


def test_restarts_are_no_second_controller(monkeypatch):
    day = a_day()
    for _ in range(4):
        day.jenkins.restart()
        day.minutes(4)
    assert sent(day) == []


def test_another_autoscaler_whose_agents_go_while_its_beacon_stays_is_not_over():
    """It was told under another name, and as over, whenever its agents went."""
    day = a_day()
    agent = a_world_node("cpu-9", "cpu", description=MADE.format(fleet="other", home=" in 210987654321/eu-west-1"))
    day.jenkins.add_node(a_world_node(BEACON, "cpu", "autoscaler-fleet-other"))
    day.minutes(3)
    for _ in range(3):
        day.jenkins.add_node(agent)
        day.minutes(3)
        day.jenkins.delete_node(agent.name)
        day.minutes(3)
    assert sent(day) == ["[f] two autoscalers on main: f and other"]
    day.jenkins.delete_node(BEACON)
    day.minutes(62)
    assert sent(day)[1:] == ["[f] over: two autoscalers on main: f and other"]


@pytest.mark.parametrize(
    ("node", "there", "gone", "other"),
    [
        (a_world_node(BEACON, "cpu"), 6, 2, "other"),
        (
            a_world_node("cpu-9", "cpu", description=MADE.format(fleet="f", home=" in 210987654321/eu-west-1")),
            3,
            30,
            "f in 210987654321/eu-west-1",
        ),
    ],
    ids=["a script deletes its beacons, which it makes again", "it has our name, so only its agents show it, which come with each wave"],
)
def test_another_autoscaler_whose_nodes_come_and_go_is_told_once(node, there, gone, other):
    day = a_day()
    for _ in range(4):
        day.jenkins.add_node(node)
        day.minutes(there)
        day.jenkins.delete_node(node.name)
        day.minutes(gone)
    assert sent(day) == [f"[f] two autoscalers on main: f and {other}"]
