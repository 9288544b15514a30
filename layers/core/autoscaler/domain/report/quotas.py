"""What the account allows: vCPU quotas, and executions of Lambda functions at once."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Fleet, Market, Pool
from autoscaler.domain.facts.pools import pool_at_its_widest

# The account's vCPU quotas: which quota an instance type counts against, and whether the fleet fits in.


# https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
_NAMES = {
    Market.ON_DEMAND: re.compile(r"Running On-Demand (.+) instances"),
    Market.SPOT: re.compile(r"All (.+) Spot Instance Requests"),
}
_FAMILY = re.compile(r"[A-Za-z]+\d*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A quota, as Service Quotas names it."""

    name: str
    vcpus: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The vCPUs that the pools under one quota may use together at their limits."""

    quota: Quota
    pools: tuple[str, ...]
    vcpus: int

    @property
    def fits(self) -> bool:
        """Tell whether EC2 would launch all of it."""
        return self.vcpus <= self.quota.vcpus


def needs(fleet: Fleet, quotas: Iterable[Quota], vcpus: Mapping[str, int]) -> Iterator[Need]:
    """List the quotas that the fleet counts against; of a pool with several types the largest may launch alone."""
    for quota in quotas:
        sizes = {pool.name: _largest(pool, quota, vcpus) for pool in fleet.pools.values()}
        under = {name: size for name, size in sizes.items() if size}
        left, most = fleet.limits.max_agents, 0
        for name in sorted(under, key=under.__getitem__, reverse=True):
            # At the limits of the pools and of the fleet, the largest agents first.
            agents = min(left, pool_at_its_widest(fleet.pools[name]).max_agents)
            left, most = left - agents, most + agents * under[name]
        if under:
            yield Need(quota=quota, pools=tuple(under), vcpus=most)


def counts_against(quota: Quota, instance_type: str, market: Market) -> bool:
    """Tell whether such an instance counts against this quota."""
    named = _NAMES[market].fullmatch(quota.name)
    if named is None:
        return False
    families = {family.lower() for family in _FAMILY.findall(named[1])} - {"standard", "and"}
    # By its letters, or with its generation: quotas of spot name some, "P4, P3 and P2".
    named_as = (re.match(pattern, instance_type) for pattern in (r"[a-z]+", r"[a-z]+\d+"))
    return bool(families & {found[0] for found in named_as if found})


def _largest(pool: Pool, quota: Quota, vcpus: Mapping[str, int]) -> int:
    return max((vcpus.get(o.instance_type, 0) for o in pool.offerings if counts_against(quota, o.instance_type, o.market)), default=0)


# Whether Lambda's concurrent executions are enough, and how many of them the functions that others may call can take.


# Three scheduled functions, one that a person waits for, and agents that register a few at a time.
_WANTED = 50
# What Lambda keeps for functions that reserve nothing: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
_KEPT_UNRESERVED = 100
# Four hundred agents that boot at once are registered by twenty executions without a wait (make bench ONLY=burst); by five, a hundred are.
_FOR_EACH, _LEAST = 20, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """Executions at once in the account's region; ``unreserved``: those that no function reserves.

    ``public``: how many functions others may call. ``for_each``: what is reserved for each of them, and no more of which it gets; 0
    without a limit, None where nobody says.
    """

    limit: int
    unreserved: int
    public: int
    for_each: int | None

    @property
    def enough(self) -> bool:
        """Tell whether they are enough for all functions of a fleet."""
        return self.limit >= _WANTED

    @property
    def advice_on_callers(self) -> str:
        """Say how to keep callers from taking all executions; empty if they cannot."""
        if self.for_each != 0:
            return ""
        callers = "anybody may call the webhook, and builds register_agent" if self.public > 1 else "builds may call register_agent"
        risk = f"{callers}, and {self.unreserved} calls at once leave none for scale_up"
        reservable = self.unreserved - _KEPT_UNRESERVED
        if reservable >= self.public * _LEAST:
            return f"{risk}: deploy with PublicConcurrency={min(_FOR_EACH, reservable // self.public)}"
        more = self.limit + self.public * _FOR_EACH - reservable
        return f"{risk}; Lambda keeps {_KEPT_UNRESERVED} unreserved: ask for {more}, then deploy with PublicConcurrency={_FOR_EACH}"
