"""What the doctor finds, tried inside the functions: each thing that can be missing is named, and nothing is left behind."""

import pytest

from autoscaler.domain.facts.fleet import never_stopped
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.faults import Fault
from support.by_hand import launched_by_hand
from support.deployed import EXAMPLE, deployed_in_memory, event
from support.worlds import a_world_node

# What is wrong without a permission, each with the permission that Jenkins names. Disconnect implies Connect: who lacks Connect lacks both.
PERMISSIONS = {
    "Create": {"Agent/Create": "Create"},
    "Disconnect": {"Agent/Disconnect (cordon)": "Disconnect"},
    "Connect": {"Agent/Disconnect (cordon)": "Disconnect", "Agent/Connect (an agent's secret)": "Connect"},
    "Delete": {"Agent/Delete": "Delete"},
}


@pytest.fixture
def fleet():
    with deployed_in_memory() as stood:
        stood.call("scale_up", event("tick"))
        stood.world.controllers["main"].submit("job", "utility", 600.0)
        stood.pass_minutes(5)
        yield stood


def findings(fleet, **facts):
    return fleet.call("operate", event("doctor") | facts)["findings"]


def launches(fleet, **facts):
    return fleet.call("scale_up", event("doctor") | facts)["findings"]


def wrong(fleet):
    return {(finding["about"], finding["what"]): finding["detail"] for finding in findings(fleet) if finding["fine"] is False}


def test_where_all_is_well_nothing_is_wrong_and_nothing_is_left_behind(fleet):
    before = set(fleet.world.controllers["main"].nodes)
    assert wrong(fleet) == {}
    assert set(fleet.world.controllers["main"].nodes) == before
    assert {finding["about"] for finding in findings(fleet)} >= {"main", "aws", "utility", "mxnetlinux-gpu", "publish_metrics"}


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_a_permission_that_is_missing_is_named(fleet, permission):
    api = fleet.server.jenkins["main"]
    api.lacks = {f"hudson.model.Computer.{permission}"}
    named = {what: detail.partition("lacks hudson.model.Computer.")[2].split()[0] for (_, what), detail in wrong(fleet).items()}
    assert named == PERMISSIONS[permission]
    api.lacks = set()
    assert wrong(fleet) == {}  # a node that could not be deleted before is deleted now
    assert not any(name.startswith("autoscaler-doctor") for name in fleet.world.controllers["main"].nodes)


def test_a_controller_that_is_down_is_said_once(fleet):
    fleet.world.controllers["main"].up = "starting"
    assert [key for key in wrong(fleet) if key[0] == "main"] == [("main", "answers, Overall/Read")]


def test_what_ec2_does_not_have_is_named(fleet):
    fleet.world.ec2.templates.discard("mxnetlinux-gpu")
    fleet.world.ec2.withdrawn.add("g3.8xlarge")
    said = wrong(fleet)
    assert said["mxnetlinux-gpu", "launch template, image, way out"] == "there is no such launch template, or not that version of it"
    assert said["mxnetlinux-gpu", "subnets and instance types"] == "g3.8xlarge cannot be had in this region"


def test_a_launch_template_without_user_data_is_named(fleet):
    fleet.world.ec2.template_data["utility"]["UserData"] = ""
    assert wrong(fleet) == {
        ("utility", "launch template, image, way out"): "UserData is missing: nothing would make an agent of the instance"
    }


def test_a_quota_below_the_pools_limits_is_named_with_both_numbers(fleet):
    fleet.world.ec2.quotas["Running On-Demand P instances"] = 8.0
    [((_, what), detail)] = wrong(fleet).items()
    assert what == "Running On-Demand P instances"
    assert detail.endswith("vCPUs at their limits, the quota is 8")


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ("service-quotas ListServiceQuotas", "ListServiceQuotas"),
        ("ec2 DescribeInstanceTypeOfferings", "DescribeInstanceTypeOfferings"),
        ("ec2 DescribeInstanceTypes", "DescribeInstanceTypes"),
        ("ec2 DescribeLaunchTemplateVersions", "DescribeLaunchTemplateVersions"),
        ("ec2 DescribeImages", "DescribeImages"),
        ("lambda GetAccountSettings", "GetAccountSettings"),
    ],
)
def test_what_aws_denies_is_named_and_the_rest_is_tried(fleet, call, action):
    fleet.server.ec2.faults.plan(Fault(call, times=9, status=403, code="AccessDenied"))
    said = wrong(fleet)
    assert said
    for (about, what), detail in said.items():
        assert (about, detail) == ("aws", f"{action}: AccessDenied")
        assert action in what


def test_a_launch_is_tried_for_every_pool_and_launches_nothing(fleet):
    before = set(fleet.world.ec2.instances)
    found = launches(fleet)
    assert {(finding["about"], finding["fine"]) for finding in found} == {(pool, True) for pool in fleet.fleet.pools}
    fleet.world.ec2.refuse = "UnauthorizedOperation", "You are not authorized to perform this operation."
    assert all(finding["fine"] is False and "UnauthorizedOperation" in finding["detail"] for finding in launches(fleet, dry_run=True))
    assert set(fleet.world.ec2.instances) == before


