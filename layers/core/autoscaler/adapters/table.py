"""One DynamoDB table: a fleet's items are read, written on conditions, and AWS' errors translated.

A write that is not made since somebody else was quicker is a `ConflictError`; one that may have
been made, and any call without an answer, is an `UnansweredError`. All others are transient.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from autoscaler.adapters.aws import code_of
from autoscaler.adapters.forms import Form, body_of
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
EMPTY: Mapping[str, Any] = {}
_REASONS = re.compile(r"\[([A-Za-z, ]+)\]")  # in the message, if an answer has them nowhere else
_METHODS = {"Put": "put_item", "Delete": "delete_item", "Update": "update_item"}
# What this version writes beside a body; all other attributes are another version's.
_OURS = {
    *("fleet", "item", "body", "version", "state", "revision", "piece", "piece_name"),
    *("expiration", "at"),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a write: in ``text``, ``#name`` is an attribute and ``:name`` its value."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def or_new(self) -> Condition:
        """Return the condition that also holds if there is no such item."""
        return replace(self, text=f"attribute_not_exists(fleet) OR {self.text}")


NEW = Condition("attribute_not_exists(fleet)")


def same(**attributes: Any) -> Condition:
    """Hold while these attributes of an item are still so: its version, its state, its owner."""
    return Condition(" AND ".join(f"#{name} = :{name}" for name in attributes), attributes)


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


def at_once(_seconds: float) -> None:
    """Wait for nothing."""


class Table:
    """The items of one fleet in the state table: stores say what stands under which key."""

    def __init__(
        self,
        client: Callable[[], DynamoDBClient],
        table: str,
        fleet: str,
        *,
        sleep: Callable[[float], None] = at_once,
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
        condition: Condition | None = None,
        *,
        until: float | None = None,
        **attributes: Any,
    ) -> Write:
        """Put an item, which is forgotten some time after ``until``."""
        expiration = {} if until is None else {"expiration": int(until)}
        item = {**self._key(key), **_typed(attributes | expiration)}
        return self._composed("Put", key, {"Item": item}, condition)

    def over(self, key: Key, form: Form[T], value: T, condition: Condition, read: int | None, **facts: Any) -> Write:
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
        facts = {"version": version + 1, "until": until}
        return self.over(key, form, value, condition, version or None, **facts)

    def delete(self, key: Key, condition: Condition) -> Write:
        """Delete an item."""
        return self._composed("Delete", key, {"Key": self._key(key)}, condition)

    def check(self, key: Key, condition: Condition) -> Write:
        """Check an item beside other writes."""
        return self._composed("ConditionCheck", key, {"Key": self._key(key)}, condition)

    def update(self, key: Key, sets: str, condition: Condition, **values: Any) -> Write:
        """Set attributes of an item to ``values``."""
        request = {"Key": self._key(key), "UpdateExpression": f"SET {sets}"}
        return self._composed("Update", key, request, condition, values)

    def _composed(
        self,
        kind: str,
        key: Key,
        request: dict[str, Any],
        condition: Condition | None,
        values: Mapping[str, Any] = EMPTY,
    ) -> Write:
        request["TableName"] = self.table
        if condition:
            request["ConditionExpression"] = condition.text
            names = {f"#{name}": name for name in condition.values}
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
                if pause is None or not _may_be_tried_again(error):
                    raise _problem_of(error, name, has_token=has_token) from error
            except BotoCoreError as error:
                problem = f"DynamoDB {again}did not answer ({type(error).__name__})"
                raise UnansweredError(problem) from error
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
        return TransientError(f"{action}: DynamoDB throttled it ({throttled[0]}), and nothing was written")
    kind = UnansweredError if has_token and _may_have_been_done(error) else TransientError
    return kind(f"{action}: {code_of(error)}" + (f" ({reasons})" if reasons else ""))


def _may_have_been_done(error: ClientError) -> bool:
    """Tell whether DynamoDB failed, or is still at what the SDK has sent twice."""
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    is_at_it = code_of(error) == "TransactionInProgressException"
    return is_at_it or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _may_be_tried_again(error: ClientError) -> bool:
    is_cancelled = code_of(error) == _CANCELLED and not lost_the_race(error)
    return is_cancelled and bool(_codes_of(error) & _THROTTLED)


def _codes_of(error: ClientError) -> set[str]:
    return {code_of(error), *_reasons_of(error)}


def _reasons_of(error: ClientError) -> list[str]:
    """Return why a transaction was cancelled: a reason an item, without those that had none."""
    answer: Any = error.response
    reasons = [str(reason.get("Code")) for reason in answer.get("CancellationReasons") or ()]
    if not reasons and (named := _REASONS.search(str(answer.get("Error", {}).get("Message", "")))):
        reasons = [reason.strip() for reason in named[1].split(",")]
    return [reason for reason in reasons if reason not in {"None", ""}]
