"""What the template makes at each `MetricsLevel`: how many alarms on what, and that nothing rings at one level alone."""

import json

import pytest

from autoscaler.config.problems import _VARIABLES, read_thresholds
from autoscaler.domain.report.datum import ESSENTIAL
from autoscaler.domain.report.problems import Comparison, rules
from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, made_by
from autoscaler_workbench.report.dashboard.widgets import dashboard_body
from packaging_root import ROOT
from support.deployed import essential_environment
from support.template import TEMPLATE

EVERYTHING = {
    "ControllerInstanceId": "i-1",
    "AgentMemoryAlarmBytes": "1",
    "AgentGpuMemoryAlarmBytes": "1",
    "ControllerMemoryAlarmBytes": "1",
}
ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
OF_LAMBDA_AND_EC2 = {"Errors", "CPUUtilization", "NetworkOut"}
COMPARISONS = {
    "GreaterThanThreshold": Comparison.OVER,
    "GreaterThanOrEqualToThreshold": Comparison.AT_LEAST,
    "LessThanThreshold": Comparison.BELOW,
}


def made(level, **parameters):
    given = defaults_of(TEMPLATE) | {"FleetName": "ci", "MetricsLevel": level} | parameters
    return made_by(TEMPLATE, given)


def alarms(level):
    return {name: one["Properties"] for name, one in made(level, **EVERYTHING).items() if one["Type"] in {ALARM, COMPOSITE}}


def heading(alarm):
    return alarm["AlarmDescription"].rpartition("#")[2]


def test_essential_has_ten_alarms_at_most_each_on_one_metric_that_is_sent():
    found = alarms("essential")
    assert len(found) == 10
    assert not any("Metrics" in one or "AlarmRule" in one for one in found.values())
    assert {one["MetricName"] for one in found.values()} <= ESSENTIAL | OF_LAMBDA_AND_EC2
    for one in found.values():
        names = [dimension["Name"] for dimension in one["Dimensions"]]
        assert names == (["Fleet"] if one["MetricName"] in ESSENTIAL else names)
        assert one["AlarmActions"]


def test_what_rings_at_full_rings_at_essential_by_an_alarm_or_as_a_problem():
    conditions = {rule.heading or rule.name for rule in rules(read_thresholds(essential_environment() | _with_memory()))}
    here = {heading(one) for one in alarms("essential").values()}
    assert {heading(one) for one in alarms("full").values()} <= conditions | here


def _with_memory():
    return {"AGENT_MEMORY_ALARM_BYTES": "1", "AGENT_GPU_MEMORY_ALARM_BYTES": "1", "CONTROLLER_MEMORY_ALARM_BYTES": "1"}


def test_a_condition_has_the_threshold_of_its_alarm():
    """Those of minutes within a window, and of functions that are silent, are counted otherwise."""
    counted_otherwise = {"SweepsStopped", "Ec2Disagrees", "SecondsSincePass", "PassesMissed"}
    judged = {rule.metric: rule for rule in rules(read_thresholds(essential_environment() | _with_memory()))}
    full = {one["MetricName"]: one for one in alarms("full").values() if "MetricName" in one}
    assert judged.keys() - full.keys() <= counted_otherwise
    for metric in judged.keys() & full.keys() - counted_otherwise:
        assert judged[metric].threshold == float(full[metric]["Threshold"]), metric
        assert judged[metric].comparison is COMPARISONS[full[metric]["ComparisonOperator"]], metric


def test_a_condition_lasts_as_long_as_its_alarm_waits():
    judged = {rule.metric: rule for rule in rules(read_thresholds(essential_environment() | _with_memory()))}
    for one in alarms("full").values():
        rule = judged.get(one.get("MetricName", ""))
        if rule is None or one.get("Statistic") == "Sum" or one["MetricName"] in {"SweepsStopped", "Ec2Disagrees"}:
            continue
        waits = float(one["Period"]) * (int(one.get("DatapointsToAlarm", one["EvaluationPeriods"])) - 1)
        assert rule.seconds == pytest.approx(waits, abs=300.0), rule.name


def test_every_condition_has_its_entry_in_the_runbook():
    runbook = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for rule in rules(read_thresholds(essential_environment() | _with_memory())):
        assert f'<a id="{rule.heading or rule.name}"></a>' in runbook, rule.name


def test_publish_metrics_is_handed_every_threshold_and_every_function_the_level():
    assert set(_VARIABLES.values()) <= essential_environment().keys()
    assert TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]["METRICS_LEVEL"] == {"Ref": "MetricsLevel"}


@pytest.mark.parametrize("level", ["essential", "full"])
def test_a_dashboard_is_made_unless_it_is_not_wanted_and_shows_only_alarms_that_there_are(level):
    assert "Dashboard" in made(level)
    assert "Dashboard" not in made(level, MakeDashboard="no")
    board = json.loads(dashboard_body(ROOT / "template.yaml", "f", MetricsLevel=level))
    [shown] = [widget["properties"]["alarms"] for widget in board["widgets"] if widget["type"] == "alarm"]
    assert {name.removesuffix(".Arn") for name in shown} <= made(level).keys()


def test_each_log_query_of_essential_asks_for_what_is_logged():
    written = {
        name: one["Properties"]["QueryString"] for name, one in made("essential").items() if one["Type"] == "AWS::Logs::QueryDefinition"
    }
    assert set(written) - set(made("full")) == {"MeasuredQuery", "PoolsQuery", "ProblemsQuery"}
    assert "pool_measured" in written["MeasuredQuery"]
    assert "'problem'" in written["ProblemsQuery"]
