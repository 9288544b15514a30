"""What some switches need in a fleet before the world begins: several controllers, shared pools, loans, hosts, keys of features."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

from autoscaler.domain.facts.fleet import CapacityReservation, Ceilings, Fleet, Lending, Pool, Share
from autoscaler.domain.facts.started_builds import RerunPolicy, RunPolicy
from support.builders import a_host, a_pool_of_hosts, an_offering

BOTH = ("main", "other")
ORDERED_LABEL = "AGENT_LABEL"
IMAGE_PARAMETER = "/ci/image-of-a-pool"
IGNORED_LABEL, IGNORED_JOBS = "mac-13", "elsewhere/job-"  # that another cloud serves
ZONES_OF_SUBNETS = {f"subnet-{letter}": f"us-west-2{letter}" for letter in "abc"}
Prepare = Callable[[Random, Fleet], Fleet]


def with_pools_of(fleet: Fleet, pools: Iterable[Pool]) -> Fleet:
    """Return the fleet with these pools, and with the controllers that they serve."""
    named = {pool.name: pool for pool in pools}
    served = dict.fromkeys(controller for pool in named.values() for controller in pool.controllers)
    return replace(fleet, pools=named, controllers=tuple(name for name in BOTH if name in served))


def two_controllers(chance: Random, fleet: Fleet) -> Fleet:
    """Let each pool serve both controllers or either of them; some that serve both share their agents."""
    pools = []
    for number, pool in enumerate(fleet.pools.values()):
        serves = BOTH if number == 0 or chance.random() < 0.5 else (chance.choice(BOTH),)
        share = chance.choice([Share.NONE, Share.NONE, Share.ROTATE, Share.COOPERATIVE]) if serves == BOTH else Share.NONE
        pools.append(_sharing(replace(pool, controllers=serves), share))
    return with_pools_of(fleet, pools)


def sharing(chance: Random, fleet: Fleet) -> Fleet:
    """Let a pool serve two controllers that share its agents."""
    pools = list(fleet.pools.values())
    number = chance.randrange(len(pools))
    share = chance.choice([Share.ROTATE, Share.COOPERATIVE])
    pools[number] = _sharing(replace(pools[number], controllers=BOTH), share)
    return with_pools_of(fleet, pools)


def _sharing(pool: Pool, share: Share) -> Pool:
    return replace(pool, share=share, warm_pool=None if share is Share.COOPERATIVE else pool.warm_pool)


def never_empty(_chance: Random, fleet: Fleet) -> Fleet:
    """Give a fleet of one pool another one, which no job asks for: no fleet file is without pools."""
    if len(fleet.launched.pools) > 1:
        return fleet
    (only,) = fleet.launched.pools.values()
    spare = replace(only, name="spare", labels=frozenset({"spare"}), launch_template="spare", lend=Lending.NEVER, lent_labels=frozenset())
    return replace(fleet, pools={**fleet.pools, spare.name: spare})


def lending(chance: Random, fleet: Fleet) -> Fleet:
    """Let a pool lend its agents to jobs of another one, whose kind is a more general one."""
    general, *others = fleet.pools.values()
    fresh = replace(general, name="rare", labels=frozenset({"rare"}), launch_template="rare", share=Share.NONE)
    rare = next((pool for pool in others if pool.share is Share.NONE), fresh)
    lent = frozenset({general.name}) | (frozenset(general.labels - rare.labels) if chance.random() < 0.5 else frozenset())
    lends = chance.choice([Lending.IDLE, Lending.ALWAYS])
    rare = replace(rare, lent_labels=lent, lend=lends, controllers=general.controllers)
    return with_pools_of(fleet, {**fleet.pools, rare.name: rare}.values())


def with_hosts(chance: Random, fleet: Fleet) -> Fleet:
    """Give the fleet hosts beside a pool, whose jobs may run there, too."""
    like = chance.choice(list(fleet.pools.values()))
    pool = a_pool_of_hosts("rack", labels=like.labels | {"rack"}, controllers=like.controllers[:1], executors=like.executors)
    hosts = tuple(a_host(f"rack-{number}", pool="rack") for number in range(chance.randint(1, 2)))
    return replace(fleet, pools={**fleet.pools, "rack": pool}, hosts={host.name: host for host in hosts})


def with_feature(chance: Random, fleet: Fleet) -> Fleet:
    """Give a pool one of the keys that `features-leave` takes away. It may have none: then weights or stopped agents leave."""
    name = chance.choice(sorted(fleet.pools))
    pool = fleet.pools[name]
    given = chance.choice(["", "", "max_hours_per_day", "image_parameter", "capacity_reservation", "max_builds"])
    match given:
        case "max_hours_per_day":
            pool = replace(pool, ceilings=Ceilings(max_hours_per_day=chance.choice([1.0, 3.0, 6.0])))
        case "image_parameter":
            pool = replace(pool, image_parameter=IMAGE_PARAMETER)
        case "capacity_reservation":
            free = an_offering(f"p5.{name}", subnet="subnet-a", usd_per_hour=0.0, volume_usd_per_hour=0.02)
            kept = CapacityReservation(id=f"cr-{name}", count=pool.max_agents, usd_per_hour=1.5)
            pool = replace(pool, offerings=(free,), capacity=kept, warm_pool=None)
        case "max_builds":
            pool = replace(pool, max_builds=chance.choice([1, 3]))
    return replace(fleet, pools={**fleet.pools, name: pool})


def ordering(_chance: Random, fleet: Fleet) -> Fleet:
    """Let people order runs."""
    return replace(fleet, runs=RunPolicy(label_parameter=ORDERED_LABEL, max_open=5))


def rerunning(chance: Random, fleet: Fleet) -> Fleet:
    """Let lost builds be run again."""
    policy = RerunPolicy(times=chance.choice([1, 2, 3]), then_on_demand=chance.random() < 0.3)
    return replace(fleet, pools={name: replace(pool, rerun=policy) for name, pool in fleet.pools.items()})


def ignoring(chance: Random, fleet: Fleet) -> Fleet:
    """Let the fleet file ignore labels that another cloud serves; a pool may have such a label all the same."""
    name = chance.choice(sorted(fleet.launched.pools))
    pool = fleet.pools[name]
    labels = pool.labels | ({IGNORED_LABEL} if chance.random() < 0.4 else set())
    pools = {**fleet.pools, name: replace(pool, labels=labels)}
    return replace(fleet, pools=pools, ignored_labels=(chance.choice(["mac-*", IGNORED_LABEL]), "elsewhere"))


def in_zones(chance: Random, fleet: Fleet) -> Fleet:
    """Let each pool have its offerings in two zones or three, in an order of its own; reserved capacity stays where it is."""
    pools = {}
    for name, pool in fleet.pools.items():
        subnets = chance.sample(sorted(ZONES_OF_SUBNETS), chance.choice([2, 3, 3]))
        offerings = tuple(replace(offering, subnet=subnet) for offering in pool.offerings for subnet in subnets)
        pools[name] = pool if pool.of_hosts or pool.capacity else replace(pool, offerings=offerings)
    return replace(fleet, pools=pools)


def large(chance: Random, fleet: Fleet) -> Fleet:
    """Let pools have many agents, and no limit of launches an hour that would hide how many are launched for nothing."""
    most = {name: pool.max_agents if pool.of_hosts or pool.capacity else chance.choice([20, 40]) for name, pool in fleet.pools.items()}
    pools = {name: replace(pool, max_agents=most[name]) for name, pool in fleet.pools.items()}
    return replace(fleet, pools=pools, limits=replace(fleet.limits, max_agents=sum(most.values()), max_launches_per_hour=1000))


def large_in_zones(chance: Random, fleet: Fleet) -> Fleet:
    """Let large pools have their offerings in several zones."""
    return in_zones(chance, large(chance, fleet))


def slow_boots(chance: Random, fleet: Fleet) -> Fleet:
    """Let agents boot for so long that others are quicker, and go as soon as they are idle."""
    slow = {"boot_timeout_seconds": 900.0, "idle_seconds": 300.0}
    pools = {name: replace(pool, boot_seconds=chance.choice([240.0, 300.0, 360.0]), **slow) for name, pool in fleet.pools.items()}
    return replace(fleet, pools=pools)


PREPARES: dict[str, Prepare] = {
    "controller-leaves-file": two_controllers,
    "pool-leaves-file": never_empty,
    "share-leaves": sharing,
    "loans-leave": lending,
    "hosts-leave": with_hosts,
    "features-leave": with_feature,
    "orders-leave": ordering,
    "lost-builds": rerunning,
    "labels-ignored": ignoring,
    "zone-without-network": large_in_zones,
    "gives-up-in-queue": slow_boots,
    "quicker-cloud": slow_boots,
    "throttled-over-folders": large,
    "stages-on-two-labels": large,
    "slow-hand-outs": large,
}
# Keys that say how many controllers there are come first.
IN_ORDER = (
    "controller-leaves-file",
    "share-leaves",
    "loans-leave",
    "pool-leaves-file",
    "features-leave",
    "orders-leave",
    "lost-builds",
    "hosts-leave",
    "labels-ignored",
    "zone-without-network",
    "gives-up-in-queue",
    "quicker-cloud",
    "throttled-over-folders",
    "stages-on-two-labels",
    "slow-hand-outs",
)
