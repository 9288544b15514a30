"""Items of the state table: written in the version that was read, in transactions that may lose, with what other versions put there."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from autoscaler.adapters.aws import code_of
from autoscaler.domain.facts.snapshot import RecordState, UnreadRecord
from autoscaler.errors import ConflictError, TransientError, UnansweredError

# Writes to DynamoDB that may lose a race, or be throttled: a transaction that is cancelled for either reason has written nothing.
#
# The SDK repeats a single write that is throttled, and never a cancelled transaction.


T = TypeVar("T")

_CANCELLED = "TransactionCanceledException"
_LOST_THE_RACE = {"ConditionalCheckFailedException", "TransactionConflictException", "ConditionalCheckFailed", "TransactionConflict"}
_THROTTLED = {"ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"}
_THROTTLED |= {"ThrottlingException", "ProvisionedThroughputExceededException", "Throttling"}
_REASONS = re.compile(r"\[([A-Za-z, ]+)\]")  # in the message, where an answer names them nowhere else
# Before each further try of a transaction that was throttled.
PAUSES = (0.1, 0.4)


def lost_the_race(error: ClientError) -> bool:
    """Tell whether a condition did not hold, or another transaction wrote the same items."""
    return bool({code_of(error), *_reasons_of(error)} & _LOST_THE_RACE)


def problem_of(error: ClientError, action: str, conflict: str) -> TransientError:
    """Name an error for the loop. ``conflict``: what is said if somebody else was quicker, also if some of it was throttled, too."""
    if lost_the_race(error):
        return ConflictError(conflict)
    codes = [code for code in (code_of(error), *_reasons_of(error)) if code in _THROTTLED]
    if codes:
        return TransientError(f"{action}: DynamoDB throttled it ({codes[0]}), and nothing was written")
    reasons = ", ".join(_reasons_of(error))
    return TransientError(f"{action}: {code_of(error)}" + (f" ({reasons})" if reasons else ""))


def written(write: Callable[[], T], sleep: Callable[[float], None], conflict: str) -> T:
    """Write, and write again where a transaction was cancelled for throttling alone; errors as `problem_of`, or `UnansweredError`."""
    before = ""
    for pause in (*PAUSES, None):
        try:
            return write()
        except ClientError as error:
            if pause is None or not _may_be_tried_again(error):
                raise problem_of(error, "DynamoDB", conflict) from error
        except BotoCoreError as error:
            raise UnansweredError(f"DynamoDB {before}did not answer ({type(error).__name__})") from error
        before = "throttled a write, was asked again, and "
        sleep(pause)
    raise AssertionError("the last try returns or raises")


def at_once(_seconds: float) -> None:
    """Wait for nothing."""


def _may_be_tried_again(error: ClientError) -> bool:
    return code_of(error) == _CANCELLED and not lost_the_race(error) and bool(set(_reasons_of(error)) & _THROTTLED)


def _reasons_of(error: ClientError) -> list[str]:
    """Return why a transaction was cancelled: one reason an item, without those items that had none."""
    answer: Any = error.response
    reasons = [str(reason.get("Code")) for reason in answer.get("CancellationReasons") or ()]
    if not reasons and (named := _REASONS.search(str(answer.get("Error", {}).get("Message", "")))):
        reasons = [reason.strip() for reason in named[1].split(",")]
    return [reason for reason in reasons if reason not in {"None", ""}]


# Keeps what this version does not know of stored items: other versions wrote it, and go on with it.
#
# While a deploy runs, old and new functions take turns with the same items, and a new release may be taken back. So all
# fields that this version does not know are written back as they were read: in the same object, under the same key, in the same element.


_FIELD, _ENTRY = 2, 3  # parts of a place: what the item holds, the name of its field, and the key of an entry
_MOST_TIMES = 10  # errors may hide others


@dataclass(frozen=True, slots=True)
class Unknown:
    """The data of a value that this version does not know: ``extras`` of its own, of what is ``inside`` it, and of list ``elements``."""

    extras: Mapping[str, Any] = field(default_factory=dict)
    inside: Mapping[str, Unknown] = field(default_factory=dict)
    elements: tuple[tuple[Any, Unknown], ...] = ()
    unread: tuple[str, ...] = ()  # places of extras that are known here, and cannot be read

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.extras or self.inside or self.elements)

    def all_elements(self) -> Iterator[tuple[Any, Unknown]]:
        """Return the elements of all lists."""
        yield from self.elements
        for unknown in (*self.inside.values(), *(unknown for _, unknown in self.elements)):
            yield from unknown.all_elements()


NOTHING = Unknown()


class Aside:
    """Takes what cannot be read out of the JSON of an item: a whole entry of a table by keys, or else a field of the item's value."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._taken: dict[tuple[str, ...], Any] = {}

    def take(self, raw: Any, error: ValidationError) -> None:
        """Take out each place at which there is an error."""
        for place in {detail["loc"][:_ENTRY] for detail in error.errors(include_url=False, include_input=False)}:
            if len(place) < _FIELD or place[1] == "version":
                raise error
            what, name, *entry = map(str, place)
            value = raw[what]
            if entry and isinstance(value.get(name), dict) and entry[0] in value[name]:
                self._taken[what, name, entry[0]] = value[name].pop(entry[0])
            elif name in value:
                self._taken[what, name] = value.pop(name)

    def with_the_rest(self, unknown: Unknown) -> Unknown:
        """Return what was taken out together with what is not known of the rest."""
        for place, raw in self._taken.items():
            unknown = _with_extra(unknown, place, raw)
        return replace(unknown, unread=tuple(sorted("/".join(place[1:]) for place in self._taken)))


