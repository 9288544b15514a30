"""Implements the History port: an item a day in a partition of the state table that no pass reads."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter

from autoscaler.adapters.aws import code_of, translated
from autoscaler.domain.report.event import Event
from autoscaler.errors import ConflictError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EVENTS_A_DAY = 2000  # some 100 KB, packed; an item holds 400
DAYS_KEPT = 14
DAY_SECONDS = 86_400.0
_TRIES = 3
_EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])


@dataclass(frozen=True, slots=True)
class DynamoHistory:
    """The history of one fleet. ``client`` makes the client at the first use."""

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str

    def note(self, events: Sequence[Event]) -> None:
        """Add events to the items of their days. Two functions may write at once: the second adds to what the first wrote."""
        for day in sorted({_day(event.at) for event in events}):
            self._add(day, [event for event in events if _day(event.at) == day])

    def since(self, at: float, now: float) -> list[Event]:
        """Read the items of the days from then on."""
        found = [event for day in _days(at, now) for event in self._read(day)[0]]
        return sorted((event for event in found if event.at >= at), key=lambda event: event.at)

    def _add(self, day: str, events: list[Event]) -> None:
        for last in (False,) * (_TRIES - 1) + (True,):
            known, version = self._read(day)
            # A write that was not answered may have taken effect, and be sent again by the SDK: its events are there then.
            try:
                self._write(day, [*known, *(event for event in events if event not in known)][-EVENTS_A_DAY:], version)
            except ConflictError:
                if last:
                    raise
            else:
                return

    def _read(self, day: str) -> tuple[list[Event], int]:
        with translated("Query"):
            found = self.client().query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="fleet = :fleet AND #item = :day",
                ExpressionAttributeNames={"#item": "item"},
                ExpressionAttributeValues={":fleet": {"S": self._partition}, ":day": {"S": day}},
            )["Items"]
        if not found:
            return [], 0
        version = int(found[0]["version"]["N"])
        try:
            return _EVENTS.validate_json(zlib.decompress(found[0]["body"]["B"])), version
        except (ValueError, KeyError, zlib.error):
            return [], version  # another version wrote it: its day begins again

    def _write(self, day: str, events: list[Event], version: int) -> None:
        ends = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp() + (DAYS_KEPT + 1) * DAY_SECONDS
        item: dict[str, Any] = {
            "fleet": {"S": self._partition},
            "item": {"S": day},
            "body": {"B": zlib.compress(_EVENTS.dump_json(events, exclude_defaults=True))},
            "version": {"N": str(version + 1)},
            "expiration": {"N": str(int(ends))},
        }
        known = {"ExpressionAttributeValues": {":version": {"N": str(version)}}, "ConditionExpression": "version = :version"}
        condition = known if version else {"ConditionExpression": "attribute_not_exists(fleet)"}
        try:
            self.client().put_item(TableName=self.table, Item=item, **condition)
        except ClientError as error:
            if code_of(error) == "ConditionalCheckFailedException":
                raise ConflictError("the history was written by somebody else meanwhile") from error
            raise TransientError(f"PutItem: {code_of(error)}") from error
        except BotoCoreError as error:
            raise TransientError(f"PutItem was not answered ({type(error).__name__})") from error

    @property
    def _partition(self) -> str:
        return f"{self.fleet}#events"


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _days(at: float, now: float) -> Iterator[str]:
    """Name the days from one instant to another, both included, as far back as they are kept."""
    first = max(at, now - DAYS_KEPT * DAY_SECONDS)
    number = 0
    while _day(first + number * DAY_SECONDS) <= _day(now):
        yield _day(first + number * DAY_SECONDS)
        number += 1
