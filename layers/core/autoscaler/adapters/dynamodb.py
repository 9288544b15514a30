"""Keeps state and lease in one DynamoDB table: partition key ``fleet``, sort key ``item``."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from autoscaler.adapters.table import Kept, Unknown, UnknownOfItem, UnknownOfItems, at_once, unread_record, written
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.orders import Overrides, unknown_orders
from autoscaler.domain.facts.snapshot import Intent, IntentState, Record, RecordState, UnreadRecord
from autoscaler.domain.facts.telemetry import Devices
from autoscaler.domain.report.datum import PassNotes
from autoscaler.domain.report.told import Told
from autoscaler.errors import ConflictError, TransientError
from autoscaler.ports import StoredState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# Names in what 0.3.0 wrote that this version does not know, and must not carry on, by kind.
#
# Of a record: whom an instance serves, written for 0.2.0: not true for long. And what was launched to be stopped: on the way back 0.3.0
# would stop such an agent after its one build, and start it for another one. Of the memory: queue items with the parameters of their
# builds, which nobody would take out any more; on the way back within a day, 0.3.0 could start one that a person has started since.
_EARLIER_NAMES = {"record": frozenset({"controller", "node", "life", "to_stop"}), "memory": frozenset({"queued"})}


def without_earlier_names(kind: str, unknown: Unknown) -> Unknown:
    """Leave these names out of the unknown data of an item, so that they go once it is written."""
    inside, names = unknown.inside.get(kind), _EARLIER_NAMES.get(kind, frozenset())
    if inside is None or not inside.extras.keys() & names:
        return unknown
    rest = replace(inside, extras={name: value for name, value in inside.extras.items() if name not in names})
    others = {name: part for name, part in unknown.inside.items() if name != kind}
    return replace(unknown, inside=others | ({kind: rest} if rest else {}))


# Entries of the state: how they are written, read and locked.


_PIECE_BYTES = 350_000  # DynamoDB takes 400 KB an item, keys and all

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Entry:
    """The content of one item, exactly one of these. ``name``: of a controller, machine or function; ``pieces``: of a large one."""

    record: Record | None = None
    intent: Intent | None = None
    memory: Memory | None = None
    learned: Learned | None = None
    overrides: Overrides | None = None
    told: Told | None = None
    devices: Devices | None = None
    passes: PassNotes | None = None
    name: str = ""
    pieces: tuple[str, ...] = ()


_ENTRY = Kept(_Entry)
# Items are named after what they hold; all others are no entries.
_KINDS = frozenset({"record", "intent", "memory", "learned", "overrides", "told", "devices", "passes"})
_ATTRIBUTES = frozenset({"fleet", "item", "body", "version", "state", "revision", "piece", "piece_name", "expiration"})


@dataclass(frozen=True, slots=True)
class _Item:
    """One item as it was read. ``entry`` None: this version cannot read it."""

    name: str
    version: int
    entry: _Entry | None
    unknown_data: UnknownOfItem = field(default_factory=UnknownOfItem)
    unread: UnreadRecord | None = None


@dataclass(frozen=True, slots=True)
class _Condition:
    """The condition of a write, in DynamoDB's words."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def request(self) -> dict[str, Any]:
        parts = {"ExpressionAttributeValues": dict(self.values), "ExpressionAttributeNames": dict(self.names)}
        return {"ConditionExpression": self.text} | {key: part for key, part in parts.items() if part}


_IS_NEW = _Condition("attribute_not_exists(fleet)")
_Write: TypeAlias = tuple[str, dict[str, Any]]


