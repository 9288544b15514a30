"""Alarms as CloudWatch judges them: of one set of dimensions, period by period, M datapoints out of N.

MiniStack takes all datapoints of the name together, and rings at the first one. Metric math is not there.
"""

import time
from collections import defaultdict

from ministack.services import cloudwatch

_CROSSES = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}


def install() -> None:
    cloudwatch._evaluate_alarm = judge


def judge(alarm) -> None:
    """Set an alarm's state by its last N periods, and tell its topic where the state changes."""
    periods = alarm.get("EvaluationPeriods", 1)
    values = list(_values(alarm, periods))
    if not any(value is not None for value in values):
        return
    data = [crosses for value in values if (crosses := _is_crossing(alarm, value)) is not None]
    state = "ALARM" if sum(data) >= (alarm.get("DatapointsToAlarm") or periods) else "OK"
    before = alarm["StateValue"]
    if state == before:
        return
    reason = f"Threshold Crossed: {sum(data)} datapoints of {len(data)} {alarm['ComparisonOperator']} {alarm['Threshold']}"
    alarm |= {"StateValue": state, "StateReason": reason, "StateUpdatedTimestamp": int(time.time())}
    cloudwatch._record_history(alarm["AlarmName"], before, state, reason)
    cloudwatch._dispatch_alarm_actions(alarm, before, state, reason)
    cloudwatch._evaluate_parent_alarms(alarm)


def _values(alarm, periods):
    """The statistic of each of the last periods, the current one included; None where nothing was sent."""
    length = alarm.get("Period", 60)
    now = int(time.time() // length)
    wanted = {entry["Name"]: entry["Value"] for entry in alarm.get("Dimensions", [])}
    points = defaultdict(list)
    for (namespace, name, _), sent in cloudwatch._metrics.items():
        if (namespace, name) == (alarm.get("Namespace"), alarm.get("MetricName")):
            for point in sent:
                if point["Dimensions"] == wanted:
                    points[int(point["Timestamp"] // length)].append(point)
    statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic", "Average")
    for period in range(now - periods + 1, now + 1):
        sent = points.get(period)
        yield cloudwatch._stat_value(cloudwatch._calc_stats(sent), statistic, sent) if sent else None


def _is_crossing(alarm, value):
    """Whether a datapoint counts as crossing the threshold; None: it counts for nothing."""
    if value is not None:
        return _CROSSES[alarm["ComparisonOperator"]](value, alarm["Threshold"])
    return {"breaching": True, "notBreaching": False}.get(alarm.get("TreatMissingData"))
