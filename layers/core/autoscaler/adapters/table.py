"""One DynamoDB table: items are read, written on conditions with what other versions put there, and AWS' errors translated.

A write that is not made since somebody else was quicker is a `ConflictError`; one that may have
been made, and any call without an answer, is an `UnansweredError`. All others are transient.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from autoscaler.adapters.aws import code_of
from autoscaler.errors import ConflictError, TransientError, UnansweredError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")
Key: TypeAlias = tuple[str, str]  # the part of the fleet's items, and the name of one in it

STATE = ""  # the part that passes read
# Before each further try of a transaction that was throttled: it has written nothing, and the SDK
# repeats none that was cancelled.
PAUSES = (0.1, 0.4)
_GET_AT_ONCE = 100  # DynamoDB's most
_CANCELLED = "TransactionCanceledException"
_REFUSED = {"ConditionalCheckFailed", "ConditionalCheckFailedException"}
LOST = _REFUSED | {"TransactionConflict", "TransactionConflictException"}
_THROTTLED = {
    *("ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"),
    *("ThrottlingException", "ProvisionedThroughputExceededException", "Throttling"),
}
_REASONS = re.compile(r"\[([A-Za-z, ]+)\]")  # in the message, if an answer has them nowhere else
_METHODS = {"Put": "put_item", "Delete": "delete_item", "Update": "update_item"}
# What this version writes beside a body; all other attributes are another version's.
_OURS = {
    *("fleet", "item", "body", "version", "state", "revision", "piece", "piece_name"),
    *("expiration", "at"),
}


_Object: TypeAlias = dict[str, Any]
_Pair: TypeAlias = tuple[Any, Any]  # what is known of an element, and the element itself

# Values as JSON, with what other versions of the autoscaler have written there.
#
# While a deploy runs, old and new functions take turns with the same items, and a new release may be
# taken back. So what this version does not know is written back as it was read: in the same object,
# under the same key, in the same element of a list.

_FIELD, _ENTRY = 2, 3  # parts of a place: what the item holds, its field, and the key of an entry
_MOST_TIMES = 10  # errors may hide others


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """A value, and the JSON it was read from if that holds more than this version writes."""

    value: T
    raw: bytes | None = None
    unread: tuple[str, ...] = ()  # places that are known here, and cannot be read


class Form(Generic[T]):
    """How values of a type stand in items: as JSON, with defaults or without, packed or as text."""

    def __init__(
        self,
        of: type[T],
        *,
        is_short: bool,
        is_packed: bool = True,
        earlier: Callable[[Any], None] = lambda _raw: None,
    ) -> None:
        """Prepare for a type. ``earlier``: turns what the release before wrote into this form."""
        self._adapter: TypeAdapter[T] = TypeAdapter(of)
        self._is_short, self._is_packed, self._earlier = is_short, is_packed, earlier

    def load(self, body: bytes) -> Loaded[T]:
        """Read a value; `ValueError`.

        Most bodies are this version's own, byte by byte: that is quicker than to look for more.
        """
        value = self._adapter.validate_json(body)
        if self._adapter.dump_json(value, exclude_defaults=self._is_short) == body:
            return Loaded(value)
        raw = self._raw(body)
        value = self._adapter.validate_json(to_json(raw))
        return Loaded(value, to_json(raw) if _has_more(raw, self._known(value)) else None)

    def load_what_can_be_read(self, body: bytes, times: int = _MOST_TIMES) -> Loaded[T]:
        """Read a value without entries that cannot be read: these are kept, too; `ValueError`."""
        try:
            return self.load(body)
        except ValidationError as error:
            if not times:
                raise
            rest = self._raw(body)
            unread = _take_out(rest, error)
        read = self.load_what_can_be_read(to_json(rest), times - 1)
        return Loaded(read.value, to_json(self._raw(body)), tuple(sorted({*unread, *read.unread})))

    def body(self, value: T, raw: bytes | None = None) -> tuple[bytes | str, bytes | None]:
        """Return what an item is to hold, and what of it is ``raw`` then; it was so before."""
        text = self._adapter.dump_json(value, exclude_defaults=self._is_short)
        if raw:
            before = self._known(self.load_what_can_be_read(raw).value)
            raw = text = to_json(merged(self._known(value), from_json(raw), before))
        return zlib.compress(text) if self._is_packed else text.decode(), raw

    def _raw(self, body: bytes) -> Any:
        raw = from_json(body)
        try:
            self._earlier(raw)
        except (AttributeError, TypeError) as error:
            raise ValueError("what an earlier release wrote has another form") from error
        return raw

    def _known(self, value: T) -> Any:
        return from_json(self._adapter.dump_json(value))


def body_of(content: _Object) -> bytes:
    """Return the JSON of an attribute, packed or not; `ValueError`, `KeyError`, `zlib.error`."""
    return zlib.decompress(content["B"]) if "B" in content else content["S"].encode()


def merged(new: Any, raw: Any, known: Any, moved: Sequence[_Pair] = ()) -> Any:
    """Write new JSON over raw JSON: what is as it was known stays as it stands in the raw one.

    ``moved``: elements of other lists, which may be in this one by now.
    """
    if new == known:
        return raw
    if isinstance(new, dict) and isinstance(raw, dict) and isinstance(known, dict):
        return _merged_fields(new, raw, known)
    if isinstance(new, list) and _are_objects(new):
        before = [*(pair for pair in moved if pair[0] in new), *_pairs(raw, known)]
        return [merged(part, *pair) for part, pair in zip(new, _before(new, before), strict=True)]
    return new


def _merged_fields(new: _Object, raw: _Object, known: _Object) -> _Object:
    lists = {name: _pairs(part, known.get(name)) for name, part in raw.items()}
    whole = {name: part for name, part in raw.items() if name not in known}
    for name, part in new.items():
        if name not in raw and name in known and part == known[name]:
            continue  # a default that was left out
        moved = [pair for other in lists.keys() - {name} for pair in lists[other]]
        whole[name] = merged(part, raw.get(name), known.get(name), moved)
    return whole


def _has_more(raw: Any, known: Any) -> bool:
    if isinstance(raw, dict) and isinstance(known, dict):
        return any(name not in known or _has_more(part, known[name]) for name, part in raw.items())
    return any(_has_more(element, part) for part, element in _pairs(raw, known))


def _pairs(raw: Any, known: Any) -> list[_Pair]:
    """Return the elements of a list of objects, each beside what is known of it."""
    if not isinstance(raw, list) or not isinstance(known, list) or not _are_objects(known):
        return []
    return [*zip(known, raw, strict=True)] if len(raw) == len(known) else []


def _are_objects(parts: list[Any]) -> bool:
    return all(isinstance(part, dict) for part in parts)


def _before(new: list[_Object], pairs: list[_Pair]) -> list[_Pair]:
    """Return for each element what it was before: raw, and known; itself if it is new."""
    places, found = range(len(pairs)), dict[int, int]()
    alike = [(_likeness(pairs[n][0], part), at, n) for at, part in enumerate(new) for n in places]
    for likeness, at, place in sorted(alike, reverse=True):
        if likeness and at not in found and place not in found.values():
            found[at] = place
    return [pairs[found[at]][::-1] if at in found else (part, part) for at, part in enumerate(new)]


def _likeness(known: _Object, part: _Object) -> int:
    """Count equal fields of two objects with the same name, which comes first in their fields."""
    first = next(iter(known), "")
    is_same = known.get(first) == part.get(first)
    return sum(name in part and part[name] == of for name, of in known.items()) if is_same else 0


def _take_out(raw: Any, error: ValidationError) -> set[str]:
    """Take out each place with an error: an entry of a table by keys, or else a field."""
    taken, errors = set(), error.errors(include_url=False, include_input=False)
    for place in {detail["loc"][:_ENTRY] for detail in errors}:
        if len(place) < _FIELD or place[1] == "version":
            raise error
        what, name, *entry = map(str, place)
        fields = raw[what]
        if entry and isinstance(fields.get(name), dict) and entry[0] in fields[name]:
            del fields[name][entry[0]]
            taken.add(f"{name}/{entry[0]}")
        elif name in fields:
            del fields[name]
            taken.add(name)
    return taken


# Items.


@dataclass(frozen=True, slots=True)
class WriteCondition:
    """The condition of a write: in ``text``, ``#name`` is an attribute and ``:name`` its value."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def or_new(self) -> WriteCondition:
        """Return the condition that also holds if there is no such item."""
        return replace(self, text=f"attribute_not_exists(fleet) OR {self.text}")


