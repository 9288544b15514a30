"""Instance types and what they cost: carried tables, requirements, reserved capacity; and whether schedules and teams fit their limits."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from autoscaler.config.problems import MOST_PROBLEMS, FleetFileError, Place, Problem, broken, meant, problem
from autoscaler.config.sections import RunSettings, Section
from autoscaler.domain.facts.fleet import CapacityReservation, Fleet, Machine, Market, Offering, Platform, Pool
from autoscaler.domain.facts.job_settings import Source
from autoscaler.domain.facts.metering import Level, LevelKind, levels
from autoscaler.domain.facts.pools import HOURS_A_MONTH, WEEK_SECONDS, boundaries, pool_at_its_widest, pool_for_a_week
from autoscaler.domain.run_orders.criteria import Condition, ConditionError, Value, read_condition

if TYPE_CHECKING:
    from autoscaler.config.settings import FleetSettings, PoolSettings


# The carried price lists, and the keys by which a fleet file says which of them it goes by, and what is paid of them.


HOME = "us-east-1"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


@cache
def _table(name: str = "prices.json") -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files("autoscaler").joinpath(name).read_text(encoding="utf-8"))
    return table


def carried_prices(region: str = HOME) -> dict[str, dict[str, float]]:
    """Return on-demand dollars per hour by instance type and operating system (``make prices`` made the table)."""
    prices: dict[str, dict[str, float]] = _table()["usd_per_hour"].get(region, {})
    return prices


def listed_on(region: str, system: str) -> str:
    """Return the day on which AWS listed these prices, as ``2026-07-20``; "" where none are carried."""
    return str(_table()["listed_on"].get(region, {}).get(system, ""))


def _carried(region: str) -> str:
    if not _REGION.fullmatch(region):
        raise ValueError(f"({region}) is no AWS region")
    if not carried_prices(region):
        known = ", ".join(sorted(_table()["usd_per_hour"]))
        raise ValueError(f"({region}) no prices of it are carried, only of {known}: run make prices REGIONS={region}, or set usd_per_hour")
    return region


class PriceSettings(Section):
    """Which of the carried prices a pool goes by, and what is paid of them. Keys that a pool does not set are those of defaults."""

    multiplier: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] | None = Field(
        None,
        description="What is paid of the list price on demand: 0.72 where a Savings Plan or a contract takes 28 % off. Limits, decisions "
        "and costs go by it. Not for spot, and not for usd_per_hour, which is what is paid. Default: 1.",
    )
    region: Annotated[str, AfterValidator(_carried)] | None = Field(
        None, description=f"AWS region of the prices; it must be one that is carried. Default: {HOME}."
    )
    system: Literal["linux", "windows", "rhel", "suse"] | None = Field(
        None, description="Operating system that is billed, where it is not what platform says: rhel and suse cost more than linux."
    )


class PriceList:
    """The prices that one pool goes by."""

    def __init__(self, own: PriceSettings | None, default: PriceSettings | None, platform: Platform) -> None:
        """Take each key from the pool, or from ``defaults``."""
        told = [given for given in (own, default) if given is not None]
        self.region = next((one.region for one in told if one.region is not None), HOME)
        self.multiplier = next((one.multiplier for one in told if one.multiplier is not None), 1.0)
        self.system: str = next((one.system for one in told if one.system is not None), str(platform))

    def usd(self, instance_type: str) -> float:
        """Return the list price on demand; 0 where none is carried."""
        return carried_prices(self.region).get(instance_type, {}).get(self.system) or 0.0

    @property
    def types(self) -> list[str]:
        """Return the types whose price is carried."""
        return [kind for kind, prices in carried_prices(self.region).items() if prices.get(self.system)]


def price_list_of(settings: "FleetSettings", pool: str) -> PriceList:
    """Return the prices that a pool goes by."""
    own = settings.pools[pool]
    return PriceList(own.prices, settings.defaults.prices, own.platform)


def listed_days(settings: "FleetSettings", pools: Mapping[str, Pool]) -> dict[str, str]:
    """Return the day of the prices of each of these pools that goes by carried ones."""
    named = [name for name, pool in pools.items() if settings.pools[name].usd_per_hour is None and not pool.of_hosts]
    lists = {name: price_list_of(settings, name) for name in named}
    return {name: listed_on(one.region, one.system) for name, one in lists.items()}


# Prices of a pool's machines: those of its price list, spot's discount, and volumes.


# As the stack's own launch templates have it; gp3 in us-east-1 is $0.08 a GiB and month.
VOLUME_GIB = {Platform.LINUX: 100.0, Platform.WINDOWS: 150.0}
_MARKETS = {"on-demand": [Market.ON_DEMAND], "spot": [Market.SPOT], "spot-then-on-demand": [Market.SPOT, Market.ON_DEMAND]}


def offerings(
    name: str, pool: "PoolSettings", types: Sequence[str], prices: dict[str, float | None], listed: PriceList
) -> tuple[Offering, ...]:
    """Return what a pool may launch, of these types in order of preference; `FleetFileError` names those whose price is not known."""
    if unknown := tuple(islice(_unpriced(name, pool, types, listed), MOST_PROBLEMS)):
        raise FleetFileError("", unknown)
    volume = gib_of(pool, prices) * (prices["volume_usd_per_gib_month"] or 0.0) / HOURS_A_MONTH
    return tuple(
        Offering(
            instance_type=instance_type,
            subnet=subnet,
            market=market,
            volume_usd_per_hour=volume,
            **_machine_prices(pool, listed, instance_type, market, prices),
        )
        for market in _MARKETS[pool.market]
        for instance_type in types
        for subnet in pool.subnets or [""]
    )


def gib_of(pool: "PoolSettings", prices: dict[str, float | None]) -> float:
    """Return how large the volumes of an agent are together, as the fleet file says."""
    gib = prices["volume_gib"]
    return VOLUME_GIB[pool.platform] if gib is None else gib


def unaffordable_minima(fleet: Fleet) -> Iterator[Problem]:
    """Yield a problem where the minima alone cost more an hour than the limits allow, each at its cheapest."""
    minima = [pool for pool in fleet.pools.values() if pool.min_agents]
    usd = sum(map(_usd_per_hour, minima))
    if usd > fleet.limits.max_usd_per_hour:
        names, limit = ", ".join(pool.name for pool in minima), f"limits.max_usd_per_hour (${fleet.limits.max_usd_per_hour:,.2f})"
        text = f"the pools' min_agents ({names}) together cost ${usd:,.2f} an hour, which exceeds {limit}"
        yield Problem(place=("limits", "max_usd_per_hour"), text=text)


def cheapest(offered: tuple[Offering, ...]) -> float:
    """Return the lowest price that the limits reserve for one agent."""
    return min(offering.reserved_usd_per_hour for offering in offered)


def _unpriced(name: str, pool: "PoolSettings", types: Sequence[str], listed: PriceList) -> Iterator[Problem]:
    key = "instance_types" if pool.instance_types else "instance_requirements"
    for number, instance_type in enumerate(types if pool.usd_per_hour is None else ()):
        if not listed.usd(instance_type):
            rule = f"no {listed.system} price is carried for it, set usd_per_hour{meant(instance_type, listed.types)}"
            place = ("pools", name, key, number) if pool.instance_types else ("pools", name, key)
            yield Problem(place=place, text=f"pools.{name}.{key} ({instance_type}): {rule}")


def _machine_prices(
    pool: "PoolSettings", listed: PriceList, instance_type: str, market: Market, prices: dict[str, float | None]
) -> dict[str, Any]:
    """Return the expected and the highest price. The highest of spot is the maximum that is sent, or the on-demand price."""
    usd = listed.usd(instance_type)
    if market is Market.ON_DEMAND:
        return {"usd_per_hour": pool.usd_per_hour or usd * listed.multiplier}
    expected = pool.usd_per_hour or usd * (1 - (prices["spot_discount"] or 0.0))
    most = prices["spot_max_usd_per_hour"]
    if most is None:
        return {"usd_per_hour": expected, "most_usd_per_hour": max(expected, usd)}
    return {"usd_per_hour": min(expected, most), "most_usd_per_hour": most, "spot_max_usd_per_hour": most}


# What instance types are: the carried table of shapes, which ``make prices`` made.


def machines_for(pools: Mapping[str, Pool], runs: RunSettings | None, weights: Mapping[str, int | Source]) -> dict[str, Machine]:
    """Return what the instance types of these pools are, as far as the table knows; nothing unless runs or learned weights ask for it."""
    if runs is None and Source.LEARNED not in weights.values():
        return {}
    wanted = {offering.instance_type for pool in pools.values() for offering in pool.offerings}
    return {name: Machine(**shapes()[name]) for name in sorted(wanted & shapes().keys())}


@cache
def shapes() -> dict[str, dict[str, Any]]:
    """Return the facts of each instance type, named as those of a `Machine` (``make prices`` made the table)."""
    known: dict[str, dict[str, Any]] = _table("instance_types.json")["shapes"]
    return known


# Instance types by what a machine must have: conditions on the carried table of shapes, expanded into a fixed list with known prices.
#
# The same conditions always give the same list, whatever EC2 has meanwhile: a new type comes with a new version of the table.


INSTANCE_TYPE = r"^[a-z0-9-]+\.[a-z0-9-]+$"
# EC2 takes 300 combinations of type and subnet in one request; beyond the cheapest few, more types hardly make capacity likelier.
MOST_TYPES = 20
FACTS = ("arch", "vcpu", "memory_gib", "gpus", "gpu", "usd_per_hour", "instance_type")
_GPU_FACTS = {"gpus", "gpu"}
# Burstable machines are throttled, bare metal boots for minutes, and general types of before 2017 are dear for what they do.
_LEFT_OUT = re.compile(r"t\d.*|.*\.metal.*|(a1|c[1-4]|cc[12]|cr1|d2|h1|hs1|i[23]|m[1-4]|r[34]|x1e?)\..*")

# Parts of a GPU count as none in the table, and other accelerators are no GPUs.
_ACCELERATED = re.compile(r"g\d|p\d|inf|trn|dl|vt|f\d")


def _condition(text: str) -> str:
    try:
        condition = read_condition(text)
    except ConditionError as error:
        raise ValueError(f"({text}) {error}") from error
    if condition.fact not in FACTS:
        raise ValueError(f"({text}) {condition.fact} is no fact of an instance type; there are {', '.join(FACTS)}")
    return text


Requirement = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_condition)]


def types_of(pool: "PoolSettings") -> tuple[str, ...]:
    """Return the instance types of a pool, in order of preference; () where it names none, or none satisfies what it requires."""
    if pool.instance_types or not pool.instance_requirements:
        return tuple(pool.instance_types or ())
    return types_for(tuple(pool.instance_requirements), pool.platform)


@cache
def types_for(requirements: tuple[str, ...], platform: Platform) -> tuple[str, ...]:
    """Return the instance types that satisfy all conditions, the cheapest first."""
    conditions = tuple(map(read_condition, requirements))
    with_gpus = any(condition.fact in _GPU_FACTS for condition in conditions)
    prices = {name: usd for name, by_platform in carried_prices().items() if (usd := by_platform.get(str(platform)))}
    found = [
        name
        for name, usd in prices.items()
        if name in shapes() and _satisfies(name, shapes()[name] | {"usd_per_hour": usd}, conditions, with_gpus=with_gpus)
    ]
    return tuple(sorted(found, key=lambda name: (prices[name], name))[:MOST_TYPES])


def _satisfies(name: str, facts: Mapping[str, Value], conditions: tuple[Condition, ...], *, with_gpus: bool) -> bool:
    if _LEFT_OUT.fullmatch(name) or ((facts["gpus"] or _ACCELERATED.match(name)) and not with_gpus):
        return False
    return all(condition.holds(name if condition.fact == "instance_type" else facts[condition.fact]) for condition in conditions)


# The keys of a Capacity Reservation or a Capacity Block that a pool launches into.


KEY = "capacity_reservation"


def _instant(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"({text}) is no date and time such as 2026-12-01T11:30Z") from error
    if at.tzinfo is None:
        raise ValueError(f"({text}) has no time zone, write 2026-12-01T11:30Z for UTC")
    return text


_Instant = Annotated[str, AfterValidator(_instant)]


class CapacityReservationSettings(Section):
    """Capacity that is paid for whether or not it is used. The pool's launch_template names it, max_agents says of how many machines."""

    id: Annotated[str, StringConstraints(pattern=r"^cr-[0-9a-f]{8,17}$")] = Field(description="Its id, as the launch template names it.")
    kind: Literal["reservation", "block"] = Field(
        "reservation",
        description="block: a Capacity Block. EC2 ends its machines 30 minutes before its end, and agents take no new builds for as long "
        "before that as 95 % of builds take. reservation: an On-Demand Capacity Reservation; at its end agents take no new builds.",
    )
    starts_at: _Instant | None = Field(None, description="When it begins, such as 2026-12-01T11:30Z. Default: it has begun.")
    ends_at: _Instant | None = Field(None, description="When it ends, likewise. A block must have it; without it a reservation goes on.")


