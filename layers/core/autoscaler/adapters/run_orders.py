"""Implements the RunOrderStore port: open orders in one partition of the state table, those that ended in another one.

An order that ended is kept under the time of its end, so that the last ones are one query; under its id stands only where that is.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from autoscaler.adapters.aws import code_of, translated
from autoscaler.adapters.kept import NOTHING, Kept, Unknown, UnknownOfItems
from autoscaler.adapters.transactions import at_once, written
from autoscaler.adapters.versioned import unpacked
from autoscaler.domain.facts.started_builds import RunOrder
from autoscaler.errors import ConflictError, EventRefusedError, TransientError, UnansweredError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

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
