"""Tells CloudWatch and people: the Metrics port with PutMetricData, the Notifier port with a topic of SNS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from autoscaler.adapters.aws import translated
from autoscaler.domain.report.datum import essential
from autoscaler.domain.report.problems import Subscription

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

    from autoscaler.domain.report.datum import Datum
    from autoscaler.domain.report.told import Message
    from autoscaler.ports import Metrics

_VALUES_A_DATUM, _DATA_A_CALL = 150, 1000


@dataclass(frozen=True, slots=True)
class CloudWatchMetrics:
    """One namespace. ``client`` makes the client at the first use."""

    client: Callable[[], CloudWatchClient]
    namespace: str

    def publish(self, data: Iterable[Datum], at: float) -> int:
        """Send data in as few calls as CloudWatch allows; return how many metrics were sent."""
        data = list(data)
        parts = [part for datum in data for part in _parts(datum, at)]
        with translated("PutMetricData"):
            for start in range(0, len(parts), _DATA_A_CALL):
                self.client().put_metric_data(Namespace=self.namespace, MetricData=parts[start : start + _DATA_A_CALL])
        return len(data)


@dataclass(frozen=True, slots=True)
class EssentialMetrics:
    """Sends the few metrics of `MetricsLevel: essential` alone, whoever publishes; calls nothing where there is none of them."""

    metrics: Metrics

    def publish(self, data: Iterable[Datum], at: float) -> int:
        """Send what is essential; return how many metrics were sent."""
        kept = essential(data)
        return self.metrics.publish(kept, at) if kept else 0


def _parts(datum: Datum, at: float) -> Iterator[Any]:
    counts = sorted(Counter(datum.values).items())
    for start in range(0, len(counts), _VALUES_A_DATUM):
        chunk = counts[start : start + _VALUES_A_DATUM]
        yield {
            "MetricName": datum.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in datum.dimensions],
            "Timestamp": datetime.fromtimestamp(at, UTC),
            "Values": [value for value, _ in chunk],
            "Counts": [float(count) for _, count in chunk],
            "Unit": datum.unit,
        }


@dataclass(frozen=True, slots=True)
class SnsTopic:
    """One topic. ``client`` makes the client at the first use."""

    client: Callable[[], Any]
    arn: str
    runbooks: str

    def send(self, message: Message) -> None:
        """Publish it; `TransientError`."""
        with translated("Publish"):
            self.client().publish(TopicArn=self.arn, Subject=message.subject, Message=message.text)

    def subscriptions(self) -> Sequence[Subscription]:
        """Ask for the first hundred; `TransientError`."""
        with translated("ListSubscriptionsByTopic"):
            answer = self.client().list_subscriptions_by_topic(TopicArn=self.arn)
        return [
            Subscription(address=raw["Endpoint"], confirmed=raw["SubscriptionArn"].startswith("arn:")) for raw in answer["Subscriptions"]
        ]
