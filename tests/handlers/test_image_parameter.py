"""Images that a parameter names, by the real handlers: what is launched, what `status` says, and what the doctor finds."""

import pytest

from autoscaler_workbench.cli import answers
from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import EXAMPLE, deployed_in_memory, event

PARAMETER = "/ci/utility-image"
_POOL = f"""
  named: {{executors: 1, launch_template: named, instance_types: [c5.xlarge], max_agents: 2, image_parameter: {PARAMETER}}}
"""


@pytest.fixture
def fleet(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(EXAMPLE.read_text(encoding="utf-8") + _POOL, encoding="utf-8")
    with deployed_in_memory(file) as stood:
        stood.world.ec2.account.parameters[PARAMETER] = "ami-linux"
        yield stood


def told(fleet):
    found = fleet.call("operate", event("doctor"))["findings"]
    return {finding["what"]: (finding["fine"], finding["detail"]) for finding in found if finding["about"] == "named"}


def test_the_image_that_a_parameter_names_is_told(fleet):
    assert told(fleet)["ssm:GetParameters"] == (True, f"{PARAMETER} names ami-linux")
    assert told(fleet)["launch template, image, way out"] == (True, "")


def test_a_parameter_that_may_not_be_read_is_named_with_what_gives_the_right(fleet):
    fleet.server.ec2.faults.plan(Fault("ssm GetParameters", times=9, status=400, code="AccessDeniedException"))
    fine, detail = told(fleet)["ssm:GetParameters"]
    assert (fine, detail) == (False, f"{PARAMETER}: GetParameters: AccessDeniedException; the stack's ImageParameterArns must hold its ARN")


@pytest.mark.parametrize("value", [None, "blue"])
def test_a_parameter_that_names_no_image_is_named_with_what_is_launched_meanwhile(fleet, value):
    fleet.world.ec2.account.parameters = {PARAMETER: value} if value else {}
    fine, detail = told(fleet)["ssm:GetParameters"]
    assert fine is False
    assert detail.startswith(f"{PARAMETER}: there is no such parameter, or its value is no image's id; the image that booted last")


def test_an_image_of_another_architecture_or_platform_is_named(fleet):
    account = fleet.world.ec2.account
    account.images["ami-arm"] = image_of("windows", ImageId="ami-arm", Architecture="arm64")
    account.parameters[PARAMETER] = "ami-arm"
    fine, detail = told(fleet)["launch template, image, way out"]
    assert fine is False
    assert "the image ami-arm is of windows, the pool's platform is linux" in detail
    assert "c5.xlarge cannot boot the image ami-arm: that is of arm64" in detail


def test_what_the_parameter_names_is_launched_over_http_and_status_says_so(fleet, capsys):
    account = fleet.world.ec2.account
    account.images |= {name: image_of("linux", ImageId=name) for name in ("ami-1", "ami-2")}
    for image in ("ami-1", "ami-2"):
        account.parameters[PARAMETER] = image
        fleet.world.controllers["main"].submit(f"job-{image}", "named", 6000.0)
        fleet.pass_minutes(9)
    assert sorted(i.image for i in fleet.world.alive() if i.tags["autoscaler:pool"] == "named") == ["ami-1", "ami-2"]
    answers.print_status(fleet.call("operate", event("status")))
    assert "named: launched from ami-2; 1 agent of ami-1, 1 agent of ami-2\n" in capsys.readouterr().out
    agents = fleet.call("operate", event("agents"))["agents"]
    assert sorted(agent["image"] for agent in agents if agent["pool"] == "named") == ["ami-1", "ami-2"]
