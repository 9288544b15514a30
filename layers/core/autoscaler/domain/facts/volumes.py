"""Volumes of agents: what EC2 says about the sizes in a pool's launch template and image, and what all of them cost.

A pool whose `volume_gib` is written in the fleet file goes by that. So does one of whose volumes EC2 does not say every size, if that is
more. Iops and throughput beyond those that a volume has for nothing are not counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.pool_volumes import PoolVolumes
from autoscaler.domain.facts.snapshot import Instance, Record, Snapshot

HOURS_A_MONTH = 730.0  # to AWS
# The price of a GiB relative to gp3, as in us-east-1. EC2 makes gp2 if neither the template nor the image names a type.
_AGAINST_GP3 = {"gp3": 1.0, "gp2": 1.25, "io1": 1.5625, "io2": 1.5625, "st1": 0.5625, "sc1": 0.1875, "standard": 0.625}
_UNNAMED = "gp2"
_DEAREST = max(_AGAINST_GP3.values())


class Known(Protocol):
    """A snapshot, or the stored state: what remembers volumes."""

    @property
    def memory(self) -> Memory:
        """What is remembered."""


class Read(Protocol):
    """A look at the world: what it read of which fleet."""

    @property
    def snapshot(self) -> Snapshot:
        """What it saw."""

    @property
    def fleet(self) -> Fleet:
        """The fleet in force."""


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


def next_volumes(before: Mapping[str, PoolVolumes], look: Read) -> dict[str, PoolVolumes]:
    """Remember what was read of the pools that count by it; what was known stands until something else is launched and was read."""
    counting = {name for name, pool in look.fleet.pools.items() if pool.volume_usd_per_gib_month is not None}
    return {name: volumes for name, volumes in {**before, **look.snapshot.volumes}.items() if name in counting}


def with_volumes(fleet: Fleet, of: Known) -> Fleet:
    """Return the fleet with the price of the volumes that EC2 named, in each offering of their pool."""
    volumes = known_volumes(of)
    priced = {name: pool for name, pool in fleet.pools.items() if name in volumes}
    changed = {name: _priced(pool, volumes[name]) for name, pool in priced.items()}
    return replace(fleet, pools={**fleet.pools, **changed}) if changed != priced else fleet


def known_volumes(of: Known) -> Mapping[str, PoolVolumes]:
    """Return what is known by now, by pool: what this look read, and before that what is remembered."""
    return {**of.memory.volumes, **getattr(of, "volumes", {})}


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


def _priced(pool: Pool, volumes: PoolVolumes) -> Pool:
    usd = usd_per_hour(pool, volumes)
    if usd is None or all(offering.volume_usd_per_hour == usd for offering in pool.offerings):
        return pool
    return replace(pool, offerings=tuple(replace(offering, volume_usd_per_hour=usd) for offering in pool.offerings))


def _truly_priced(record: Record, fleet: Fleet, volumes: Mapping[str, PoolVolumes], instance: Instance | None) -> Record:
    pool, read = fleet.pools.get(record.pool), volumes.get(record.pool)
    if pool is None or read is None or instance is None or read.source != _source_of(pool, instance):
        return record
    usd = usd_per_hour(pool, read)
    if usd is None or usd == record.volume_usd_per_hour:
        return record
    more = usd - record.volume_usd_per_hour
    most = None if record.most_usd_per_hour is None else record.most_usd_per_hour + more
    return replace(record, volume_usd_per_hour=usd, usd_per_hour=record.usd_per_hour + more, most_usd_per_hour=most)


def _source_of(pool: Pool, instance: Instance) -> str:
    image = instance.image if pool.image_parameter else ""
    return str(Source(template=pool.launch_template, version=instance.template_version, image=image))