def _with_extra(unknown: Unknown, place: tuple[str, ...], raw: Any) -> Unknown:
    first, *rest = place
    if not rest:
        return replace(unknown, extras={**unknown.extras, first: raw})
    inside = _with_extra(unknown.inside.get(first, NOTHING), tuple(rest), raw)
    return replace(unknown, inside={**unknown.inside, first: inside})


class Kept(Generic[T]):
    """Reads and writes values of a type as JSON, with what is not known of them."""

    def __init__(self, of: type[T]) -> None:
        """Prepare for a type."""
        self._adapter: TypeAdapter[T] = TypeAdapter(of)

    def load(self, body: bytes | str) -> tuple[T, Unknown]:
        """Read a value and its unknown data. `ValueError` if this version cannot read it."""
        value = self._adapter.validate_json(body)
        return value, NOTHING if self._is_all_of(value, body) else unknown_in(value, from_json(body))

    def _is_all_of(self, value: T, body: bytes | str) -> bool:
        """Tell whether this version would write the same bytes: then nothing in them is unknown. It is quicker than to look for it.

        False says nothing: an item with a set may be written in another order.
        """
        as_bytes = body.encode() if isinstance(body, str) else body
        return any(self._adapter.dump_json(value, exclude_defaults=is_short) == as_bytes for is_short in (True, False))

    def load_what_can_be_read(self, body: bytes | str) -> tuple[T, Unknown]:
        """Read a value without the entries that this version cannot read: these are kept, too. `ValueError` if nothing is left."""
        try:
            return self.load(body)
        except ValidationError as first:
            raw, aside, error = from_json(body), Aside(), first
        for _ in range(_MOST_TIMES):
            aside.take(raw, error)
            try:
                value = self._adapter.validate_json(to_json(raw))
            except ValidationError as again:
                error = again
            else:
                return value, aside.with_the_rest(unknown_in(value, raw))
        raise error

    def dump(self, value: T, unknown: Unknown = NOTHING, *, exclude_defaults: bool = False) -> bytes:
        """Write a value together with its unknown data."""
        body = self._adapter.dump_json(value, exclude_defaults=exclude_defaults)
        return to_json(_with(value, from_json(body), unknown, [*unknown.all_elements()])) if unknown else body


@dataclass(frozen=True, slots=True)
class UnknownOfItem:
    """The unknown data of one version of an item: in its body (``unknown``), and as ``attributes`` of the item itself."""

    version: int = 0
    unknown: Unknown = NOTHING
    attributes: Mapping[str, Any] = field(default_factory=dict)


