"""The stores of builds that people ordered and of builds that were lost, and the slots of looks."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from pydantic import ValidationError

from autoscaler.adapters.aws import code_of, translated
from autoscaler.adapters.table import NOTHING, Kept, Unknown, UnknownOfItem, UnknownOfItems, at_once, unpacked, written
from autoscaler.domain.facts.started_builds import Rerun, RerunState, RunOrder
from autoscaler.errors import ConflictError, EventRefusedError, TransientError, UnansweredError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# Implements the RunOrderStore port: open orders in one partition of the state table, those that ended in another one.
#
# An order that ended is kept under the time of its end, so that the last ones are one query; under its id stands only where that is.


DAYS_KEPT = 90
MOST_BYTES = 390_000  # of what is kept of one order, packed; an item holds 400 KB, its names and numbers included
MOST_BYTES_NEW = MOST_BYTES // 2  # the rest is for what is started for it: an order that is too large could not even be ended
_DAY_SECONDS = 86_400
_ORDER = Kept(RunOrder)
_NEW = {"ConditionExpression": "attribute_not_exists(fleet)"}


@dataclass(frozen=True, slots=True)
class DynamoRunOrders:
    """The orders of one fleet. ``client`` makes the client at the first use."""

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str
    sleep: Callable[[float], None] = field(default=at_once, kw_only=True)  # before a throttled transaction is sent again
    _unknown: UnknownOfItems = field(default_factory=UnknownOfItems)

    def open_orders(self) -> tuple[RunOrder, ...]:
        """Query their partition."""
        found = self._query(self._open, "id#")
        return tuple(sorted(self._readable(found), key=lambda order: (order.created_at, order.id)))

    def order(self, order_id: str) -> RunOrder | None:
        """Look among the open ones first: one that ends in between is found among the others."""
        if item := self._item(self._open, _by_id(order_id)):
            return self._of_this_version(item, order_id)
        if place := self._item(self._ended, _by_id(order_id)):
            item = self._item(self._ended, place["at"]["S"])
            return self._of_this_version(item, order_id) if item else None  # None: it is deleted just now, 90 days after its end
        return None

    def ended(self, most: int) -> tuple[RunOrder, ...]:
        """Query backwards from the last one."""
        found = self._query(self._ended, "at#", ScanIndexForward=False, PaginationConfig={"PageSize": most})
        return tuple(islice(self._readable(found), most))

    def add_order(self, order: RunOrder) -> None:
        """Write it where no order of this id is, be it open or ended."""
        item = {**self._key(self._open, _by_id(order.id)), **_content(order, most=MOST_BYTES_NEW)}
        not_ended = {"TableName": self.table, "Key": self._key(self._ended, _by_id(order.id)), **_NEW}
        self._write(order, {"Put": {"TableName": self.table, "Item": item, **_NEW}}, {"ConditionCheck": not_ended})

    def change_order(self, order: RunOrder) -> RunOrder:
        """Replace the item of this version; of one that ends the items move, all at once."""
        changed = replace(order, version=order.version + 1)
        unknown = self._unknown.of(_by_id(order.id), order.version).unknown
        same = {
            "ConditionExpression": "version = :version",
            "ExpressionAttributeValues": {":version": {"N": str(order.version)}},
        }
        key = self._key(self._open, _by_id(order.id))
        if changed.ended_at is None:
            self._write(order, {"Put": {"TableName": self.table, "Item": {**key, **_content(changed, unknown)}, **same}})
        else:
            self._write(order, {"Delete": {"TableName": self.table, "Key": key, **same}}, *self._moved(changed, changed.ended_at, unknown))
        return changed

    def _moved(self, order: RunOrder, ended_at: float, unknown: Unknown) -> Iterator[dict[str, Any]]:
        at = f"at#{ended_at:017.3f}#{order.id}"
        expiration = {"expiration": {"N": str(int(ended_at) + DAYS_KEPT * _DAY_SECONDS)}}
        place = {**self._key(self._ended, _by_id(order.id)), "at": {"S": at}, **expiration}
        for item in ({**self._key(self._ended, at), **_content(order, unknown), **expiration}, place):
            yield {"Put": {"TableName": self.table, "Item": item}}

    def _readable(self, items: Iterator[Any]) -> Iterator[RunOrder]:
        return (order for item in items if (order := unpacked(_ORDER, item, self._unknown)))

    def _of_this_version(self, item: Any, order_id: str) -> RunOrder:
        if (order := unpacked(_ORDER, item, self._unknown)) is None:
            raise TransientError(f"order {order_id}: another version of the autoscaler wrote it, and this one cannot read it")
        return order

    def _item(self, partition: str, name: str) -> Any:
        with translated("Query"):
            found = self.client().query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="fleet = :fleet AND #item = :name",
                ExpressionAttributeNames={"#item": "item"},
                ExpressionAttributeValues={":fleet": {"S": partition}, ":name": {"S": name}},
            )["Items"]
        return found[0] if found else None

    def _query(self, partition: str, prefix: str, **how: Any) -> Iterator[Any]:
        asked: dict[str, Any] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "KeyConditionExpression": "fleet = :fleet AND begins_with(#item, :prefix)",
            "ExpressionAttributeNames": {"#item": "item"},
            "ExpressionAttributeValues": {":fleet": {"S": partition}, ":prefix": {"S": prefix}},
        }
        with translated("Query"):
            for page in self.client().get_paginator("query").paginate(**asked, **how):
                yield from page["Items"]

    def _write(self, order: RunOrder, *writes: dict[str, Any]) -> None:
        """Write in one transaction: the SDK gives it a token, so that one it sends twice loses no race against itself."""
        conflict = f"order {order.id} was changed by somebody else meanwhile"
        try:
            written(lambda: self.client().transact_write_items(TransactItems=list(writes)), self.sleep, conflict)  # type: ignore[arg-type]
        except TransientError as error:
            if isinstance(cause := error.__cause__, ClientError) and not isinstance(error, ConflictError) and _may_have_been_done(cause):
                raise UnansweredError(str(error)) from cause
            raise

    def _key(self, partition: str, name: str) -> dict[str, Any]:
        return {"fleet": {"S": partition}, "item": {"S": name}}

    @property
    def _open(self) -> str:
        return f"{self.fleet}#open-runs"

    @property
    def _ended(self) -> str:
        return f"{self.fleet}#runs"


def _by_id(order_id: str) -> str:
    return f"id#{order_id}"


def _content(order: RunOrder, unknown: Unknown = NOTHING, most: int = MOST_BYTES) -> dict[str, Any]:
    body = zlib.compress(_ORDER.dump(order, unknown, exclude_defaults=True))
    if len(body) > most:
        raise EventRefusedError(
            f"order {order.id}: {len(body):,} bytes in {len(order.parts)} runs; an order may take {most:,}: order less at once"
        )
    return {"body": {"B": body}, "version": {"N": str(order.version)}}


def _may_have_been_done(error: ClientError) -> bool:
    """Tell whether DynamoDB failed, or is still at what the SDK has sent twice."""
    told: Any = error.response
    return (
        code_of(error) == "TransactionInProgressException" or told["ResponseMetadata"]["HTTPStatusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR
    )


# Implements the RerunStore port: an item for each lost build, in a partition of the state table that no pass reads as a whole.


_RERUN = Kept(Rerun)


@dataclass(frozen=True, slots=True)
class DynamoReruns:
    """The answers for one fleet's lost builds. ``client`` makes the client at the first use."""

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str
    sleep: Callable[[float], None] = field(default=at_once, kw_only=True)  # before a throttled transaction is sent again
    _unknown: UnknownOfItems = field(default_factory=UnknownOfItems)

    def rerun(self, key: str) -> Rerun | None:
        """Read one item; what cannot be understood counts as left to a person, so that nothing is sent for it."""
        with translated("Query"):
            found = self.client().query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="fleet = :fleet AND #item = :key",
                ExpressionAttributeNames={"#item": "item"},
                ExpressionAttributeValues={":fleet": {"S": self._partition}, ":key": {"S": key}},
            )["Items"]
        if not found:
            return None
        try:
            rerun, unknown = _RERUN.load(found[0]["body"]["S"])
        except (KeyError, ValidationError):
            controller, _, run = key.partition("#")
            return Rerun(
                controller=controller,
                run=run.rpartition("@")[0],
                began_at=0.0,
                state=RerunState.LEFT,
                times=0,
                on_demand=False,
                created_at=0.0,
                why="another version wrote it",
            )
        self._unknown.note(key, UnknownOfItem(unknown=unknown))
        return rerun

    def add_rerun(self, rerun: Rerun, *, holder: str) -> None:
        """Write a new item while the lease is the holder's, in one transaction."""
        key = {"fleet": {"S": self.fleet}, "item": {"S": "lease"}}
        lease = {
            "TableName": self.table,
            "Key": key,
            "ConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {":owner": {"S": holder}},
        }
        new = {**self._put(rerun, NOTHING), "ConditionExpression": "attribute_not_exists(fleet)"}
        self._write(lambda: self.client().transact_write_items(TransactItems=[{"Put": new}, {"ConditionCheck": lease}]))  # type: ignore[typeddict-item]

    def change_rerun(self, rerun: Rerun, *, expected: RerunState) -> None:
        """Replace an item whose state is still that."""
        unknown = self._unknown.of(rerun.key, 0).unknown
        condition = {
            "ConditionExpression": "#state = :expected",
            "ExpressionAttributeNames": {"#state": "state"},
            "ExpressionAttributeValues": {":expected": {"S": str(expected)}},
        }
        self._write(lambda: self.client().put_item(**self._put(rerun, unknown), **condition))  # type: ignore[arg-type]

    @property
    def _partition(self) -> str:
        return f"{self.fleet}#reruns"

    def _put(self, rerun: Rerun, unknown: Unknown) -> dict[str, Any]:
        body = _RERUN.dump(rerun, unknown, exclude_defaults=True).decode()
        ends = int(rerun.created_at) + DAYS_KEPT * _DAY_SECONDS
        item = {
            "fleet": {"S": self._partition},
            "item": {"S": rerun.key},
            "state": {"S": str(rerun.state)},
            "body": {"S": body},
            "expiration": {"N": str(ends)},
        }
        return {"TableName": self.table, "Item": item}

    def _write(self, write: Callable[[], object]) -> None:
        written(write, self.sleep, "the lost build was answered for by somebody else meanwhile")


