"""Facts of template.yaml that safety depends on."""

import json
import re

import pytest

from autoscaler.control.outcomes import counts_of
from autoscaler.control.passes import LEASE_SECONDS
from autoscaler.domain.report.metrics import _TOLD_WHEN_ANY
from autoscaler_workbench.report.dashboard.cloudformation import read_template
from autoscaler_workbench.simulate.new_fleet import LOOK_EVERY_SECONDS
from packaging_root import ROOT
from support.builders import a_pool
from support.template import TEMPLATE
from support.translated import stack, translated
from support.worlds import in_memory

RESOURCES = TEMPLATE["Resources"]
FUNCTIONS = {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] == "AWS::Serverless::Function"}
SHARED = TEMPLATE["Globals"]["Function"]


def test_what_is_played_as_shipped_looks_as_often_as_what_is_deployed():
    assert TEMPLATE["Parameters"]["LookEverySeconds"]["Default"] == LOOK_EVERY_SECONDS


def statements(name):
    """What a function may be allowed, whatever the parameters are."""
    written = [statement for policy in FUNCTIONS[name]["Policies"] for statement in policy["Statement"]]
    possible = [statement["Fn::If"][1] if "Fn::If" in statement else statement for statement in written]
    return [statement for statement in possible if statement["Effect"] == "Allow"]


def actions(statement):
    return [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]


def allowing(action):
    return [s for name in FUNCTIONS for s in statements(name) if action in actions(s)]


def test_every_function_on_disk_is_deployed_and_the_other_way_round():
    on_disk = {f"functions/{path.parent.name}" for path in (ROOT / "functions").glob("*/app.py")}
    assert {properties["CodeUri"] for properties in FUNCTIONS.values()} == on_disk


def test_functions_carry_no_copies_of_the_shared_code():
    assert [path.name for path in (ROOT / "functions").glob("*/*") if path.name not in {"app.py", "__pycache__"}] == []


