"""Settings of a new fleet that nobody chose: how often scale_up looks, and which pools stop idle agents."""

from collections.abc import Sequence
from typing import Protocol

from autoscaler.config import FleetSettings, check
from autoscaler.domain.facts.fleet import has_instance_store

LOOK_EVERY_SECONDS = 10.0  # the template's LookEverySeconds


class PoolOfNewFleet(Protocol):
    """A pool, of a file that is being drafted or of one that was read."""

    @property
    def platform(self) -> str:
        """Operating system."""

    @property
    def market(self) -> str:
        """How its machines are bought."""

    @property
    def instance_types(self) -> Sequence[str] | None:
        """Types by name; None: they are described by what they need."""

    @property
    def reuse(self) -> str | None:
        """How often an agent is used; None: as the defaults say."""


def why_not_stopped(pool: PoolOfNewFleet) -> str:
    """Say why a new pool on the stack's own launch templates stops no agents; "": it does.

    Nobody has stopped a real instance with this autoscaler yet, so whatever is not plain stays off until a person switches it on.
    """
    if pool.platform != "linux":
        return "no Windows agent was ever stopped and started with this stack"
    if pool.market != "on-demand":
        return "EC2 stops no spot instance that was requested once"
    if pool.reuse == "never":
        return "an agent of one build is terminated after it (docs/warm-pool.md)"
    if pool.instance_types is None:
        return "types are chosen by what they have, and some may have instance stores, which are empty after a stop"
    if stores := [name for name in pool.instance_types if has_instance_store(name)]:
        return f"instance stores are empty after a stop ({', '.join(stores)})"
    return ""


def as_shipped(fleet: FleetSettings) -> FleetSettings:
    """Stop idle agents in the pools in which a new fleet file would, as if all launch templates were the stack's own."""
    raw = fleet.model_dump(mode="json", exclude_unset=True)
    for name, pool in fleet.pools.items():
        if not why_not_stopped(pool):
            raw["pools"][name]["warm_pool"] = {}
    return check(raw, "as shipped")
