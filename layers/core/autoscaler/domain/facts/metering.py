"""Usage of the limits of pools, teams and the fleet: living agents, launches of the hour, dollars of the month."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import TypeVar

from autoscaler.domain.facts.fleet import Ceilings, Fleet, Market, Pool, Team
from autoscaler.domain.facts.job_settings import MonthParts
from autoscaler.domain.facts.memory import Day, Memory, Month, Spending, SpotPrices
from autoscaler.domain.facts.snapshot import OFF, Binding, Instance, Intent, Record, RecordState, Snapshot

# Levels of limits: a pool, its team, the fleet. What is launched fits within each, and each stops its own pools only.


class LevelKind(StrEnum):
    """How much a limit is about."""

    POOL = "pool"
    TEAM = "team"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Pools that share limits: one, those of a team, or all of the fleet."""

    kind: LevelKind
    name: str
    pools: frozenset[str]
    ceilings: Ceilings

    def has(self, pool: str) -> bool:
        """Tell whether a pool counts here; in the fleet those do, too, that left the fleet file."""
        return self.kind is LevelKind.FLEET or pool in self.pools

    @property
    def text(self) -> str:
        """Whose limits these are, for people."""
        return "the fleet" if self.kind is LevelKind.FLEET else f"{self.kind} {self.name}"


def levels(fleet: Fleet) -> Iterator[Level]:
    """Yield all levels, the narrow ones first."""
    for pool in fleet.pools.values():
        ceilings = replace(pool.ceilings, max_agents=pool.max_agents)
        yield Level(kind=LevelKind.POOL, name=pool.name, pools=frozenset({pool.name}), ceilings=ceilings)
    for team in fleet.teams.values():
        yield Level(kind=LevelKind.TEAM, name=team.name, pools=team.pools, ceilings=team.ceilings)
    yield Level(kind=LevelKind.FLEET, name=fleet.name, pools=frozenset(fleet.pools), ceilings=fleet.limits)


def teams(fleet: Fleet) -> Iterator[Team]:
    """Yield all teams. The pools of none are together one more, without a name and without limits of its own."""
    yield from fleet.teams.values()
    yield Team(name="", pools=frozenset(fleet.pools).difference(*(team.pools for team in fleet.teams.values())))


def team_of_each(fleet: Fleet) -> dict[str, Team]:
    """Find the team of each pool."""
    return {pool: team for team in teams(fleet) for pool in team.pools}


# What was spent, and how many launches and hours count against limits.


