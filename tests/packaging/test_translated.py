"""What a deployment makes of template.yaml, after SAM's own translator, over what its parameters may be."""

import pytest

from autoscaler.config import check
from support.translated import stack

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
    alarms = kinds(stack(ScheduleState=state), "AWS::CloudWatch::Alarm")
    silent = {name: alarm["TreatMissingData"] for name, alarm in alarms.items() if name.endswith("SilentAlarm")}
    missing = {"ENABLED": "breaching", "DISABLED": "notBreaching"}[state]
    assert silent == {f"{function.removesuffix('Function')}SilentAlarm": missing for function in SCHEDULED}
    [down] = [alarm for name, alarm in kinds(stack(ScheduleState=state), "AWS::CloudWatch::CompositeAlarm").items() if "Down" in name]
    assert down.get("ActionsEnabled", True) is True
    assert "FunctionErrorsAlarm" in down["AlarmRule"]


def launch_templates(**parameters):
    return kinds(stack(**parameters), "AWS::EC2::LaunchTemplate")


@pytest.mark.parametrize(
    ("parameter", "value", "changed"),
    [
        ("AgentBootTimeoutSeconds", "1200", {"LinuxAgents", "WindowsAgents"}),
        ("AgentSecurityGroupIds", "sg-0aa,sg-0bb", {"LinuxAgents", "WindowsAgents"}),
        ("LinuxVolumeGiB", "200", {"LinuxAgents"}),
        ("WindowsVolumeGiB", "300", {"WindowsAgents"}),
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
