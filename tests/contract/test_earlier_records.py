"""Names in records that 0.3.0 wrote: agents at work outlast an upgrade, and what would not be true for long goes."""

import json
from dataclasses import replace

import pytest

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.domain.facts.snapshot import Binding, RecordState
from autoscaler_workbench.cli.demo import TABLE

# As 0.3.0 wrote it when an instance had registered, on an emulated DynamoDB.
WRITTEN = {
    "instance_id": "i-005c07ff7b2745de5",
    "state": "registered",
    "pool": "linux",
    "launch": "a99d930038ce4cd29406c347844ad3e8",
    "bindings": [{"controller": "main", "node": "linux-005c07ff7b2745de5", "life": 1}],
    "instance_type": "m7i.xlarge",
    "usd_per_hour": 0.2,
    "launched_at": 1795804744.8,
    "registered_at": 1795804754.9,
    "keep_until": 0.0,
    "changed_at": 1795804754.9,
    "node_life": 1,
    "labels": ["linux", "autoscaler-fleet-f"],
    "most_usd_per_hour": 0.2,
    "revision": 1,
    "controller": "main",
    "node": "linux-005c07ff7b2745de5",
    "life": 1,
}
NAME = f"record#{WRITTEN['instance_id']}"


@pytest.fixture
def book(dynamo):
    return DynamoState(lambda: dynamo, TABLE, "f")


def write_as_before(book, **changes):
    body = {"record": WRITTEN | changes}
    item = {
        "fleet": {"S": "f"},
        "item": {"S": NAME},
        "state": {"S": body["record"]["state"]},
        "revision": {"N": "1"},
        "body": {"S": json.dumps(body)},
    }
    book.client().put_item(TableName=TABLE, Item=item)


def as_stored(book, instance_id):
    """The fields of a record."""
    key = {"fleet": {"S": "f"}, "item": {"S": f"record#{instance_id}"}}
    return json.loads(book.client().get_item(TableName=TABLE, Key=key)["Item"]["body"]["S"])["record"]


def test_a_record_of_0_3_0_is_read_and_its_names_for_0_2_0_go_once_it_changes(book):
    """It writes whom the instance serves twice: in ``bindings``, and under the names of 0.2.0."""
    write_as_before(book)
    stored = book.read()
    assert stored.unread == ()
    [record] = stored.records
    assert record.bindings == (Binding(controller="main", node="linux-005c07ff7b2745de5", life=1),)
    book.change_record(record.bound(node="linux-2"), expected=record.state)
    written = as_stored(book, record.instance_id)
    assert written.keys() & {"controller", "node", "life"} == set()
    assert [binding["node"] for binding in written["bindings"]] == ["linux-2"]


def test_what_0_3_0_launched_to_be_stopped_is_not_that_any_more_once_it_is_an_agent(book):
    """On the way back 0.3.0 would stop it after its one build, and start it for another one."""
    booting = {"bindings": [{"controller": "main"}], "registered_at": None, "node": None}
    write_as_before(book, state="requested", to_stop=True, **booting)
    [record] = book.read().records
    assert as_stored(book, record.instance_id)["to_stop"] is True
    registered = replace(record.bound(node="linux-1"), state=RecordState.REGISTERED)
    book.change_record(registered, expected=record.state)
    assert "to_stop" not in as_stored(book, record.instance_id)


def test_a_record_of_0_2_0_is_named_as_unread_and_its_agent_counts_as_alive(book):
    before = {name: value for name, value in WRITTEN.items() if name not in {"bindings", "revision"}}
    item = {"fleet": {"S": "f"}, "item": {"S": NAME}, "state": {"S": "registered"}}
    body = {"S": json.dumps({"record": before})}
    book.client().put_item(TableName=TABLE, Item=item | {"body": body})
    stored = book.read()
    assert (stored.records, stored.unread) == ((), (NAME,))
