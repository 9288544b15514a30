"""Pools that left the fleet file while something of theirs is there: wound down by their last definition.

The definition of each pool that has agents or launches is kept with the memory. If it is lost, what a record says is enough to drain its
agent. A pool that has left is no pool of the fleet: it has no limits, no demand and no forecast, and nothing is launched, kept or stopped
in it. So is a pool on a controller that it does not serve any more.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from autoscaler.domain.facts.definitions import LastDefinition, PricedType
from autoscaler.domain.facts.fleet import Fleet, Market, Offering, Platform, Pool
from autoscaler.domain.facts.intents import Intent
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.snapshot import Instance, Record

_BOOT_TIMEOUT_SECONDS, SETTLE_SECONDS = 900.0, 15.0


class Known(Protocol):
    """A snapshot, or the stored state: what names pools."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The agents on record."""

    @property
    def intents(self) -> tuple[Intent, ...]:
        """The launches."""

    @property
    def memory(self) -> Memory:
        """What is remembered."""


def next_definitions(
    before: Mapping[str, LastDefinition], fleet: Fleet, records: Iterable[Record], intents: Iterable[Intent], instances: Iterable[Instance]
) -> dict[str, LastDefinition]:
    """Keep the definition of each pool that has agents, launches or instances; of one that has left, its last one."""
    names = {record.pool for record in records} | {intent.pool for intent in intents} | {instance.pool for instance in instances}
    present = {name: _definition_of(fleet.pools[name]) for name in names if name in fleet.pools}
    return {name: definition for name in sorted(names) if (definition := present.get(name) or before.get(name))}


def with_left(fleet: Fleet, of: Known) -> Fleet:
    """Return the fleet with the pools that left its file, and have agents, launches or instances yet."""
    left_pools = dict(_left_pools(fleet, of))
    return fleet if left_pools == fleet.left_pools else replace(fleet, left_pools=left_pools)


def _left_pools(fleet: Fleet, of: Known) -> Iterator[tuple[str, Pool]]:
    named: dict[str, Record | Intent | Instance] = {}
    for thing in (*getattr(of, "instances", ()), *(intent for intent in of.intents if intent.open), *of.records):  # a record says most
        named[thing.pool] = thing
    for name in sorted(named.keys() - fleet.pools.keys() - {""}):
        definition = of.memory.left_pools.definitions.get(name)
        yield name, _pool(name, definition, fleet) if definition else _pool_by(named[name], fleet)


def _definition_of(pool: Pool) -> LastDefinition:
    return LastDefinition(
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
    offerings = tuple(_offering(priced) for priced in definition.types)
    return replace(
        _WANTS_NOTHING,
        name=name,
        labels=frozenset(definition.labels),
        controllers=definition.controllers,
        executors=definition.executors,
        platform=definition.platform,
        offerings=offerings or (() if definition.of_hosts else _dearest(fleet)),
        exclusive=definition.exclusive,
        remote_dir=definition.remote_dir,
        boot_seconds=definition.boot_seconds,
        boot_timeout_seconds=definition.boot_timeout_seconds,
        drain_settle_seconds=definition.drain_settle_seconds,
        drain_timeout_seconds=definition.drain_timeout_seconds,
        share=definition.share,
        of_hosts=definition.of_hosts,
    )


def _offering(priced: PricedType) -> Offering:
    return Offering(
        instance_type=priced.instance_type,
        subnet="",
        market=priced.market,
        usd_per_hour=priced.usd_per_hour,
        most_usd_per_hour=priced.most_usd_per_hour,
        volume_usd_per_hour=priced.volume_usd_per_hour,
    )


def _pool_by(thing: Record | Intent | Instance, fleet: Fleet) -> Pool:
    """Make such a pool of what is known without its definition: of a record, a launch or an instance of it."""
    labels = tuple(label for label in thing.labels if label != fleet.ownership_label) if isinstance(thing, Record) else ()
    types = (_type_of(thing),) if isinstance(thing, Record) and thing.is_instance else ()
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


def _type_of(record: Record) -> PricedType:
    volume = record.volume_usd_per_hour
    return PricedType(
        instance_type=record.instance_type,
        market=Market.ON_DEMAND,
        usd_per_hour=record.usd_per_hour - volume,
        most_usd_per_hour=record.reserved_usd_per_hour - volume,
        volume_usd_per_hour=volume,
    )


def _dearest(fleet: Fleet) -> tuple[Offering, ...]:
    """Price what nobody knows the price of like the dearest machine of the fleet, rather than as free."""
    offerings = [offering for pool in fleet.pools.values() for offering in pool.offerings]
    dearest = max(offerings, key=lambda offering: offering.reserved_usd_per_hour, default=None)
    return (dearest,) if dearest else (_UNPRICED,)


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
