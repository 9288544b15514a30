"""Labels that another cloud serves: no message below the age of one item, and none at all, nor demand, once they are ignored."""

from dataclasses import replace

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.builders import a_fleet, a_pool
from support.deployed import essential_thresholds
from support.timeline import Day
from support.worlds import in_memory


def a_day(*ignored):
    pool = a_pool("cpu", idle_seconds=600.0, max_wait_seconds=1800.0)
    here = in_memory(pool, thresholds=essential_thresholds())
    here.fleet = replace(here.fleet, ignored_labels=ignored)
    return Day(here).minutes(2)


def another_cloud_serves(day, minutes, number, label="windows"):
    day.jenkins.submit("win-build", label, 120.0)
    node = Node(name=f"other-{number}", labels=(label,), executors=1, exclusive=True, description="", remote_dir="C:", connected=True)

    def up():
        day.jenkins.add_node(node)
        day.jenkins.schedule()
        day.world.timeline.after(300, lambda: day.jenkins.delete_node(node.name))

    day.world.timeline.after(60 * minutes, up)


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def test_jobs_that_another_cloud_serves_within_minutes_are_not_told():
    """A message and its over came for each."""
    day = a_day()
    for number in range(6):
        another_cloud_serves(day, 8, number)
        day.minutes(20)
    assert subjects(day) == []


def test_jobs_that_follow_one_another_are_no_item_that_waits_long():
    day = a_day()
    for number in range(8):
        another_cloud_serves(day, 12, number)
        day.minutes(7)  # one of them waits at each moment
    assert subjects(day) == []


def test_an_item_that_waits_too_long_is_told_once_with_those_after_it():
    day = a_day()
    for number in range(3):
        another_cloud_serves(day, 36, number)
        day.minutes(50)
    assert subjects(day) == ["[f] jobs on main wait: no pool serves windows"]
    day.minutes(70)
    assert subjects(day)[1:] == ["[f] over: jobs on main wait: no pool serves windows"]


@pytest.mark.parametrize("pattern", ["windows", "win*"])
def test_an_ignored_label_is_never_told_whatever_its_age(pattern):
    day = a_day(pattern)
    day.jenkins.submit("win-build", "windows", 120.0)
    day.minutes(60)
    assert subjects(day) == []
    status = day.status()
    assert status.unservable == 0
    lines = day.why("win-build")
    assert [line for line in lines if "another cloud serves windows (ignore_labels)" in line], lines


def test_an_ignored_label_is_no_demand_even_if_a_pool_has_it():
    day = a_day("cpu")
    day.queue(2)
    day.minutes(60)
    assert (day.agents(), subjects(day)) == (0, [])


def test_a_pattern_knows_no_other_signs_than_the_star():
    fleet = replace(a_fleet(a_pool("cpu")), ignored_labels=("w?n", "[ab]", "mac-*"))
    assert [label for label in ("w?n", "win", "a", "[ab]", "mac-1", "mac", None) if fleet.ignores(label)] == ["w?n", "[ab]", "mac-1"]


def busy_nodes_of_another_cloud(day, label, *names):
    for name in names:
        day.jenkins.add_node(Node(name=name, labels=(label,), executors=1, exclusive=True, description="", remote_dir="/", connected=True))
        day.jenkins.submit(f"elsewhere/on-{name}", label, 7200.0)
    day.minutes(2)
    day.jenkins.submit("elsewhere/second", label, 60.0, kind=Kind.PIPELINE)


@pytest.mark.parametrize(("label", "names"), [("mac-13", ["mac-1"]), ("windows", ["win-1", "win-2"]), ("cpu", ["other-1", "other-2"])])
def test_an_ignored_label_is_neither_told_nor_demand_while_all_nodes_that_have_it_are_busy(label, names):
    """Jenkins then says that the job waits for mac-1, if no other node has the label, or for "windows", as if that was a node."""
    day = a_day("mac-*", "windows", "cpu")
    busy_nodes_of_another_cloud(day, label, *names)
    day.minutes(60)
    assert (len(day.world.ec2.instances), subjects(day)) == (0, [])
    lines = day.why("elsewhere/second")
    assert [line for line in lines if f"another cloud serves {label} (ignore_labels)" in line], lines


def test_a_node_of_its_own_label_that_is_not_ignored_is_told_as_before():
    day = a_day("mac-*")
    busy_nodes_of_another_cloud(day, "licensed", "mac-1")
    day.minutes(60)
    assert [subject for subject in subjects(day) if "mac-1 alone can take them" in subject]
