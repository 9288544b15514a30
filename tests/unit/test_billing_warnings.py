"""validate --live: an image that AWS bills otherwise than its pool is priced is a warning, with its place in the file."""

import json

import pytest

import autoscaler_workbench.cli.fleet_file as command
from autoscaler.config import check, load_settings
from autoscaler.config.yaml_file import parse
from autoscaler_workbench.advice import billing_warnings
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client, LocalSsmClient
from autoscaler_workbench.fakes.world.ec2.account import image_of, safe_template
from autoscaler_workbench.fakes.world.faults import Fault
from support.worlds import stand

FLEET = """
fleet: f
limits: {max_agents: 5, max_launches_per_hour: 10, max_usd_per_hour: 50, max_usd_per_month: 500}
controllers:
  main: {url: https://jenkins.example.org/}
pools:
  cpu:
    executors: 2
    launch_template: cpu
    instance_types: [c5.18xlarge]
    max_agents: 3
"""

LINUX, WINDOWS = "platform: linux", "platform: windows"


def warned(more, **image):
    settings = check(parse(f"{FLEET}    {more}\n"), "it")
    return list(billing_warnings(settings, {"cpu": {"ImageId": "ami-1"} | image}))


@pytest.mark.parametrize(
    ("more", "details", "operation", "said"),
    [
        (LINUX, "Red Hat Enterprise Linux", "RunInstances:0010", "set usd_per_hour, or run make prices REGIONS=us-east-1 and write prices"),
        (LINUX, "SUSE Linux", "RunInstances:000g", "write prices: {system: suse}"),
        (LINUX, "Red Hat Enterprise Linux with HA", "RunInstances:1010", "priced as linux; set usd_per_hour"),
        (LINUX, "Red Hat Enterprise Linux with SQL Server Standard", "RunInstances:0014", "set usd_per_hour"),
        (LINUX, "Ubuntu Pro", "RunInstances:0g00", "set usd_per_hour"),
        (LINUX, "SQL Server Web", "RunInstances:0200", "set usd_per_hour"),
        (LINUX, "Windows", "RunInstances:0002", "priced as linux; write platform: windows"),
        (LINUX, "Something new", "RunInstances:zzzz", "is billed as Something new (RunInstances:zzzz), and the pool is priced as linux"),
        (WINDOWS, "Windows with SQL Server Standard", "RunInstances:0006", "priced as windows; set usd_per_hour"),
        (WINDOWS, "Windows with SQL Server Enterprise", "RunInstances:0102", "set usd_per_hour"),
        (WINDOWS, "Windows BYOL", "RunInstances:0800", "priced as windows; set usd_per_hour"),
        (WINDOWS, "Linux/UNIX", "RunInstances", "priced as windows; set usd_per_hour; if it is of Linux, write platform: linux"),
        (LINUX, "SUSE Linux", "", "is billed as SUSE Linux, and the pool"),
        (LINUX, "", "RunInstances:0006", "is billed as RunInstances:0006, and the pool"),
    ],
)
def test_another_bill_than_the_price_is_told(more, details, operation, said):
    [problem] = warned(more, PlatformDetails=details, UsageOperation=operation)
    assert said in problem.text
    assert problem.place == ("pools", "cpu", "platform")


@pytest.mark.parametrize(
    ("more", "details", "operation"),
    [
        (LINUX, "Linux/UNIX", "RunInstances"),
        (LINUX, "Red Hat BYOL Linux", "RunInstances:00g0"),
        (WINDOWS, "Windows", "RunInstances:0002"),
        ("usd_per_hour: 5", "Red Hat Enterprise Linux", "RunInstances:0010"),
        (LINUX, "", ""),
    ],
)
def test_the_same_bill_is_not_told_nor_what_the_operator_says_is_paid(more, details, operation):
    assert warned(more, PlatformDetails=details, UsageOperation=operation) == []


def test_a_price_list_of_the_pool_s_own_is_believed_and_named_if_it_is_another(monkeypatch):
    monkeypatch.setattr("autoscaler.config.prices.PriceList.usd", lambda *_: 1.0)
    rhel = {"PlatformDetails": "Red Hat Enterprise Linux", "UsageOperation": "RunInstances:0010"}
    assert warned("prices: {system: rhel}", **rhel) == []
    [problem] = warned("prices: {system: suse}", **rhel)
    assert problem.place == ("pools", "cpu", "prices", "system")
    [problem] = warned("prices: {system: suse}", PlatformDetails="Linux/UNIX", UsageOperation="RunInstances")
    assert "write prices: {system: linux}" in problem.text


@pytest.fixture
def live(tmp_path, monkeypatch, capsys):
    """validate --live of a fleet file against an account with these images; returns exit code, answer and warnings."""
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")

    def run(image, *, parameter=None, denied=False):
        if parameter:
            path.write_text(FLEET + "    image_parameter: /ci/image\n", encoding="utf-8")
        with stand("memory", load_settings(path).domain()) as here:
            account = here.world.ec2.account
            account.images |= {image["ImageId"]: image}
            here.world.ec2.template_data["cpu"] = safe_template("f") | ({} if parameter else {"ImageId": image["ImageId"]})
            account.parameters |= {"/ci/image": image["ImageId"]} if parameter else {}
            if denied:
                here.faults.plan(Fault("ssm GetParameters", status=403, code="AccessDeniedException"))
            clients = {"ec2": LocalEc2Client(here.ec2_face), "cloudformation": None, "ssm": LocalSsmClient(here.ec2_face)}
            monkeypatch.setattr("boto3.client", lambda name: clients[name])
            monkeypatch.setattr(command, "_of_no_stack", lambda *_: [])
            code = 0
            try:
                command.validate(file=path, live=True, as_json=True)
            except SystemExit as ended:
                code = ended.code
        printed = capsys.readouterr()
        return code, json.loads(printed.out), printed.err

    return run


RHEL = image_of("linux", ImageId="ami-rhel", PlatformDetails="Red Hat Enterprise Linux", UsageOperation="RunInstances:0010")


def test_the_command_warns_with_the_place_and_does_not_fail(live):
    code, answer, printed = live(RHEL)
    [warning] = answer["warnings"]
    assert (code, answer["findings"]) == (0, {"cpu": []})
    assert "fleet.yaml:9:22: pools.cpu.platform (linux): the image ami-rhel is billed as Red Hat Enterprise Linux" in warning
    assert "warning: " in printed
    assert live(image_of("linux", ImageId="ami-plain"))[1]["warnings"] == []


def test_the_image_that_a_parameter_names_is_the_one_that_is_judged(live):
    code, answer, _ = live(RHEL, parameter=True)
    assert ("ami-rhel" in answer["warnings"][0], code) == (True, 0)


def test_a_parameter_that_may_not_be_read_is_told_and_stops_nothing(live):
    code, answer, _ = live(RHEL, parameter=True, denied=True)
    assert ("which images the parameters name is not known" in answer["warnings"][0], len(answer["warnings"]), code) == (True, 1, 0)
