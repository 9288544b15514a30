"""Share the metered dollars among jobs, and list what jobs cost, grouped as people ask."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.job_settings import CostBatch, CostKey, MonthCosts, Used
from autoscaler.domain.facts.memory import Learned, Month, SpotPrices
from autoscaler.domain.facts.metering import HOUR_SECONDS, day_name, is_paid_by_capacity
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS, Record, RecordState, Snapshot
from autoscaler.domain.grouping import Key, grouped, summed

# Share the dollars of the meter among the jobs that agents ran.
#
# Looks see which builds run where, and not what EC2 bills; the passes under the lease meter that, by pool (`facts/metering.py`). So looks
# collect who used how much at the prices that are expected, and what the meter counted meanwhile is shared in these proportions. The sum
# of all shares is the meter's, whatever a look missed.


# A batch is read and written with each look, a month's costs once for each batch. Spot prices move no faster.
BATCH_SECONDS = 900.0
# A month's costs are one item of the state table.
ROWS_KEPT = 2000
# A day's are one each, written as often: a tenth of the rows keeps what that costs below a tenth.
DAY_ROWS_KEPT = 200
_ROOM = 0.9  # as many are left, so that not every batch has rows folded
RESERVED, OTHERS = "@", "*"

# EC2 bills no machine from the moment in which it is to stop.
_OFF = (RecordState.STOPPING, RecordState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLook:
    """One look, as far as costs go. ``learned``: what it taught, by controller."""

    snapshot: Snapshot
    fleet: Fleet
    learned: Mapping[str, Learned]

    @property
    def metered(self) -> Month:
        """What the passes have metered."""
        return self.snapshot.memory.month


def is_news(batch: CostBatch, look: CostLook) -> bool:
    """Tell whether a look is later than the last one, and the meter no older than the one that it saw."""
    is_older = look.metered.name < batch.month or (look.metered.name == batch.month and look.metered.metered_at < batch.metered_at)
    return bool(look.metered.name) and not is_older and look.snapshot.taken_at > batch.seen_at


def note_look(batch: CostBatch, look: CostLook) -> CostBatch:
    """Add what agents were used for since the last look, and what the meter of the same month counted."""
    batch, now = note_metered(batch, look.metered), look.snapshot.taken_at
    machines = list(_machines(look, now - batch.seen_at))
    used = _used([*batch.used.items(), *(one for _, owned, _ in machines for one in owned)])
    unused = summed([*batch.unused.items(), *((pool, usd) for pool, _, usd in machines), *_not_launched(look, now - batch.seen_at)])
    return replace(batch, seen_at=now, used=bounded(used), unused={pool: usd for pool, usd in unused.items() if usd})


def _not_launched(look: CostLook, since_seconds: float) -> Iterator[tuple[str, float]]:
    """Yield the pools with reserved machines, and what those cost that are not launched: the same."""
    now = look.snapshot.taken_at
    for name, spec in look.fleet.pools.items():
        if capacity := spec.capacity:
            launched = sum(record.pool == name and is_paid_by_capacity(record) for record in look.snapshot.living)
            seconds = capacity.paid_seconds(now - since_seconds, now)
            yield name, max(0, capacity.count - launched) * capacity.usd_per_hour * seconds / HOUR_SECONDS


def opened(metered: Month, now: float, version: int) -> CostBatch:
    """Begin a batch with what the meter says now."""
    at = metered.metered_at
    return CostBatch(
        month=metered.name, seen_at=now, opened_at=at, metered_at=at, metered=dict(metered.by_pool), parts=metered.parts, version=version
    )


def note_metered(batch: CostBatch, metered: Month) -> CostBatch:
    """Add what the meter counted since the last look. If it has less than before, it was lost and began again at zero."""
    if metered.name != batch.month or metered.metered_at <= batch.metered_at:
        return batch
    known = ((pool, usd, batch.metered.get(pool, 0.0)) for pool, usd in metered.by_pool.items())
    more = ((pool, usd - before if usd >= before else usd) for pool, usd, before in known)
    spent = summed([*batch.spent.items(), *((pool, usd) for pool, usd in more if usd)])
    return replace(batch, metered=dict(metered.by_pool), spent=spent, metered_at=metered.metered_at, parts=metered.parts)


def is_due(batch: CostBatch) -> bool:
    """Tell whether a batch is to be added to its month: by the meter's time, so that it has the dollars of what was used."""
    return batch.metered_at - batch.opened_at >= BATCH_SECONDS and holds_anything(batch)


