"""What the doctor finds, tried inside the functions: each thing that can be missing is named, and nothing is left behind."""

import pytest

from support.deployed import deployed, event

PERMISSIONS = {
    "hudson.model.Computer.Create": {"Agent/Create"},
    "hudson.model.Computer.Disconnect": {"Agent/Disconnect (cordon)"},
    "hudson.model.Computer.Connect": {"Agent/Connect (uncordon)", "Agent/Connect (an agent's secret)"},
    "hudson.model.Computer.Delete": {"Agent/Delete"},
}


@pytest.fixture
def fleet():
    with deployed() as stood:
        stood.call("scale_up", event("tick"))
        stood.world.controllers["main"].submit("job", "utility", 600.0)
        stood.pass_minutes(5)
        yield stood


def findings(fleet, **facts):
    return fleet.call("operate", event("doctor") | facts)["findings"]


def wrong(fleet):
    return {(finding["about"], finding["what"]): finding["detail"] for finding in findings(fleet) if finding["fine"] is False}


def test_where_all_is_well_nothing_is_wrong_and_nothing_is_left_behind(fleet):
    before = set(fleet.world.controllers["main"].nodes)
    assert wrong(fleet) == {}
    assert set(fleet.world.controllers["main"].nodes) == before
    assert {finding["about"] for finding in findings(fleet)} >= {"main", "aws", "utility", "mxnetlinux-gpu", "publish_metrics"}


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_a_permission_that_is_missing_is_named(fleet, permission):
    face = fleet.server.jenkins["main"]
    face.lacks = {permission}
    said = wrong(fleet)
    assert {what for _, what in said} == PERMISSIONS[permission]
    assert all(f"lacks {permission}" in detail for detail in said.values())
    face.lacks = set()
    assert wrong(fleet) == {}  # a node that could not be deleted before is deleted now
    assert not any(name.startswith("autoscaler-doctor") for name in fleet.world.controllers["main"].nodes)


def test_a_controller_that_is_down_is_said_once(fleet):
    fleet.world.controllers["main"].up = "starting"
    assert [key for key in wrong(fleet) if key[0] == "main"] == [("main", "answers, Overall/Read")]


def test_what_ec2_does_not_have_is_named(fleet):
    fleet.world.ec2.templates.discard("mxnetlinux-gpu")
    fleet.world.ec2.withdrawn.add("g3.8xlarge")
    said = wrong(fleet)
    assert said["mxnetlinux-gpu", "launch template"] == "there is no mxnetlinux-gpu"
    assert said["mxnetlinux-gpu", "subnets and instance types"] == "g3.8xlarge cannot be had in this region"


def test_functions_that_do_not_run_are_said(fleet):
    fleet.world.move_to(fleet.world.timeline.now + 3600)
    assert {about for about, _ in wrong(fleet)} == {"publish_metrics", "scale_down"}


def test_a_dry_run_makes_no_node(fleet):
    assert not any(finding["what"].startswith("Agent/") for finding in findings(fleet, dry_run=True))