NEW = WriteCondition("attribute_not_exists(fleet)")


def same(**attributes: Any) -> WriteCondition:
    """Hold while these attributes of an item are still so: its version, its state, its owner."""
    return WriteCondition(" AND ".join(f"#{name} = :{name}" for name in attributes), attributes)


@dataclass(frozen=True, slots=True)
class Note:
    """What another version has put into one version of an item: its body, and its attributes."""

    version: int = 0
    raw: bytes | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Write:
    """One write, in the words of a transaction, and what is known of the item once it is made."""

    kind: str
    key: Key
    request: dict[str, Any]
    note: Note | None = None

    @property
    def body(self) -> bytes:
        """What is put, packed."""
        return bytes(self.request["Item"]["body"]["B"])


class Table:
    """The items of one fleet in the state table: stores say what stands under which key."""

    def __init__(
        self,
        client: Callable[[], DynamoDBClient],
        table: str,
        fleet: str,
        *,
        sleep: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        """``client`` makes the client at each use; ``sleep``: before a transaction is repeated."""
        self.client, self.table, self.fleet, self.sleep = client, table, fleet, sleep
        self._notes: dict[Key, Note] = {}  # as of the last read or write of each item

    # Reading.

    def items(self, part: str, name: str = "", compare: str = "begins_with(#item, :item)", **more: Any) -> Iterator[Any]:
        """Query a part, or the items of it whose names begin so, page by page.

        ``more``: of the request, in DynamoDB's words.
        """
        condition = f"fleet = :fleet AND {compare}" if name else "fleet = :fleet"
        request: dict[str, Any] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": {":fleet": {"S": self.fleet + part}},
        }
        if name:
            request["ExpressionAttributeNames"] = {"#item": "item"}
            request["ExpressionAttributeValues"][":item"] = {"S": name}
        request |= more
        while request.get("ExclusiveStartKey", True):
            page = self._ask("query", request)
            yield from page["Items"]
            request["ExclusiveStartKey"] = page.get("LastEvaluatedKey")

    def item(self, key: Key) -> Any:
        """Query one item, since most functions may read in no other way; None if there is none."""
        return next(self.items(*key, compare="#item = :item"), None)

    def get(self, part: str, names: Collection[str]) -> list[Any]:
        """Get items by name, a hundred at a time: of jobs and costs, which few may query."""
        wanted, found = sorted(names), []
        for start in range(0, len(wanted), _GET_AT_ONCE):
            keys = [self._key((part, name)) for name in wanted[start : start + _GET_AT_ONCE]]
            asked = {self.table: {"Keys": keys, "ConsistentRead": True}}
            while asked:
                answer = self._ask("batch_get_item", {"RequestItems": asked})
                items = answer["Responses"].get(self.table, [])
                found += items
                asked = answer.get("UnprocessedKeys")
                if asked and not items:
                    raise TransientError("BatchGetItem: DynamoDB throttled it")
        return found

    def load(self, form: Form[T], part: str, item: Any, attribute: str = "body") -> T | None:
        """Read the value of an item; None if another version wrote what this one cannot read."""
        try:
            read = form.load(body_of(item[attribute]))
        except (ValueError, KeyError, zlib.error):
            return None
        self.remember(part, item, read.raw)
        return read.value

    def remember(self, part: str, item: Any, raw: bytes | None) -> None:
        """Remember what another version has put into an item that was read."""
        attributes = {name: value for name, value in item.items() if name not in _OURS}
        self._notes[part, item["item"]["S"]] = Note(version_of(item), raw, attributes)

    def noted(self, key: Key, version: int) -> Note:
        """Return what another version has put into this version of an item."""
        note = self._notes.get(key, Note())
        return note if note.version == version else Note()

    # Composing writes.

    def put(
        self,
        key: Key,
        condition: WriteCondition | None = None,
        *,
        until: float | None = None,
        **attributes: Any,
    ) -> Write:
        """Put an item, which is forgotten some time after ``until``."""
        expiration = {} if until is None else {"expiration": int(until)}
        item = {**self._key(key), **_typed(attributes | expiration)}
        return self._composed("Put", key, {"Item": item}, condition)

    def over(self, key: Key, form: Form[T], value: T, condition: WriteCondition, read: int | None, **facts: Any) -> Write:
        """Put a value over the version that was ``read``, and with what else stands there.

        ``facts``: attributes, as of `put`; ``read`` None: of a new item.
        """
        before = Note() if read is None else self.noted(key, read)
        body, raw = form.body(value, before.raw)
        put = self.put(key, condition, body=body, **facts)
        put.request["Item"] = {**before.attributes, **put.request["Item"]}
        version = facts.get("version", facts.get("revision", 0))
        return replace(put, note=Note(version, raw, before.attributes))

    def next_version(self, key: Key, form: Form[T], value: T, version: int, until: float | None = None) -> Write:
        """Put a value in the place of this version, 0 if there is none yet."""
        condition = same(version=version) if version else NEW
        return self.over(key, form, value, condition, version or None, version=version + 1, until=until)

    def delete(self, key: Key, condition: WriteCondition) -> Write:
        """Delete an item."""
        return self._composed("Delete", key, {"Key": self._key(key)}, condition)

    def check(self, key: Key, condition: WriteCondition) -> Write:
        """Check an item beside other writes."""
        return self._composed("ConditionCheck", key, {"Key": self._key(key)}, condition)

    def update(self, key: Key, sets: str, condition: WriteCondition, **values: Any) -> Write:
        """Set attributes of an item to ``values``."""
        request = {"Key": self._key(key), "UpdateExpression": f"SET {sets}"}
        return self._composed("Update", key, request, condition, **values)

    def _composed(self, kind: str, key: Key, request: dict[str, Any], condition: WriteCondition | None, **values: Any) -> Write:
        request["TableName"] = self.table
        if condition:
            request["ConditionExpression"] = condition.text
            names = {f"#{name}": name for name in condition.values if f"#{name}" in condition.text}
            named = {f":{name}": value for name, value in {**condition.values, **values}.items()}
            request |= {"ExpressionAttributeNames": names} if names else {}
            request |= {"ExpressionAttributeValues": _typed(named)} if named else {}
        return Write(kind, key, request)

    def _key(self, key: Key) -> dict[str, Any]:
        return {"fleet": {"S": self.fleet + key[0]}, "item": {"S": key[1]}}

    # Writing.

    def write(self, *writes: Write, has_token: bool = False) -> None:
        """Write one item, or several at once: all of them, or none.

        ``has_token``: also one by a transaction, to which the SDK gives a token, so that one that
        it sends twice loses no race against itself. What DynamoDB may have done is unanswered.
        """
        name = writes[0].key[1]
        if len(writes) > 1 or has_token:
            items = [{write.kind: write.request} for write in writes]
            self._ask("transact_write_items", {"TransactItems": items}, name, has_token=has_token)
        else:
            self._ask(_METHODS[writes[0].kind], writes[0].request, name)
        self._notes |= {write.key: write.note for write in writes if write.note}

    def takes(self, *writes: Write, unless: Collection[str] = _REFUSED) -> bool:
        """Write, and tell whether it was done: not if DynamoDB names one of these reasons."""
        try:
            self.write(*writes)
        except ConflictError as error:
            if isinstance(cause := error.__cause__, ClientError) and _codes_of(cause) & {*unless}:
                return False
            raise
        return True

    def _ask(self, method: str, request: dict[str, Any], name: str = "", *, has_token: bool = False) -> Any:
        """Ask, and ask again if a transaction was cancelled for throttling alone."""
        again = ""
        for pause in (*PAUSES, None):
            try:
                return getattr(self.client(), method)(**request)
            except ClientError as error:
                may_be_tried_again = code_of(error) == _CANCELLED and not lost_the_race(error) and _codes_of(error) & _THROTTLED
                if pause is None or not may_be_tried_again:
                    raise _problem_of(error, name, has_token=has_token) from error
            except BotoCoreError as error:
                raise UnansweredError(f"DynamoDB {again}did not answer ({type(error).__name__})") from error
            again = "throttled a write, was asked again, and "
            self.sleep(pause)
        raise AssertionError("the last try returns or raises")