# Implements the LookSlots port: messages of SQS that come later, and a conditional write for each slot.


_AT_ONCE = 10  # SQS' most
_FORGOTTEN_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class SqsSlots:
    """One queue, and the part of the state table that no pass reads. ``queue`` and ``table_client`` make clients at the first use."""

    queue: Callable[[], Any]
    url: str
    table_client: Callable[[], Any]
    table: str
    fleet: str

    def announce(self, slots: Mapping[str, float], now: float) -> None:
        """Send a message for each slot, at most ten in a call; each comes as late as its slot is."""
        entries = [
            {"Id": str(number), "DelaySeconds": max(0, ceil(at - now)), "MessageBody": json.dumps({"slot": name, "at": at})}
            for number, (name, at) in enumerate(slots.items())
        ]
        for start in range(0, len(entries), _AT_ONCE):
            with translated("SendMessageBatch"):
                answer = self.queue().send_message_batch(QueueUrl=self.url, Entries=entries[start : start + _AT_ONCE])
            if answer.get("Failed"):
                raise TransientError(f"SendMessageBatch: {len(answer['Failed'])} messages were refused ({answer['Failed'][0]['Code']})")

    def take(self, slot: str, now: float) -> bool:
        """Write an item that is not there yet; it is forgotten within the hour."""
        item = {
            "fleet": {"S": f"{self.fleet}#looks"},
            "item": {"S": slot},
            "expiration": {"N": str(int(now + _FORGOTTEN_SECONDS))},
        }
        try:
            with translated("PutItem"):
                self._put(item)
        except TransientError as error:
            if isinstance(error.__cause__, ClientError) and code_of(error.__cause__) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def _put(self, item: dict[str, Any]) -> None:
        self.table_client().put_item(TableName=self.table, Item=item, ConditionExpression="attribute_not_exists(fleet)")
