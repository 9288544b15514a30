"""The states of the alarms, and when they rang: of a stack, as CloudWatch has them; of a demo or a run, as CloudWatch would have them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.tables import for_people, print_rows
from autoscaler_workbench.report.dashboard.alarms import Period, Published, periods, read_alarms, state_of
from autoscaler_workbench.report.dashboard.cloudformation import FULL
from autoscaler_workbench.simulate.shipped import deployed as shipped

_RINGS = "ALARM"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmState:
    """One alarm. ``since_at``: when it came into this state; None: it was always so. ``rang``: when it rang, where that was asked."""

    alarm: str
    state: str
    since_at: float | None
    says: str
    runbook: str
    rang: tuple[Period, ...] = ()

    @property
    def rings(self) -> bool:
        """Tell whether it rings."""
        return self.state == _RINGS

    def as_json(self) -> dict[str, Any]:
        """Write it as an answer."""
        return asdict(self)


def of_stack(deployed: Deployed, rang_since: float | None = None) -> list[AlarmState]:
    """Ask CloudWatch for the alarms whose names begin with the stack's, as CloudFormation named them.

    ``rang_since``: also since when to ask for the periods in which they rang, alarm by alarm.
    """
    pages = deployed.ask(
        "cloudwatch", "describe_alarms", AlarmNamePrefix=f"{deployed.stack}-", AlarmTypes=["MetricAlarm", "CompositeAlarm"]
    )
    found = [alarm for page in pages for kind in ("CompositeAlarms", "MetricAlarms") for alarm in page.get(kind, [])]
    return [
        _state(
            alarm["AlarmName"].removeprefix(f"{deployed.stack}-").rpartition("-")[0] or alarm["AlarmName"],
            alarm["StateValue"],
            alarm.get("AlarmDescription", ""),
            alarm["StateUpdatedTimestamp"].timestamp(),
            () if rang_since is None else _rang(deployed, alarm, rang_since),
        )
        for alarm in found
    ]


def _rang(deployed: Deployed, alarm: dict[str, Any], since: float) -> tuple[Period, ...]:
    """When an alarm rang. One that has not changed since then needs no question: there are dozens, and few of them change."""
    changed = alarm["StateUpdatedTimestamp"].timestamp()
    if changed < since:
        return ((changed, None),) if alarm["StateValue"] == _RINGS else ()
    pages = deployed.ask(
        "cloudwatch",
        "describe_alarm_history",
        AlarmName=alarm["AlarmName"],
        AlarmTypes=["MetricAlarm", "CompositeAlarm"],
        HistoryItemType="StateUpdate",
        StartDate=datetime.fromtimestamp(since, UTC),
        ScanBy="TimestampAscending",
    )
    items = [item for page in pages for item in page["AlarmHistoryItems"]]
    if not items:  # only how it is evaluated has changed
        return ((since, None),) if alarm["StateValue"] == _RINGS else ()
    return tuple(_periods_of(((item["Timestamp"].timestamp(), json.loads(item["HistoryData"])) for item in items), since))


def _periods_of(changes: Iterable[tuple[float, dict[str, Any]]], since: float) -> Iterator[Period]:
    """Periods of ringing from changes of state, oldest first; the first change tells what was before it."""
    began: float | None = None
    for place, (at, change) in enumerate(changes):
        if place == 0 and change["oldState"]["stateValue"] == _RINGS:
            began = since
        rings = change["newState"]["stateValue"] == _RINGS
        if rings and began is None:
            began = at
        elif not rings and began is not None:
            yield began, at
            began = None
    if began is not None:
        yield began, None


def of_published(published: Published) -> list[AlarmState]:
    """Evaluate the template's alarms on what a demo or a run has published."""
    fleet = dict(published[0][1].dimensions)["Fleet"] if published else ""
    alarms, composites = read_alarms(shipped("template.yaml"), fleet, **FULL)
    began, now = min((at for at, _ in published), default=0.0), max((at for at, _ in published), default=0.0)
    found = periods(alarms, composites, published, began, now)
    shown = [(one.name, one.description) for one in composites] + [(one.name, one.description) for one in alarms]
    return [_of_periods(name, description, found[name]) for name, description in shown]


def _of_periods(name: str, description: str, rang: list[Period]) -> AlarmState:
    since = (rang[-1][0] if rang[-1][1] is None else rang[-1][1]) if rang else None
    return _state(name, state_of(rang), description, since, tuple(rang))


def _state(name: str, state: str, description: str, since_at: float | None, rang: tuple[Period, ...]) -> AlarmState:
    says, _, runbook = description.rpartition(" ")
    return AlarmState(alarm=name.removesuffix("Alarm"), state=state, since_at=since_at, says=says, runbook=runbook, rang=rang)


def print_alarms(alarms: list[AlarmState]) -> None:
    """Print alarms, each with its entry in the runbook."""
    if for_people():
        print_rows(("alarm", "state", "says"), [(one.alarm, one.state, f"{one.says}\n{one.runbook}") for one in alarms], prose=("says",))
    else:
        print_rows(("alarm", "state", "says", "runbook"), [(one.alarm, one.state, one.says, one.runbook) for one in alarms])