class DynamoState:
    """The state of one fleet. ``client`` makes the client at the first use."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str, fleet: str, sleep: Callable[[float], None] = at_once) -> None:
        """Keep where the state is; ``sleep``: before a throttled transaction is sent again."""
        self._sleep = sleep
        self._client = client
        self._table = table
        self._fleet = fleet
        self._pieces: set[str] = set()  # seen in the last read
        self._unknown = UnknownOfItems()

    def read(self) -> StoredState:
        """Read everything in one consistent query. An item that another version or a person wrote may be unreadable; it is named."""
        items = self._items()
        entries = [item.entry for item in items if item.entry]
        unread = {item.name: item.version for item in items if item.entry is None}
        parts = [f"{item.name} {place}" for item in items for place in item.unknown_data.unknown.unread]
        # Memory and what was learned are replaced at the next save; orders of operators only by an operator.
        lost = {name.removeprefix("learned#"): Learned(version=version) for name, version in unread.items() if name.startswith("learned#")}
        orders = unknown_orders(unread["overrides"]) if "overrides" in unread else Overrides()
        return StoredState(
            records=_all(entries, "record"),
            intents=_all(entries, "intent"),
            memory=(*_all(entries, "memory"), Memory(version=unread.get("memory", 0)))[0],
            learned=lost | _named(entries, "learned"),
            overrides=(*_all(entries, "overrides"), orders)[0],
            told=(*_all(entries, "told"), Told(version=unread.get("told", 0)))[0],
            devices=_named(entries, "devices"),
            passes=_named(entries, "passes"),
            unread=tuple(sorted([*unread, *parts])),
            unread_as={item.name: item.unread for item in items if item.unread},
        )

    def record(self, instance_id: str) -> Record | None:
        """Read one item by its key."""
        item = self._one(f"record#{instance_id}")
        return item.entry.record if item.entry else None

    def note_devices(self, machine: str, devices: Devices) -> None:
        """Replace one item, whatever it was."""
        body = _ENTRY.dump(_Entry(devices=devices, name=machine), exclude_defaults=True).decode()
        forgotten = {"expiration": {"N": str(int(devices.told_at + DAY_SECONDS))}}
        key = self._key(f"devices#{machine}")
        self._call(lambda: self._client().put_item(TableName=self._table, Item={**key, "body": {"S": body}, **forgotten}))

    def add_record(self, record: Record) -> None:
        """Write a record for an instance that has none, and claim its node in the same transaction."""
        self._state(f"record#{record.instance_id}", _recorded(record), _IS_NEW, *self._taken(record))

    def change_record(self, record: Record, *, expected: RecordState, holder: str = "") -> Record:
        """Replace a record of this revision, and its claim of a node. One that is gone leaves no item, so that reads stay small."""
        item, condition = f"record#{record.instance_id}", _of_revision(record, expected)
        changed = replace(record, revision=record.revision + 1)
        held = [self._check("lease", _held_by(holder))] if holder else []
        if record.state is RecordState.GONE:
            self._write(self._delete(item, condition), *self._left(record), *held)
        else:
            self._state(item, _recorded(changed), condition, *self._taken(record), *held)
        return changed

    def add_intent(self, intent: Intent, *, holder: str) -> None:
        """Write an intent under a new id, while the lease is still the holder's."""
        self._state(f"intent#{intent.id}", _launched(intent), _IS_NEW, self._check("lease", _held_by(holder)))

    def change_intent(self, intent: Intent, *, expected: IntentState) -> None:
        """Replace an intent in the expected state."""
        self._state(f"intent#{intent.id}", _launched(intent), _in_state(expected))

    def remove_intent(self, intent: Intent) -> None:
        """Delete an intent that is settled."""
        settled = _in_state(IntentState.SETTLED)
        self._write(self._delete(f"intent#{intent.id}", replace(settled, text=f"attribute_not_exists(fleet) OR {settled.text}")))

    def save_memory(self, memory: Memory) -> None:
        """Replace the memory of this version."""
        self._save("memory", memory.version, _Entry(memory=replace(memory, version=memory.version + 1)))

    def save_learned(self, controller: str, learned: Learned) -> None:
        """Replace what was learned, of this version."""
        entry = _Entry(learned=replace(learned, version=learned.version + 1), name=controller)
        self._save(f"learned#{controller}", learned.version, entry)

    def save_overrides(self, overrides: Overrides) -> None:
        """Replace the orders of this version."""
        self._save("overrides", overrides.version, _Entry(overrides=replace(overrides, version=overrides.version + 1)))

    def save_told(self, told: Told) -> None:
        """Replace what people were told of, of this version."""
        self._save("told", told.version, _Entry(told=replace(told, version=told.version + 1)))

    def pass_notes(self, function: str) -> PassNotes:
        """Read one item by its key."""
        item = self._one(f"passes#{function}")
        return item.entry.passes if item.entry and item.entry.passes else PassNotes(version=item.version)

    def save_pass_notes(self, function: str, notes: PassNotes) -> None:
        """Replace the notes of this version."""
        self._save(f"passes#{function}", notes.version, _Entry(passes=replace(notes, version=notes.version + 1), name=function))

    def acquire(self, owner: str, *, now: float, until: float) -> bool:
        """Take the lease by one conditional write. The SDK may send it twice, so our own name is no obstacle."""
        item = {"owner": {"S": owner}, "until_at": {"N": repr(until)}}
        values = {":now": {"N": repr(now)}, ":owner": {"S": owner}}
        free = _Condition("attribute_not_exists(fleet) OR until_at < :now OR #owner = :owner", values, {"#owner": "owner"})
        try:
            self._write(self._put("lease", item, free))
        except ConflictError:
            return False
        return True

    def release(self, owner: str) -> None:
        """Delete the lease if it is still ours."""
        try:
            self._write(self._delete("lease", _held_by(owner)))
        except ConflictError:
            return

    def _state(self, item: str, stated: _Stated, condition: _Condition, *others: _Write) -> None:
        """Write a record or an intent, in one transaction with ``others``."""
        unknown_data = UnknownOfItem() if condition is _IS_NEW else self._unknown.of(item, max(0, stated.version - 1), self._items)
        body = _ENTRY.dump(stated.entry, unknown_data.unknown, exclude_defaults=True)
        attributes = {**unknown_data.attributes, **stated.attributes, "body": {"S": body.decode()}}
        self._write(self._put(item, attributes, condition), *others)
        self._unknown.written(item, stated.version, unknown_data)

    def _save(self, item: str, version: int, entry: _Entry) -> None:
        """Replace an item of this version. A large one is cut up: the pieces are written first, then the item that names them."""
        unknown_data = self._unknown.of(item, version, self._items) if version else UnknownOfItem()
        packed = zlib.compress(_ENTRY.dump(entry, unknown_data.unknown))
        pieces: dict[str, bytes] = {}
        if len(packed) > _PIECE_BYTES:
            digest = hashlib.sha256(packed).hexdigest()[:16]  # two writers at once must not mix their pieces
            starts = range(0, len(packed), _PIECE_BYTES)
            pieces = {f"{item}~{digest}~{n}": packed[start : start + _PIECE_BYTES] for n, start in enumerate(starts)}
            packed = zlib.compress(_ENTRY.dump(_Entry(pieces=tuple(pieces))))
        for name, piece in pieces.items():
            piece_or_nothing = _Condition("attribute_not_exists(fleet) OR attribute_exists(piece)")
            self._write(self._put(name, {"piece": {"B": piece}, "piece_name": {"S": name}}, piece_or_nothing))
        known = _Condition("version = :version", {":version": {"N": str(version)}}) if version else _IS_NEW
        attributes = {**unknown_data.attributes, "body": {"B": packed}, "version": {"N": str(version + 1)}}
        self._write(self._put(item, attributes, known))
        self._unknown.written(item, version + 1, unknown_data)
        # Only now does nothing name the old pieces any more.
        for name in sorted(old for old in self._pieces if old.startswith(f"{item}~") and old not in pieces):
            self._write(self._delete(name, _Condition("attribute_exists(piece) OR attribute_not_exists(fleet)")))
        self._pieces |= pieces.keys()

    def _taken(self, record: Record) -> list[_Write]:
        """Claim a record's node for its instance, so that no other record can have it; give up those that it leaves."""
        left = [self._delete(f"node#{one.controller}/{one.node}", _free_or_of(record)) for one in record.leaves if one.node]
        if record.node is None:
            return left
        return [*left, self._put(_node_item(record), {"instance_id": {"S": record.instance_id}}, _free_or_of(record))]

    def _left(self, record: Record) -> list[_Write]:
        return [] if record.node is None else [self._delete(_node_item(record), _free_or_of(record))]

    def _put(self, item: str, attributes: dict[str, Any], condition: _Condition) -> _Write:
        return "Put", {"TableName": self._table, "Item": {**self._key(item), **attributes}, **condition.request}

    def _delete(self, item: str, condition: _Condition) -> _Write:
        return "Delete", {"TableName": self._table, "Key": self._key(item), **condition.request}

    def _check(self, item: str, condition: _Condition) -> _Write:
        return "ConditionCheck", {"TableName": self._table, "Key": self._key(item), **condition.request}

    def _key(self, item: str) -> dict[str, Any]:
        return {"fleet": {"S": self._fleet}, "item": {"S": item}}

    def _write(self, *writes: _Write) -> None:
        """Write one item, or several at once: all of them, or none."""
        if len(writes) > 1:
            self._call(lambda: self._client().transact_write_items(TransactItems=[{kind: request} for kind, request in writes]))  # type: ignore[misc]
            return
        [(kind, request)] = writes
        self._call(lambda: self._client().put_item(**request) if kind == "Put" else self._client().delete_item(**request))

    def _one(self, name: str) -> _Item:
        """Read one item with a query: scaling functions may do nothing else that reads."""
        answer = self._call(
            lambda: self._client().query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="fleet = :fleet AND #item = :item",
                ExpressionAttributeNames={"#item": "item"},
                ExpressionAttributeValues={":fleet": {"S": self._fleet}, ":item": {"S": name}},
            )
        )
        item = _read(answer["Items"][0], {}) if answer["Items"] else _Item(name, 0, None)
        self._unknown.note(name, item.unknown_data)
        return item

    def _items(self) -> list[_Item]:
        pages = self._call(
            lambda: list(
                self._client()
                .get_paginator("query")
                .paginate(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="fleet = :fleet",
                    ExpressionAttributeValues={":fleet": {"S": self._fleet}},
                )
            )
        )
        items = [item for page in pages for item in page["Items"]]
        pieces = {item["piece_name"]["S"]: item["piece"]["B"] for item in items if "piece" in item}
        self._pieces = set(pieces)
        read = [_read(item, pieces) for item in items if _kind(item) in _KINDS]
        self._unknown.note_all({item.name: item.unknown_data for item in read})
        return read

    def _call(self, call: Callable[[], T]) -> T:
        return written(call, self._sleep, "the state was changed by somebody else meanwhile")


