"""The Notifier port on SNS (moto) and in memory."""

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from moto.sns.models import sns_backends

from autoscaler.adapters.telling import SnsTopic
from autoscaler.domain.report.told import Message
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.state import InMemoryNotifier
from autoscaler_workbench.fakes.world.faults import Fault
from support.worlds import AWS

MESSAGE = Message(about="breaker/cpu", subject="[f] agents of cpu do not boot", text="3 boots in a row failed.\n")


@pytest.fixture
def sns(monkeypatch):
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield boto3.client("sns")


@pytest.fixture(params=["sns", "memory"])
def sink(request, sns):
    """The port, and how to read back what it was given."""
    if request.param == "memory":
        notifier = InMemoryNotifier()
        return notifier, lambda: [(message.subject, message.text) for message in notifier.sent]
    arn = sns.create_topic(Name="alarms")["TopicArn"]
    topic = next(iter(sns_backends.values()))["us-west-2"].topics[arn]
    return SnsTopic(lambda: sns, arn, "docs"), lambda: [(sent[2], sent[1]) for sent in topic.sent_notifications]


def test_what_is_sent_arrives(sink):
    notifier, arrived = sink
    notifier.send(MESSAGE)
    assert arrived() == [(MESSAGE.subject, MESSAGE.text)]


def test_whom_a_topic_reaches(sns):
    """AWS names a subscription without an ARN until its owner has confirmed it."""
    raw = [
        {"Endpoint": "ada@example.org", "SubscriptionArn": "PendingConfirmation", "Protocol": "email"},
        {"Endpoint": "bob@example.org", "SubscriptionArn": "Deleted", "Protocol": "email"},
        {"Endpoint": "https://chat", "SubscriptionArn": "arn:aws-cn:sns:cn-north-1:1:alarms:0a1", "Protocol": "https"},
    ]
    topic = SnsTopic(lambda: sns, sns.create_topic(Name="alarms")["TopicArn"], "docs")
    assert list(topic.subscriptions()) == []
    with Stubber(sns) as stub:
        stub.add_response("list_subscriptions_by_topic", {"Subscriptions": raw}, {"TopicArn": topic.arn})
        assert [(one.address, one.confirmed) for one in topic.subscriptions()] == [
            ("ada@example.org", False),
            ("bob@example.org", False),
            ("https://chat", True),
        ]


def test_a_topic_that_does_not_answer_is_a_transient_error(sns):
    with Stubber(sns) as stub, pytest.raises(TransientError, match="Publish: InternalError"):
        stub.add_client_error("publish", "InternalError", http_status_code=500)
        SnsTopic(lambda: sns, "arn:aws:sns:us-west-2:123456789012:alarms", "docs").send(MESSAGE)
    memory = InMemoryNotifier()
    memory.faults.plan(Fault("sns Publish"))
    with pytest.raises(TransientError):
        memory.send(MESSAGE)
