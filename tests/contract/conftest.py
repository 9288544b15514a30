"""The state store that the contract of state is tried on: on DynamoDB (moto), and in memory."""

import threading

import boto3
import pytest
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler_workbench.cli.demo import TABLE, create_table
from autoscaler_workbench.fakes.state import InMemoryState
from support.builders import a_record
from support.worlds import AWS


def one_at_a_time(monkeypatch):
    """DynamoDB checks a condition and writes in one; moto does the one after the other, and another thread may come in between."""
    lock, call = threading.RLock(), DynamoHandler.call_action

    def call_alone(handler):
        with lock:
            return call(handler)

    monkeypatch.setattr(DynamoHandler, "call_action", call_alone)


@pytest.fixture(scope="session")
def dynamo_client():
    """One client for all tests: making it takes longer than most tests."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in AWS.items():
            environment.setenv(name, value)
        return boto3.client("dynamodb")


@pytest.fixture
def dynamo(monkeypatch, dynamo_client):
    """A client of DynamoDB (moto), with an empty table."""
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        create_table(dynamo_client)
        yield dynamo_client


@pytest.fixture
def listen(dynamo):
    """Hear of the client's events until the test ends."""
    heard = []

    def register(event, handler):
        dynamo.meta.events.register(event, handler)
        heard.append((event, handler))

    yield register
    for event, handler in heard:
        dynamo.meta.events.unregister(event, handler)


@pytest.fixture(params=["memory", "dynamodb"])
def state(request, monkeypatch):
    """A state store, which another fleet of the same table must not change."""
    if request.param == "memory":
        return InMemoryState()
    one_at_a_time(monkeypatch)
    client = request.getfixturevalue("dynamo")
    DynamoState(lambda: client, TABLE, "another-fleet").add_record(a_record("i-other"))
    return DynamoState(lambda: client, TABLE, "f")
