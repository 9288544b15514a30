"""The last day of a fleet: dollars an hour and alarms, as CloudWatch keeps them, or as a demo was sent them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.cli.alarms import of_published, of_stack
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.report.dashboard.alarms import Published
from autoscaler_workbench.ui.source import Past

_METRIC = "UsdPerHour"
_DAY_SECONDS = 86_400.0
_PERIOD_SECONDS = 300
# CloudWatch is paid by the question, and has something new once a minute.
_ASKED_EVERY_SECONDS = 60.0


@dataclass(slots=True)
class StackPast:
    """The last 24 hours of a stack, asked for once a minute while anybody looks."""

    deployed: Deployed
    clock: Callable[[], float]
    _last: Past | None = None
    _asked_at: float = 0.0
    _parameters: dict[str, str] = field(default_factory=dict)

    def __call__(self) -> Past:
        """Tell what was before."""
        now = self.clock()
        if self._last is None or now - self._asked_at >= _ASKED_EVERY_SECONDS:
            self._last, self._asked_at = self._ask(now), now
        return self._last

    def _ask(self, now: float) -> Past:
        """What may not be asked is said on the page, which shows all else: a policy may be older than the command line."""
        begin, unknown = now - _DAY_SECONDS, list[str]()
        try:
            spend = self._spend(begin, now)
        except AutoscalerError as error:
            spend, unknown = (), [f"dollars an hour are not known: {error}"]
        try:
            alarms = of_stack(self.deployed, rang_since=begin)
        except AutoscalerError as error:
            unknown.append(f"when alarms rang is not known: {error}")
            alarms = of_stack(self.deployed)
        told = [alarm.as_json() for alarm in alarms]
        return Past(begins_at=begin, ends_at=now, spend=spend, every_seconds=_PERIOD_SECONDS, alarms=told, unknown="; ".join(unknown))

    def _spend(self, begin: float, end: float) -> tuple[tuple[float, float], ...]:
        self._parameters = self._parameters or self.deployed.stack_parameters()
        metric = {
            "Namespace": self._parameters["MetricNamespace"],
            "MetricName": _METRIC,
            "Dimensions": [{"Name": "Fleet", "Value": self._parameters["FleetName"]}],
        }
        query = {"Id": "usd", "MetricStat": {"Metric": metric, "Period": _PERIOD_SECONDS, "Stat": "Maximum"}}
        pages = self.deployed.ask(
            "cloudwatch",
            "get_metric_data",
            MetricDataQueries=[query],
            StartTime=datetime.fromtimestamp(begin // _PERIOD_SECONDS * _PERIOD_SECONDS, UTC),
            EndTime=datetime.fromtimestamp(end, UTC),
        )
        series = [one for page in pages for one in page["MetricDataResults"]]
        return tuple(sorted((at.timestamp(), usd) for one in series for at, usd in zip(one["Timestamps"], one["Values"], strict=True)))


def past_of(published: Published) -> Past:
    """What a demo was sent since it began, a value a minute."""
    of_fleet = ((at, datum) for at, datum in published if datum.name == _METRIC and [name for name, _ in datum.dimensions] == ["Fleet"])
    spend = tuple((at, datum.values[-1]) for at, datum in of_fleet)  # those of teams and pools are parts of it
    begin, end = min((at for at, _ in published), default=0.0), max((at for at, _ in published), default=0.0)
    alarms = [alarm.as_json() for alarm in of_published(published)]
    return Past(begins_at=begin, ends_at=end, spend=spend, every_seconds=60.0, alarms=alarms)
