"""The stores that no pass reads, each in a part of the state table: statistics and costs of jobs, telemetry, history."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter

from autoscaler.adapters.aws import code_of, translated
from autoscaler.adapters.table import NOTHING, Kept, Unknown, UnknownOfItems, problem_of, put_of, unpacked, version_of, writing
from autoscaler.domain.facts.job_settings import CostBatch, CostKey, MonthCosts, MonthParts, Used
from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.telemetry import Devices, Telemetry
from autoscaler.domain.report.costs import bounded
from autoscaler.domain.report.registration import MAX_REQUESTS_PER_HOUR, REQUEST_WINDOW_SECONDS
from autoscaler.domain.report.told import Event
from autoscaler.errors import TransientError, UnansweredError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


# Implements the JobStore port: rows of statistics in shards by job, in a partition of the state table that no pass reads.
#
# A shard is one item: a build that ends changes one or two of them, some kilobytes each. What was seen longest ago leaves a full shard.


SHARDS = 512
ROWS_A_SHARD = 128  # 65,536 in all
ROWS_A_JOB = 64  # of its stages and parameters, in a full shard
DAYS_KEPT = 90
_TRACKER_DAYS = 7
_DAY_SECONDS = 86_400.0
_GET_AT_ONCE = 100  # DynamoDB's most
_ROWS = Kept(list[JobRow])
_TRACKER = Kept(JobTracker)


@dataclass(frozen=True, slots=True)
class DynamoJobs:
    """The job statistics of one fleet. ``client`` makes the client at the first use."""

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str
    _unknown: UnknownOfItems = field(default_factory=UnknownOfItems)

    def tracker(self, controller: str) -> JobTracker:
        """Read one item."""
        found = self._get([_tracker_item(controller)])
        return unpacked(_TRACKER, found[0], self._unknown) or JobTracker(version=version_of(found[0])) if found else JobTracker()

    def save_tracker(self, controller: str, tracker: JobTracker, at: float) -> None:
        """Replace the item of this version."""
        item = _tracker_item(controller)
        unknown = self._unknown.of(item, tracker.version).unknown
        body = _TRACKER.dump(replace(tracker, version=tracker.version + 1), unknown, exclude_defaults=True)
        self._put(item, body, tracker.version, at + _TRACKER_DAYS * _DAY_SECONDS)

    def rows(self, controller: str, subjects: Collection[Subject]) -> tuple[JobRow, ...]:
        """Read the shards of these subjects."""
        wanted = set(subjects)
        shards = self._get({_shard_of(controller, subject) for subject in subjects})
        return tuple(row for shard in shards for row in self._rows_of(shard) if row.controller == controller and row.subject in wanted)

    def save_rows(self, rows: Collection[JobRow], at: float) -> None:
        """Replace rows in their shards, each in its version; the first that was replaced meanwhile ends it."""
        by_shard: dict[str, list[JobRow]] = {}
        for row in rows:
            by_shard.setdefault(_shard_of(row.controller, row.subject), []).append(row)
        known = {shard["item"]["S"]: shard for shard in self._get(by_shard)}
        for name, changed in by_shard.items():
            before, version = (self._rows_of(known[name]), version_of(known[name])) if name in known else ([], 0)
            unknown = self._unknown.of(name, version).unknown
            body = _ROWS.dump(_kept(before, changed), unknown, exclude_defaults=True)
            self._put(name, body, version, at + DAYS_KEPT * _DAY_SECONDS)

    def all_rows(self) -> tuple[JobRow, ...]:
        """Query the partition: at most some megabytes, for a person's question."""
        with translated("Query"):
            pages = list(
                self.client()
                .get_paginator("query")
                .paginate(
                    TableName=self.table,
                    KeyConditionExpression="fleet = :fleet AND begins_with(#item, :shards)",
                    ExpressionAttributeNames={"#item": "item"},
                    ExpressionAttributeValues={":fleet": {"S": self._partition}, ":shards": {"S": "shard#"}},
                )
            )
        return tuple(row for page in pages for item in page["Items"] for row in self._rows_of(item))

    def _get(self, items: Iterable[str]) -> list[Any]:
        names = sorted(items)
        found: list[Any] = []
        with translated("BatchGetItem"):
            for start in range(0, len(names), _GET_AT_ONCE):
                keys: Any = [{"fleet": {"S": self._partition}, "item": {"S": name}} for name in names[start : start + _GET_AT_ONCE]]
                asked: Any = {self.table: {"Keys": keys, "ConsistentRead": True}}
                while asked:
                    answer = self.client().batch_get_item(RequestItems=asked)
                    found += answer["Responses"].get(self.table, [])
                    asked = answer.get("UnprocessedKeys")
        return found

    def _put(self, item: str, body: bytes, version: int, expires_at: float) -> None:
        put = put_of(self.table, (self._partition, item), zlib.compress(body), version, expires_at)
        with writing("PutItem", item):
            self.client().put_item(**put)

    def _rows_of(self, item: Any) -> list[JobRow]:
        return unpacked(_ROWS, item, self._unknown) or []

    @property
    def _partition(self) -> str:
        return f"{self.fleet}#jobs"