def test_the_first_parameters_are_those_that_the_walk_sets():
    [line] = re.findall(r'parameter_overrides = "(.*)"', (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8"))
    assert list(TEMPLATE["Parameters"])[:3] == [word.partition("=")[0] for word in line.split()]


def test_the_console_asks_by_groups_for_what_matters_first_and_names_every_parameter():
    asks = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]
    groups = [group["Parameters"] for group in asks["ParameterGroups"]]
    assert groups[0] == list(TEMPLATE["Parameters"])[:3]
    assert sorted(name for group in groups for name in group) == sorted(TEMPLATE["Parameters"])
    assert asks["ParameterLabels"].keys() == TEMPLATE["Parameters"].keys()
    assert len({label["default"] for label in asks["ParameterLabels"].values()}) == len(TEMPLATE["Parameters"])


@pytest.mark.parametrize("name", ["template.yaml", "image.yaml"])
def test_no_stack_is_of_a_fleet_that_nobody_named(name):
    parameter = read_template(ROOT / name)["Parameters"]["FleetName"]
    assert "Default" not in parameter
    assert "AllowedPattern" in parameter


def test_agents_of_the_default_network_reach_something():
    """An account's default subnets lead out through an internet gateway."""
    assert TEMPLATE["Parameters"]["AgentPublicIp"]["Default"] == "true"


def test_every_parameter_is_described():
    assert [name for name, parameter in TEMPLATE["Parameters"].items() if not parameter.get("Description")] == []


def test_a_function_that_is_cut_off_cannot_act_beside_the_next_holder_of_the_lease():
    assert SHARED["Timeout"] < LEASE_SECONDS


def test_a_message_is_not_shown_again_while_the_function_that_it_woke_may_run():
    queue = RESOURCES["LooksQueue"]["Properties"]
    assert queue["VisibilityTimeout"] >= 6 * SHARED["Timeout"]
    assert RESOURCES["LooksWakeScaleUp"]["Properties"]["BatchSize"] == 1


@pytest.mark.parametrize("name", ["PublishMetricsFunction", "ScaleUpFunction", "ScaleDownFunction"])
def test_each_scheduled_function_runs_every_minute_and_nothing_is_retried(name):
    [event] = FUNCTIONS[name]["Events"].values()
    assert event["Properties"]["Schedule"] == "rate(1 minute)"
    assert event["Properties"]["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    assert SHARED["EventInvokeConfig"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    assert "ReservedConcurrentExecutions" not in FUNCTIONS[name] | SHARED


@pytest.mark.parametrize(
    ("webhook", "public"), [("", ["RegisterAgentFunction"]), ("ci/webhook", ["RegisterAgentFunction", "WebhookFunction"])]
)
@pytest.mark.parametrize("limit", ["", "5"])
def test_no_concurrency_is_reserved_unless_it_is_asked_for_and_then_whatever_others_may_call_is_limited(webhook, public, limit):
    """CloudFormation cannot know the account's limit."""
    made = stack(WebhookSecretName=webhook, PublicConcurrency=limit)
    limits = {name: r["Properties"].get("ReservedConcurrentExecutions") for name, r in made.items() if name in FUNCTIONS}
    assert {name: reserved for name, reserved in limits.items() if reserved is not None} == (dict.fromkeys(public, "5") if limit else {})
    told = made["OperateFunction"]["Properties"]["Environment"]["Variables"]
    assert (told["PUBLIC_CONCURRENCY"], told["PUBLIC_FUNCTIONS"]) == (limit or "0", str(len(public)))


def test_instance_events_is_invoked_only_for_states_in_which_it_acts():
    """`test_instance_events.py` and `test_warm_pool.py` show that nothing is done while an instance shuts down, or is stopping."""
    rules = FUNCTIONS["InstanceEventsFunction"]["Events"]
    assert rules["End"]["Properties"]["Pattern"]["detail"] == {"state": ["terminated", "stopped"]}
    assert rules["Announcement"]["Properties"]["Pattern"]["detail-type"] == ["EC2 Spot Instance Interruption Warning"]


def test_a_message_that_comes_once_is_tried_again():
    """The next tick makes good what a scheduled function failed at; nobody sends the budget's message twice."""
    assert FUNCTIONS["OperateFunction"]["EventInvokeConfig"] == {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 3600}


def test_the_state_outlives_the_stack_and_can_be_restored():
    table = RESOURCES["StateTable"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert [key["AttributeName"] for key in table["Properties"]["KeySchema"]] == ["fleet", "item"]


def test_only_what_knows_no_resources_is_allowed_on_everything():
    on_everything = {action for name in FUNCTIONS for s in statements(name) if s["Resource"] == "*" for action in actions(s)}
    described = {action for action in on_everything if action.startswith("ec2:Describe")}
    asked = {"cloudformation:DescribeStacks", "lambda:GetAccountSettings", "servicequotas:ListServiceQuotas"}
    assert on_everything == {"cloudwatch:PutMetricData"} | asked | described
    assert all("Condition" in s for s in allowing("cloudwatch:PutMetricData"))


def test_no_wildcard_actions():
    assert [a for name in FUNCTIONS for s in statements(name) for a in actions(s) if "*" in a] == []


def test_instances_are_launched_only_with_our_tag_and_terminated_only_by_it():
    ours = {"Ref": "FleetName"}
    on_instances = [s for s in allowing("ec2:RunInstances") if any(":instance/*" in str(r) for r in s["Resource"])]
    assert [s["Condition"] for s in on_instances] == [{"StringEquals": {"aws:RequestTag/autoscaler:fleet": ours}}] * 2
    by_tag = {"StringEquals": {"aws:ResourceTag/autoscaler:fleet": ours}}
    launched = by_tag | {"StringLike": {"aws:ResourceTag/aws:ec2:fleet-id": "fleet-*"}}
    assert [s["Condition"] for s in allowing("ec2:TerminateInstances")] == [launched] * 2  # scale_down, and operate for autoscaler end
    assert [s["Condition"] for s in allowing("ec2:StopInstances")] == [launched]
    assert [s["Condition"] for s in allowing("ec2:StartInstances")] == [launched] * 3
    launches = {"StringEquals": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}}
    assert [s["Condition"] for s in allowing("ec2:CreateTags")] == [
        *[launches] * 4,
        launched
        | {
            "ForAllValues:StringEquals": {"aws:TagKeys": ["Name", "autoscaler:node", "autoscaler:controller"]},
        },
    ]
    assert [s["Condition"] for s in allowing("iam:PassRole")] == [
        {"StringEquals": {"iam:PassedToService": {"Sub": "ec2.${AWS::URLSuffix}"}}}
    ] * 2


def test_what_a_launch_may_name_beside_its_template_is_a_subnet_and_with_parameters_of_images_an_image():
    open_ = {"image", "launch-template", "network-interface", "subnet", "volume", "capacity-reservation", "spot-instances-request"}
    named = {True: set(), False: set()}
    for statement in allowing("ec2:RunInstances"):
        conditions = statement.get("Condition", {})
        kinds = set(re.findall(r":([a-z-]+)/\*", str(statement["Resource"]))) - {"fleet", "instance"}
        named[conditions == {"Bool": {"ec2:IsLaunchTemplateResource": "true"}}] |= kinds
    assert named == {True: {"image", "key-pair", "security-group", "snapshot"}, False: open_}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {
            "ImageParameterArns": "a,b",
            "WebhookSecretName": "ci/webhook",
            "VolumeKmsKeyArn": "k" * 80,
            "AllowCapacityReservations": "true",
            "AllowTaggedSpotRequests": "true",
        },
    ],
    ids=["shipped", "all"],
)
def test_policies_of_a_role_are_not_longer_than_iam_takes(parameters):
    """All inline policies of a role together, without white space: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html."""
    roles = {name: r["Properties"].get("Policies", []) for name, r in stack(**parameters).items() if r["Type"] == "AWS::IAM::Role"}
    lengths = {name: len(json.dumps([p["PolicyDocument"] for p in policies], separators=(",", ":"))) for name, policies in roles.items()}
    assert {name: length for name, length in lengths.items() if length > 10_240 - 500} == {}


