"""Implements the History port: an item an event, in a partition of the state table that no pass reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter

from autoscaler.adapters.aws import code_of, translated
from autoscaler.domain.report.told import Event
from autoscaler.errors import TransientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EVENTS_A_DAY = 2000
DAYS_KEPT = 14
DAY_SECONDS = 86_400.0
_FIRST = {"N": "0"}
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


@dataclass(frozen=True, slots=True)
class DynamoHistory:
    """The history of one fleet. ``client`` makes the client at the first use.

    An event is an item of its own, so that noting it is one write of some 400 bytes, whatever the day holds already. An item for each day
    would be read and written as a whole for each step.
    """

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str
    _numbers: Iterator[int] = field(default_factory=count)

    def note(self, events: Sequence[Event]) -> None:
        """Write the events one by one. One that is written again, because the answer was lost, takes its own place."""
        for event in events:
            self._write(event)

    def since(self, at: float, now: float) -> list[Event]:
        """Read the last events of each day from then on."""
        found = [event for day in _days(at, now) for event in self._read(day)]
        return sorted((event for event in found if event.at >= at), key=lambda event: event.at)

    def _read(self, day: str) -> list[Event]:
        """Read a day from its end, and no more of it than people are shown."""
        items: list[dict[str, Any]] = []
        request: dict[str, Any] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "ScanIndexForward": False,
            "KeyConditionExpression": "fleet = :fleet AND begins_with(#item, :day)",
            "ExpressionAttributeNames": {"#item": "item"},
            "ExpressionAttributeValues": {":fleet": {"S": self._partition}, ":day": {"S": day}},
        }
        while len(items) < EVENTS_A_DAY:
            with translated("Query"):
                page = self.client().query(**request, Limit=EVENTS_A_DAY - len(items))
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        read = [(event, int(item.get("number", _FIRST)["N"])) for item in items for event in _of_item(item)]
        return [event for event, _ in sorted(read, key=lambda numbered: (numbered[0].at, numbered[1]))]

    def _write(self, event: Event) -> None:
        body = _EVENT.dump_json(event, exclude_defaults=True)
        digest = hashlib.sha256(body).hexdigest()[:12]
        item: dict[str, Any] = {
            "fleet": {"S": self._partition},
            "item": {"S": f"{_day(event.at)}#{event.at:.6f}#{digest}"},
            "number": {"N": str(next(self._numbers))},  # the order of events of one instant
            "body": {"S": body.decode()},
            "expiration": {"N": str(int(event.at + (DAYS_KEPT + 1) * DAY_SECONDS))},
        }
        try:
            self.client().put_item(TableName=self.table, Item=item)
        except ClientError as error:
            raise TransientError(f"PutItem: {code_of(error)}") from error
        except BotoCoreError as error:
            raise TransientError(f"PutItem was not answered ({type(error).__name__})") from error

    @property
    def _partition(self) -> str:
        return f"{self.fleet}#events"


def _of_item(item: dict[str, Any]) -> list[Event]:
    """Read an item, or nothing if this version cannot read it."""
    try:
        return [_EVENT.validate_json(item["body"]["S"])]
    except (ValueError, KeyError):
        return []


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _days(at: float, now: float) -> Iterator[str]:
    """Name the days from one instant to another, both included, as far back as they are kept."""
    first = max(at, now - DAYS_KEPT * DAY_SECONDS)
    number = 0
    while _day(first + number * DAY_SECONDS) <= _day(now):
        yield _day(first + number * DAY_SECONDS)
        number += 1