def _tracker_item(controller: str) -> str:
    return f"tracker#{controller}"


def _shard_of(controller: str, subject: Subject) -> str:
    """A job's rows lie together, those of all its stages and pools."""
    digest = hashlib.sha256(f"{controller}\n{subject.job}".encode()).digest()
    return f"shard#{int.from_bytes(digest[:4], 'big') % SHARDS:03}"


def _kept(before: Iterable[JobRow], changed: Iterable[JobRow]) -> list[JobRow]:
    """Put changed rows in the place of those before; of too many those are kept that were seen last.

    Those of a job beyond its share make room first: one whose builds all have other parameters is to displace no other job.
    """
    rows: Mapping[Any, JobRow] = {(row.controller, row.subject, row.pool): row for row in (*before, *changed)}
    latest = sorted(rows.values(), key=lambda row: (-row.seen_at, row.subject, row.pool))
    told_apart: Counter[tuple[str, str]] = Counter()
    first: list[JobRow] = []
    beyond: list[JobRow] = []
    for row in latest:
        job = row.controller, row.subject.job
        told_apart[job] += bool(row.subject.signature)
        (beyond if row.subject.signature and told_apart[job] > ROWS_A_JOB else first).append(row)
    return [*first, *beyond][:ROWS_A_SHARD]


# Implements the CostStore port: an item a month, one a day, and one for what is in neither yet, in a part of the table of its own.


# DynamoDB takes 400 KB an item.
MOST_BYTES = 300_000
MONTHS_KEPT = 25
_MONTH_SECONDS = 31 * 86_400.0
_DAYS_KEPT_SECONDS = 63 * 86_400.0
_BATCH = "batch"
# A millionth of a dollar is lost or won in each row of each batch, by chance.
_DIGITS, _HOUR_DIGITS = 6, 4

Rows = dict[str, dict[str, dict[str, tuple[float, float]]]]  # dollars and hours by controller, pool and job


