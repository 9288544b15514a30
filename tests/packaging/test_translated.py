"""What a deployment makes of template.yaml, after SAM's own translator, over what its parameters may be."""

import json
import re

import pytest

from autoscaler.config import check
from autoscaler_workbench.report.dashboard.cloudformation import read_template
from packaging_root import ROOT
from support.translated import outputs, stack, translated

SCHEDULED = ("PublishMetricsFunction", "ScaleUpFunction", "ScaleDownFunction")


def kinds(made, kind):
    return {name: resource["Properties"] for name, resource in made.items() if resource["Type"] == kind}


@pytest.mark.parametrize("state", ["ENABLED", "DISABLED"])
def test_the_schedules_are_what_schedule_state_says_and_announcements_go_on(state):
    rules = kinds(stack(ScheduleState=state), "AWS::Events::Rule")
    scheduled = {name: rule["State"] for name, rule in rules.items() if "ScheduleExpression" in rule}
    assert scheduled == {f"{function}EveryMinute": state for function in SCHEDULED}
    announced = [rule.get("State", "ENABLED") for rule in rules.values() if "EventPattern" in rule]
    assert announced == ["ENABLED", "ENABLED"]


@pytest.mark.parametrize("state", ["ENABLED", "DISABLED"])
def test_schedules_stopped_on_purpose_are_not_missed_and_failures_still_ring(state):
    alarms = kinds(stack(ScheduleState=state, MetricsLevel="full"), "AWS::CloudWatch::Alarm")
    silent = {name: alarm["TreatMissingData"] for name, alarm in alarms.items() if name.endswith("SilentAlarm")}
    missing = {"ENABLED": "breaching", "DISABLED": "notBreaching"}[state]
    assert silent == {f"{function.removesuffix('Function')}SilentAlarm": missing for function in SCHEDULED}
    composites = kinds(stack(ScheduleState=state, MetricsLevel="full"), "AWS::CloudWatch::CompositeAlarm")
    [down] = [alarm for name, alarm in composites.items() if "Down" in name]
    assert down.get("ActionsEnabled", True) is True
    assert "FunctionErrorsAlarm" in down["AlarmRule"]
    essential = kinds(stack(ScheduleState=state), "AWS::CloudWatch::Alarm")
    assert essential["HeartbeatAlarm"]["TreatMissingData"] == missing
    assert essential["RegisterAgentErrorsAlarm"]["AlarmActions"]


def test_a_webhook_wakes_nobody_while_the_schedules_are_stopped():
    for state, wakes in (("ENABLED", True), ("DISABLED", False)):
        [woken] = kinds(stack(ScheduleState=state, WebhookSecretName="ci/webhook"), "AWS::Lambda::EventSourceMapping").values()
        assert woken["Enabled"] is wakes


def tables_of(**parameters):
    """The tables that functions use, that their roles may reach, and that the stack's output names."""
    made = stack(WebhookSecretName="ci/webhook", **parameters)
    used = {function["Environment"]["Variables"]["STATE_TABLE"] for function in kinds(made, "AWS::Lambda::Function").values()}
    policies = [policy for role in kinds(made, "AWS::IAM::Role").values() for policy in role.get("Policies", [])]
    statements = [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]
    reached = {str(statement["Resource"]) for statement in statements if "dynamodb:" in str(statement["Action"])}
    return used, reached, outputs(**parameters)["State"]


def test_every_function_uses_the_table_that_the_stack_is_given_and_may_reach_no_other():
    table = "arn:aws:dynamodb:us-west-2:123456789012:table"
    assert tables_of() == ({"state"}, {f"{table}/state"}, "state")
    assert tables_of(StateTableName="restored-2") == ({"restored-2"}, {f"{table}/restored-2"}, "restored-2")


def test_the_stacks_own_table_stays_in_it_beside_one_that_it_is_given():
    assert stack(StateTableName="restored-2")["StateTable"] == stack()["StateTable"]


def launch_templates(**parameters):
    return kinds(stack(**{"MakeWindowsAgents": "yes"} | parameters), "AWS::EC2::LaunchTemplate")


def test_only_templates_of_linux_agents_on_x86_are_made_unless_others_are_asked_for():
    assert launch_templates(MakeWindowsAgents="no").keys() == {"LinuxAgents"}
    assert launch_templates(Arm64Agents="yes").keys() == {"LinuxAgents", "ArmAgents", "WindowsAgents"}


