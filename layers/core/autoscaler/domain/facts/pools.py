"""What follows from a pool's settings: hours of its schedules, volumes of its agents, and what is there after it left the file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from math import inf
from typing import Any, Protocol

from autoscaler.domain.facts.fleet import Fleet, Market, Offering, Platform, Pool, PoolSchedule, PoolVolumes
from autoscaler.domain.facts.memory import LastDefinition, Memory, PricedType
from autoscaler.domain.facts.snapshot import Instance, Intent, Record

# When the schedules of pools hold, and which numbers a pool has then.
#
# A time of day is the first instant of it at which the clocks of the time zone show that time or a later one. So of a time that comes
# twice, where clocks are put back, the first counts; and one that never comes, where they are put forward, is the moment at which they are.


DAY_MINUTES = 1440
WEEK_SECONDS = 7 * 86_400.0
# What comes each week comes within this, also where clocks are put back.
_AHEAD_DAYS = 8
# What goes on for longer than a week never ends.
_FOR_EVER_SECONDS = 7.5 * 86_400.0
NUMBERS = ("min_agents", "max_agents", "warm_executors", "warm_pool")


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds since the epoch; the end is the first instant that does not belong to it."""

    begins_at: float
    ends_at: float

    def holds(self, at: float) -> bool:
        """Tell whether an instant belongs to it."""
        return self.begins_at <= at < self.ends_at


def fleet_at(fleet: Fleet, at: float) -> Fleet:
    """Return the fleet with the numbers that its pools have then."""
    scheduled = {pool.name: pool_at(pool, at) for pool in fleet.pools.values() if pool.schedules}
    return replace(fleet, pools={**fleet.pools, **scheduled}) if scheduled else fleet


def pool_at(pool: Pool, at: float) -> Pool:
    """Return the pool with the numbers that it has then; where two schedules hold, the one written later has the last word, key by key."""
    return _that_holds(pool, [tuple(_spans(schedule, at, 1)) for schedule in pool.schedules], at)


def pool_for_a_week(pool: Pool, at: float) -> list[tuple[float, Pool]]:
    """Return the pool with the numbers that it has from then on, and from each instant on at which they may change, up to a week later."""
    spans = [tuple(_spans(schedule, at, _AHEAD_DAYS)) for schedule in pool.schedules]
    edges = {edge for one in spans for span in one for edge in (span.begins_at, span.ends_at) if at < edge <= at + WEEK_SECONDS}
    return [(then, _that_holds(pool, spans, then)) for then in (at, *sorted(edges))]


def pool_at_its_widest(pool: Pool) -> Pool:
    """Return the pool with each number the highest that it has at any hour: what an account must be able to bear."""
    ways = (pool, *(_with(pool, numbers_of(schedule)) for schedule in pool.schedules))
    return replace(
        pool,
        min_agents=max(way.min_agents for way in ways),
        max_agents=max(way.max_agents for way in ways),
        warm_executors=max(way.warm_executors for way in ways),
        warm_pool=max((way.warm_pool for way in ways if way.warm_pool), key=lambda warm: warm.max_agents, default=None),
    )


def numbers_of(schedule: PoolSchedule) -> dict[str, Any]:
    """Return the numbers that a schedule gives, by key."""
    return {key: number for key in NUMBERS if (number := getattr(schedule, key)) is not None}


def now_and_next(schedule: PoolSchedule, at: float) -> Iterator[Span]:
    """Yield when a schedule holds, from then on for a week; what goes on at once has not ended, and what never ends has no end."""
    joined: list[Span] = []
    for span in _spans(schedule, at, _AHEAD_DAYS):
        if joined and span.begins_at <= joined[-1].ends_at:
            joined[-1] = Span(joined[-1].begins_at, span.ends_at)
        else:
            joined.append(span)
    for span in joined:
        if span.ends_at > at:
            yield replace(span, ends_at=inf) if span.ends_at - span.begins_at > _FOR_EVER_SECONDS else span


def moment(at: float, now: float, zone: tzinfo) -> str:
    """Write an instant as clocks there show it, with the day where it is not today's: "18:00 Europe/Berlin"."""
    then, today = (datetime.fromtimestamp(one, zone) for one in (at, now))
    return f"{then:%H:%M} {zone}" if then.date() == today.date() else f"{then:%a %d %b %H:%M} {zone}"


