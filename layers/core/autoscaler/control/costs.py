"""Keeps what jobs cost, and answers questions about it. No pass reads it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from autoscaler.build_ports import CostStore
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import CostBatch, MonthCosts
from autoscaler.domain.facts.memory import Month
from autoscaler.domain.facts.metering import day_name, month_name
from autoscaler.domain.lessons import Lesson
from autoscaler.domain.report.costs import (
    By,
    CostList,
    CostLook,
    holds_anything,
    in_day,
    in_month,
    is_due,
    is_news,
    joined,
    list_costs,
    note_look,
    opened,
    share_out,
    share_out_day,
)
from autoscaler.domain.situation.situation import Situation
from autoscaler.errors import AutoscalerError, ConflictError, TransientError
from autoscaler.ports import Ports

_READS = 3
_DAY_SECONDS = 86_400.0


def note_costs(ports: Ports, situation: Situation, lessons: Mapping[str, Lesson]) -> None:
    """Note what a look saw agents used for. What fails is made good by the next look: the metrics must go out."""
    learned = {controller: lesson.learned for controller, lesson in lessons.items()}
    try:
        _note(ports.costs, CostLook(snapshot=situation.snapshot, fleet=situation.fleet, learned=learned))
    except ConflictError:
        # An invocation that overlapped this one noted the same minute first: it would count twice.
        ports.log("costs_noted_elsewhere")
    except AutoscalerError as error:
        ports.log("costs_not_noted", error=f"{type(error).__name__}: {error}")


def _note(store: CostStore, look: CostLook) -> None:
    batch, now = store.batch(), look.snapshot.taken_at
    if not is_news(batch, look):
        return
    new = opened(look.metered, now, batch.version)
    if batch.month != look.metered.name:
        ended = _booked(store, batch, batch.seen_at) if batch.month and holds_anything(batch) else []
        store.book([*ended, share_out(store.month(new.month), new)], new, now)
        return
    after = note_look(batch, look)
    # What is open at midnight is added to the day in which it was used.
    is_of_yesterday = day_name(batch.seen_at) != day_name(now) and holds_anything(after)
    if is_due(after) or is_of_yesterday:
        store.book(_booked(store, after, batch.seen_at), new, now)
    elif (after.used, after.unused, after.spent) != (batch.used, batch.unused, batch.spent):
        store.save_batch(after, now)


def _booked(store: CostStore, batch: CostBatch, at: float) -> list[MonthCosts]:
    """Add a batch to its month, and to the day of this moment."""
    return [share_out(store.month(batch.month), batch), share_out_day(store.month(day_name(at)), batch)]


def list_days(ports: Ports, fleet: Fleet, days: int | str, by: By) -> CostList:
    """List the costs of the last days (UTC), today included, or of one day.

    A day on which nothing was used has none, nor one before days were kept.
    """
    kept = _last_days(ports, days, ports.state.read().memory.month)
    return replace(list_costs(joined(kept), fleet, by), days=len(kept), days_with_costs=sum(bool(day.version) for day in kept))


def _last_days(ports: Ports, days: int | str, metered: Month) -> list[MonthCosts]:
    """Read the costs of each of the last days (UTC), today included, as they were at one instant; or of "yesterday", or of a date alone.

    ``metered``: what the passes metered.
    """
    now, store = ports.clock(), ports.costs
    names = [days] if isinstance(days, str) else [day_name(now - ago * _DAY_SECONDS) for ago in reversed(range(days))]
    names = [day_name(now - _DAY_SECONDS)] if days == "yesterday" else names
    for _ in range(_READS):
        batch = store.batch()
        kept = ports.side_by_side([partial(store.month, name) for name in names])
        if store.batch().version == batch.version:
            return [in_day(day, batch, metered) for day in kept]
    raise TransientError("the costs were written while they were read; ask again")


def list_month(ports: Ports, fleet: Fleet, month: str | None, by: By) -> CostList:
    """List the costs of a month, of the present one where none is named."""
    name = month or month_name(ports.clock())
    costs, batch = _read(ports.costs, name)
    counted = in_month(costs, batch, ports.state.read().memory.month)
    return replace(list_costs(counted, fleet, by), volumes_usd=counted.parts.disk_usd)


def _read(store: CostStore, name: str) -> tuple[MonthCosts, CostBatch]:
    """Read both as they were at one instant: in between, the batch may be added to the month."""
    for _ in range(_READS):
        batch, month = store.batch(), store.month(name)
        if store.batch().version == batch.version:
            return month, batch
    raise TransientError("the costs were written while they were read; ask again")
