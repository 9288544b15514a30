"""Implements the CostStore port: an item a month, one a day, and one for what is in neither yet, in a part of the table of its own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from autoscaler.adapters.aws import translated
from autoscaler.adapters.kept import NOTHING, Kept, Unknown, UnknownOfItems
from autoscaler.adapters.versioned import put_of, unpacked, version_of, writing
from autoscaler.domain.facts.job_settings import CostBatch, CostKey, MonthCosts, MonthParts, Used
from autoscaler.domain.report.costs import bounded
from autoscaler.errors import TransientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

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