def boundaries(schedule: PoolSchedule, at: float) -> Iterator[float]:
    """Yield when it begins and when it ends, within a week from then and a day before it."""
    for span in _spans(schedule, at, _AHEAD_DAYS):
        yield from (span.begins_at, span.ends_at)


def _that_holds(pool: Pool, spans: Iterable[Iterable[Span]], at: float) -> Pool:
    """Return the pool with the numbers that it has then. ``spans``: of each of its schedules, those that may hold then."""
    given: dict[str, Any] = {}
    for schedule, its in zip(pool.schedules, spans, strict=True):
        if any(span.holds(at) for span in its):
            given |= numbers_of(schedule)
    return _with(pool, given) if given else pool


def _with(pool: Pool, numbers: Mapping[str, Any]) -> Pool:
    off = {"warm_pool": None} if numbers.get("warm_pool") is False else {}
    return replace(pool, **{**numbers, **off})


def _spans(schedule: PoolSchedule, at: float, days_ahead: int) -> Iterator[Span]:
    """Yield its spans that begin from the day before until so many days later, the earliest first."""
    zone, today = schedule.time_zone, datetime.fromtimestamp(at, schedule.time_zone).date()
    for day in (today + timedelta(days=ahead) for ahead in range(-1, days_ahead + 1)):
        if day.weekday() in schedule.days:
            span = Span(_instant(day, schedule.from_minute, zone), _instant(day, schedule.to_minute, zone))
            if span.begins_at < span.ends_at:  # else clocks are put forward over all of it
                yield span


def _instant(day: date, minutes: int, zone: tzinfo) -> float:
    """Return the first instant at which clocks there show so many minutes of a day, or a later time."""
    shown = datetime.combine(day, time()) + timedelta(minutes=minutes)
    latest = shown.replace(tzinfo=zone).timestamp()
    if _clock(latest, zone) == shown:
        return latest
    earliest = shown.replace(tzinfo=zone, fold=1).timestamp()  # between the two clocks are put forward
    while latest - earliest > 1.0:
        middle = (earliest + latest) // 2
        earliest, latest = (earliest, middle) if _clock(middle, zone) >= shown else (middle, latest)
    return latest


def _clock(at: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)


# Volumes of agents: what EC2 says about the sizes in a pool's launch template and image, and what all of them cost.
#
# A pool whose `volume_gib` is written in the fleet file goes by that. So does one of whose volumes EC2 does not say every size, if that is
# more. Iops and throughput beyond those that a volume has for nothing are not counted.


HOURS_A_MONTH = 730.0  # to AWS
# The price of a GiB relative to gp3, as in us-east-1. EC2 makes gp2 if neither the template nor the image names a type.
_AGAINST_GP3 = {"gp3": 1.0, "gp2": 1.25, "io1": 1.5625, "io2": 1.5625, "st1": 0.5625, "sc1": 0.1875, "standard": 0.625}
_UNNAMED = "gp2"
_DEAREST = max(_AGAINST_GP3.values())


class Known(Protocol):
    """A snapshot, or the stored state: what names pools, and what remembers their volumes and definitions."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The agents on record."""

    @property
    def intents(self) -> tuple[Intent, ...]:
        """The launches."""

    @property
    def memory(self) -> Memory:
        """What is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a pool's agents are launched from now. ``image``: that is launched instead of the launch template's; "": none."""

    template: str
    version: str
    image: str = ""

    def __str__(self) -> str:
        """Name it, as the memory does."""
        return f"{self.template} {self.version} {self.image}".rstrip()


def sources(fleet: Fleet, versions: Mapping[str, str], images: Mapping[str, str]) -> dict[str, Source]:
    """Say what each pool launches from that counts the volumes of its launch template, by pool."""
    counting = (pool for pool in fleet.launched.pools.values() if pool.volume_usd_per_gib_month is not None)
    return {
        pool.name: Source(template=pool.launch_template, version=versions[pool.name], image=images.get(pool.name, ""))
        for pool in counting
        if pool.name in versions
    }


def with_volumes(fleet: Fleet, of: Known) -> Fleet:
    """Return the fleet with the price of the volumes that EC2 named, in each offering of their pool."""
    changed: dict[str, Pool] = {}
    for name, volumes in known_volumes(of).items():
        pool = fleet.pools.get(name)
        usd = usd_per_hour(pool, volumes) if pool else None
        if pool and usd is not None and any(offering.volume_usd_per_hour != usd for offering in pool.offerings):
            changed[name] = replace(pool, offerings=tuple(replace(offering, volume_usd_per_hour=usd) for offering in pool.offerings))
    return replace(fleet, pools={**fleet.pools, **changed}) if changed else fleet


