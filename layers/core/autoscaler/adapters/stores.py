"""The stores beside the state, each in a part of the state table: of jobs, costs, telemetry, history, ordered and lost builds, looks."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import count, islice
from math import ceil
from typing import Any, TypeVar

from autoscaler.adapters.aws import translated
from autoscaler.adapters.dynamodb import devices_of
from autoscaler.adapters.table import NEW, STATE, Form, Table, Write, WriteCondition, same, version_of
from autoscaler.domain.facts.job_settings import CostBatch, CostKey, MonthCosts, MonthParts, Used
from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.started_builds import Rerun, RerunState, RunOrder
from autoscaler.domain.facts.telemetry import Devices, Telemetry
from autoscaler.domain.grouping import grouped
from autoscaler.domain.report.costs import bounded
from autoscaler.domain.report.registration import MAX_REQUESTS_PER_HOUR, REQUEST_WINDOW_SECONDS
from autoscaler.domain.report.told import Event
from autoscaler.errors import EventRefusedError, TransientError

# Implements the JobStore port: rows of statistics in shards by job, in a partition of the state table that no pass reads.
#
# A shard is one item: a build that ends changes one or two of them, some kilobytes each. What was seen longest ago leaves a full shard.


SHARDS = 512
ROWS_A_SHARD = 128  # 65,536 in all
ROWS_A_JOB = 64  # of its stages and parameters, in a full shard
DAYS_KEPT = 90
_TRACKER_DAYS = 7
_JOBS = "#jobs"
_ROWS = Form(list[JobRow], is_short=True)
_TRACKER = Form(JobTracker, is_short=True)


class DynamoJobs(Table):
    """The job statistics of one fleet."""

    def tracker(self, controller: str) -> JobTracker:
        """Read one item."""
        for item in self.get(_JOBS, [f"tracker#{controller}"]):
            return self.load(_TRACKER, _JOBS, item) or JobTracker(version=version_of(item))
        return JobTracker()

    def save_tracker(self, controller: str, tracker: JobTracker, at: float) -> None:
        """Replace the item of this version."""
        key, next_one = (_JOBS, f"tracker#{controller}"), replace(tracker, version=tracker.version + 1)
        self.write(self.next_version(key, _TRACKER, next_one, tracker.version, at + _TRACKER_DAYS * DAY_SECONDS))

    def rows(self, controller: str, subjects: Collection[Subject]) -> tuple[JobRow, ...]:
        """Read the shards of these subjects."""
        wanted = set(subjects)
        shards = self.get(_JOBS, {_shard_of(controller, subject) for subject in subjects})
        return tuple(row for row in self._rows_of(shards) if row.controller == controller and row.subject in wanted)

    def save_rows(self, rows: Collection[JobRow], at: float) -> None:
        """Replace rows in their shards, each in its version; the first that was replaced meanwhile ends it."""
        by_shard = grouped((_shard_of(row.controller, row.subject), row) for row in rows)
        stored = {shard["item"]["S"]: shard for shard in self.get(_JOBS, by_shard)}
        for name, changed in by_shard.items():
            shards = [stored[name]] if name in stored else []
            kept, version = _kept(self._rows_of(shards), changed), sum(map(version_of, shards))
            self.write(self.next_version((_JOBS, name), _ROWS, kept, version, at + DAYS_KEPT * DAY_SECONDS))

    def all_rows(self) -> tuple[JobRow, ...]:
        """Query the partition: at most some megabytes, for a person's question."""
        return tuple(self._rows_of(self.items(_JOBS, "shard#", ConsistentRead=False)))

    def _rows_of(self, shards: Iterable[Any]) -> Iterator[JobRow]:
        for shard in shards:
            yield from self.load(_ROWS, _JOBS, shard) or ()


def _shard_of(controller: str, subject: Subject) -> str:
    """A job's rows lie together, those of all its stages and pools."""
    digest = hashlib.sha256(f"{controller}\n{subject.job}".encode()).digest()
    return f"shard#{int.from_bytes(digest[:4], 'big') % SHARDS:03}"


def _kept(before: Iterable[JobRow], changed: Iterable[JobRow]) -> list[JobRow]:
    """Put changed rows in the place of those before; of too many those are kept that were seen last.

    Those of a job beyond its share make room first: one whose builds all have other parameters is to displace no other job.
    """
    rows: Mapping[Any, JobRow] = {(row.controller, row.subject, row.pool): row for row in (*before, *changed)}
    told_apart: Counter[tuple[str, str]] = Counter()
    first: list[JobRow] = []
    beyond: list[JobRow] = []
    for row in sorted(rows.values(), key=lambda row: (-row.seen_at, row.subject, row.pool)):
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
_COSTS, _BATCH = "#costs", "batch"
# A millionth of a dollar is lost or won in each row of each batch, by chance.
_DIGITS, _HOUR_DIGITS = 6, 4