def version_of(item: Any) -> int:
    """Return the version of an item that was read; 0 of those that have none."""
    return int(item.get("version", item.get("revision", {"N": "0"}))["N"])


def _typed(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Write attributes in DynamoDB's words: strings, bytes and numbers."""
    typed: dict[str, Any] = {}
    for name, value in attributes.items():
        kind = "S" if isinstance(value, str) else "N"
        typed[name] = {"B": value} if isinstance(value, bytes) else {kind: str(value)}
    return typed


# Errors.


def lost_the_race(error: ClientError) -> bool:
    """Tell whether a condition did not hold, or another transaction wrote the same items."""
    return bool(_codes_of(error) & LOST)


def _problem_of(error: ClientError, name: str, *, has_token: bool) -> TransientError:
    """Name an error for the loop: a lost race also if some of it was throttled, too."""
    if lost_the_race(error):
        return ConflictError(f"{name} was changed by somebody else meanwhile")
    action, reasons = error.operation_name, ", ".join(_reasons_of(error))
    if throttled := [code for code in (code_of(error), *_reasons_of(error)) if code in _THROTTLED]:
        return TransientError(f"{action}: DynamoDB throttled it ({throttled[0]})" + (", and nothing was written" if name else ""))
    # DynamoDB failed, or is still at what the SDK has sent twice.
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    is_in_doubt = code_of(error) == "TransactionInProgressException" or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    kind = UnansweredError if has_token and is_in_doubt else TransientError
    return kind(f"{action}: {code_of(error)}" + (f" ({reasons})" if reasons else ""))


def _codes_of(error: ClientError) -> set[str]:
    return {code_of(error), *_reasons_of(error)}


def _reasons_of(error: ClientError) -> list[str]:
    """Return why a transaction was cancelled: a reason an item, without those that had none."""
    answer: Any = error.response
    reasons = [str(reason.get("Code")) for reason in answer.get("CancellationReasons") or ()]
    if not reasons and (named := _REASONS.search(str(answer.get("Error", {}).get("Message", "")))):
        reasons = [reason.strip() for reason in named[1].split(",")]
    return [reason for reason in reasons if reason not in {"None", ""}]