@dataclass(frozen=True, slots=True)
class _Stated:
    """A record or an intent as it is written, in which version, and what conditions are about."""

    entry: _Entry
    version: int
    attributes: Mapping[str, Any]


def _recorded(record: Record) -> _Stated:
    attributes = {"state": {"S": str(record.state)}, "revision": {"N": str(record.revision)}}
    return _Stated(_Entry(record=record), record.revision, attributes)


def _launched(intent: Intent) -> _Stated:
    return _Stated(_Entry(intent=intent), 0, {"state": {"S": str(intent.state)}})


def _all(entries: Iterable[_Entry], kind: str) -> tuple[Any, ...]:
    return tuple(held for entry in entries if (held := getattr(entry, kind)))


def _named(entries: Iterable[_Entry], kind: str) -> dict[str, Any]:
    return {entry.name: held for entry in entries if (held := getattr(entry, kind))}


def _in_state(state: str) -> _Condition:
    return _Condition("#state = :expected", {":expected": {"S": str(state)}}, {"#state": "state"})


def _of_revision(record: Record, expected: RecordState) -> _Condition:
    """Hold while nobody has changed a record since it was read."""
    state = _in_state(expected)
    values = {**state.values, ":revision": {"N": str(record.revision)}}
    return replace(state, text=f"{state.text} AND revision = :revision", values=values)