def known_volumes(of: Known) -> Mapping[str, PoolVolumes]:
    """Return what is known by now, by pool: what this look read, and before that what is remembered."""
    return {name: past.volumes for name, past in of.memory.pools.items() if past.volumes} | getattr(of, "volumes", {})


def with_true_volumes(
    records: Iterable[Record], fleet: Fleet, volumes: Mapping[str, PoolVolumes], instances: Iterable[Instance]
) -> tuple[Record, ...]:
    """Price the volumes of agents that were launched before theirs were read, if they came from what the pool launches now."""
    launched_from = {instance.id: instance for instance in instances}
    return tuple(_truly_priced(record, fleet, volumes, launched_from.get(record.instance_id)) for record in records)


def usd_per_hour(pool: Pool, volumes: PoolVolumes) -> float | None:
    """Return what the volumes of one agent cost; None: as the fleet file says."""
    if pool.volume_usd_per_gib_month is None:
        return None
    as_gp3 = sum((volume.gib or 0.0) * _AGAINST_GP3.get(volume.kind or _UNNAMED, _DEAREST) for volume in volumes.volumes)
    if not volumes.is_whole:
        as_gp3 = max(as_gp3, pool.volume_gib or 0.0)
    return as_gp3 * pool.volume_usd_per_gib_month / HOURS_A_MONTH


def _truly_priced(record: Record, fleet: Fleet, volumes: Mapping[str, PoolVolumes], instance: Instance | None) -> Record:
    pool, read = fleet.pools.get(record.pool), volumes.get(record.pool)
    if pool is None or read is None or instance is None:
        return record
    image = instance.image if pool.image_parameter else ""
    source, usd = Source(template=pool.launch_template, version=instance.template_version, image=image), usd_per_hour(pool, read)
    if read.source != str(source) or usd is None or usd == record.volume_usd_per_hour:
        return record
    more = usd - record.volume_usd_per_hour
    most = None if record.most_usd_per_hour is None else record.most_usd_per_hour + more
    return replace(record, volume_usd_per_hour=usd, usd_per_hour=record.usd_per_hour + more, most_usd_per_hour=most)


# Pools that left the fleet file while something of theirs is there: wound down by their last definition.
#
# The definition of each pool that has agents or launches is kept with the memory. If it is lost, what a record says is enough to drain its
# agent. A pool that has left is no pool of the fleet: it has no limits, no demand and no forecast, and nothing is launched, kept or stopped
# in it. So is a pool on a controller that it does not serve any more.


_BOOT_TIMEOUT_SECONDS, SETTLE_SECONDS = 900.0, 15.0


def next_definitions(
    memory: Memory, fleet: Fleet, records: Iterable[Record], intents: Iterable[Intent], instances: Iterable[Instance]
) -> dict[str, LastDefinition]:
    """Keep the definition of each pool that has agents, launches or instances; of one that has left, its last one."""
    names = {record.pool for record in records} | {intent.pool for intent in intents} | {instance.pool for instance in instances}
    present = {
        pool.name: LastDefinition(
            labels=tuple(sorted(pool.labels)),
            controllers=pool.controllers,
            executors=pool.executors,
            platform=pool.platform,
            exclusive=pool.exclusive,
            remote_dir=pool.remote_dir,
            boot_seconds=pool.boot_seconds,
            boot_timeout_seconds=pool.boot_timeout_seconds,
            drain_settle_seconds=pool.drain_settle_seconds,
            drain_timeout_seconds=pool.drain_timeout_seconds,
            share=pool.share,
            of_hosts=pool.of_hosts,
            types=_types_of(pool.offerings),
        )
        for pool in fleet.pools.values()
        if pool.name in names
    }
    return {name: definition for name in sorted(names) if (definition := present.get(name) or memory.pool(name).definition)}


def with_left(fleet: Fleet, of: Known) -> Fleet:
    """Return the fleet with the pools that left its file, and have agents, launches or instances yet."""
    named: dict[str, Record | Intent | Instance] = {}
    for thing in (*getattr(of, "instances", ()), *(intent for intent in of.intents if intent.open), *of.records):  # a record says most
        named[thing.pool] = thing
    left_pools: dict[str, Pool] = {}
    for name in sorted(named.keys() - fleet.pools.keys() - {""}):
        definition = of.memory.pool(name).definition
        left_pools[name] = _pool(name, definition, fleet) if definition else _pool_by(named[name], fleet)
    return fleet if left_pools == fleet.left_pools else replace(fleet, left_pools=left_pools)


