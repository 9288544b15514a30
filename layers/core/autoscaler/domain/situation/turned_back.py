"""Clocks that were ahead and are right again: what was noted meanwhile must not keep anything waiting until that time comes.

What lasts, or is tried again after a pause, is as if noted now. What each look sees anew begins again, as after any gap: nothing is ended
by looks of which nobody knows how far they are apart. When an instance was launched EC2 knows by its own clock.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.snapshot import Record, Snapshot

_T = TypeVar("_T", Snapshot, Memory, Learned)

# Invocations run on machines whose clocks differ by less.
_DIFFER_SECONDS = 120.0
# What is tried again after a pause, asked again after a while, or rationed by the hour; and what has lasted, or is waited out.
_PACED = ("trials", "failing", "rations", "most_marked", "stuck", "asked")
_LASTING = ("rows", "missing", "sessions", "marks", "capacity_delays", "lost", "queued")
_LOOKED_AT = ("observations", "free_nodes")
_SINCE = ("hosts_off", "never_lent")  # times alone
_LEARNED = ("running", "runs", "streaks")
_PLANNED = "until_at"  # the only time of these that may be yet to come
_OF_CONTROLLER = "lost_at"  # by Jenkins' own clock, which may be ahead for good


def turned_back(snapshot: Snapshot) -> Snapshot:
    """Return a look as if all that a clock that was ahead has noted were noted now."""
    now = snapshot.taken_at
    mended = {
        "memory": _remembered(snapshot.memory, now),
        "learned": {name: _learned(one, now) for name, one in snapshot.learned.items()},
        "records": tuple(_launched(snapshot)),
    }
    return _mended(snapshot, mended)


def not_ahead(items: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return what was noted, as if what a clock that was ahead has noted were noted now, with its pause from now on."""
    return {name: _as_of_now(item, now) for name, item in items.items()}


def _remembered(memory: Memory, now: float) -> Memory:
    mended: dict[str, Any] = {name: not_ahead(getattr(memory, name), now) for name in (*_PACED, *_LASTING)}
    mended |= {name: {key: one for key, one in getattr(memory, name).items() if not _ahead_by(one, now)} for name in _LOOKED_AT}
    mended |= {name: _times_not_ahead(getattr(memory, name), now) for name in _SINCE}
    mended["taken"] = {name: tuple(at for at in times if at - now <= _DIFFER_SECONDS) for name, times in memory.taken.items()}
    mended["spot_prices"] = _as_of_now(memory.spot_prices, now)
    return _mended(memory, mended)


def _learned(learned: Learned, now: float) -> Learned:
    mended: dict[str, Any] = {name: not_ahead(getattr(learned, name), now) for name in _LEARNED}
    mended["succeeded_at"] = _times_not_ahead(learned.succeeded_at, now)
    mended["seen_at"] = min(learned.seen_at, now)
    return _mended(learned, mended)


def _launched(snapshot: Snapshot) -> Iterator[Record]:
    """Correct when agents were launched for the first time: their boots have no longer than others."""
    times = {instance.id: instance.launched_at for instance in snapshot.instances}
    for record in snapshot.records:
        is_ahead = record.launched_at - snapshot.taken_at > _DIFFER_SECONDS and not record.starts
        yield replace(record, launched_at=times[record.instance_id]) if is_ahead and record.instance_id in times else record


def _mended(of: _T, mended: Mapping[str, Any]) -> _T:
    """Return the very same where nothing is to be mended, which is nearly always."""
    changed = {name: one for name, one in mended.items() if one != getattr(of, name)}
    return replace(of, **changed) if changed else of


def _times_not_ahead(times: Mapping[str, float], now: float) -> dict[str, float]:
    return {name: at if at - now <= _DIFFER_SECONDS else now for name, at in times.items()}


def _as_of_now(item: Any, now: float) -> Any:
    ahead_seconds = _ahead_by(item, now)
    if not ahead_seconds:
        return item
    return replace(item, **{name: at - ahead_seconds for name, at in _times(item).items() if at > now})


def _ahead_by(item: object, now: float) -> float:
    """Say by how many seconds the latest time that was noted is ahead; 0 where a clock that is right may have noted all of them."""
    seconds = max((at for name, at in _times(item).items() if name != _PLANNED), default=now) - now
    return seconds if seconds > _DIFFER_SECONDS else 0.0


def _times(item: object) -> dict[str, float]:
    """Return the times of something that are by our own clock, as far as they are known."""
    names = _names(type(item))  # type: ignore[arg-type]  # classes can be hashed
    return {name: at for name in names if (at := getattr(item, name)) is not None}


@cache
def _names(kind: Any) -> tuple[str, ...]:
    times = (field for field in fields(kind) if field.name.endswith("_at") and field.name != _OF_CONTROLLER)
    return tuple(field.name for field in times if not str(field.type).startswith("tuple"))