def test_a_deployment_looks_up_no_image_that_it_does_not_use():
    """CloudFormation looks up the default of a parameter even if nothing refers to it, and fails if there is no such image."""
    images = [facts for facts in SOURCE["Parameters"].values() if facts["Type"] == "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"]
    assert {facts["Default"] for facts in images} == {SOURCE["Parameters"]["LinuxImageParameter"]["Default"]}
    assert len(images) == 3


@pytest.mark.parametrize(
    ("parameter", "value", "changed"),
    [
        ("AgentBootTimeoutSeconds", "1200", {"LinuxAgents", "WindowsAgents"}),
        ("AgentSecurityGroupIds", "sg-0aa,sg-0bb", {"LinuxAgents", "WindowsAgents"}),
        ("AgentPublicIp", "false", {"LinuxAgents", "WindowsAgents"}),
        ("JavaVersion", "25", {"LinuxAgents", "WindowsAgents"}),
        ("VolumeKmsKeyArn", "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d", {"LinuxAgents", "WindowsAgents"}),
        ("LinuxImageParameter", "ami-00000000000000001", {"LinuxAgents"}),
        ("LinuxRootDevice", "/dev/sda1", {"LinuxAgents"}),
        ("LinuxVolumeGiB", "200", {"LinuxAgents"}),
        ("WindowsRootDevice", "/dev/xvda", {"WindowsAgents"}),
        ("WindowsVolumeGiB", "300", {"WindowsAgents"}),
        ("RegistrationEndpoint", "http-api", {"LinuxAgents", "WindowsAgents"}),
    ],
)
def test_an_update_of_a_parameter_changes_the_template_in_place_and_pools_launch_its_newest_version(parameter, value, changed):
    """A change of its data makes CloudFormation add a version; the default one stays the first for ever."""
    before, after = launch_templates(), launch_templates(**{parameter: value})
    assert {name for name in before if before[name]["LaunchTemplateData"] != after[name]["LaunchTemplateData"]} == changed
    assert [template["LaunchTemplateName"] for template in before.values()] == [t["LaunchTemplateName"] for t in after.values()]
    pool = {"executors": 1, "instance_types": ["m6i.xlarge"], "platform": "linux", "max_agents": 1, "usd_per_hour": 1.0}
    pools = {name: pool | {"launch_template": template["LaunchTemplateName"]} for name, template in after.items()}
    limits = {"max_agents": 1, "max_launches_per_hour": 1, "max_usd_per_hour": 1.0, "max_usd_per_month": 1.0}
    raw = {"fleet": "mxnet-ci", "limits": limits, "controllers": {"main": {"url": "https://jenkins.example.org/"}}, "pools": pools}
    assert {p.launch_template_version for p in check(raw, "fleet.yaml").domain().pools.values()} == {"$Latest"}


@pytest.mark.parametrize(("parameter", "public"), [("true", True), ("false", False)])
def test_agents_have_a_public_address_where_their_subnets_need_one(parameter, public):
    for template in launch_templates(AgentPublicIp=parameter).values():
        [interface] = template["LaunchTemplateData"]["NetworkInterfaces"]
        assert interface["AssociatePublicIpAddress"] is public


def test_the_root_volume_is_the_images_and_encrypted_with_the_key_that_is_given():
    key = "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d"
    plain, keyed = (launch_templates(LinuxRootDevice="/dev/sda1", VolumeKmsKeyArn=value) for value in ("", key))
    [volume], [with_key] = (made["LinuxAgents"]["LaunchTemplateData"]["BlockDeviceMappings"] for made in (plain, keyed))
    assert volume == {
        "DeviceName": "/dev/sda1",
        "Ebs": {"VolumeSize": 100, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True},
    }
    assert with_key["Ebs"] == volume["Ebs"] | {"KmsKeyId": key}


def test_the_same_fleet_can_be_deployed_in_two_regions():
    """Names of roles, instance profiles and policies are the account's, not the region's."""
    iam = {name: r["Properties"] for name, r in stack().items() if r["Type"].startswith("AWS::IAM::")}
    named = {name for name, facts in iam.items() if {"InstanceProfileName", "ManagedPolicyName", "UserName", "GroupName"} & facts.keys()}
    roles = {name for name, facts in kinds(stack(), "AWS::IAM::Role").items() if "RoleName" in facts}
    assert named | roles == set()