@dataclass(frozen=True, slots=True, kw_only=True)
class _Month:
    """A month as it is written."""

    rows: Rows
    unused: dict[str, float]
    metered_usd: float
    parts: MonthParts = field(default_factory=MonthParts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """A batch as it is written."""

    month: str
    seen_at: float
    opened_at: float
    metered_at: float
    metered: dict[str, float]
    spent: dict[str, float]
    rows: Rows
    unused: dict[str, float]
    parts: MonthParts = field(default_factory=MonthParts)


_MONTH = Kept(_Month)
_OPEN = Kept(_Batch)
_Kept = TypeVar("_Kept", MonthCosts, CostBatch)


@dataclass(frozen=True, slots=True)
class DynamoCosts:
    """The costs of one fleet. ``client`` makes the client at the first use."""

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str
    _unknown: UnknownOfItems = field(default_factory=UnknownOfItems)

    def batch(self) -> CostBatch:
        """Read one item."""
        item = self._get(_BATCH)
        if item is None:
            return CostBatch()
        known = unpacked(_OPEN, item, self._unknown)
        if known is None:
            return CostBatch(version=version_of(item))
        facts = {name: value for name, value in asdict(known).items() if name not in {"rows", "parts"}}
        return CostBatch(**facts, used=_used(known.rows), parts=known.parts, version=version_of(item))

    def save_batch(self, batch: CostBatch, at: float) -> None:
        """Replace the item of this version."""
        put = self._put_batch(batch, at)
        with writing("PutItem", "the costs"):
            self.client().put_item(**put)

    def month(self, name: str) -> MonthCosts:
        """Read one item."""
        item = self._get(_item_of(name))
        if item is None:
            return MonthCosts(name=name)
        known = unpacked(_MONTH, item, self._unknown)
        if known is None:
            return MonthCosts(name=name, version=version_of(item))
        return MonthCosts(
            name=name,
            used=_used(known.rows),
            unused=known.unused,
            metered_usd=known.metered_usd,
            parts=known.parts,
            version=version_of(item),
        )

    def book(self, months: Sequence[MonthCosts], batch: CostBatch, at: float) -> None:
        """Replace the items in one transaction."""
        puts = [self._put_month(month, at) for month in months]
        puts.append(self._put_batch(batch, at))
        writes: Any = [{"Put": put} for put in puts]
        with writing("TransactWriteItems", "the costs"):
            self.client().transact_write_items(TransactItems=writes)

    def _put_batch(self, batch: CostBatch, at: float) -> dict[str, Any]:
        unknown = self._unknown.of(_BATCH, batch.version).unknown
        body = _packed(batch, partial(_batch_json, unknown=unknown))
        return self._put(_BATCH, body, batch.version, at + MONTHS_KEPT * _MONTH_SECONDS)

    def _put_month(self, month: MonthCosts, at: float) -> dict[str, Any]:
        item = _item_of(month.name)
        unknown = self._unknown.of(item, month.version).unknown
        kept_seconds = _DAYS_KEPT_SECONDS if _is_day(month.name) else MONTHS_KEPT * _MONTH_SECONDS
        return self._put(item, month_body(month, unknown), month.version, at + kept_seconds)

    def _get(self, item: str) -> Any:
        key: Any = {"fleet": {"S": self._partition}, "item": {"S": item}}
        asked: Any = {self.table: {"Keys": [key], "ConsistentRead": True}}
        with translated("BatchGetItem"):
            answer = self.client().batch_get_item(RequestItems=asked)
        if answer.get("UnprocessedKeys"):
            raise TransientError("BatchGetItem: the table is throttled")
        return next(iter(answer["Responses"].get(self.table, [])), None)

    def _put(self, item: str, body: bytes, version: int, until: float) -> dict[str, Any]:
        return put_of(self.table, (self._partition, item), body, version, until)

    @property
    def _partition(self) -> str:
        return f"{self.fleet}#costs"


def month_body(month: MonthCosts, unknown: Unknown = NOTHING) -> bytes:
    """Write a month as its item holds it."""
    return _packed(month, partial(_month_json, unknown=unknown))


def _item_of(name: str) -> str:
    return f"{'day' if _is_day(name) else 'month'}#{name}"


def _is_day(name: str) -> bool:
    """Tell whether this names a day, as 2026-11-27, and no month."""
    return name.count("-") > 1


def _packed(kept: _Kept, write: Callable[[_Kept], bytes]) -> bytes:
    """Write what is kept, with its smallest rows folded until it is small enough."""
    body, most = zlib.compress(write(kept)), len(kept.used)
    while len(body) > MOST_BYTES and most > 1:
        most //= 2
        kept = replace(kept, used=bounded(kept.used, most))
        body = zlib.compress(write(kept))
    return body


def _month_json(month: MonthCosts, unknown: Unknown) -> bytes:
    written = _Month(
        rows=_rows(month.used),
        unused=_rounded(month.unused),
        metered_usd=month.metered_usd,
        parts=month.parts,
    )
    return _MONTH.dump(written, unknown)


def _batch_json(batch: CostBatch, unknown: Unknown) -> bytes:
    written = _Batch(
        month=batch.month,
        seen_at=batch.seen_at,
        opened_at=batch.opened_at,
        metered_at=batch.metered_at,
        metered=dict(batch.metered),
        spent=dict(batch.spent),
        rows=_rows(batch.used),
        unused=_rounded(batch.unused),
        parts=batch.parts,
    )
    return _OPEN.dump(written, unknown)


def _rows(used: Mapping[CostKey, Used]) -> Rows:
    rows: Rows = {}
    for key, one in sorted(used.items()):  # names that begin alike compress well
        jobs = rows.setdefault(key.controller, {}).setdefault(key.pool, {})
        jobs[key.job] = round(one.usd, _DIGITS), round(one.hours, _HOUR_DIGITS)
    return rows


def _used(rows: Rows) -> dict[CostKey, Used]:
    return {
        CostKey(controller, pool, job): Used(*one)
        for controller, pools in rows.items()
        for pool, jobs in pools.items()
        for job, one in jobs.items()
    }


def _rounded(unused: Mapping[str, float]) -> dict[str, float]:
    return {pool: round(usd, _DIGITS) for pool, usd in unused.items()}


# Implements RateLimiter and TelemetryStore: one item a machine, in a partition of the state table that no pass reads for a decision.
#
# What a machine tells with a question is written in the same request that counts the question: one write a poll.


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


# Implements the History port: an item an event, in a partition of the state table that no pass reads.


EVENTS_A_DAY = 2000
EVENT_DAYS_KEPT = 14
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
            "expiration": {"N": str(int(event.at + (EVENT_DAYS_KEPT + 1) * _DAY_SECONDS))},
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
    first = max(at, now - EVENT_DAYS_KEPT * _DAY_SECONDS)
    number = 0
    while _day(first + number * _DAY_SECONDS) <= _day(now):
        yield _day(first + number * _DAY_SECONDS)
        number += 1
