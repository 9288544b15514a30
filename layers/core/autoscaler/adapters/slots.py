"""Implements the LookSlots port: messages of SQS that come later, and a conditional write for each slot."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from botocore.exceptions import ClientError

from autoscaler.adapters.aws import code_of, translated
from autoscaler.errors import TransientError

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
