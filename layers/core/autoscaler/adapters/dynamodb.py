"""Ledger, notebook and lease in one DynamoDB table: partition key ``fleet``, sort key ``item``."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter

from autoscaler.domain.durations import Learned
from autoscaler.domain.memory import Memory
from autoscaler.domain.snapshot import Intent, IntentState, Record, RecordState
from autoscaler.errors import ConflictError, TransientError, UnansweredError
from autoscaler.ports import Book

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_PIECE_BYTES = 350_000  # DynamoDB takes 400 KB an item, keys and all

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Entry:
    """What one item holds: exactly one of these. ``name``: whose, for what was learned; ``pieces``: it was too large for one item."""

    record: Record | None = None
    intent: Intent | None = None
    memory: Memory | None = None
    learned: Learned | None = None
    name: str = ""
    pieces: tuple[str, ...] = ()


_ENTRY = TypeAdapter(_Entry)


class DynamoState:
    """The state of one fleet. ``client`` makes the client at the first use."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str, fleet: str) -> None:
        """Keep where the state is."""
        self._client = client
        self._table = table
        self._fleet = fleet
        self._pieces: set[str] = set()  # seen in the last read

    def read(self) -> Book:
        """Read everything in one consistent query."""
        entries = self._entries()
        return Book(
            records=tuple(entry.record for entry in entries if entry.record),
            intents=tuple(entry.intent for entry in entries if entry.intent),
            memory=next((entry.memory for entry in entries if entry.memory), Memory()),
            learned={entry.name: entry.learned for entry in entries if entry.learned},
        )

    def add_record(self, record: Record) -> None:
        """Write a record for an instance that has none."""
        self._put(f"record#{record.instance_id}", self._stated(record.state, _Entry(record=record)), "attribute_not_exists(fleet)", {})

    def change_record(self, record: Record, *, expected: RecordState) -> None:
        """Replace a record in the expected state; one that is gone leaves no item, so that reads stay small."""
        condition = ("#state = :expected", {":expected": {"S": str(expected)}}, {"#state": "state"})
        if record.state is RecordState.GONE:
            self._delete(f"record#{record.instance_id}", *condition)
        else:
            self._put(f"record#{record.instance_id}", self._stated(record.state, _Entry(record=record)), *condition)

    def add_intent(self, intent: Intent) -> None:
        """Write an intent under a new id."""
        self._put(f"intent#{intent.id}", self._stated(intent.state, _Entry(intent=intent)), "attribute_not_exists(fleet)", {})

    def change_intent(self, intent: Intent, *, expected: IntentState) -> None:
        """Replace an intent in the expected state."""
        item = self._stated(intent.state, _Entry(intent=intent))
        self._put(f"intent#{intent.id}", item, "#state = :expected", {":expected": {"S": str(expected)}}, {"#state": "state"})

    def remove_intent(self, intent: Intent) -> None:
        """Delete an intent that is settled."""
        settled = {":settled": {"S": str(IntentState.SETTLED)}}
        self._delete(f"intent#{intent.id}", "attribute_not_exists(fleet) OR #state = :settled", settled, {"#state": "state"})

    def save_memory(self, memory: Memory) -> None:
        """Replace the memory of this version."""
        self._save("memory", memory.version, _Entry(memory=replace(memory, version=memory.version + 1)))

    def save_learned(self, controller: str, learned: Learned) -> None:
        """Replace what was learned, of this version."""
        entry = _Entry(learned=replace(learned, version=learned.version + 1), name=controller)
        self._save(f"learned#{controller}", learned.version, entry)

    def acquire(self, owner: str, *, now: float, until: float) -> bool:
        """Take the lease by one conditional write."""
        item = {"owner": {"S": owner}, "until_at": {"N": repr(until)}}
        values = {":now": {"N": repr(now)}, ":owner": {"S": owner}}
        try:
            self._put("lease", item, "attribute_not_exists(fleet) OR until_at < :now OR #owner = :owner", values, {"#owner": "owner"})
        except ConflictError:
            return False
        return True

    def release(self, owner: str) -> None:
        """Delete the lease if it is still ours."""
        try:
            self._delete("lease", "#owner = :owner", {":owner": {"S": owner}}, {"#owner": "owner"})
        except ConflictError:
            return

    def _delete(self, item: str, condition: str, values: dict[str, Any], names: dict[str, str]) -> None:
        request: dict[str, Any] = {"Key": {"fleet": {"S": self._fleet}, "item": {"S": item}}, "ConditionExpression": condition}
        if values:
            request["ExpressionAttributeValues"] = values
        if names:
            request["ExpressionAttributeNames"] = names
        self._call(lambda: self._client().delete_item(TableName=self._table, **request))

    def _save(self, item: str, version: int, entry: _Entry) -> None:
        """Replace an item of this version. What is too large is cut up: pieces first, under names of their own, then what names them."""
        packed = zlib.compress(_ENTRY.dump_json(entry))
        pieces: dict[str, bytes] = {}
        if len(packed) > _PIECE_BYTES:
            digest = hashlib.sha256(packed).hexdigest()[:16]  # two writers at once must not mix their pieces
            starts = range(0, len(packed), _PIECE_BYTES)
            pieces = {f"{item}~{digest}~{n}": packed[start : start + _PIECE_BYTES] for n, start in enumerate(starts)}
            packed = zlib.compress(_ENTRY.dump_json(_Entry(pieces=tuple(pieces))))
        for name, piece in pieces.items():
            self._put(
                name, {"piece": {"B": piece}, "piece_name": {"S": name}}, "attribute_not_exists(fleet) OR attribute_exists(piece)", {}
            )
        attributes = {"body": {"B": packed}, "version": {"N": str(version + 1)}}
        condition, values = "attribute_not_exists(fleet)", {}
        if version:
            condition, values = "version = :version", {":version": {"N": str(version)}}
        self._put(item, attributes, condition, values)
        # Only now does nothing name the old pieces any more.
        for name in sorted(old for old in self._pieces if old.startswith(f"{item}~") and old not in pieces):
            self._delete(name, "attribute_exists(piece) OR attribute_not_exists(fleet)", {}, {})
        self._pieces |= pieces.keys()

    @staticmethod
    def _stated(state: str, entry: _Entry) -> dict[str, Any]:
        return {"state": {"S": str(state)}, "body": {"S": _ENTRY.dump_json(entry, exclude_defaults=True).decode()}}

    def _put(
        self, item: str, attributes: dict[str, Any], condition: str, values: dict[str, Any], names: dict[str, str] | None = None
    ) -> None:
        request: dict[str, Any] = {"Item": {"fleet": {"S": self._fleet}, "item": {"S": item}, **attributes}}
        if values:
            request["ExpressionAttributeValues"] = values
        if names:
            request["ExpressionAttributeNames"] = names
        self._call(lambda: self._client().put_item(TableName=self._table, ConditionExpression=condition, **request))

    def _entries(self) -> list[_Entry]:
        pages = self._call(
            lambda: list(
                self._client()
                .get_paginator("query")
                .paginate(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="fleet = :fleet",
                    ProjectionExpression="body, piece, piece_name",
                    ExpressionAttributeValues={":fleet": {"S": self._fleet}},
                )
            )
        )
        items = [item for page in pages for item in page["Items"]]
        pieces = {item["piece_name"]["S"]: item["piece"]["B"] for item in items if "piece" in item}
        self._pieces = set(pieces)
        bodies = [item["body"] for item in items if "body" in item]
        entries = [_ENTRY.validate_json(zlib.decompress(body["B"]) if "B" in body else body["S"]) for body in bodies]
        return [_joined(entry, pieces) if entry.pieces else entry for entry in entries]

    @staticmethod
    def _call(call: Callable[[], T]) -> T:
        try:
            return call()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "Unknown")
            if code == "ConditionalCheckFailedException":
                raise ConflictError("the state was changed by somebody else meanwhile") from error
            raise TransientError(f"DynamoDB: {code}") from error
        except BotoCoreError as error:
            raise UnansweredError(f"DynamoDB did not answer ({type(error).__name__})") from error


def _joined(entry: _Entry, pieces: dict[str, bytes]) -> _Entry:
    """Put an entry together again; a piece that is missing was replaced while the pages were read."""
    if not all(name in pieces for name in entry.pieces):
        raise TransientError("the state was replaced while it was being read")
    return _ENTRY.validate_json(zlib.decompress(b"".join(pieces[name] for name in entry.pieces)))