def holds_anything(batch: CostBatch) -> bool:
    """Tell whether anything was used, or counted, since a batch was opened."""
    return bool(batch.used or batch.unused or batch.spent)


def share_out(month: MonthCosts, batch: CostBatch) -> MonthCosts:
    """Add a batch to its month; and as unused what the meter has and no batch: from before its first look, or of what was lost."""
    after = replace(_shared(month, batch, ROWS_KEPT), metered_usd=sum(batch.metered.values()), parts=batch.parts)
    known = summed([*after.unused.items(), *((key.pool, one.usd) for key, one in after.used.items())])
    missing = ((pool, max(0.0, usd - known.get(pool, 0.0))) for pool, usd in batch.metered.items())
    unused = summed([*after.unused.items(), *missing])
    return replace(after, unused={pool: usd for pool, usd in unused.items() if usd})


def share_out_day(day: MonthCosts, batch: CostBatch) -> MonthCosts:
    """Add a batch to its day. What no batch has is the month's alone: nobody knows of which day it is."""
    return replace(_shared(day, batch, DAY_ROWS_KEPT), metered_usd=day.metered_usd + sum(batch.spent.values()))


def joined(days: Sequence[MonthCosts]) -> MonthCosts:
    """Add days, the first one first."""
    used = _used(one for day in days for one in day.used.items())
    unused = summed(one for day in days for one in day.unused.items())
    name = days[0].name if len(days) == 1 else f"{days[0].name} to {days[-1].name}"
    return MonthCosts(name=name, used=used, unused=unused, metered_usd=sum(day.metered_usd for day in days))


def _shared(month: MonthCosts, batch: CostBatch, rows: int) -> MonthCosts:
    """Share a batch: in each pool, what was spent goes to jobs, and to what was unused, in the proportions that looks saw."""
    expected = summed([*batch.unused.items(), *((key.pool, one.usd) for key, one in batch.used.items())])
    rates = {pool: batch.spent.get(pool, 0.0) / usd for pool, usd in expected.items() if usd}
    of_jobs = ((key, Used(one.usd * rates.get(key.pool, 0.0), one.hours)) for key, one in batch.used.items())
    # What was spent in a pool of which looks saw nothing is unused as a whole.
    idle = ((pool, batch.unused.get(pool, 0.0) * rates[pool] if pool in rates else usd) for pool, usd in batch.spent.items())
    used, unused = _used([*month.used.items(), *of_jobs]), summed([*month.unused.items(), *idle])
    return replace(month, used=bounded(used, rows), unused=unused)


def _used(pairs: Iterable[tuple[Key, Used]]) -> dict[Key, Used]:
    """Add up what each had."""
    return {key: Used(sum(one.usd for one in had), sum(one.hours for one in had)) for key, had in grouped(pairs).items()}


def bounded(used: Mapping[CostKey, Used], most: int = ROWS_KEPT) -> dict[CostKey, Used]:
    """Fold the smallest of too many rows into one of their folder each, and where that is not enough into one of their pool."""
    kept = dict(used)
    if len(kept) <= most:
        return kept
    for fold in (_folder, _others):
        for key in sorted((key for key in kept if fold(key) != key), key=lambda key: (kept[key].usd, key)):
            if len(kept) <= int(most * _ROOM):
                return kept
            one, into = kept.pop(key), fold(key)
            kept[into] = kept.get(into, Used()).plus(one)
    return kept


def folder_of(job: str) -> str:
    """Name the folder of a job; "" at the top."""
    return job.rpartition("/")[0]


def _folder(key: CostKey) -> CostKey:
    is_in_one = folder_of(key.job) and not key.job.startswith(RESERVED)
    return key._replace(job=f"{folder_of(key.job)}/{OTHERS}") if is_in_one else key


def _others(key: CostKey) -> CostKey:
    return key._replace(job=RESERVED + OTHERS if key.job.startswith(RESERVED) else OTHERS)