@pytest.mark.parametrize(
    ("partition", "console"),
    [("aws", "console.aws.amazon.com"), ("aws-cn", "console.amazonaws.cn"), ("aws-us-gov", "console.amazonaws-us-gov.com")],
)
def test_each_partition_has_a_console_and_arns_of_its_own(partition, console):
    assert outputs(partition)["DashboardUrl"].startswith(f"https://{console}/cloudwatch/")
    foreign = {"aws", "aws-cn", "aws-us-gov"} - {partition}
    written = json.dumps({name: r for name, r in stack(partition).items() if not name.endswith("FunctionRole")})
    assert [arn for other in foreign for arn in re.findall(rf"arn:{other}:[^\"]*", written)] == []


ASKED_OVER = ("AWS::Lambda::Url", "AWS::ApiGatewayV2::", "AWS::Lambda::Permission")


@pytest.mark.parametrize(
    ("way", "made"),
    [
        ("function-url", {"RegisterAgentFunctionUrl"}),
        (
            "http-api",
            {"RegistrationApi", "RegistrationIntegration", "RegistrationRoute", "RegistrationStage", "RegistrationApiMayInvoke"},
        ),
    ],
)
def test_there_is_one_way_in_and_it_checks_the_signature(way, made):
    here = {name: r["Properties"] for name, r in stack(RegistrationEndpoint=way).items() if r["Type"].startswith(ASKED_OVER)}
    ways_in = {name for name in here if name.startswith(("RegisterAgent", "Registration"))}
    assert ways_in == made
    if way == "function-url":
        assert here["RegisterAgentFunctionUrl"]["AuthType"] == "AWS_IAM"
        assert outputs()["RegisterAgentUrl"].endswith(".lambda-url.us-west-2.on.aws/")
        return
    [route] = [facts for name, facts in here.items() if name.endswith("Route")]
    assert (route["RouteKey"], route["AuthorizationType"]) == ("POST /register", "AWS_IAM")
    permission, arn = here["RegistrationApiMayInvoke"], "arn:aws:execute-api:us-west-2:123456789012:a1b2c3d4e5/$default/POST/register"
    assert (permission["Principal"], permission["SourceArn"]) == ("apigateway.amazonaws.com", arn)
    assert outputs(RegistrationEndpoint=way)["RegisterAgentUrl"] == "https://a1b2c3d4e5.execute-api.us-west-2.amazonaws.com/register"


SOURCE = read_template(ROOT / "template.yaml")
OTHER_VALUES = {
    "String": "x",
    "Number": "7",
    "CommaDelimitedList": "a-1,b-2",
    "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>": "ami-00000000000000001",
}

ONLY_WITH = {
    "Arm64ImageParameter": {"Arm64Agents": "yes"},
    "WindowsImageParameter": {"MakeWindowsAgents": "yes"},
    "WindowsRootDevice": {"MakeWindowsAgents": "yes"},
    "WindowsVolumeGiB": {"MakeWindowsAgents": "yes"},
    "DockerHubSecretArn": {"ImageCachePrefix": "ci"},
    "VpcSecurityGroupIds": {"VpcSubnetIds": "subnet-1"},
    "ControllerCpuAlarmPercent": {"ControllerInstanceId": "i-1"},
    "ControllerNetworkAlarmBytes": {"ControllerInstanceId": "i-1"},
}


def values_of(name):
    facts = SOURCE["Parameters"][name]
    return [str(value) for value in facts.get("AllowedValues", [OTHER_VALUES[facts["Type"]]])]


@pytest.mark.parametrize(("parameter", "value"), [(name, value) for name in SOURCE["Parameters"] for value in values_of(name)])
def test_whatever_a_parameter_is_it_reaches_what_is_made_and_nothing_refers_to_what_is_not(parameter, value):
    """A parameter that changes nothing is one that a deployment ignores; a reference to what a condition left out fails it."""
    beside = ONLY_WITH.get(parameter, {})
    made = stack(**beside, **{parameter: value})
    changes = made != stack(**beside)
    assert changes or str(SOURCE["Parameters"][parameter].get("Default")) == value
    left_out = translated()["Resources"].keys() - made.keys()
    written = json.dumps(made)
    assert {name for name in left_out if f'"{name}"' in written or f"${{{name}" in written} == set()
    assert [name for name in SOURCE["Parameters"] if f'{{"Ref": "{name}"}}' in written or f"${{{name}}}" in written] == []