def _held_by(owner: str) -> _Condition:
    return _Condition("#owner = :owner", {":owner": {"S": owner}}, {"#owner": "owner"})


def _node_item(record: Record) -> str:
    return f"node#{record.controller}/{record.node}"


def _free_or_of(record: Record) -> _Condition:
    mine = {":instance": {"S": record.instance_id}}
    return _Condition("attribute_not_exists(fleet) OR instance_id = :instance", mine)


def _kind(item: Mapping[str, Any]) -> str:
    return str(item["item"]["S"]).partition("#")[0]


def _read(item: Mapping[str, Any], pieces: dict[str, bytes]) -> _Item:
    name, version = item["item"]["S"], int(item.get("version", {}).get("N", "0"))
    try:
        body = item["body"]
        load = _LOAD.get(_kind(item), _ENTRY.load)
        entry, unknown = load(zlib.decompress(body["B"]) if "B" in body else body["S"])
        entry, unknown = _joined(entry, pieces) if entry.pieces else (entry, unknown)
    except (ValueError, KeyError, zlib.error):
        return _Item(name, version, None, unread=unread_record(item))
    attributes = {key: value for key, value in item.items() if key not in _ATTRIBUTES}
    unknown = without_earlier_names(_kind(item), unknown)
    unknown_data = UnknownOfItem(entry.record.revision if entry.record else version, unknown, attributes)
    # What holds nothing that we know of its kind was written by another version.
    return _Item(name, version, None if getattr(entry, _kind(item)) is None else entry, unknown_data)


# Losing an entry of memory, or of what was learned, costs time, never a build.
_LOAD = {"memory": _ENTRY.load_what_can_be_read, "learned": _ENTRY.load_what_can_be_read}


def _joined(entry: _Entry, pieces: dict[str, bytes]) -> tuple[_Entry, Unknown]:
    """Put an entry together again. A missing piece was replaced while the pages were read."""
    if not all(name in pieces for name in entry.pieces):
        raise TransientError("the state was replaced while it was being read")
    return _ENTRY.load_what_can_be_read(zlib.decompress(b"".join(pieces[name] for name in entry.pieces)))
