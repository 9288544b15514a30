"""Records that 0.2.0 wrote, and ours as 0.2.0 reads them: agents at work outlast an upgrade, and the way back."""

import json
from dataclasses import replace

import pytest

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.domain.facts.snapshot import Binding, RecordState
from autoscaler_workbench.cli.demo import TABLE
from support.builders import a_record, a_reservation

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
# Those without a default there.
NEEDED = {"instance_id", "state", "pool", "controller", "launch", "instance_type", "usd_per_hour", "launched_at", "node", "registered_at"}
NEEDED |= {"keep_until", "changed_at"}


@pytest.fixture
def book(dynamo):
    return DynamoState(lambda: dynamo, TABLE, "f")


def write_as_before(book, **changes):
    """Write the item that 0.2.0 writes: it knows no revision."""
    body = {"record": WRITTEN | changes}
    item = {"fleet": {"S": "f"}, "item": {"S": NAME}, "state": {"S": body["record"]["state"]}, "body": {"S": json.dumps(body)}}
    book._client().put_item(TableName=TABLE, Item=item)


def shown_to_earlier_versions(book, instance_id):
    """The fields of a record as they are stored."""
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


def test_0_2_0_finds_all_that_it_needs_in_a_record_of_ours(book):
    book.add_record(a_record("i-1", controller="main", node="cpu-1", life=2))
    shown = shown_to_earlier_versions(book, "i-1")
    assert shown.keys() >= NEEDED
    assert (shown["controller"], shown["node"], shown["life"]) == ("main", "cpu-1", 2)


def test_0_2_0_is_shown_the_node_that_a_record_has_now(book):
    book.add_record(a_record("i-1", node="cpu-1"))
    [record] = book.read().records
    changed = book.change_record(record.bound(node="cpu-2"), expected=record.state)
    book.change_record(replace(changed, trouble="403"), expected=record.state)
    assert shown_to_earlier_versions(book, "i-1")["node"] == "cpu-2"
    [record] = book.read().records
    assert (record.node, record.trouble) == ("cpu-2", "403")


@pytest.mark.parametrize(
    "changes",
    [{"instance_id": "i-1@other"}, {"instance_id": "host-1"}, {"reservation": a_reservation()}, {"leaves": (Binding(controller="other"),)}],
    ids=["a side", "a host", "a person has it", "it left another controller"],
)
def test_0_2_0_cannot_read_what_it_would_treat_wrongly(book, changes):
    record = replace(a_record("i-1", node="cpu-1"), **changes)
    book.add_record(record)
    assert "controller" not in shown_to_earlier_versions(book, record.instance_id)