# EC2 bills a Linux instance by the second, for a minute at least.
MINIMUM_BILLED_SECONDS = 60.0
# Spot prices change gradually, a few times a day.
SPOT_PRICES_SECONDS = 600.0
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0
# Whose turn it is follows from what each team has spent for so long, remembered in steps of a quarter of an hour.
SHARE_SECONDS = 4 * HOUR_SECONDS
_SPENDING_SECONDS = HOUR_SECONDS / 4
# Other months and days that have begun, of which the latest are remembered; a year of jumps would make no more.
_BEGUN_KEPT = 4
# One that goes on after others counts this much of the time between at the most: the clock was wrong for some of it.
_BETWEEN_SECONDS = HOUR_SECONDS
# A launch is sent again for ten minutes, so that EC2 may show it so much later than its record. No build counts on it for longer.
SENT_LATER_SECONDS = 900.0
# Of launches longer ago than an hour.
_LAUNCHES_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What agents cost since the last look, by pool, and what some of it was for."""

    by_pool: Mapping[str, float]
    parts: MonthParts = field(default_factory=MonthParts)


def unrecorded(snapshot: Snapshot) -> tuple[Instance, ...]:
    """Find instances with our tags that no record and no open launch accounts for: they cost money all the same."""
    return tuple(i for i in _unaccounted(snapshot, snapshot.instances) if not i.state.ended)


def _unaccounted(snapshot: Snapshot, instances: Iterable[Instance]) -> Iterator[Instance]:
    """Find instances without a record and without an open launch: a state that was lost or restored does not have them."""
    known = {record.instance_id for record in snapshot.records}
    under_way = {intent.id for intent in snapshot.intents if intent.open}
    return (instance for instance in instances if instance.id not in known and instance.launch not in under_way)


def unread_elsewhere(snapshot: Snapshot) -> int:
    """Count unreadable records and launches that EC2 does not list, a launch as one agent."""
    listed, launches = {i.id for i in snapshot.instances}, {i.launch for i in snapshot.instances}
    return len(snapshot.unread_records.keys() - listed) + len(snapshot.unread_launches - launches)


def missing_of(intent: Intent) -> int:
    """Count the agents that an intent may still bring: none once it is settled."""
    return max(0, intent.count - len(intent.instances)) if intent.open else 0


def launched_lately(snapshot: Snapshot, memory: Memory) -> Counter[str]:
    """Count the launches and starts of the last hour by pool: of agents with a record, of those that had one, and open launches.

    The pool is "" where nobody noted it: those count in each.
    """
    # Noted first, forgotten then: an agent may be known from both.
    launches = {i.id: (i.launched_at, i.pool) for i in _unaccounted(snapshot, (*snapshot.instances, *snapshot.ended))}
    launches |= {key: (at, memory.fleet.gone_from.get(key, "")) for key, at in memory.gone.items()}
    listed = {instance.id: instance for instance in snapshot.instances}
    for record in snapshot.records:
        times, instance = launches_of(record), listed.get(record.instance_id)
        if instance is not None and times:
            # EC2 corrects the last launch or start, if our record does not know it, or has it from a wrong clock.
            newest = max(times, key=times.__getitem__)
            if times[newest] > snapshot.taken_at or instance.launched_at > times[newest] + SENT_LATER_SECONDS:
                times[newest] = instance.launched_at
        launches |= {key: (at, record.pool) for key, at in times.items()}
    counted = Counter(pool for at, pool in launches.values() if at > snapshot.taken_at - HOUR_SECONDS)
    for intent in snapshot.intents:
        counted[intent.pool] += missing_of(intent)
    return counted


def note_gone(memory: Memory, gone: Mapping[str, float], fleet: Fleet, now: float, looked_at: float) -> dict[str, float]:
    """Note when agents were launched whose records are closed: those of the hour, and so many before it as a limit may be about.

    By a clock that is ahead, the hour would be over; once it is right again, they count. ``looked_at``: the look before. What is later
    than both was written by a clock that was ahead.
    """
    times = {name: min(at, max(now, looked_at)) for name, at in {**memory.gone, **gone}.items()}
    most = min(fleet.limits.max_launches_per_hour, _LAUNCHES_KEPT)
    latest = sorted(times, key=lambda name: (times[name], name))[-most:] if most else []
    return {name: at for name, at in times.items() if now - at < HOUR_SECONDS or name in latest}


def launches_of(record: Record) -> dict[str, float]:
    """When an agent was launched, and started again, by a name of each of these."""
    if not record.is_instance:
        return {}
    return {record.instance_id: record.launched_at} | {f"{record.instance_id}@{at:.0f}": at for at in record.starts}


def begin_again(record: Record, now: float) -> Record:
    """Note that a stopped agent starts: its next life, and a start that counts for an hour like a launch."""
    starts = (*(at for at in record.starts if now - at < HOUR_SECONDS), now)
    next_life = record.bound(node=record.node, life=record.life + 1)
    return replace(next_life, state=RecordState.STARTING, starts=starts, problem="", changed_at=now)


def rotated(record: Record, controller: str, now: float) -> Record:
    """Note that a running agent is to serve another controller: its next life, in which it asks who it is as after a start."""
    return replace(
        record,
        state=RecordState.STARTING,
        bindings=(Binding(controller=controller, life=record.life + 1),),
        leaves=record.bindings,
        labels=(),
        cordon="",
        trouble="",
        problem="",
        registered_at=None,
        node_life=None,
        lent_until=0.0,
        lent_labels=(),
        borrowers=(),
        by_weight=False,
        rotated_at=now,
        changed_at=now,
    )


def given_back(record: Record, left: Binding, labels: tuple[str, ...], now: float) -> Record:
    """Note that an agent stays on the controller that it was to leave: on the same node and in the same life, so that its builds go on.

    ``labels``: those of its node. Its times are those of its last start, as if it had registered at once: no boot ends now that would be
    measured, and it may leave again as soon as jobs wait elsewhere.
    """
    began_at = record.starts[-1] if record.starts else record.launched_at
    others = tuple(binding for binding in record.leaves if binding != left)
    return replace(
        record,
        state=RecordState.REGISTERED,
        bindings=(left,),
        leaves=others,
        labels=labels,
        node_life=left.life,
        registered_at=began_at,
        rotated_at=began_at,
        changed_at=now,
    )


def handed_back(record: Record, now: float) -> Record:
    """Note that a host asks anew who it is: its next life, in which nothing of the last one is left."""
    return replace(rotated(record, record.controller, now), leaves=(), reservation=None)


def month_name(at: float) -> str:
    """Name the calendar month (UTC) of an instant."""
    return day_name(at)[: len("2026-01")]


def day_name(at: float) -> str:
    """Name the calendar day (UTC) of an instant."""
    return _name_of_day(int(at // DAY_SECONDS))


@lru_cache(maxsize=100)  # asked for each level of limits in each look
def _name_of_day(days: int) -> str:
    return datetime.fromtimestamp(days * DAY_SECONDS, UTC).strftime("%Y-%m-%d")


def truly_priced(record: Record, fleet: Fleet) -> Record:
    """Return a record with its true price: nothing more as long as its pool pays for the very capacity that it was launched into."""
    if record.reserved is None:
        return record
    pool = fleet.pools.get(record.pool)
    is_billed = pool is None or pool.capacity is None or pool.capacity.id != record.reserved.id
    more = record.reserved.usd_per_hour * (is_billed - record.reserved.is_billed)
    most = None if record.most_usd_per_hour is None else record.most_usd_per_hour + more
    reserved = replace(record.reserved, is_billed=is_billed)
    return replace(record, usd_per_hour=record.usd_per_hour + more, most_usd_per_hour=most, reserved=reserved)


def is_paid_by_capacity(record: Record) -> bool:
    """Tell whether reserved capacity of its pool pays for an agent."""
    return record.reserved is not None and not record.reserved.is_billed


def paid_since(snapshot: Snapshot, fleet: Fleet, prices: SpotPrices, since: float) -> Spent:
    """Sum the dollars of all living agents since an instant; none where nothing was metered before (0)."""
    spot = {i.id: prices.usd_per_hour.get(i.priced_as) for i in snapshot.instances if i.market == Market.SPOT}
    began = {i.id: i.launched_at for i in snapshot.instances}
    by_pool: dict[str, float] = {}
    parts = MonthParts()
    for record in snapshot.living if since else ():
        price, pool = spot.get(record.instance_id), fleet.pools.get(record.pool)
        volume = pool.offerings[0].volume_usd_per_hour if pool else 0.0
        usd = record.reserved_usd_per_hour if price is None else price + volume
        # EC2 bills a machine from its launch or its last start on.
        began_at = began.get(record.instance_id, record.began_at)
        on = max(0.0, snapshot.taken_at - max(since, began_at))
        if snapshot.states.get(record.instance_id) in OFF:
            # Nobody knows when it stopped: we stop agents just after a look. What was started since the last one costs a minute.
            on = MINIMUM_BILLED_SECONDS if since < began_at <= snapshot.taken_at else 0.0
        off = max(0.0, snapshot.taken_at - max(since, record.launched_at) - on)
        usd += _usd_after(record, pool, since, snapshot.taken_at)
        on_hours, off_hours, disk = on / HOUR_SECONDS, off / HOUR_SECONDS, record.volume_usd_per_hour
        boot_usd = usd * on_hours if record.state.is_asked_for else 0.0
        part = MonthParts(boot_usd=boot_usd, stopped_usd=disk * off_hours, disk_usd=disk * (on_hours + off_hours))
        by_pool[record.pool] = by_pool.get(record.pool, 0.0) + usd * on / HOUR_SECONDS + part.stopped_usd
        parts = parts.plus(part)
    for name, pool in fleet.pools.items() if since else ():
        if capacity := pool.capacity:  # reserved capacity costs the same, used or not
            usd = capacity.count * capacity.usd_per_hour * capacity.paid_seconds(since, snapshot.taken_at) / HOUR_SECONDS
            by_pool[name] = by_pool.get(name, 0.0) + usd
    return Spent(by_pool=by_pool, parts=parts)


def _usd_after(record: Record, pool: Pool | None, since: float, now: float) -> float:
    """Return what is added to the price of an agent of reserved capacity for the time after that has ended."""
    if pool is None or pool.capacity is None or not is_paid_by_capacity(record):
        return 0.0
    # What runs in a reservation is billed by itself from the moment at which that is over.
    return pool.capacity.usd_per_hour * (pool.capacity.unpaid_seconds(since, now) / (now - since)) if now > since else 0.0


_Begun = TypeVar("_Begun", Month, Day)


def turned(last: _Begun, others: tuple[_Begun, ...], name: str, now: float) -> tuple[_Begun, tuple[_Begun, ...]]:
    """Return the month, or day, that goes on now, or the last one if a new one begins; and the others that have begun.

    ``name``: of the one that it is now. The clock may have been ahead in it, or has gone back to it.
    """
    if last.name in {"", name}:
        return last, others
    begun = [period for period in others if period.name != name]
    begun.append(last)
    begun.sort(key=lambda period: period.metered_at)
    resumed = next((period for period in others if period.name == name), None)
    present = last if resumed is None else replace(resumed, metered_at=max(resumed.metered_at, now - _BETWEEN_SECONDS))
    return present, tuple(begun[-_BEGUN_KEPT:])


def meter(month: Month, spent: Spent, now: float) -> Month:
    """Add the cost since the last look; a new month begins at zero."""
    if month.name != month_name(now):
        return Month(name=month_name(now), usd=0.0, metered_at=now)
    usd = spent.by_pool
    by_pool = {pool: month.by_pool.get(pool, 0.0) + usd.get(pool, 0.0) for pool in {**month.by_pool, **usd}}
    return Month(name=month.name, usd=month.usd + sum(usd.values()), metered_at=now, by_pool=by_pool, parts=month.parts.plus(spent.parts))


def note_spending(lately: tuple[Spending, ...], spent: Mapping[str, float], now: float) -> tuple[Spending, ...]:
    """Add the same cost to what was spent lately, and forget what is older."""
    kept = tuple(one for one in lately if now - one.since_at < SHARE_SECONDS)
    if not kept or now - kept[-1].since_at >= _SPENDING_SECONDS:
        return (*kept, Spending(since_at=now, by_pool=spent))
    last = kept[-1].by_pool
    both = {pool: last.get(pool, 0.0) + spent.get(pool, 0.0) for pool in {**last, **spent}}
    return (*kept[:-1], replace(kept[-1], by_pool=both))


def spent_lately(lately: Iterable[Spending], pools: Collection[str]) -> float:
    """Sum the dollars that these pools have spent in the last hours."""
    return sum(usd for one in lately for pool, usd in one.by_pool.items() if pool in pools)


def last_spent_at(lately: Iterable[Spending], pools: Collection[str]) -> float:
    """Say since when the last dollars were counted together that these pools have spent; 0 where they have spent none lately."""
    return max((one.since_at for one in lately if any(one.by_pool.get(pool, 0.0) > 0.0 for pool in pools)), default=0.0)


def spent_in_month(month: Month, level: Level) -> float:
    """Return the dollars that were spent this month; the fleet's include those of pools that left the fleet file."""
    if level.kind is LevelKind.FLEET:
        return month.usd
    return sum(month.by_pool.get(pool, 0.0) for pool in sorted(level.pools))