class UnknownOfItems:
    """The unknown data of a store's items, by item, as of the last read or write of each."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._unknown: dict[str, UnknownOfItem] = {}

    def note(self, item: str, unknown_data: UnknownOfItem) -> None:
        """Remember the unknown data of one item."""
        self._unknown[item] = unknown_data

    def written(self, item: str, version: int, before: UnknownOfItem) -> None:
        """Note that an item was written. If it has unknown data, it is read again before the next write."""
        self._unknown.pop(item, None)
        if not before.unknown and not before.attributes:
            self._unknown[item] = UnknownOfItem(version)

    def note_all(self, by_item: Mapping[str, UnknownOfItem]) -> None:
        """Remember the unknown data of all items: there are no others."""
        self._unknown = dict(by_item)

    def of(self, item: str, version: int, read: Callable[[], object] | None = None) -> UnknownOfItem:
        """Return the unknown data of an item's version. ``read``: reads the item again if another version was read last."""
        if read and (item not in self._unknown or self._unknown[item].version != version):
            read()
        last = self._unknown.get(item, UnknownOfItem())
        return last if last.version == version else UnknownOfItem()


def unknown_in(value: Any, raw: Any) -> Unknown:
    """Find what the JSON holds that a value was read from, and the value does not."""
    if isinstance(raw, list):
        return _unknown_of_each(value, raw) if _holds_objects(value) else NOTHING
    parts = _parts(value)
    return _unknown_of_object(parts, raw) if parts is not None and isinstance(raw, dict) else NOTHING


def _unknown_of_object(parts: Mapping[str, Any], raw: dict[str, Any]) -> Unknown:
    """Go into the few parts whose JSON is an object or a list: each pass reads thousands of objects, most of which have none."""
    extras = {name: data for name, data in raw.items() if name not in parts}
    nested = {name: unknown_in(parts[name], data) for name, data in raw.items() if isinstance(data, dict | list) and name in parts}
    inside = {name: unknown for name, unknown in nested.items() if unknown}
    return Unknown(extras=extras, inside=inside) if extras or inside else NOTHING


def _unknown_of_each(values: Sequence[Any], raw: list[Any]) -> Unknown:
    pairs = [(part, unknown_in(part, of)) for part, of in zip(values, raw, strict=True)]
    return Unknown(elements=tuple(pairs)) if any(unknown for _, unknown in pairs) else NOTHING


def _with(value: Any, tree: Any, unknown: Unknown, elements: list[tuple[Any, Unknown]]) -> Any:
    """Put what is unknown back into the JSON of a value. ``elements``: of all lists, since some move from one to another."""
    parts = _parts(value)
    if parts is not None:
        unread = {name: unknown.extras[name] for name in unknown.extras.keys() & parts.keys() if _is_default(value, name)}
        whole = {**unknown.extras, **(tree or {}), **unread}  # defaults may have been left out
        for name in (whole.keys() | unknown.inside.keys()) & parts.keys() - unread.keys():
            put_back = _with(parts[name], whole.get(name), unknown.inside.get(name, NOTHING), elements)
            whole |= {name: put_back} if name in whole or put_back else {}
        return whole
    if _holds_objects(value) and isinstance(tree, list):
        mine = _of_elements(value, unknown, elements)
        return [_with(part, of, more, elements) for part, of, more in zip(value, tree, mine, strict=True)]
    return tree


