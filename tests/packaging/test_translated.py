"""What a deployment makes of template.yaml, after SAM's own translator, over what its parameters may be."""

import pytest

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
