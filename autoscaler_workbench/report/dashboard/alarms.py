"""The template's alarms, evaluated as CloudWatch does it, on metrics that were published here."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from autoscaler.domain.report.datum import Datum
from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, made_by, read_template

Published = Sequence[tuple[float, Datum]]
Period = tuple[float, float | None]  # from when until when; None: it still rings
_OVER = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
_TEXTS = {"description": "AlarmDescription", "metric": "MetricName", "comparison": "ComparisonOperator", "missing": "TreatMissingData"}
_ALARM_IN_RULE = re.compile(r"ALARM\(\"([^\"]+)\"\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One alarm on one metric of ours. ``statistic``: Minimum, Maximum, Sum, Average, or a percentile such as p95."""

    name: str
    description: str
    metric: str
    dimensions: frozenset[tuple[str, str]]
    statistic: str
    period_seconds: float
    periods: int
    to_alarm: int
    threshold: float
    comparison: str
    missing: str

    @property
    def runbook(self) -> str:
        """Its entry in the runbook."""
        return self.description.rpartition(" ")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """An alarm that fires when any of its parts does."""

    name: str
    description: str
    of: tuple[str, ...]


def read_alarms(file: Path, fleet: str, **parameters: str) -> tuple[list[Alarm], list[Composite]]:
    """The alarms that a template makes on what we publish; ``parameters`` other than their defaults."""
    template = read_template(file)
    # A rule names alarms; here they have the names that they have in the template.
    given = defaults_of(template) | parameters | {"FleetName": fleet} | {name: name for name in template["Resources"]}
    alarms: list[Alarm] = []
    composites: list[Composite] = []
    for name, resource in made_by(template, given).items():
        facts = resource.get("Properties", {})
        if resource["Type"] == "AWS::CloudWatch::Alarm" and facts.get("Namespace") == given["MetricNamespace"]:
            alarms.append(_alarm(name, facts))
        elif resource["Type"] == "AWS::CloudWatch::CompositeAlarm":
            of = tuple(_ALARM_IN_RULE.findall(facts["AlarmRule"]))
            composites.append(Composite(name=name, description=facts["AlarmDescription"], of=of))
    return alarms, composites


def states(alarms: Iterable[Alarm], composites: Iterable[Composite], published: Published, begin: float, now: float) -> dict[str, str]:
    """The state of each alarm now, after it was evaluated each minute from the beginning: OK or ALARM."""
    return {name: state_of(rang) for name, rang in periods(alarms, composites, published, begin, now).items()}


def periods(
    alarms: Iterable[Alarm], composites: Iterable[Composite], published: Published, begin: float, now: float
) -> dict[str, list[Period]]:
    """The periods in which each alarm rang, evaluated each minute from the beginning."""
    found = {alarm.name: _rang(alarm, published, begin, now) for alarm in alarms}
    return found | {one.name: merged(period for part in one.of for period in found.get(part, [])) for one in composites}


def state_of(rang: Sequence[Period]) -> str:
    """The state of an alarm that rang so: OK or ALARM."""
    return "ALARM" if rang and rang[-1][1] is None else "OK"


def merged(rang: Iterable[Period]) -> list[Period]:
    """Join periods that touch each other."""
    joined: list[Period] = []
    for begin, end in sorted(rang, key=lambda period: period[0]):
        if joined and (joined[-1][1] is None or begin <= joined[-1][1]):
            before = joined[-1][1]
            joined[-1] = joined[-1][0], None if before is None or end is None else max(before, end)
        else:
            joined.append((begin, end))
    return joined


def _alarm(name: str, facts: Mapping[str, Any]) -> Alarm:
    periods = int(facts["EvaluationPeriods"])
    return Alarm(
        name=name,
        **{field: facts[key] for field, key in _TEXTS.items()},
        dimensions=frozenset((d["Name"], d["Value"]) for d in facts["Dimensions"]),
        statistic=facts.get("Statistic") or facts["ExtendedStatistic"],
        period_seconds=float(facts["Period"]),
        periods=periods,
        to_alarm=int(facts.get("DatapointsToAlarm", periods)),
        threshold=float(facts["Threshold"]),
    )


def _rang(alarm: Alarm, published: Published, begin: float, now: float) -> list[Period]:
    buckets: dict[int, list[float]] = {}
    for at, datum in published:
        if datum.name == alarm.metric and frozenset(datum.dimensions) == alarm.dimensions:
            buckets.setdefault(int(at // alarm.period_seconds), []).extend(datum.values)
    state, rang = "OK", list[Period]()
    for minute in range(int((now - begin) // 60) + 1):
        at, before = begin + minute * 60.0, state
        state = _state(alarm, buckets, begin, at, before)
        if state == before:
            continue
        if state == "ALARM":
            rang.append((at, None))
        else:
            rang[-1] = rang[-1][0], at
    return rang


def _state(alarm: Alarm, buckets: Mapping[int, list[float]], begin: float, at: float, before: str) -> str:
    newest, first = int(at // alarm.period_seconds), int(begin // alarm.period_seconds)  # before the first, nothing was there to be missed
    breaching = sound = 0
    for values in (buckets.get(number) for number in range(max(first, newest - alarm.periods + 1), newest + 1)):
        if values is not None:
            over = _OVER[alarm.comparison](statistic_of(alarm.statistic, values), alarm.threshold)
        elif alarm.missing in {"breaching", "notBreaching"}:
            over = alarm.missing == "breaching"
        else:
            continue
        breaching, sound = breaching + over, sound + (not over)
    if breaching >= alarm.to_alarm:
        return "ALARM"
    # What is missing could still make it ring: then it stays as it is.
    return "OK" if alarm.periods - sound < alarm.to_alarm else before


def statistic_of(name: str, values: list[float]) -> float:
    """A statistic as CloudWatch names it, of at least one value."""
    match name:
        case "Maximum":
            return max(values)
        case "Minimum":
            return min(values)
        case "Sum":
            return sum(values)
        case "Average":
            return sum(values) / len(values)
        case _:
            return sorted(values)[max(0, ceil(float(name.removeprefix("p")) / 100 * len(values)) - 1)]


def ringing(found: Mapping[str, str]) -> Iterator[str]:
    """The names of the firing alarms."""
    return (name for name, state in found.items() if state == "ALARM")
