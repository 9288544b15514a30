"""Subnets of one zone: EC2 refuses a request that names two of them for one type, so each request names one, and the next one the other."""

import json
from contextlib import contextmanager

import pytest

from autoscaler.config import load_settings
from autoscaler_workbench.cli import fleet_file
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client
from autoscaler_workbench.fakes.world.ec2.account import safe_template
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import event
from support.scene import scene
from support.worlds import stand

A, A2, A3, C = "subnet-0000000a", "subnet-000000a2", "subnet-000000a3", "subnet-0000000c"
ZONES = {A: "us-west-2a", A2: "us-west-2a", A3: "us-west-2a", C: "us-west-2c"}
FULL = "InsufficientFreeAddressesInSubnet"
POOL = "pools: {{cpu: {{launch_template: t, executors: 1, max_agents: 9, queue_maturity_seconds: 0, subnets: [{subnets}], {keys}}}}}"
TYPE = "instance_types: [c5.xlarge]"
FILE = f"""
fleet: f
limits: {{max_agents: 9, max_launches_per_hour: 9, max_usd_per_hour: 9, max_usd_per_month: 99}}
controllers: {{main: {{url: "https://jenkins.example.org/", secret: jenkins/main}}}}
pools: {{cpu: {{launch_template: cpu, executors: 1, max_agents: 9, {TYPE}, subnets: [{A}, {A2}, {C}]}}}}
"""


@contextmanager
def a_fleet(*subnets, keys=TYPE, minutes=3):
    with scene(POOL.format(subnets=", ".join(subnets), keys=keys)) as fleet:
        fleet.world.ec2.zones |= ZONES
        fleet.minutes(minutes)
        yield fleet


def requests(fleet, monkeypatch):
    """Return the list that gets the subnets of each request for instances that the world is sent, by instance type."""
    sent, real = [], type(fleet.world.ec2).create_fleet

    def create_fleet(ec2, request):
        asked = {}
        for override in request["LaunchTemplateConfigs"][0]["Overrides"]:
            asked.setdefault(override["InstanceType"], []).append(override.get("SubnetId", ""))
        sent.append(asked)
        return real(ec2, request)

    monkeypatch.setattr(type(fleet.world.ec2), "create_fleet", create_fleet)
    return sent


def calls(monkeypatch):
    """Return the list that gets each action that EC2 is asked for."""
    asked, real = [], Ec2Api.call

    def call(api, action, request):
        asked.append(action)
        return real(api, action, request)

    monkeypatch.setattr(Ec2Api, "call", call)
    return asked


def subnets_of(fleet):
    return [machine.subnet for machine in fleet.machines()]


@pytest.mark.parametrize(
    ("subnets", "first"),
    [((A, A2, C), [A, C]), ((A, C, A2), [A, C]), ((A2, A), [A2]), ((A, A2, A3), [A]), ((A, C), [A, C])],
    ids=lambda subnets: " ".join(name.removeprefix("subnet-").lstrip("0") for name in subnets),
)
def test_the_first_launch_names_the_first_subnet_of_each_zone(subnets, first, monkeypatch):
    with a_fleet(*subnets) as fleet:
        sent = requests(fleet, monkeypatch)
        build = fleet.submit("job", "cpu", 10)
        fleet.until(lambda: build.started_at, 5)
        assert sent == [{"c5.xlarge": first}]


def test_each_instance_type_is_asked_for_in_each_zone(monkeypatch):
    with a_fleet(A, A2, C, keys="instance_types: [c5.xlarge, c6i.xlarge]") as fleet:
        sent = requests(fleet, monkeypatch)
        fleet.submit("job", "cpu", 10)
        fleet.minutes(2)
        assert sent == [{"c5.xlarge": [A, C], "c6i.xlarge": [A, C]}]


def test_the_request_after_a_full_subnet_names_the_next_one_of_its_zone(monkeypatch):
    """The runbook for a full subnet says: add a subnet. With the second one of a zone nothing was launched any more."""
    with a_fleet(A, A2, A3) as fleet:
        fleet.world.ec2.answers = {f"c5.xlarge/{subnet}/on-demand": FULL for subnet in (A, A2)}
        sent = requests(fleet, monkeypatch)
        build = fleet.submit("job", "cpu", 10)
        fleet.until(lambda: build.started_at, 8)
        assert (sent, subnets_of(fleet)) == ([{"c5.xlarge": [name]} for name in (A, A2, A3)], [A3])


