"""Implements RateLimiter and TelemetryStore: one item a machine, in a partition of the state table that no pass reads for a decision.

What a machine tells with a question is written in the same request that counts the question: one write a poll.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter

from autoscaler.adapters.aws import code_of, translated
from autoscaler.adapters.transactions import problem_of
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.telemetry import Devices, Telemetry
from autoscaler.domain.report.registration import MAX_REQUESTS_PER_HOUR, REQUEST_WINDOW_SECONDS
from autoscaler.errors import UnansweredError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NOT_SO = "ConditionalCheckFailed"
_TELEMETRY: TypeAdapter[Telemetry] = TypeAdapter(Telemetry)
_DEVICES: TypeAdapter[Devices] = TypeAdapter(Devices)


@dataclass(frozen=True, slots=True)
class DynamoAsks:
    """Who asks how often, and what each machine told last. ``client`` makes the client at the first use."""

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str

    def admit(self, instance_id: str, *, now: float, telemetry: Telemetry | None = None, devices: Devices | None = None) -> bool:
        """Count by one conditional write, two for the first question of an hour. Devices, which passes read, go in the same transaction."""
        beside = [{"Put": self._devices_item(instance_id, devices)}] if devices else []
        began = {":hour_ago": {"N": repr(now - REQUEST_WINDOW_SECONDS)}, ":one": {"N": "1"}}
        for counts, condition, values in (
            ("asked = asked + :one", "since_at > :hour_ago AND asked < :most", began | {":most": {"N": str(MAX_REQUESTS_PER_HOUR)}}),
            ("asked = :one, since_at = :now", "attribute_not_exists(fleet) OR since_at <= :hour_ago", began | {":now": {"N": repr(now)}}),
        ):
            if self._write(self._update(instance_id, counts, condition, values, now, telemetry), beside):
                return True
        return False

    def latest(self) -> Mapping[str, Telemetry]:
        """Query the partition. What another version wrote is left out."""
        with translated("Query"):
            pages = list(
                self.client()
                .get_paginator("query")
                .paginate(
                    TableName=self.table,
                    KeyConditionExpression="fleet = :fleet",
                    FilterExpression="attribute_exists(told)",
                    ProjectionExpression="#item, told",
                    ExpressionAttributeNames={"#item": "item"},
                    ExpressionAttributeValues={":fleet": {"S": self._partition}},
                )
            )
        read = {item["item"]["S"]: _read(item["told"]["B"]) for page in pages for item in page["Items"]}
        return {machine: telemetry for machine, telemetry in read.items() if telemetry}

    def _update(
        self, machine: str, counts: str, condition: str, values: dict[str, Any], now: float, telemetry: Telemetry | None
    ) -> dict[str, Any]:
        tells = ", told = :told" if telemetry else ""
        body = (
            {":told": {"B": zlib.compress(_TELEMETRY.dump_json(replace(telemetry, told_at=now), exclude_defaults=True))}}
            if telemetry
            else {}
        )
        return {
            "TableName": self.table,
            "Key": {"fleet": {"S": self._partition}, "item": {"S": machine}},
            "UpdateExpression": f"SET {counts}, expiration = :end{tells}",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values | body | {":end": {"N": str(int(now + DAY_SECONDS))}},
        }

    def _devices_item(self, machine: str, devices: Devices) -> dict[str, Any]:
        """Compose the item of the state that `StateStore.note_devices` would write."""
        body = b'{"devices":%s,"name":%s}' % (_DEVICES.dump_json(devices, exclude_defaults=True), _NAME.dump_json(machine))
        item = {"fleet": {"S": self.fleet}, "item": {"S": f"devices#{machine}"}, "body": {"S": body.decode()}}
        return {"TableName": self.table, "Item": item | {"expiration": {"N": str(int(devices.told_at + DAY_SECONDS))}}}

    def _write(self, update: Any, beside: list[Any]) -> bool:
        """Write one item, or several at once; False where the condition does not hold."""
        try:
            if beside:
                self.client().transact_write_items(TransactItems=[{"Update": update}, *beside])
            else:
                self.client().update_item(**update)
        except ClientError as error:
            told: Any = error.response
            reasons = [reason.get("Code") for reason in told.get("CancellationReasons", ())]
            if _NOT_SO in reasons or code_of(error).startswith(_NOT_SO):
                return False
            raise problem_of(error, "DynamoDB", "the question was counted by somebody else meanwhile") from error
        except BotoCoreError as error:
            raise UnansweredError(f"DynamoDB did not answer ({type(error).__name__})") from error
        return True

    @property
    def _partition(self) -> str:
        return f"{self.fleet}#asks"


_NAME: TypeAdapter[str] = TypeAdapter(str)


def _read(body: bytes) -> Telemetry | None:
    try:
        return _TELEMETRY.validate_json(zlib.decompress(body))
    except (ValueError, zlib.error):
        return None