def _machines(look: CostLook, since_seconds: float) -> Iterator[tuple[str, list[tuple[CostKey, Used]], float]]:
    """Find the machines that cost something: the pool of each, what it was used for by whom, and the dollars that nobody used.

    ``since_seconds``: since the last look. The dollars of a reserved one are the person's, those of busy executors their builds'.
    """
    builds, sides = grouped(_builds(look, since_seconds)), _sides(look.snapshot)
    executors = {(view.name, node.name): node.executors for view in look.snapshot.controllers.values() for node in view.nodes}
    for record in look.snapshot.living:
        places, pool = sides[record.machine], look.fleet.pools.get(record.pool)
        seen = [] if look.fleet.weights and record.labels else [executors[place] for place in places if place in executors]
        room = max(seen or [pool.executors if pool else 1])  # where jobs have weights, a node shows as many executors as builds fit
        seconds = _seconds(record, look.snapshot.taken_at, since_seconds)
        ran = [one for place in places for one in builds.get(place, ())]
        owned = _whose(look, record, ran, seconds, room)
        rate = _rate_of(record, look.snapshot.memory.fleet.spot_prices) + _capacity_usd(pool, record)
        taken = sum(took for _, took in owned)
        capacity = max(room * seconds, taken)  # where more builds run than there are executors, they share the machine
        share = rate * seconds / HOUR_SECONDS / capacity if capacity else 0.0
        used = [(key, Used(took * share, took / HOUR_SECONDS)) for key, took in owned]
        yield record.pool, used, max(0.0, rate * seconds / HOUR_SECONDS - taken * share)


def _capacity_usd(pool: Pool | None, record: Record) -> float:
    """Return what an agent's place in reserved capacity costs an hour."""
    return pool.capacity.usd_per_hour if pool and pool.capacity and is_paid_by_capacity(record) else 0.0


def _sides(snapshot: Snapshot) -> dict[str, list[tuple[str, str]]]:
    """Find the nodes of each machine: controller and name."""
    return grouped((one.machine, (one.controller, one.node or "")) for one in snapshot.records if one.state is not RecordState.GONE)


def _seconds(record: Record, now: float, since_seconds: float) -> float:
    """Return for how long an agent cost something since the last look; a disk was there before its machine was stopped."""
    if record.state in _OFF:
        return since_seconds
    return min(since_seconds, max(0.0, now - (record.starts[-1] if record.starts else record.launched_at)))


def _whose(
    look: CostLook, record: Record, ran: Iterable[tuple[str, str, float]], seconds: float, executors: int
) -> tuple[tuple[CostKey, float], ...]:
    """Say whose each second of an executor is; a build has as many as its job weighs. A machine that a person has is theirs as a whole."""
    if record.reservation:
        return ((CostKey(record.controller, record.pool, RESERVED + record.reservation.person), seconds * executors),)
    weight = look.fleet.weights.of_running
    return tuple((CostKey(controller, record.pool, job), min(seconds, took) * weight(job)) for controller, job, took in ran)


def _builds(look: CostLook, since_seconds: float) -> Iterator[tuple[tuple[str, str], tuple[str, str, float]]]:
    """Find what ran since the last look: the node of each build, then its controller, its job, and for how long it ran."""
    now = look.snapshot.taken_at
    for controller, after in look.learned.items():
        if now - after.seen_at > LOOK_GAP_SECONDS:
            continue  # the controller cannot be read: nobody knows what still runs
        # Where Jenkins does not tell the age of a build, it began somewhere between the two looks.
        ages = [(one, now - one.since_at if one.since_at < now else since_seconds / 2) for one in after.running.values()]
        ran = [(sighting, min(age, since_seconds)) for sighting, age in ages]
        if since_seconds <= LOOK_GAP_SECONDS:
            # What is gone since then ended somewhere in between, the middle is the best guess.
            gone = [sighting for key, sighting in look.snapshot.learned[controller].running.items() if key not in after.running]
            ran += [(sighting, min(now - sighting.since_at, since_seconds / 2)) for sighting in gone]
        yield from (((controller, sighting.node), (controller, sighting.job, seconds)) for sighting, seconds in ran)


def _rate_of(record: Record, spot: SpotPrices) -> float:
    """Return an agent's price an hour, as far as it is known without asking EC2: of spot instances the mean of its type's prices."""
    if record.state in _OFF:
        return record.volume_usd_per_hour
    if record.reserved_usd_per_hour <= record.usd_per_hour:
        return record.usd_per_hour  # on-demand: the price is no expectation
    told = [usd for key, usd in spot.usd_per_hour.items() if key.partition("/")[0] == record.instance_type]
    return fmean(told) + record.volume_usd_per_hour if told else record.usd_per_hour