def test_a_full_subnet_is_asked_for_again_once_its_pause_is_over(monkeypatch):
    with a_fleet(A, A2) as fleet:
        fleet.world.ec2.answers = {f"c5.xlarge/{subnet}/on-demand": FULL for subnet in (A, A2)}
        sent = requests(fleet, monkeypatch)
        build = fleet.submit("job", "cpu", 10)
        fleet.minutes(20)
        assert {name for asked in sent for name in asked["c5.xlarge"]} == {A, A2}
        fleet.world.ec2.answers.clear()
        fleet.until(lambda: build.started_at, 10)


def test_spot_and_on_demand_are_asked_for_in_each_zone_alike(monkeypatch):
    with a_fleet(A, A2, C, keys=f"{TYPE}, market: spot-then-on-demand") as fleet:
        fleet.world.ec2.answers = {f"c5.xlarge/{subnet}/spot": "InsufficientInstanceCapacity" for subnet in (A, A2, C)}
        sent = requests(fleet, monkeypatch)
        build = fleet.submit("job", "cpu", 10)
        fleet.until(lambda: build.started_at, 30)
        assert all(len({ZONES[name] for name in asked["c5.xlarge"]}) == len(asked["c5.xlarge"]) for asked in sent)
        assert subnets_of(fleet) == [A]


def test_zones_are_read_once_and_not_at_all_for_one_subnet(monkeypatch):
    for subnets, most in (((A, A2, C), 1), ((A,), 0), ((), 0)):
        asked = calls(monkeypatch)
        with a_fleet(*subnets) as fleet:
            for number in range(3):
                fleet.submit(f"job-{number}", "cpu", 60)
                fleet.minutes(2)
            assert len(fleet.machines()) == 3
            assert asked.count("DescribeSubnets") == most
        monkeypatch.undo()


def test_while_zones_cannot_be_read_each_request_names_one_subnet(monkeypatch):
    """EC2 takes such a request whatever the zones are; the others take their turn if it is refused."""
    with a_fleet(A, A2, C) as fleet:
        fleet.here.server.ec2.faults.plan(Fault("ec2 DescribeSubnets", status=403, code="UnauthorizedOperation", times=99))
        fleet.world.ec2.answers = {f"c5.xlarge/{A}/on-demand": FULL}
        sent = requests(fleet, monkeypatch)
        build = fleet.submit("job", "cpu", 10)
        fleet.until(lambda: build.started_at, 8)
        assert sent == [{"c5.xlarge": [A]}, {"c5.xlarge": [A2]}]
        assert any(name == "zones_not_read" and "UnauthorizedOperation" in facts["error"] for name, facts in fleet.here.logged)


def findings(fleet):
    return [one for one in fleet.here.call("scale_up", event("doctor"))["findings"] if one["what"] == "ec2:CreateFleet (a dry run)"]


def test_the_doctor_says_which_subnets_share_a_zone_and_what_follows():
    with a_fleet(A, A2, C) as fleet:
        [finding] = findings(fleet)
        assert finding["fine"] is True
        assert f"{A2} (us-west-2a)" in finding["detail"]
    with a_fleet(A, C) as fleet:
        [finding] = findings(fleet)
        assert (finding["fine"], finding["detail"]) == (True, "")


def test_the_doctor_names_the_right_that_reading_zones_needs():
    with a_fleet(A, A2) as fleet:
        fleet.here.server.ec2.faults.plan(Fault("ec2 DescribeSubnets", status=403, code="UnauthorizedOperation", times=99))
        [finding] = findings(fleet)
        assert (finding["fine"], "DescribeSubnets: UnauthorizedOperation" in finding["detail"]) == (False, True)


def test_the_world_refuses_two_subnets_of_a_zone_as_ec2_does():
    with a_fleet(A) as fleet:
        overrides = [{"InstanceType": "c5.xlarge", "SubnetId": subnet} for subnet in (A, A2)]
        request = {"LaunchTemplateConfigs": [{"LaunchTemplateSpecification": {"LaunchTemplateName": "t"}, "Overrides": overrides}]}
        for dry in ({}, {"DryRun": True}):
            with pytest.raises(Exception, match="duplicate instance pools"):
                fleet.world.ec2.create_fleet(json.loads(json.dumps(request)) | dry)


def test_validate_live_says_it_too_and_does_not_fail(tmp_path, monkeypatch, capsys):
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE, encoding="utf-8")
    with stand("memory", load_settings(path).domain()) as here:
        here.world.ec2.zones |= ZONES
        here.world.ec2.template_data["cpu"] = safe_template("f")
        client = LocalEc2Client(here.ec2_face)
        monkeypatch.setattr("boto3.client", {"ec2": client, "cloudformation": None, "ssm": None}.__getitem__)
        monkeypatch.setattr(fleet_file, "_of_no_stack", lambda *_: [])
        fleet_file.validate(file=path, live=True, as_json=True)
    [warning] = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith(f"pools.cpu.subnets: {A2} (us-west-2a): asked for once")
