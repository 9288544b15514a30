"""What ports are tried on: stores of the state in memory, on moto's DynamoDB and on ministack's; controllers, a live one among them."""

import threading

import boto3
import pytest
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler_workbench.cli.demo import TABLE, create_table
from autoscaler_workbench.fakes.state import InMemoryState
from support.builders import a_record
from support.ministack import emulated_aws
from support.rig import live_rig, world_rig
from support.worlds import AWS

ON_DYNAMODB = ("moto", pytest.param("ministack", marks=pytest.mark.needs("ministack")))
STORES = ("memory", *ON_DYNAMODB)


def one_at_a_time(monkeypatch):
    """DynamoDB checks a condition and writes in one; moto does the one after the other, and another thread may come in between."""
    lock, call = threading.RLock(), DynamoHandler.call_action

    def call_alone(handler):
        with lock:
            return call(handler)

    monkeypatch.setattr(DynamoHandler, "call_action", call_alone)


def make_client(**endpoint):
    """One client for all tests: making it takes longer than most tests."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in AWS.items():
            environment.setenv(name, value)
        return boto3.client("dynamodb", **endpoint)


@pytest.fixture(scope="session")
def moto_client():
    return make_client()


@pytest.fixture(scope="session")
def ministack_client(tmp_path_factory):
    with emulated_aws(tmp_path_factory.mktemp("ministack")) as url:
        yield make_client(endpoint_url=url)


@pytest.fixture
def aws(monkeypatch):
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def moto(aws, monkeypatch, moto_client):
    """A client of moto's DynamoDB, with an empty table."""
    one_at_a_time(monkeypatch)
    with mock_aws():
        create_table(moto_client)
        yield moto_client


@pytest.fixture
def ministack(aws, monkeypatch, ministack_client):
    """A client of ministack's DynamoDB, with an empty table. Clients of other services that a test makes reach ministack, too."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", ministack_client.meta.endpoint_url)
    create_table(ministack_client)
    yield ministack_client
    ministack_client.delete_table(TableName=TABLE)


@pytest.fixture(params=ON_DYNAMODB)
def dynamo(request):
    """A client of DynamoDB, with an empty table: for tests of what only an adapter does."""
    return request.getfixturevalue(request.param)


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


@pytest.fixture(params=STORES)
def state(request):
    """A state store, which another fleet of the same table must not change."""
    if request.param == "memory":
        return InMemoryState()
    client = request.getfixturevalue(request.param)
    DynamoState(lambda: client, TABLE, "another-fleet").add_record(a_record("i-other"))
    return DynamoState(lambda: client, TABLE, "f")


@pytest.fixture(params=["memory", "http", "live"])
def here(request):
    """A controller in memory, over HTTP, and a live one; without one, the stand-in in its place."""
    if request.param == "live":
        with live_rig(request.getfixturevalue("live")) as rig:
            yield rig
    else:
        with world_rig(request.param) as rig:
            yield rig


def items(dynamo, partition=""):
    """All items of the table, or those of a partition."""
    found = [item for page in dynamo.get_paginator("scan").paginate(TableName=TABLE) for item in page["Items"]]
    return [item for item in found if partition in ("", item["fleet"]["S"])]


def size_of(item):
    return sum(len(name) + len(next(iter(value.values()))) for name, value in item.items())
