"""The last definitions of pools, as they are kept with the memory, and which agents lost their pool when."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.domain.facts.fleet import Market, Platform, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedType:
    """An instance type of a pool, as it was bought, and the highest price of its offerings."""

    instance_type: str
    market: Market
    usd_per_hour: float
    most_usd_per_hour: float
    volume_usd_per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDefinition:
    """What winding a pool down needs of its definition in the fleet file."""

    labels: tuple[str, ...]
    controllers: tuple[str, ...]
    executors: int
    platform: Platform
    exclusive: bool
    remote_dir: str
    boot_seconds: float
    boot_timeout_seconds: float
    drain_settle_seconds: float
    drain_timeout_seconds: float | None = None
    share: Share = Share.NONE
    of_hosts: bool = False
    types: tuple[PricedType, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPools:
    """What is remembered for pools that leave the fleet file. ``hold_until``: most agents lost their pool at once; none drains before."""

    definitions: Mapping[str, LastDefinition] = field(default_factory=dict)  # of pools that have agents or launches
    since: Mapping[str, float] = field(default_factory=dict)  # when each agent's pool left, by instance id
    hold_until: float = 0.0
