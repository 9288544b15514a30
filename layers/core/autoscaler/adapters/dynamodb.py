"""Keeps state and lease in one DynamoDB table: partition key ``fleet``, sort key ``item``."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from autoscaler.adapters.earlier import from_0_3_0
from autoscaler.adapters.table import LOST, NEW, STATE, Form, Key, Note, Table, Write, WriteCondition, body_of, same, version_of
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.orders import Overrides, unknown_orders
from autoscaler.domain.facts.snapshot import (
    CLOCKS_DIFFER_SECONDS,
    Binding,
    Intent,
    IntentState,
    Record,
    RecordState,
    UnreadRecord,
)
from autoscaler.domain.facts.telemetry import Devices
from autoscaler.domain.report.datum import PassNotes
from autoscaler.domain.report.told import Told
from autoscaler.errors import TransientError
from autoscaler.ports import StoredState

_PIECE_BYTES = 350_000  # DynamoDB takes 400 KB an item, keys and all
_PIECE = WriteCondition("attribute_exists(piece)").or_new()
_LEASE = (STATE, "lease")


@dataclass(frozen=True, slots=True)
class _Entry:
    """The content of one item, exactly one of these, and the names that belong to it.

    ``name``: of a controller, machine or function; ``pieces``: of a large one.
    """

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


_ENTRY = Form(_Entry, is_short=True, is_packed=False, earlier=from_0_3_0)
_LARGE = Form(_Entry, is_short=False, earlier=from_0_3_0)
# Items are named after what they hold; all others are no entries.
_KINDS = frozenset(_Entry.__dataclass_fields__) - {"name", "pieces"}
# Losing an entry of memory, or of what was learned, costs time, never a build.
_MAY_LOSE_ENTRIES = frozenset({"memory", "learned"})


@dataclass(frozen=True, slots=True)
class _Item:
    """One item as it was read. ``entry`` None: this version cannot read it."""

    name: str
    version: int
    entry: _Entry | None = None
    places: tuple[str, ...] = ()  # what of it cannot be read
    unread: UnreadRecord | None = None


class DynamoState(Table):
    """The state of one fleet."""

    _pieces: frozenset[str] = frozenset()  # of large items, as seen in the last read

    def read(self) -> StoredState:
        """Read everything in one consistent query, and name the items that cannot be read."""
        items = self._items()
        unread = {item.name: item.version for item in items if item.entry is None}
        parts = [f"{item.name} {place}" for item in items for place in item.places]
        held: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}
        # What was learned is replaced at the next save, and so is memory; orders of operators only
        # by an operator.
        for name, version in unread.items():
            if name.startswith("learned#"):
                held["learned"][name.removeprefix("learned#")] = Learned(version=version)
        for item in items:
            if item.entry:
                kind = item.name.partition("#")[0]
                held[kind][item.entry.name or item.name] = getattr(item.entry, kind)
        orders = unknown_orders(unread["overrides"]) if "overrides" in unread else Overrides()
        return StoredState(
            records=tuple(held["record"].values()),
            intents=tuple(held["intent"].values()),
            memory=held["memory"].get("memory", Memory(version=unread.get("memory", 0))),
            learned=held["learned"],
            overrides=held["overrides"].get("overrides", orders),
            told=held["told"].get("told", Told(version=unread.get("told", 0))),
            devices=held["devices"],
            passes=held["passes"],
            unread=tuple(sorted([*unread, *parts])),
            unread_as={item.name: item.unread for item in items if item.unread},
        )

    def record(self, instance_id: str) -> Record | None:
        """Read one item by its key."""
        item = self._one(f"record#{instance_id}")
        return item.entry.record if item.entry else None

    def note_devices(self, machine: str, devices: Devices) -> None:
        """Replace one item, whatever it was."""
        self.write(devices_of(self, machine, devices))

    def add_record(self, record: Record) -> None:
        """Write a record of a new instance, and claim its node in the same transaction."""
        self.write(self._record(record, NEW, None), *self._claims(record))

    def change_record(self, record: Record, *, expected: RecordState, holder: str = "") -> Record:
        """Replace a record of this revision, and its claim of a node.

        One that is gone leaves no item, so that reads stay small.
        """
        condition = same(state=expected, revision=record.revision)
        changed = replace(record, revision=record.revision + 1)
        if record.state is RecordState.GONE:
            write = self.delete((STATE, f"record#{record.instance_id}"), condition)
        else:
            write = self._record(changed, condition, record.revision)
        held = [self.check(_LEASE, same(owner=holder))] if holder else []
        self.write(write, *self._claims(record), *held)
        return changed

    def add_intent(self, intent: Intent, *, holder: str) -> None:
        """Write an intent under a new id, while the lease is still the holder's."""
        self.write(self._intent(intent, NEW, None), self.check(_LEASE, same(owner=holder)))

    def change_intent(self, intent: Intent, *, expected: IntentState) -> None:
        """Replace an intent in the expected state."""
        self.write(self._intent(intent, same(state=expected), 0))

    def remove_intent(self, intent: Intent) -> None:
        """Delete an intent that is settled."""
        key = STATE, f"intent#{intent.id}"
        self.write(self.delete(key, same(state=IntentState.SETTLED).or_new()))

    def save_memory(self, memory: Memory) -> None:
        """Replace the memory of this version."""
        self._save("memory", memory)

    def save_learned(self, controller: str, learned: Learned) -> None:
        """Replace what was learned, of this version."""
        self._save(f"learned#{controller}", learned)

    def save_overrides(self, overrides: Overrides) -> None:
        """Replace the orders of this version."""
        self._save("overrides", overrides)

    def save_told(self, told: Told) -> None:
        """Replace what people were told of, of this version."""
        self._save("told", told)

    def pass_notes(self, function: str) -> PassNotes:
        """Read one item by its key."""
        item = self._one(f"passes#{function}")
        return (item.entry and item.entry.passes) or PassNotes(version=item.version)

    def save_pass_notes(self, function: str, notes: PassNotes) -> None:
        """Replace the notes of this version."""
        self._save(f"passes#{function}", notes)

    def acquire(self, owner: str, *, now: float, until: float) -> bool:
        """Take the lease by one conditional write.

        The SDK may send it twice, so our own name is no obstacle. Nor is a time that only a clock far ahead can have written. A pass that
        still holds such a lease launches and starts nothing more: those writes ask for the lease, all others for the version they change.
        """
        over = {"until_at": now, "ahead": until + CLOCKS_DIFFER_SECONDS, "owner": owner}
        free = WriteCondition("NOT (#until_at BETWEEN :until_at AND :ahead) OR #owner = :owner", over).or_new()
        return self.takes(self.put(_LEASE, free, owner=owner, until_at=until), unless=LOST)

    def release(self, owner: str) -> None:
        """Delete the lease if it is still ours."""
        self.takes(self.delete(_LEASE, same(owner=owner)), unless=LOST)

    def noted(self, key: Key, version: int) -> Note:
        """Read everything again if another process has read the version that is replaced."""
        if key not in self._notes or self._notes[key].version != version:
            self._items()
        return super().noted(key, version)

    def _record(self, record: Record, condition: WriteCondition, read: int | None) -> Write:
        key, facts = (STATE, f"record#{record.instance_id}"), _Entry(record=record)
        return self.over(key, _ENTRY, facts, condition, read, state=record.state, revision=record.revision)

    def _intent(self, intent: Intent, condition: WriteCondition, read: int | None) -> Write:
        key, facts = (STATE, f"intent#{intent.id}"), _Entry(intent=intent)
        return self.over(key, _ENTRY, facts, condition, read, state=intent.state)

    def _claims(self, record: Record) -> list[Write]:
        """Claim a record's node, so that no other record can have it; give up those it leaves."""
        free_or_mine = same(instance_id=record.instance_id).or_new()
        claims = [self.delete(_node(left), free_or_mine) for left in record.leaves if left.node]
        if record.state is RecordState.GONE:
            return [self.delete(_node(record), free_or_mine)] if record.node else []
        if record.node:
            claims.append(self.put(_node(record), free_or_mine, instance_id=record.instance_id))
        return claims

    def _save(self, name: str, value: Any) -> None:
        """Replace an item of this version, in pieces if it is large.

        The pieces are written first, then the item that names them. Only then does nothing name
        the old pieces any more.
        """
        kind, _, of = name.partition("#")
        entry = _Entry(**{kind: replace(value, version=value.version + 1)}, name=of)
        write = self.next_version((STATE, name), _LARGE, entry, value.version)
        packed, pieces = write.request["Item"]["body"]["B"], {}
        if len(packed) > _PIECE_BYTES:
            digest = hashlib.sha256(packed).hexdigest()[:16]  # two writers must not mix theirs
            for number, start in enumerate(range(0, len(packed), _PIECE_BYTES)):
                pieces[f"{name}~{digest}~{number}"] = packed[start : start + _PIECE_BYTES]
            index, _ = _LARGE.body(_Entry(pieces=tuple(pieces)))
            write.request["Item"]["body"] = {"B": index}
        for piece, content in pieces.items():
            self.write(self.put((STATE, piece), _PIECE, piece=content, piece_name=piece))
        self.write(write)
        for old in sorted(self._pieces - pieces.keys()):
            if old.startswith(f"{name}~"):
                self.write(self.delete((STATE, old), _PIECE))
        self._pieces |= pieces.keys()

    def _one(self, name: str) -> _Item:
        item = self.item((STATE, name))
        return self._read(name.partition("#")[0], item, {}) if item else _Item(name, 0)

    def _items(self) -> list[_Item]:
        items = list(self.items(STATE))
        pieces = {item["piece_name"]["S"]: item["piece"]["B"] for item in items if "piece" in item}
        self._pieces = frozenset(pieces)
        self._notes.clear()
        kinds = [item["item"]["S"].partition("#")[0] for item in items]
        return [self._read(kind, item, pieces) for kind, item in zip(kinds, items, strict=True) if kind in _KINDS]

    def _read(self, kind: str, item: Mapping[str, Any], pieces: dict[str, bytes]) -> _Item:
        """Read an entry, and put it together again if it is in pieces."""
        name, version = item["item"]["S"], version_of(item)
        try:
            form = _LARGE if "B" in item["body"] else _ENTRY
            load = form.load_what_can_be_read if kind in _MAY_LOSE_ENTRIES else form.load
            read = load(body_of(item["body"]))
            if names := read.value.pieces:
                if not all(name in pieces for name in names):  # replaced while the pages were read
                    raise TransientError("the state was replaced while it was being read")
                packed = b"".join(pieces[name] for name in names)
                read = _LARGE.load_what_can_be_read(zlib.decompress(packed))
        except (ValueError, KeyError, zlib.error):
            self.remember(STATE, item, None)
            return _Item(name, version, unread=unread_record(item))
        self.remember(STATE, item, read.raw)
        # What holds nothing that we know of its kind was written by another version.
        entry = None if getattr(read.value, kind) is None else read.value
        return _Item(name, version, entry, read.unread)


def devices_of(table: Table, machine: str, devices: Devices) -> Write:
    """Compose the item of a machine's devices, in a part that passes read."""
    body, _ = _ENTRY.body(_Entry(devices=devices, name=machine))
    return table.put((STATE, f"devices#{machine}"), until=devices.told_at + DAY_SECONDS, body=body)


def unread_record(item: Mapping[str, Any]) -> UnreadRecord | None:
    """Tell of an unreadable record what has its usual place; None where there is nothing."""
    try:
        record = json.loads(item["body"]["S"])["record"]
        binding = record["bindings"][0]
        state = "" if record["state"] in {*RecordState} else str(record["state"])
        controller, node = str(binding["controller"]), str(binding.get("node") or "")
        return UnreadRecord(state=state, controller=controller, node=node)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _node(of: Record | Binding) -> Key:
    return STATE, f"node#{of.controller}/{of.node}"
