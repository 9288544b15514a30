"""Records that 0.2.0 wrote, and that 0.3.0 left as they were or wrote for both: agents at work outlast an upgrade."""

import json
from dataclasses import replace

import pytest

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.domain.facts.snapshot import Binding, RecordState
from autoscaler_workbench.cli.demo import TABLE

# As 0.2.0 wrote it when an instance had registered, on an emulated DynamoDB.
WRITTEN = {
    "instance_id": "i-005c07ff7b2745de5",
    "state": "registered",
    "pool": "linux",
    "controller": "main",
    "launch": "a99d930038ce4cd29406c347844ad3e8",
    "instance_type": "m7i.xlarge",
    "usd_per_hour": 0.2,
    "launched_at": 1795804744.8,
    "node": "linux-005c07ff7b2745de5",
    "registered_at": 1795804754.9,
    "keep_until": 0.0,
    "changed_at": 1795804754.9,
    "life": 1,
    "node_life": 1,
    "labels": ["linux", "autoscaler-fleet-f"],
    "most_usd_per_hour": 0.2,
}
NAME = f"record#{WRITTEN['instance_id']}"


@pytest.fixture
def book(dynamo):
    return DynamoState(lambda: dynamo, TABLE, "f")


def write_as_before(book, **changes):
    """Write the item that 0.2.0 writes: it knows no revision."""
    body = {"record": WRITTEN | changes}
    item = {"fleet": {"S": "f"}, "item": {"S": NAME}, "state": {"S": body["record"]["state"]}, "body": {"S": json.dumps(body)}}
    book._client().put_item(TableName=TABLE, Item=item)


def as_stored(book, instance_id):
    """The fields of a record."""
    key = {"fleet": {"S": "f"}, "item": {"S": f"record#{instance_id}"}}
    return json.loads(book._client().get_item(TableName=TABLE, Key=key)["Item"]["body"]["S"])["record"]


def test_a_record_of_0_2_0_is_read(book):
    write_as_before(book)
    stored = book.read()
    assert stored.unread == ()
    [record] = stored.records
    assert record.bindings == (Binding(controller="main", node="linux-005c07ff7b2745de5", life=1),)
    assert (record.state, record.labels, record.revision) == (RecordState.REGISTERED, ("linux", "autoscaler-fleet-f"), 0)
    assert book.record(record.instance_id) == record


def test_a_record_of_0_2_0_of_an_instance_that_boots_is_read(book):
    write_as_before(book, state="requested", node=None, registered_at=None)
    [record] = book.read().records
    assert record.bindings == (Binding(controller="main", node=None, life=1),)


def test_a_record_of_0_2_0_is_changed_and_ended(book):
    write_as_before(book)
    [record] = book.read().records
    condemned = book.change_record(replace(record, state=RecordState.CONDEMNED), expected=RecordState.REGISTERED)
    assert book.read().records == (condemned,)
    book.change_record(replace(condemned, state=RecordState.GONE), expected=RecordState.CONDEMNED)
    assert book.read().records == ()


def test_what_0_3_0_wrote_for_0_2_0_is_left_out_once_a_record_changes(book):
    """It writes whom the instance serves twice: in ``bindings``, and under the names of 0.2.0."""
    write_as_before(book, bindings=[{"controller": "main", "node": "linux-1", "life": 1}])
    [record] = book.read().records
    assert (record.controller, record.node) == ("main", "linux-1")
    book.change_record(record.bound(node="linux-2"), expected=record.state)
    stored = as_stored(book, record.instance_id)
    assert stored.keys() & {"controller", "node", "life"} == set()
    assert [binding["node"] for binding in stored["bindings"]] == ["linux-2"]


def test_what_0_3_0_launched_to_be_stopped_is_not_that_any_more_once_it_is_an_agent(book):
    """On the way back 0.3.0 would stop it after its one build, and start it for another one."""
    write_as_before(
        book,
        state="requested",
        registered_at=None,
        to_stop=True,
        bindings=[{"controller": "main"}],
    )
    [record] = book.read().records
    assert as_stored(book, record.instance_id)["to_stop"] is True
    registered = replace(record.bound(node="linux-1"), state=RecordState.REGISTERED)
    book.change_record(registered, expected=record.state)
    assert "to_stop" not in as_stored(book, record.instance_id)
