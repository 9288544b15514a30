"""Times noted by a clock that was ahead. Once it is right again, nothing must wait until those times come.

Whatever lasts, or is retried after a pause, counts as noted now. What each look sees anew starts again, as after any gap: nobody knows how
far apart those looks were, and they must not end anything. Launch times are corrected from EC2, which has its own clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.snapshot import Record, Snapshot

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T", Snapshot, Memory, Learned)
_Noted = TypeVar("_Noted", bound="DataclassInstance")

# Invocations run on machines whose clocks differ by less.
_DIFFER_SECONDS = 120.0
# Retries after a pause, questions that are repeated, hourly rations; and conditions that have to last.
_PACED = ("trials", "failing", "rations", "most_marked", "stuck", "asked")
_LASTING = ("rows", "missing", "sessions", "marks", "capacity_delays", "lost")
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
        "records": _launched(snapshot),
    }
    return _mended(snapshot, mended)


def not_ahead(items: Mapping[str, _Noted], now: float) -> Mapping[str, _Noted]:
    """Return what was noted, as if what a clock that was ahead has noted were noted now, with its pause from now on."""
    ahead = _ahead(items, now)
    return {name: _as_of_now(item, now) if name in ahead else item for name, item in items.items()} if ahead else items


def _remembered(memory: Memory, now: float) -> Memory:
    mended: dict[str, Any] = {name: not_ahead(getattr(memory, name), now) for name in (*_PACED, *_LASTING)}
    for name in _LOOKED_AT:
        items = getattr(memory, name)
        ahead = _ahead(items, now)
        mended[name] = {key: one for key, one in items.items() if key not in ahead} if ahead else items
    mended |= {name: _times_not_ahead(getattr(memory, name), now) for name in _SINCE}
    mended["taken"] = {name: tuple(at for at in times if at - now <= _DIFFER_SECONDS) for name, times in memory.taken.items()}
    mended |= not_ahead({"spot_prices": memory.spot_prices}, now)
    return _mended(memory, mended)


def _learned(learned: Learned, now: float) -> Learned:
    mended: dict[str, Any] = {name: not_ahead(getattr(learned, name), now) for name in _LEARNED}
    mended["succeeded_at"] = _times_not_ahead(learned.succeeded_at, now)
    mended["seen_at"] = min(learned.seen_at, now)
    return _mended(learned, mended)


def _launched(snapshot: Snapshot) -> tuple[Record, ...]:
    """Correct when agents were launched for the first time: their boots have no longer than others."""
    latest = snapshot.taken_at + _DIFFER_SECONDS
    ahead = {record.instance_id for record in snapshot.records if record.launched_at > latest and not record.starts}
    times = {instance.id: instance.launched_at for instance in snapshot.instances if instance.id in ahead} if ahead else {}
    return tuple(
        replace(record, launched_at=times[record.instance_id]) if record.instance_id in times else record for record in snapshot.records
    )


def _mended(of: _T, mended: Mapping[str, Any]) -> _T:
    """Return the very same where nothing is to be mended, which is nearly always."""
    changed = {name: one for name, one in mended.items() if one != getattr(of, name)}
    return replace(of, **changed) if changed else of


def _times_not_ahead(times: Mapping[str, float], now: float) -> dict[str, float]:
    return {name: at if at - now <= _DIFFER_SECONDS else now for name, at in times.items()}


def _ahead(items: Mapping[str, Any], now: float) -> set[str]:
    """Name what only a clock that is ahead can have noted. Every look asks, of thousands of things: one call for each is too many."""
    if not items:
        return set()
    kind: Any = type(next(iter(items.values())))
    noted, latest = _noted_times(kind), now + _DIFFER_SECONDS
    return {name for name, item in items.items() for at in noted(item) if at is not None and at > latest}


def _as_of_now(item: _Noted, now: float) -> _Noted:
    """Move all times that are yet to come by as much as the latest that was noted is ahead."""
    kind: Any = type(item)
    ahead_seconds = max(at for at in _noted_times(kind)(item) if at is not None) - now
    times = {name: getattr(item, name) for name in _times(kind)}
    return replace(item, **{name: at - ahead_seconds for name, at in times.items() if at is not None and at > now})


@cache
def _noted_times(kind: type) -> Callable[[object], tuple[float | None, ...]]:
    """Read all times of something that was noted, but not the planned one; the first of them twice, since one alone is read as no tuple."""
    first, *others = (name for name in _times(kind) if name != _PLANNED)
    return attrgetter(first, first, *others)


def _times(kind: Any) -> tuple[str, ...]:
    """Name the times of something that are by our own clock."""
    times = (field for field in fields(kind) if field.name.endswith("_at") and field.name != _OF_CONTROLLER)
    return tuple(field.name for field in times if not str(field.type).startswith("tuple"))