def _types_of(offerings: Iterable[Offering]) -> tuple[PricedType, ...]:
    types: dict[tuple[str, Market], PricedType] = {}
    for offering in offerings:
        key = offering.instance_type, offering.market
        most = offering.usd_per_hour if offering.most_usd_per_hour is None else offering.most_usd_per_hour
        if key not in types or most > types[key].most_usd_per_hour:
            types[key] = PricedType(
                instance_type=offering.instance_type,
                market=offering.market,
                usd_per_hour=offering.usd_per_hour,
                most_usd_per_hour=most,
                volume_usd_per_hour=offering.volume_usd_per_hour,
            )
    return tuple(types.values())


def _pool(name: str, definition: LastDefinition, fleet: Fleet) -> Pool:
    """Make a pool that wants nothing of what is kept of its definition."""
    offerings = tuple(
        Offering(
            instance_type=priced.instance_type,
            subnet="",
            market=priced.market,
            usd_per_hour=priced.usd_per_hour,
            most_usd_per_hour=priced.most_usd_per_hour,
            volume_usd_per_hour=priced.volume_usd_per_hour,
        )
        for priced in definition.types
    )
    # What nobody knows the price of is priced like the dearest machine of the fleet, rather than as free.
    known = [offering for pool in fleet.pools.values() for offering in pool.offerings]
    dearest = max(known, key=lambda offering: offering.reserved_usd_per_hour, default=_UNPRICED)
    return replace(
        _WANTS_NOTHING,
        name=name,
        labels=frozenset(definition.labels),
        controllers=definition.controllers,
        executors=definition.executors,
        platform=definition.platform,
        offerings=offerings or (() if definition.of_hosts else (dearest,)),
        exclusive=definition.exclusive,
        remote_dir=definition.remote_dir,
        boot_seconds=definition.boot_seconds,
        boot_timeout_seconds=definition.boot_timeout_seconds,
        drain_settle_seconds=definition.drain_settle_seconds,
        drain_timeout_seconds=definition.drain_timeout_seconds,
        share=definition.share,
        of_hosts=definition.of_hosts,
    )


def _pool_by(thing: Record | Intent | Instance, fleet: Fleet) -> Pool:
    """Make such a pool of what is known without its definition: of a record, a launch or an instance of it."""
    labels = tuple(label for label in thing.labels if label != fleet.ownership_label) if isinstance(thing, Record) else ()
    types: tuple[PricedType, ...] = ()
    if isinstance(thing, Record) and thing.is_instance:
        volume = thing.volume_usd_per_hour
        types = (
            PricedType(
                instance_type=thing.instance_type,
                market=Market.ON_DEMAND,
                usd_per_hour=thing.usd_per_hour - volume,
                most_usd_per_hour=thing.reserved_usd_per_hour - volume,
                volume_usd_per_hour=volume,
            ),
        )
    definition = LastDefinition(
        labels=labels,
        controllers=(thing.controller,),
        executors=1,
        platform=Platform.LINUX,
        exclusive=True,
        remote_dir="/home/jenkins/agent",
        boot_seconds=_BOOT_TIMEOUT_SECONDS / 5,
        boot_timeout_seconds=_BOOT_TIMEOUT_SECONDS,
        drain_settle_seconds=SETTLE_SECONDS,
        of_hosts=isinstance(thing, Record) and thing.is_host,
        types=types,
    )
    return _pool(thing.pool, definition, fleet)


_UNPRICED = Offering(instance_type="", subnet="", market=Market.ON_DEMAND, usd_per_hour=0.0)
_WANTS_NOTHING = Pool(
    name="",
    labels=frozenset(),
    controllers=(),
    executors=1,
    platform=Platform.LINUX,
    launch_template="",
    launch_template_version="",
    offerings=(),
    max_agents=0,
    min_agents=0,
    warm_executors=0,
    exclusive=True,
    remote_dir="",
    queue_maturity_seconds=0.0,
    max_wait_seconds=0.0,
    wait_usd_per_hour=0.0,
    boot_seconds=0.0,
    boot_timeout_seconds=_BOOT_TIMEOUT_SECONDS,
    max_idle_seconds=0.0,
    idle_seconds=0.0,
    drain_settle_seconds=SETTLE_SECONDS,
    spot_patience_seconds=0.0,
    has_left=True,
)