def test_each_offering_is_tried_with_the_role_that_it_passes(fleet):
    """CreateFleet's dry run passes no role and knows no instance type: RunInstances' does."""
    denied = "UnauthorizedOperation", "not authorized to perform: iam:PassRole on resource: agent"
    fleet.world.ec2.account.refused = {"g5.8xlarge": denied}
    wrong = [finding for finding in launches(fleet) if not finding["fine"]]
    assert {finding["about"] for finding in wrong} == {"mxnetlinux-gpu", "mxnetwindows-gpu"}
    assert {finding["what"] for finding in wrong} == {"ec2:RunInstances, iam:PassRole (dry runs)"}
    assert all(finding["detail"].startswith("g5.8xlarge//on-demand: UnauthorizedOperation: not auth") for finding in wrong)


SPOT = """
fleet: mxnet-ci
limits: {max_agents: 4, max_launches_per_hour: 2, max_usd_per_hour: 8, max_usd_per_month: 12}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
pools:
  gpu:
    executors: 1
    launch_template: t
    instance_types: [g4dn.8xlarge]
    subnets: [subnet-a, subnet-b]
    platform: linux
    market: spot-then-on-demand
    max_agents: 3
"""


@pytest.fixture
def on_spot(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(SPOT, encoding="utf-8")
    with deployed_in_memory(file) as stood:
        stood.call("scale_up", event("tick"))
        yield stood


def test_a_fresh_account_is_told_the_one_command_that_spot_needs(on_spot):
    assert ("aws", "role AWSServiceRoleForEC2Spot") not in wrong(on_spot)
    on_spot.world.ec2.account.spot_role = False
    said = wrong(on_spot)["aws", "role AWSServiceRoleForEC2Spot"]
    assert said.endswith("aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")


def test_spot_of_which_ec2_tells_no_price_is_named(on_spot):
    about = "aws", "ec2:DescribeSpotPriceHistory"
    assert about not in wrong(on_spot)
    on_spot.world.ec2.spot_usd_per_hour.clear()
    assert "count at the most that may be paid" in wrong(on_spot)[about]
    on_spot.server.ec2.faults.plan(Fault(about[1].replace("ec2:", "ec2 "), status=403, code="UnauthorizedOperation", times=9))
    assert "UnauthorizedOperation" in wrong(on_spot)[about]


def test_only_spot_needs_the_role_for_spot(fleet):
    fleet.world.ec2.account.spot_role = False
    assert wrong(fleet) == {}


def test_every_market_and_every_subnet_is_tried(on_spot):
    found = launches(on_spot)
    assert [finding["what"] for finding in found].count("ec2:CreateFleet (a dry run)") == 2
    assert found[-1]["detail"] == "4 offerings"


def test_a_subnet_that_agents_cannot_leave_is_named(on_spot):
    on_spot.world.ec2.account.routes["subnet-b"] = "igw-1"
    assert "subnet-b leads out through an internet gateway" in wrong(on_spot)["gpu", "launch template, image, way out"]


def test_a_fresh_accounts_ten_executions_are_said(fleet):
    fleet.world.ec2.account.concurrent_executions = 10
    assert wrong(fleet)["aws", "Lambda's concurrent executions"].startswith("10 at once in the whole account")


@pytest.mark.parametrize(
    ("limit", "reserved", "functions", "for_each", "advice"),
    [
        (1000, 0, "2", "0", "deploy with PublicConcurrency=20"),
        (1000, 0, "1", "0", "deploy with PublicConcurrency=20"),
        (1000, 880, "1", "0", "deploy with PublicConcurrency=20"),
        (1000, 880, "2", "0", "deploy with PublicConcurrency=10"),
        (1000, 891, "2", "0", "ask for 1031, then deploy with PublicConcurrency=20"),
        (1000, 891, "1", "0", "deploy with PublicConcurrency=9"),
        (1000, 900, "2", "0", "ask for 1040, then deploy with PublicConcurrency=20"),
        (10, 0, "1", "0", "ask for 120, then deploy with PublicConcurrency=20"),
        (1000, 0, "2", "5", ""),
        (1000, 0, "", "", ""),
    ],
)
def test_callers_who_may_take_all_executions_are_named_with_a_limit_that_the_account_has_room_for(
    fleet, monkeypatch, limit, reserved, functions, for_each, advice
):
    monkeypatch.setenv("PUBLIC_CONCURRENCY", for_each)
    monkeypatch.setenv("PUBLIC_FUNCTIONS", functions)
    fleet.world.ec2.account.concurrent_executions, fleet.world.ec2.account.reserved_executions = limit, reserved
    found = wrong(fleet).get(("aws", "executions that callers may take"), "")
    assert ("anybody may call the webhook" in found) is (functions == "2" and bool(advice))
    assert found.endswith(advice)
    assert bool(found) is bool(advice)


def test_where_ec2_does_not_answer_the_other_pools_are_not_waited_for(fleet):
    fleet.server.ec2.faults.plan(Fault("ec2 CreateFleet", times=99))
    [finding] = launches(fleet)
    assert finding["fine"] is False
    assert finding["detail"].endswith("; the other pools were not tried")


def test_an_action_that_scale_up_does_not_know_is_refused(fleet):
    with pytest.raises(ConfigError, match="action"):
        fleet.call("scale_up", {"action": "hold"})


def test_functions_that_do_not_run_are_said(fleet):
    fleet.world.controllers["main"].submit("job", "mxnetlinux-gpu", 600.0)
    fleet.world.move_to(fleet.world.timeline.now + 3600)
    assert {about for about, _ in wrong(fleet)} == {"publish_metrics", "scale_down"}


def test_a_quiet_night_is_no_failure(fleet):
    fleet.pass_minutes(40)
    [said] = [finding for finding in findings(fleet) if finding["about"] == "publish_metrics"]
    assert said["fine"] is None
    assert said["detail"].startswith("no state change for")


def test_a_dry_run_makes_no_node(fleet):
    assert not any(finding["what"].startswith("Agent/") for finding in findings(fleet, dry_run=True))


def test_instances_of_a_fleet_that_no_stack_has_are_named_with_the_command_that_ends_them(fleet):
    foreign = next(instance for instance in fleet.world.alive() if instance.tags["autoscaler:pool"] == "utility")
    foreign.tags["autoscaler:fleet"] = "old-ci"
    fleet.world.ec2.account.stacks = ("mxnet-ci",)
    said = wrong(fleet)["aws", "instances of fleet old-ci"]
    command = f"aws ec2 terminate-instances --instance-ids {foreign.id}"
    assert said == f"1 instance that no stack in this region manages; once nothing runs there: {command}"
    fleet.world.ec2.account.stacks = ("mxnet-ci", "old-ci")
    assert ("aws", "instances of fleet old-ci") not in wrong(fleet)


def test_instances_of_no_stack_that_may_not_be_asked_for_are_named_with_the_permission(fleet):
    next(iter(fleet.world.alive())).tags["autoscaler:fleet"] = "old-ci"
    fleet.server.ec2.faults.plan(Fault("cloudformation DescribeStacks", status=403, code="AccessDenied"))
    assert "AccessDenied" in wrong(fleet)["aws", "ec2:DescribeInstances, cloudformation:DescribeStacks"]


def test_types_that_a_warm_pool_never_stops_are_named_and_volumes_that_the_price_leaves_out():
    text = EXAMPLE.read_text(encoding="utf-8").replace("defaults: {", "defaults: {warm_pool: {}, ")
    with deployed_in_memory(text) as fleet:
        assert {name for name, pool in fleet.fleet.pools.items() if never_stopped(pool)} >= {"mxnetlinux-gpu"}
        template = fleet.fleet.pools["mxnetlinux-gpu"].launch_template
        data = fleet.world.ec2.template_data[template]
        fleet.world.ec2.template_data[template] = data | {
            "BlockDeviceMappings": [*data["BlockDeviceMappings"], {"DeviceName": "/dev/sdf", "Ebs": {"Encrypted": True, "VolumeSize": 500}}]
        }
        told = {(one["about"], one["what"]): one for one in findings(fleet)}
        left_out = told["mxnetlinux-gpu", "types that are never stopped"]
        assert (left_out["fine"], "g4dn.8xlarge, g5.8xlarge" in left_out["detail"]) == (None, True)
        assert "g3.8xlarge" not in left_out["detail"]
        assert "set volume_gib to 500 in the fleet file" in told["mxnetlinux-gpu", "launch template, image, way out"]["detail"]


def test_a_machine_that_the_fleet_did_not_launch_is_named_with_the_commands_that_end_it_or_take_its_tag_off(fleet):
    instance = launched_by_hand(fleet.world, "mxnet-ci", pool="utility")
    said = wrong(fleet)["aws", "only agents have its tags"]
    assert f"aws ec2 terminate-instances --instance-ids {instance.id}" in said
    assert f"aws ec2 delete-tags --resources {instance.id} --tags Key=autoscaler:fleet" in said
    del instance.tags["autoscaler:fleet"]
    assert ("aws", "only agents have its tags") not in wrong(fleet)


def test_another_autoscaler_of_our_labels_is_named(fleet):
    fleet.world.controllers["main"].add_node(a_world_node("autoscaler-beacon-other~cpu", "utility", connected=False))
    assert "fleet other; labels of both: utility; " in wrong(fleet)["main", "no other autoscaler"]