def in_day(day: MonthCosts, batch: CostBatch, metered: Month) -> MonthCosts:
    """Return the costs of a day as they are now, with those of the batch that is not added yet."""
    return share_out_day(day, note_metered(batch, metered)) if batch.month and day_name(batch.seen_at) == day.name else day


def in_month(month: MonthCosts, batch: CostBatch, metered: Month) -> MonthCosts:
    """Return the costs of a month as they are now, with those of the batch that is not added yet."""
    return share_out(month, note_metered(batch, metered)) if batch.month == month.name else month


def spread_unused(month: MonthCosts) -> dict[CostKey, float]:
    """Share what was unused in each pool among its jobs, by their dollars; of a pool without any it is nobody's, whose name is ""."""
    jobs = [(key, one.usd) for key, one in month.used.items() if not key.job.startswith(RESERVED) and one.usd > 0.0]
    of_pool = summed((key.pool, usd) for key, usd in jobs)
    shares = {key: month.unused.get(key.pool, 0.0) * usd / of_pool[key.pool] for key, usd in jobs}
    return shares | {CostKey("", pool, ""): usd for pool, usd in month.unused.items() if pool not in of_pool}


# Lists of costs for people.


_NOBODY = "(no job)"


class By(StrEnum):
    """What costs are grouped by."""

    JOB = "job"
    FOLDER = "folder"
    POOL = "pool"
    LABEL = "label"
    TEAM = "team"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEntry:
    """What a group costs. ``idle_usd``: its part of boots, idle and stopped agents; ``hours``: of executors."""

    name: str
    controller: str  # of a job or a folder; else ""
    usd: float
    builds_usd: float
    idle_usd: float
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostList:
    """The costs of a month, or of some days: then ``month`` is from which to which.

    ``metered_usd``: what the limit of the month counted; ``prices_listed_on``: the days of the list prices now; ``days``: how many were
    asked for, 0 if a month was, and how many of them have costs, but for what is not added to today yet.
    """

    month: str
    by: By
    entries: tuple[CostEntry, ...]
    usd: float
    metered_usd: float
    prices_listed_on: tuple[str, ...] = ()
    days: int = 0
    days_with_costs: int = 0
    volumes_usd: float = 0.0  # of what was metered, by estimate


def list_costs(month: MonthCosts, fleet: Fleet, by: By) -> CostList:
    """Group the costs of a month, the dearest first."""
    used = _used((_group(key, fleet, by), one) for key, one in month.used.items())
    idle = summed((_group(key, fleet, by), usd) for key, usd in spread_unused(month).items())
    groups = ((group, used.get(group, Used()), idle.get(group, 0.0)) for group in dict.fromkeys([*used, *idle]))
    entries = [
        CostEntry(name=name, controller=controller, usd=had.usd + idle_usd, builds_usd=had.usd, idle_usd=idle_usd, hours=had.hours)
        for (name, controller), had, idle_usd in groups
    ]
    return CostList(
        month=month.name,
        by=by,
        entries=tuple(sorted(entries, key=lambda entry: (-entry.usd, entry.name, entry.controller))),
        usd=sum(entry.usd for entry in entries),
        metered_usd=month.metered_usd,
        prices_listed_on=tuple(sorted({*fleet.prices_listed_on.values()})),
    )


def _group(key: CostKey, fleet: Fleet, by: By) -> tuple[str, str]:
    """Name the group of a row, and its controller where it belongs to one."""
    match by:
        case By.JOB:
            return _job(key.job), key.controller
        case By.FOLDER:
            if key.job.startswith(RESERVED):
                return "(reservations)", key.controller
            return _job(key.job) if key.job in {"", OTHERS} else folder_of(key.job) or "(no folder)", key.controller
        case By.POOL:
            return key.pool, ""
        case By.LABEL:
            # All labels of a pool together: a job's dollars can be counted once only.
            known = fleet.pools.get(key.pool)
            return " ".join(sorted(known.labels)) if known else f"(pool {key.pool}, which left the fleet file)", ""
        case By.TEAM:
            return next((team.name for team in fleet.teams.values() if key.pool in team.pools), "(no team)"), ""
        case By.CONTROLLER:
            return key.controller or _NOBODY, ""


def _job(job: str) -> str:
    if job.startswith(RESERVED):
        person = job.removeprefix(RESERVED)
        return f"(reserved for {'others' if person == OTHERS else person})"
    return {"": _NOBODY, OTHERS: "(small jobs)"}.get(job, job)
