"""The last day of a stack: what CloudWatch is asked for, how often, and what is said where it may not be asked."""

import json
from datetime import UTC, datetime

import pytest

from autoscaler.errors import TransientError
from autoscaler_workbench.cli.past import StackPast

NOW = 1_800_000_000.0
BEGIN = NOW - 86_400.0


def when(at):
    return datetime.fromtimestamp(at, UTC)


def an_alarm(name, state, changed_at):
    described = {"AlarmDescription": "It is so. https://example.org/operations.md#so", "StateUpdatedTimestamp": when(changed_at)}
    return {"AlarmName": f"ci-{name}Alarm-1A2B", "StateValue": state} | described


def a_change(at, before, after):
    return {"Timestamp": when(at), "HistoryData": json.dumps({"oldState": {"stateValue": before}, "newState": {"stateValue": after}})}


class Asked:
    """A stack whose CloudWatch answers what it was given; ``refuses``: operations that the person may not use."""

    stack = "ci"

    def __init__(self, alarms, changes=(), refuses=()):
        self.alarms, self.changes, self.refuses, self.asked = alarms, list(changes), refuses, []

    def stack_parameters(self):
        return {"MetricNamespace": "JenkinsFleet", "FleetName": "my-ci"}

    def ask(self, _service, operation, **parameters):
        self.asked.append((operation, parameters))
        if operation in self.refuses:
            raise TransientError(f"cloudwatch could not be asked: AccessDenied for {operation}")
        match operation:
            case "describe_alarms":
                return [{"MetricAlarms": self.alarms, "CompositeAlarms": []}]
            case "describe_alarm_history":
                return [{"AlarmHistoryItems": self.changes}]
            case _:
                return [{"MetricDataResults": [{"Timestamps": [when(NOW - 300), when(NOW - 600)], "Values": [2.0, 1.0]}]}]


def operations(asked):
    return [operation for operation, _ in asked.asked]


def test_dollars_are_asked_for_by_the_stacks_own_names_and_come_oldest_first():
    asked = Asked([])
    past = StackPast(asked, lambda: NOW)()
    assert past.spend == ((NOW - 600, 1.0), (NOW - 300, 2.0))
    [query] = asked.asked[0][1]["MetricDataQueries"]
    assert query["MetricStat"]["Metric"]["Namespace"] == "JenkinsFleet"
    assert query["MetricStat"]["Metric"]["Dimensions"] == [{"Name": "Fleet", "Value": "my-ci"}]


def test_only_an_alarm_that_changed_that_day_is_asked_for_its_history():
    asked = Asked([an_alarm("Old", "ALARM", BEGIN - 60), an_alarm("Quiet", "OK", BEGIN - 60), an_alarm("New", "OK", NOW - 60)])
    asked.changes = [a_change(NOW - 600, "OK", "ALARM"), a_change(NOW - 60, "ALARM", "OK")]
    rang = {alarm["alarm"]: alarm["rang"] for alarm in StackPast(asked, lambda: NOW)().alarms}
    assert rang == {"Old": ((BEGIN - 60, None),), "Quiet": (), "New": ((NOW - 600, NOW - 60),)}
    assert operations(asked).count("describe_alarm_history") == 1


@pytest.mark.parametrize(
    ("changes", "rang"),
    [
        ([("ALARM", "OK", 600)], ((BEGIN, NOW - 600),)),
        ([("OK", "ALARM", 600)], ((NOW - 600, None),)),
        ([("ALARM", "INSUFFICIENT_DATA", 900), ("INSUFFICIENT_DATA", "ALARM", 300)], ((BEGIN, NOW - 900), (NOW - 300, None))),
        ([], ((BEGIN, None),)),
    ],
)
def test_the_first_change_tells_what_was_before_it(changes, rang):
    asked = Asked([an_alarm("New", "ALARM", NOW - 60)], [a_change(NOW - ago, before, after) for before, after, ago in changes])
    assert StackPast(asked, lambda: NOW)().alarms[0]["rang"] == rang


def test_it_is_asked_once_a_minute_however_often_the_page_looks():
    times = iter([NOW, NOW + 15, NOW + 59, NOW + 61])
    asked = Asked([])
    past = StackPast(asked, lambda: next(times))
    for _ in range(4):
        past()
    assert operations(asked).count("get_metric_data") == 2


def test_what_may_not_be_asked_is_said_and_the_rest_is_there():
    asked = Asked([an_alarm("New", "ALARM", NOW - 60)], refuses=("get_metric_data", "describe_alarm_history"))
    past = StackPast(asked, lambda: NOW)()
    assert past.spend == ()
    assert [alarm["state"] for alarm in past.alarms] == ["ALARM"]
    assert "dollars an hour are not known: cloudwatch could not be asked: AccessDenied for get_metric_data" in past.unknown
    assert "when alarms rang is not known" in past.unknown
