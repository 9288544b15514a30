"""The states of the alarms: of a stack, as CloudWatch has them; of a demo, as CloudWatch would have them."""

from dataclasses import asdict, dataclass
from typing import Any

from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.tables import for_people, print_rows
from autoscaler_workbench.report.dashboard.alarms import Published, read_alarms, states
from autoscaler_workbench.simulate.shipped import deployed as shipped

_RINGS = "ALARM"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmState:
    """One alarm. ``since_at``: when it came into this state; None where nobody kept it."""

    alarm: str
    state: str
    since_at: float | None
    says: str
    runbook: str

    @property
    def rings(self) -> bool:
        """Tell whether it rings."""
        return self.state == _RINGS

    def as_json(self) -> dict[str, Any]:
        """Write it as an answer."""
        return asdict(self)


def of_stack(deployed: Deployed) -> list[AlarmState]:
    """Ask CloudWatch for the alarms whose names begin with the stack's, as CloudFormation named them."""
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
        )
        for alarm in found
    ]


def of_demo(published: Published) -> list[AlarmState]:
    """Evaluate the template's alarms on what a demo has published."""
    fleet = dict(published[0][1].dimensions)["Fleet"] if published else ""
    alarms, composites = read_alarms(shipped("template.yaml"), fleet)
    began, now = min((at for at, _ in published), default=0.0), max((at for at, _ in published), default=0.0)
    found = states(alarms, composites, published, began, now)
    shown = [(one.name, one.description) for one in composites] + [(one.name, one.description) for one in alarms]
    return [_state(name, found[name], description, None) for name, description in shown]


def _state(name: str, state: str, description: str, since_at: float | None) -> AlarmState:
    says, _, runbook = description.rpartition(" ")
    return AlarmState(alarm=name.removesuffix("Alarm"), state=state, since_at=since_at, says=says, runbook=runbook)


def print_alarms(alarms: list[AlarmState]) -> None:
    """Print alarms, each with its entry in the runbook."""
    if for_people():
        print_rows(("alarm", "state", "says"), [(one.alarm, one.state, f"{one.says}\n{one.runbook}") for one in alarms], prose=("says",))
    else:
        print_rows(("alarm", "state", "says", "runbook"), [(one.alarm, one.state, one.says, one.runbook) for one in alarms])