Rows = dict[str, dict[str, dict[str, tuple[float, float]]]]  # dollars and hours by controller, pool and job


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """Fields that a written month and a written batch share."""

    rows: Rows
    unused: dict[str, float]
    parts: MonthParts = field(default_factory=MonthParts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Month(_Costs):
    """A month as it is written."""

    metered_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch(_Costs):
    """A batch as it is written."""

    month: str
    seen_at: float
    opened_at: float
    metered_at: float
    metered: dict[str, float]
    spent: dict[str, float]


_MONTH = Form(_Month, is_short=False)
_OPEN = Form(_Batch, is_short=False)
_Stored = TypeVar("_Stored", bound=_Costs)


class DynamoCosts(Table):
    """The costs of one fleet."""

    def batch(self) -> CostBatch:
        """Read one item."""
        for item in self.get(_COSTS, [_BATCH]):
            return CostBatch(**_facts_of(self.load(_OPEN, _COSTS, item)), version=version_of(item))
        return CostBatch()

    def month(self, name: str) -> MonthCosts:
        """Read one item."""
        for item in self.get(_COSTS, [_item_of(name)]):
            return MonthCosts(name=name, **_facts_of(self.load(_MONTH, _COSTS, item)), version=version_of(item))
        return MonthCosts(name=name)

    def book(self, months: Sequence[MonthCosts], batch: CostBatch, at: float) -> None:
        """Replace the items, in one transaction where they are several."""
        kept_seconds = {month.name: _DAYS_KEPT_SECONDS if _is_day(month.name) else MONTHS_KEPT * _MONTH_SECONDS for month in months}
        puts = [self._put(_item_of(month.name), _MONTH, _Month, month, at + kept_seconds[month.name]) for month in months]
        self.write(*puts, self._put(_BATCH, _OPEN, _Batch, batch, at + MONTHS_KEPT * _MONTH_SECONDS))

    def _put(self, name: str, form: Form[_Stored], kind: type[_Stored], costs: MonthCosts | CostBatch, until: float) -> Write:
        """Write costs, with their smallest rows folded until they are small enough."""
        most = len(costs.used)
        while True:
            write = self.next_version((_COSTS, name), form, _stored_as(kind, costs), costs.version, until)
            if len(write.body) <= MOST_BYTES or most <= 1:
                return write
            most //= 2
            costs = replace(costs, used=bounded(costs.used, most))


def _item_of(name: str) -> str:
    return f"{'day' if _is_day(name) else 'month'}#{name}"


def _is_day(name: str) -> bool:
    """Tell whether this names a day, as 2026-11-27, and no month."""
    return name.count("-") > 1


def _stored_as(kind: type[_Stored], costs: MonthCosts | CostBatch) -> _Stored:
    """Write down what stands under the same name in both, and the rows by controller, pool and job."""
    same_facts = {one.name: getattr(costs, one.name) for one in fields(kind) if one.name != "rows"}
    return kind(**same_facts | {"rows": _rows(costs.used), "unused": {pool: round(usd, _DIGITS) for pool, usd in costs.unused.items()}})


def _facts_of(stored: _Costs | None) -> dict[str, Any]:
    """Read it back; nothing of what another version wrote."""
    if stored is None:
        return {}
    return {one.name: getattr(stored, one.name) for one in fields(stored) if one.name != "rows"} | {"used": _used(stored.rows)}


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


# Implements RateLimiter and TelemetryStore: one item a machine, in a partition of the state table that no pass reads for a decision.
#
# What a machine tells with a question is written in the same request that counts the question: one write a poll.


_ASKS = "#asks"
_TELEMETRY = Form(Telemetry, is_short=True)


class DynamoAsks(Table):
    """Who asks how often, and what each machine told last."""

    def admit(self, instance_id: str, *, now: float, telemetry: Telemetry | None = None, devices: Devices | None = None) -> bool:
        """Count by one conditional write, two for the first question of an hour. Devices, which passes read, go in the same transaction."""
        beside = [devices_of(self, instance_id, devices)] if devices else []
        sets = "expiration = :end"
        values: dict[str, Any] = {"one": 1, "end": int(now + DAY_SECONDS)}
        if telemetry:
            sets += ", told = :told"
            values["told"], _ = _TELEMETRY.body(replace(telemetry, told_at=now))
        hour_ago = now - REQUEST_WINDOW_SECONDS
        more = WriteCondition("#since_at > :since_at AND #asked < :asked", {"since_at": hour_ago, "asked": MAX_REQUESTS_PER_HOUR})
        first = WriteCondition("#since_at <= :since_at", {"since_at": hour_ago}).or_new()
        key = _ASKS, instance_id
        return self.takes(self.update(key, f"asked = asked + :one, {sets}", more, **values), *beside) or self.takes(
            self.update(key, f"asked = :one, since_at = :now, {sets}", first, **values, now=now), *beside
        )

    def latest(self) -> Mapping[str, Telemetry]:
        """Query the partition. What another version wrote is left out."""
        items = self.items(
            _ASKS,
            ConsistentRead=False,
            FilterExpression="attribute_exists(told)",
            ProjectionExpression="#item, told",
            ExpressionAttributeNames={"#item": "item"},
        )
        read = {item["item"]["S"]: self.load(_TELEMETRY, _ASKS, item, "told") for item in items}
        return {machine: telemetry for machine, telemetry in read.items() if telemetry}


# Implements the History port: an item an event, in a partition of the state table that no pass reads.


EVENTS_A_DAY = 2000
EVENT_DAYS_KEPT = 14
_EVENTS = "#events"
_EVENT = Form(Event, is_short=True, is_packed=False)
_COUNTER = count()  # the order of events of one instant


class DynamoHistory(Table):
    """The history of one fleet.

    An event is an item of its own, so that noting it is one write of some 400 bytes, whatever the day holds already. An item for each day
    would be read and written as a whole for each step.
    """

    def note(self, events: Sequence[Event]) -> None:
        """Write the events one by one. One that is written again, because the answer was lost, takes its own place."""
        for event in events:
            body, _ = _EVENT.body(event)
            digest = hashlib.sha256(str(body).encode()).hexdigest()[:12]
            key = _EVENTS, f"{_day(event.at)}#{event.at:.6f}#{digest}"
            self.write(self.put(key, until=event.at + (EVENT_DAYS_KEPT + 1) * DAY_SECONDS, body=body, number=next(_COUNTER)))

    def since(self, at: float, now: float) -> list[Event]:
        """Read the last events of each day from then on."""
        first = max(at, now - EVENT_DAYS_KEPT * DAY_SECONDS)
        days = (_day(number * DAY_SECONDS) for number in range(int(first // DAY_SECONDS), int(now // DAY_SECONDS) + 1))
        events = (event for day in days for event in self._read(day) if event.at >= at)
        return sorted(events, key=lambda event: event.at)

    def _read(self, day: str) -> list[Event]:
        """Read a day from its end, and no more of it than people are shown."""
        items = self.items(_EVENTS, day, ScanIndexForward=False, Limit=EVENTS_A_DAY)
        read = [(self.load(_EVENT, _EVENTS, item), item) for item in islice(items, EVENTS_A_DAY)]
        events = [(event.at, int(item.get("number", {"N": 0})["N"]), event) for event, item in read if event]
        return [event for *_, event in sorted(events, key=lambda numbered: numbered[:2])]


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


# Implements the RunOrderStore port: open orders in one partition of the state table, those that ended in another one.
#
# An order that ended is kept under the time of its end, so that the last ones are one query; under its id stands only where that is.


MOST_ORDER_BYTES = 390_000  # of what is kept of one order, packed; an item holds 400 KB, its names and numbers included
MOST_ORDER_BYTES_NEW = MOST_ORDER_BYTES // 2  # the rest is for what is started for it: an order that is too large could not even be ended
BUILDS_KEPT_SECONDS = 90 * DAY_SECONDS  # of orders after their end, and of answers for lost builds
_OPEN_RUNS, _ENDED_RUNS = "#open-runs", "#runs"
_ORDER = Form(RunOrder, is_short=True)


class DynamoRunOrders(Table):
    """The orders of one fleet. Each write is a transaction: one that the SDK sends twice loses no race against itself."""

    def open_orders(self) -> tuple[RunOrder, ...]:
        """Query their partition."""
        orders = self._readable(_OPEN_RUNS, self.items(_OPEN_RUNS, "id#"))
        return tuple(sorted(orders, key=lambda order: (order.created_at, order.id)))

    def order(self, order_id: str) -> RunOrder | None:
        """Look among the open ones first: one that ends in between is found among the others."""
        part, item = _OPEN_RUNS, self.item((_OPEN_RUNS, f"id#{order_id}"))
        if item is None and (place := self.item((_ENDED_RUNS, f"id#{order_id}"))):
            part, item = _ENDED_RUNS, self.item((_ENDED_RUNS, place["at"]["S"]))
        if item is None:  # also if it is deleted just now, 90 days after its end
            return None
        if (order := self.load(_ORDER, part, item)) is None:
            raise TransientError(f"order {order_id}: another version of the autoscaler wrote it, and this one cannot read it")
        return order

    def ended(self, most: int) -> tuple[RunOrder, ...]:
        """Query backwards from the last one."""
        items = self.items(_ENDED_RUNS, "at#", ScanIndexForward=False, Limit=most)
        return tuple(islice(self._readable(_ENDED_RUNS, items), most))

    def add_order(self, order: RunOrder) -> None:
        """Write it where no order of this id is, be it open or ended."""
        put = self._put(order, NEW, None, MOST_ORDER_BYTES_NEW)
        self.write(put, self.check((_ENDED_RUNS, put.key[1]), NEW), has_token=True)

    def change_order(self, order: RunOrder) -> RunOrder:
        """Replace the item of this version; of one that ends the items move, all at once."""
        changed, is_same = replace(order, version=order.version + 1), same(version=order.version)
        put = self._put(changed, is_same, order.version)
        if changed.ended_at is None:
            self.write(put, has_token=True)
        else:
            at, until = f"at#{changed.ended_at:017.3f}#{order.id}", int(changed.ended_at) + BUILDS_KEPT_SECONDS
            ended = self.put((_ENDED_RUNS, at), until=until, body=put.body, version=changed.version)
            self.write(self.delete(put.key, is_same), ended, self.put((_ENDED_RUNS, put.key[1]), until=until, at=at), has_token=True)
        return changed

    def _put(self, order: RunOrder, condition: WriteCondition, read: int | None, most: int = MOST_ORDER_BYTES) -> Write:
        put = self.over((_OPEN_RUNS, f"id#{order.id}"), _ORDER, order, condition, read, version=order.version)
        if (size := len(put.body)) > most:
            raise EventRefusedError(
                f"order {order.id}: {size:,} bytes in {len(order.parts)} runs; an order may take {most:,}: order less at once"
            )
        return put

    def _readable(self, part: str, items: Iterator[Any]) -> Iterator[RunOrder]:
        return (order for item in items if (order := self.load(_ORDER, part, item)))


# Implements the RerunStore port: an item for each lost build, in a partition of the state table that no pass reads as a whole.


_RERUNS = "#reruns"
_RERUN = Form(Rerun, is_short=True, is_packed=False)


class DynamoReruns(Table):
    """The answers for one fleet's lost builds."""

    def rerun(self, key: str) -> Rerun | None:
        """Read one item; what cannot be understood counts as left to a person, so that nothing is sent for it."""
        if (item := self.item((_RERUNS, key))) is None:
            return None
        controller, _, run = key.partition("#")
        return self.load(_RERUN, _RERUNS, item) or Rerun(
            controller=controller,
            run=run.rpartition("@")[0],
            began_at=0.0,
            state=RerunState.LEFT,
            times=0,
            on_demand=False,
            created_at=0.0,
            why="another version wrote it",
        )

    def add_rerun(self, rerun: Rerun, *, holder: str) -> None:
        """Write a new item while the lease is the holder's, in one transaction."""
        self.write(self._put(rerun, NEW, None), self.check((STATE, "lease"), same(owner=holder)))

    def change_rerun(self, rerun: Rerun, *, expected: RerunState) -> None:
        """Replace an item whose state is still that."""
        self.write(self._put(rerun, same(state=expected), 0))

    def _put(self, rerun: Rerun, condition: WriteCondition, read: int | None) -> Write:
        until = rerun.created_at + BUILDS_KEPT_SECONDS
        return self.over((_RERUNS, rerun.key), _RERUN, rerun, condition, read, state=rerun.state, until=until)


# Implements the LookSlots port: messages of SQS that come later, and a conditional write for each slot.


_MESSAGES_AT_ONCE = 10  # SQS' most
_SLOTS_KEPT_SECONDS = 3600.0


class SqsSlots(Table):
    """One queue, and the part of the state table that no pass reads."""

    def __init__(self, queue: Callable[[], Any], url: str, client: Callable[[], Any], table: str, fleet: str) -> None:
        """``queue`` and ``client`` make clients at the first use."""
        super().__init__(client, table, fleet)
        self.queue, self.url = queue, url

    def announce(self, slots: Mapping[str, float], now: float) -> None:
        """Send a message for each slot, at most ten in a call; each comes as late as its slot is."""
        entries = [
            {"Id": str(number), "DelaySeconds": max(0, ceil(at - now)), "MessageBody": json.dumps({"slot": name, "at": at})}
            for number, (name, at) in enumerate(slots.items())
        ]
        for start in range(0, len(entries), _MESSAGES_AT_ONCE):
            with translated("SendMessageBatch"):
                answer = self.queue().send_message_batch(QueueUrl=self.url, Entries=entries[start : start + _MESSAGES_AT_ONCE])
            if answer.get("Failed"):
                raise TransientError(f"SendMessageBatch: {len(answer['Failed'])} messages were refused ({answer['Failed'][0]['Code']})")

    def take(self, slot: str, now: float) -> bool:
        """Write an item that is not there yet; it is forgotten within the hour."""
        return self.takes(self.put(("#looks", slot), NEW, until=now + _SLOTS_KEPT_SECONDS))