def test_each_function_may_do_only_its_own_part():
    def may(name):
        return {action for s in statements(name) for action in actions(s)}

    assert not any(action.startswith("ec2:") for action in may("PublishMetricsFunction"))
    assert "ec2:TerminateInstances" not in may("ScaleUpFunction")
    assert "ec2:CreateFleet" not in may("ScaleDownFunction")


def test_instances_may_ask_who_they_are_and_nothing_else():
    assert RESOURCES["RegisterAgentFunctionUrl"]["Properties"]["AuthType"] == "AWS_IAM"
    assert RESOURCES["RegistrationRoute"]["Properties"]["AuthorizationType"] == "AWS_IAM"
    assert RESOURCES["AgentRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Principal": {"Service": {"Sub": "ec2.${AWS::URLSuffix}"}}, "Action": "sts:AssumeRole"}
    ]
    _, over_api, over_url = RESOURCES["AgentPolicy"]["Properties"]["PolicyDocument"]["Statement"]["Fn::If"]
    assert [s["Action"] for s in over_api] == ["execute-api:Invoke"]
    assert [s["Action"] for s in over_url] == ["lambda:InvokeFunctionUrl", "lambda:InvokeFunction"]
    assert all(s["Resource"] == {"GetAtt": "RegisterAgentFunction.Arn"} for s in over_url)
    assert all("ec2:SourceInstanceARN" in s["Condition"]["ArnLike"] for s in [*over_api, *over_url])
    may = {action for s in statements("RegisterAgentFunction") for action in actions(s)}
    assert may.isdisjoint({"ec2:TerminateInstances", "ec2:CreateFleet", "ec2:RunInstances", "iam:PassRole"})