def spent_levels(month: Month, fleet: Fleet, now: float) -> tuple[Level, ...]:
    """Find the levels whose money of the month is all spent, the widest first."""
    if month.name != month_name(now):
        return ()
    spent = [level for level in levels(fleet) if spent_in_month(month, level) >= level.ceilings.max_usd_per_month]
    return tuple(reversed(spent))


def meter_day(day: Day, snapshot: Snapshot, fleet: Fleet) -> Day:
    """Add the time that each machine ran since the last look, as long as a limit is about it; a new day begins at zero."""
    now, today = snapshot.taken_at, day_name(snapshot.taken_at)
    if all(level.ceilings.max_hours_per_day == inf for level in levels(fleet)):
        return Day()
    before = day if day.name == today else Day(name=today)
    since = max(day.metered_at, now - now % DAY_SECONDS) if day.metered_at else now
    running = Counter(record.pool for record in snapshot.living if snapshot.states.get(record.instance_id) not in OFF)
    hours = {pool: count * max(0.0, now - since) / HOUR_SECONDS for pool, count in running.items()}
    together = {pool: before.hours.get(pool, 0.0) + hours.get(pool, 0.0) for pool in {**before.hours, **hours}}
    return Day(name=today, metered_at=now, hours=together)


def hours_in_day(day: Day, level: Level, now: float) -> float:
    """Return the hours that the agents of a level have run today."""
    return sum(hours for pool, hours in day.hours.items() if level.has(pool)) if day.name == day_name(now) else 0.0


def levels_out_of_hours(day: Day, fleet: Fleet, now: float) -> tuple[Level, ...]:
    """Find the levels whose hours of the day are used, the widest first."""
    limited = [level for level in levels(fleet) if level.ceilings.max_hours_per_day < inf]
    return tuple(reversed([level for level in limited if hours_in_day(day, level, now) >= level.ceilings.max_hours_per_day]))
