"""Implements the Notifier port with a topic of SNS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autoscaler.adapters.aws import translated
from autoscaler.domain.report.problems import Subscription

if TYPE_CHECKING:
    from autoscaler.domain.report.told import Message


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
