"""Implements the JobStore port: rows of statistics in shards by job, in a partition of the state table that no pass reads.

A shard is one item: a build that ends changes one or two of them, some kilobytes each. What was seen longest ago leaves a full shard.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from autoscaler.adapters.aws import translated
from autoscaler.adapters.kept import Kept, UnknownOfItems
from autoscaler.adapters.versioned import put_of, unpacked, version_of, writing
from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

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
