"""Two stacks on one controller: who serves a label twice is told so, and nobody harms the builds and nodes of the other."""

from dataclasses import replace

import pytest

from autoscaler.control import operate
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_fleet, a_pool
from support.two_fleets import TwoFleets

SOON = {"queue_maturity_seconds": 0.0, "idle_seconds": 600.0, "max_agents": 6}
HERE, THERE = "210987654321/us-west-2", "210987654321/eu-west-1"


def two_stacks(name="east", label="cpu", homes=(HERE, THERE)):
    other = replace(a_fleet(a_pool(label, **SOON)), name=name, home=homes[1])
    return TwoFleets(a_pool("cpu", **SOON), other=other, home=homes[0]).minutes(4)


def submit(two, *labels):
    return [two.jenkins.submit(f"{label}-{number}", label, 3600.0, kind=Kind.PIPELINE) for label in labels for number in range(4)]


def test_two_stacks_with_one_label_are_told_once_with_the_label_and_what_to_do():
    two = two_stacks()
    builds = submit(two, "cpu")
    two.minutes(150)
    assert two.launched() == [4, 4]
    assert two.sent() == [
        [f"[f] two autoscalers on main: f and east in {THERE}"],
        [f"[east] two autoscalers on main: east and f in {HERE}"],
    ]
    [message] = two.first.notifier.sent
    assert "Both serve cpu, and both launch for a job that asks for it." in message.text
    assert "Give their pools different labels, or take the controller out of one of the two fleet files." in message.text
    status = operate.status(two.first.ports, two.first.fleet, two.first.invocation())
    assert [line for line in status.problems.values() if "fleet east" in line and "labels of both: cpu" in line]
    assert {build.ended for build in builds} == {Ended.FINISHED}


def test_two_stacks_with_labels_of_their_own_are_no_mistake():
    two = two_stacks(label="east")
    builds = submit(two, "cpu", "east")
    two.minutes(150)
    assert two.launched() == [4, 4]
    assert two.sent() == [[], []]
    assert {build.ended for build in builds} == {Ended.FINISHED}


@pytest.mark.parametrize("homes", [(HERE, THERE), ("", "")], ids=["two regions", "nobody knows the regions"])
def test_two_stacks_of_one_name_are_told_and_keep_off_each_others_builds(homes):
    two = two_stacks("f", homes=homes)
    builds = submit(two, "cpu")
    two.minutes(45)
    assert [subjects[0].startswith("[f] two autoscalers on main: f and f") for subjects in two.sent()] == [True, True]
    assert "another FleetName" in two.first.notifier.sent[0].text
    two.minutes(150)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert not [build for build in builds if build.killed_by]


def test_two_stacks_of_one_name_are_not_over_while_the_other_region_has_no_agent():
    two = two_stacks("f")
    submit(two, "cpu")
    two.minutes(200)
    assert two.launched() == [4, 4]
    assert "[f] two autoscalers on main: f and f in 210987654321/us-west-2" in two.sent()[1]
    assert not [subject for subject in two.sent()[1] if "over" in subject]


def test_nodes_of_one_name_in_another_region_are_nobodys_orphans():
    """EC2 of this region does not know their instances, and they are offline while they boot, or for hours."""
    two = two_stacks("f", homes=("", ""))
    submit(two, "cpu")
    two.minutes(20)
    theirs = [
        name for name in two.jenkins.nodes if name.removeprefix("cpu-") in {i.removeprefix("i-") for i in two.second.world.ec2.instances}
    ]
    assert theirs
    for name in theirs:
        two.jenkins.disconnect(name)
    two.minutes(90)
    deleted = [step for report in two.first.reports for step in report.results if getattr(step.step, "node", "") in theirs]
    assert deleted == []