def _parts(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of an object, or the entries of a table by keys; None of anything else."""
    if isinstance(value, str | float | int | tuple | list):  # nearly all
        return None
    if is_dataclass(value):
        return {name: getattr(value, name) for name in _fields_of(value.__class__)}
    return {str(key): part for key, part in value.items()} if isinstance(value, Mapping) else None


def _of_elements(parts: Sequence[Any], before: Unknown, elements: list[tuple[Any, Unknown]]) -> list[Unknown]:
    """Return what is unknown of each element: of the same one, wherever it was, or of the one that it was before it was changed."""
    left = [*before.elements]
    mine = [_take(left, [pair for pair in left if pair[0] == part][:1]) for part in parts]
    for at, part in enumerate(parts):
        if mine[at] is None:
            moved = next((unknown for known, unknown in elements if known == part), None)
            mine[at] = moved or _take(left, sorted(_alike(part, left), key=lambda pair: _equal_fields(pair[0], part))[-1:])
    return [unknown or NOTHING for unknown in mine]


def _take(left: list[tuple[Any, Unknown]], chosen: list[tuple[Any, Unknown]]) -> Unknown | None:
    for pair in chosen:
        left.remove(pair)
        return pair[1]
    return None


def _alike(part: Any, left: Iterable[tuple[Any, Unknown]]) -> Iterator[tuple[Any, Unknown]]:
    """Find objects that may be this one before it was changed: what names it comes first in its fields."""
    for pair in left if is_dataclass(part) else ():
        first = next(iter(_fields_of(part.__class__)))
        if type(pair[0]) is type(part) and getattr(pair[0], first) == getattr(part, first):
            yield pair


def _equal_fields(one: Any, other: Any) -> int:
    return sum(getattr(one, name) == getattr(other, name) for name in _fields_of(one.__class__))


def _is_default(value: Any, name: str) -> bool:
    """Tell whether nothing has taken the place of what could not be read."""
    if not is_dataclass(value):
        return False
    of = _fields_of(value.__class__)[name]
    default = of.default_factory() if of.default_factory is not MISSING else of.default
    return bool(getattr(value, name) == default)


@cache  # a large item holds thousands of objects
def _fields_of(of: type[Any]) -> Mapping[str, Field[Any]]:
    return {field.name: field for field in fields(of)}


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list | tuple) and _may_hold_more(value)


def _may_hold_more(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and _may_hold_more(value[0])
    return not isinstance(value, str | float | int) and (is_dataclass(value) or isinstance(value, Mapping))


# Items of the state table that are replaced only in the version that was read: how they are written, and read.


def put_of(table: str, key: tuple[str, str], body: bytes, version: int, expires_at: float) -> dict[str, Any]:
    """Return the request that replaces an item of this version, 0 where there is none yet. ``key``: partition and item."""
    content = {
        "fleet": {"S": key[0]},
        "item": {"S": key[1]},
        "body": {"B": body},
        "version": {"N": str(version + 1)},
        "expiration": {"N": str(int(expires_at))},
    }
    known = {"ExpressionAttributeValues": {":version": {"N": str(version)}}, "ConditionExpression": "version = :version"}
    condition = known if version else {"ConditionExpression": "attribute_not_exists(fleet)"}
    return {"TableName": table, "Item": content, **condition}


@contextmanager
def writing(action: str, what: str) -> Iterator[None]:
    """Translate boto3's errors of such a write; `ConflictError` where somebody else was quicker. ``what`` is written."""
    try:
        yield
    except ClientError as error:
        raise problem_of(error, action, f"{what} was written by somebody else meanwhile") from error
    except BotoCoreError as error:
        raise UnansweredError(f"{action} was not answered ({type(error).__name__})") from error


def version_of(item: Any) -> int:
    """Return the version of an item that was read."""
    return int(item["version"]["N"])


def unpacked(kept: Kept[T], item: Any, unknown_data: UnknownOfItems) -> T | None:
    """Read what an item holds, and note what else it holds; None of what another version of the autoscaler wrote: it begins again."""
    try:
        value, unknown = kept.load(zlib.decompress(item["body"]["B"]))
        unknown_data.note(item["item"]["S"], UnknownOfItem(version_of(item), unknown))
    except (ValueError, KeyError, zlib.error):
        return None
    return value


# What can be told of a record that this version cannot read.


def unread_record(item: Mapping[str, Any]) -> UnreadRecord | None:
    """Tell of an unreadable record what has its usual place; None where there is nothing."""
    try:
        record = json.loads(item["body"]["S"])["record"]
        binding = record["bindings"][0]
        state = "" if record["state"] in {*RecordState} else str(record["state"])
        return UnreadRecord(state=state, controller=str(binding["controller"]), node=str(binding.get("node") or ""))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