def test_the_state_is_reached_only_for_this_fleet():
    parts = ("asks",), ("events",), ("jobs", "costs"), ("reruns",), ("open-runs", "runs"), ("looks",)
    ours = [{"Ref": "FleetName"}], *([{"Sub": f"${{FleetName}}#{part}"} for part in together] for together in parts)
    for statement in allowing("dynamodb:PutItem"):
        assert statement["Condition"] in [{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": keys}} for keys in ours]


def test_both_layers_are_built_by_their_makefiles():
    for name in ("CoreLayer", "FleetLayer"):
        assert RESOURCES[name]["Metadata"]["BuildMethod"] == "makefile"
        makefile = ROOT / RESOURCES[name]["Properties"]["ContentUri"] / "Makefile"
        assert f"build-{name}:" in makefile.read_text(encoding="utf-8")


def test_a_deleted_stack_leaves_no_version_of_a_layer():
    versions = [r for r in translated()["Resources"].values() if r["Type"] == "AWS::Lambda::LayerVersion"]
    assert [version.get("DeletionPolicy", "Delete") for version in versions] == ["Delete", "Delete"]


def test_no_function_makes_the_log_group_of_a_deleted_stack_anew():
    denied = {"Sid": "NoLogGroupsByItself", "Effect": "Deny", "Action": "logs:CreateLogGroup", "Resource": "*"}
    without = [name for name in FUNCTIONS if not any(denied in policy["Statement"] for policy in FUNCTIONS[name]["Policies"])]
    assert without == []


def test_what_an_account_names_across_regions_carries_the_region():
    made = stack(MonthlyBudgetUsd="100")
    assert made["MonthBudget"]["Properties"]["Budget"]["BudgetName"] == "autoscaler-mxnet-ci-us-west-2"
    assert made["Dashboard"]["Properties"]["DashboardName"] == "autoscaler-mxnet-ci-us-west-2"


def test_composites_are_of_alarms_that_there_are_joined_by_or():
    for name, resource in RESOURCES.items():
        if resource["Type"] == "AWS::CloudWatch::CompositeAlarm":
            parts = [part.strip() for part in resource["Properties"]["AlarmRule"]["Sub"].split("OR")]
            named = [re.fullmatch(r'ALARM\("\$\{(\w+)\}"\)', part) for part in parts]
            assert all(found and found[1] in RESOURCES for found in named), name


def test_every_alarm_leads_to_the_topic_or_a_composite_and_to_its_entry_in_the_runbook():
    runbook = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    kinds = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"}
    alarms = {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] in kinds}
    composed = " ".join(alarm["AlarmRule"]["Sub"] for alarm in alarms.values() if "AlarmRule" in alarm)
    assert len(alarms) > 30
    for name, alarm in alarms.items():
        is_part = f"${{{name}}}" in composed
        assert bool(alarm.get("AlarmActions")) is not is_part, name
        assert alarm.get("AlarmActions", []) == alarm.get("OKActions", []), name
        told = {"If": ["SchedulesEnabled", "breaching", "notBreaching"]}, "ignore", "breaching", "notBreaching", "missing"
        assert "AlarmRule" in alarm or alarm["TreatMissingData"] in told, name
        heading = alarm["AlarmDescription"]["Sub"].rpartition("#")[2]
        assert f'<a id="{heading}"></a>' in runbook, name


OF_AGENTS = {"ControllerCpuPercent", "AgentDiskFreeBytes", "AgentMemoryAvailableBytes", "AgentGpuMemoryFreeBytes"}
ONLY_WITH_AGENTS_OR_JOBS = {"Problems", "JobWaitSeconds", "QueueWait"} | OF_AGENTS | _TOLD_WHEN_ANY


def test_a_deployment_without_an_address_for_alarms_ends_with_an_output_that_says_so():
    output = TEMPLATE["Outputs"]["NobodyIsTold"]
    assert "set AlarmEmail" in output["Description"]
    assert TEMPLATE["Conditions"][output["Condition"]] == {"Not": [{"Condition": "HasAlarmEmail"}]}


def test_every_alarm_watches_a_metric_that_is_really_published():
    fleet = in_memory(a_pool("cpu"))
    for _ in range(3):
        fleet.world.move_to(fleet.world.timeline.now + 60)
        fleet.publish_metrics()
        fleet.scale_down()
    published = {datum.name for _, datum in fleet.metrics.published} | set(scaling_counts())
    properties = [r["Properties"] for r in RESOURCES.values() if r["Type"] == "AWS::CloudWatch::Alarm"]
    watched = {one["MetricName"] for one in properties if one.get("Namespace") == {"Ref": "MetricNamespace"}}
    assert watched - published <= ONLY_WITH_AGENTS_OR_JOBS


def scaling_counts():
    return {*counts_of([]), "Heartbeat"}