def with_capacity(pool: "PoolSettings", offerings: tuple[Offering, ...]) -> dict[str, Any]:
    """Translate what is launched into reserved capacity: machines that cost nothing more."""
    given = pool.capacity_reservation
    if given is None or not offerings:
        return {"offerings": offerings}
    capacity = CapacityReservation(
        id=given.id,
        count=pool.max_agents or 0,
        usd_per_hour=offerings[0].usd_per_hour,
        block=given.kind == "block",
        starts_at=_at(given.starts_at, 0.0),
        ends_at=_at(given.ends_at, inf),
    )
    return {"offerings": tuple(replace(one, usd_per_hour=0.0) for one in offerings), "capacity": capacity}


def of_capacity(settings: "FleetSettings", name: str, pool: "PoolSettings") -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is wrong with a pool of reserved capacity."""
    given = pool.capacity_reservation
    if given is None:
        return
    is_backwards = given.starts_at and given.ends_at and _at(given.starts_at, 0.0) >= _at(given.ends_at, inf)
    is_of_one = len(pool.instance_types or ()) == 1 and len(pool.subnets) <= 1
    is_stopped = settings.tuned("warm_pool", name)
    yield from broken(
        (given.kind == "block" and given.ends_at is None, KEY, f"{KEY}.ends_at: missing, a block has an end"),
        (is_backwards, KEY, f"{KEY}.ends_at ({given.ends_at}) must be after starts_at ({given.starts_at})"),
        (pool.market != "on-demand", "market", f"market ({pool.market}): what is launched into a {given.kind} is on-demand"),
        (not is_of_one, KEY, f"{KEY}: it is of one instance type in one subnet, name one of each"),
        (is_stopped, KEY, f"{KEY}: its agents are not stopped, stopping would save nothing; set warm_pool: off"),
    )


def _at(text: str | None, otherwise: float) -> float:
    return otherwise if text is None else datetime.fromisoformat(text).timestamp()


# Looks at every hour of a week with schedules: where minima exceed what may be, and what minima come to on the average.
#
# One week says it for a pool; several pools may have time zones, whose distance changes in the year: four weeks show winter, summer in both
# hemispheres, and the weeks in between in which America's clocks have changed, and Europe's have not.


_WEEKS = tuple(datetime(2027, month, day, tzinfo=UTC).timestamp() for month, day in ((1, 4), (3, 15), (7, 5), (10, 11)))

Figure = Callable[[Pool], float]


@dataclass(frozen=True, slots=True)
class _Worst:
    """Pools as they are where the sum of a figure is the highest."""

    at: float
    week: float
    pools: list[Pool]

    @property
    def when(self) -> str:
        """Write the time by the clocks of a schedule that begins or ends then."""
        schedules = [schedule for pool in self.pools for schedule in pool.schedules]
        zone = next(one.time_zone for one in reversed(schedules) if self.at in boundaries(one, self.week))
        return f"on {datetime.fromtimestamp(self.at, zone):%A at %H:%M} {zone}"


# By a pool's name and the beginning of a week: its numbers in that week, and from when on each holds.
Weeks = Callable[[str, float], list[tuple[float, Pool]]]


def _worst(weeks: Weeks, pools: Collection[Pool], figure: Figure) -> _Worst:
    """Find where the sum of a figure is the highest; of several times the first."""
    return max((_worst_of(weeks, week, list(pools), figure) for week in _WEEKS), key=itemgetter(0))[1]


def _worst_of(weeks: Weeks, week: float, pools: list[Pool], figure: Figure) -> tuple[float, _Worst]:
    changes = [(at, number, pool) for number, one in enumerate(pools) for at, pool in weeks(one.name, week)]
    figures = [0.0] * len(pools)
    highest, worst = -inf, _Worst(week, week, pools)
    for (at, number, pool), (following, _, _) in pairwise([*sorted(changes, key=itemgetter(0)), (inf, 0, pools[0])]):
        pools[number], figures[number] = pool, figure(pool)
        # What it comes to is judged once all that change in the same instant have, and each instant of the week once: at its end.
        if week < at < following and (total := sum(figures)) > highest:
            highest, worst = total, _Worst(at, week, pools.copy())
    return highest, worst


def impossible_hours(fleet: Fleet) -> Iterator[Problem]:
    """Yield the minima that cannot be at some hour of a week since a schedule says so."""
    scheduled = [pool for pool in fleet.pools.values() if pool.schedules]
    # Worked out once, and only for a pool that is asked for.
    weeks = cache(lambda name, week: pool_for_a_week(fleet.pools[name], week))
    for pool in scheduled:
        lowered = [schedule.max_agents for schedule in pool.schedules if schedule.max_agents is not None]
        widest, narrowest = pool_at_its_widest(pool), replace(pool, max_agents=min([pool.max_agents, *lowered]))
        for key, words, least, most in _WITHIN_POOL:
            if least(widest) <= most(narrowest) or least(pool) > most(pool):
                continue  # it can always be, or is told of the pool itself
            worst = _worst(weeks, [pool], lambda one, least=least, most=most: least(one) - most(one))  # type: ignore[misc]
            [there] = worst.pools
            if least(there) > most(there):
                exceeded = f"{key} ({least(there)}) exceeds {words} ({most(there)})"
                yield problem(("pools", pool.name, "schedules"), f": {worst.when} {exceeded}")
    if scheduled:
        yield from _in_all(fleet, weeks)


def average(pool: Pool, figure: Figure) -> float:
    """Return a figure of a pool on the average over a week."""
    changes = pairwise([*pool_for_a_week(pool, _WEEKS[0]), (_WEEKS[0] + WEEK_SECONDS, pool)])
    return sum((until - at) * figure(there) for (at, there), (until, _) in changes) / WEEK_SECONDS


def _in_all(fleet: Fleet, weeks: Weeks) -> Iterator[Problem]:
    pools, limits = list(fleet.pools.values()), fleet.limits
    for key, most, figure, written in (
        ("max_agents", limits.max_agents, _min_agents, "{:,.0f}"),
        ("max_usd_per_hour", limits.max_usd_per_hour, _usd_per_hour, "${:,.2f}"),
    ):
        if sum(figure(pool_at_its_widest(pool)) for pool in pools) <= most or sum(map(figure, pools)) > most:
            continue
        worst = _worst(weeks, pools, figure)
        if (highest := sum(map(figure, worst.pools))) > most:
            names = ", ".join(pool.name for pool in worst.pools if pool.min_agents)
            sum_of = f"the min_agents of {names} come to {written.format(highest)}"
            yield problem(("limits", key), f" ({written.format(most)}): {worst.when} {sum_of}")


def _min_agents(pool: Pool) -> float:
    return pool.min_agents


def _usd_per_hour(pool: Pool) -> float:
    return pool.min_agents * cheapest(pool.offerings)


# The key, what it may not exceed in words, and both of them.
_WITHIN_POOL: tuple[tuple[str, str, Figure, Figure], ...] = (
    ("min_agents", "max_agents", _min_agents, lambda pool: pool.max_agents),
    ("warm_executors", "max_agents x executors", lambda pool: pool.warm_executors, lambda pool: pool.max_agents * pool.executors),
)


# What agents cost against the limits of teams, and against those that pools have of their own.


def dear_minima(fleet: Fleet) -> Iterator[Problem]:
    """Yield the teams and pools whose minima alone cost more an hour than they may, each agent at its cheapest."""
    for level in levels(fleet):
        usd = sum(_usd_per_hour(fleet.pools[name]) for name in level.pools)
        if level.kind is not LevelKind.FLEET and usd > level.ceilings.max_usd_per_hour:
            limit = f" (${level.ceilings.max_usd_per_hour:,.2f})"
            yield problem((*_place(level), "max_usd_per_hour"), f"{limit}: min_agents alone cost ${usd:,.2f} an hour")


def dear_agents(fleet: Fleet) -> Iterator[Problem]:
    """Warn of limits of the fleet, of teams and of pools that not one agent of a pool fits in."""
    *narrow, whole = levels(fleet)
    for level in (whole, *narrow):
        for name in sorted(level.pools):
            if (usd := cheapest(fleet.pools[name].offerings)) > level.ceilings.max_usd_per_hour:
                limit = f"{_key(level)}.max_usd_per_hour (${level.ceilings.max_usd_per_hour:,.2f})"
                yield problem(("pools", name), f": one agent costs ${usd:,.2f} an hour, more than {limit}")


def _place(level: Level) -> Place:
    return ("teams" if level.kind is LevelKind.TEAM else "pools", level.name)


def _key(level: Level) -> str:
    return "limits" if level.kind is LevelKind.FLEET else ".".join(map(str, _place(level)))
