"""The fleets of random worlds: two pools on one controller, whose nodes an operator made beforehand or nobody did."""

from autoscaler.domain.facts.fleet import Ceilings, Host, Lending, Market, Pool, Share, Team, WarmPool
from support.builders import a_host, a_pool, a_pool_of_hosts, an_offering

DISK = {"volume_usd_per_hour": 0.05}
SPOT = an_offering(market=Market.SPOT, usd_per_hour=1.0, most_usd_per_hour=3.0, **DISK)
FIRM = an_offering(usd_per_hour=3.0, **DISK)
POOLS = ("cpu", "gpu")
# Two controllers have agents of one pool, and of the hosts.
BOTH = ("main", "other")
SHARED, HOST_POOL = "gpu", "own"
# Only the machines of one pool have an image of their own making: those of the other are launched from what its template names.
IMAGE_PARAMETERS = {"gpu": "/ci/gpu-image"}
# The fleet is too small for both.
TEAMS = {
    "a": Team(name="a", pools=frozenset({"cpu"}), ceilings=Ceilings(max_agents=3, max_usd_per_hour=9.0)),
    "b": Team(name="b", pools=frozenset({"gpu"}), weight=2.0, ceilings=Ceilings(max_usd_per_hour=9.0)),
}
# Names as people give them, and as plugins make them: in URLs they are percent-encoded, elsewhere not.
SLOTS = {
    name: (("cpu", "linux") if number < 3 else ("gpu", "linux"))
    for number, name in enumerate(["slot-0", "slot 1", "größe", "日本", "c++#3"])
}


def hosts() -> tuple[Host, ...]:
    """Two machines of the operator's own."""
    return tuple(a_host(f"box-{number}", HOST_POOL) for number in (1, 2))


def pool_of_hosts(shares: Share | None) -> Pool:
    """Hosts that take jobs which one of the pools takes, too."""
    controllers = BOTH if shares else BOTH[:1]
    facts = {"controllers": controllers, "share": shares or Share.NONE, "boot_timeout_seconds": 600.0}
    return a_pool_of_hosts(HOST_POOL, labels=frozenset({"cpu", "linux"}), executors=2, **facts)


def pools(warm: WarmPool | None, *, images: bool = False, lends: bool = False, shares: Share | None = None) -> tuple[Pool, Pool]:
    """Two pools that some jobs may choose between.

    ``lends``: jobs of the one pool may borrow what the other has. ``shares``: how two controllers share that one; None: there is one.
    """
    both = {"controllers": BOTH, "share": shares} if shares else {}
    quick = {"idle_seconds": 300.0, "boot_timeout_seconds": 600.0, "warm_pool": warm}
    cpu = a_pool("cpu", labels=frozenset({"cpu", "linux"}), executors=3, max_agents=5, offerings=(SPOT, FIRM), **quick)
    if shares is Share.COOPERATIVE:  # such agents are not stopped, lent, or limited in builds
        lends, both = False, {**both, "warm_pool": None, "max_builds": None}
    gpu = a_pool(
        SHARED,
        labels=frozenset({"gpu", "linux"}),
        max_agents=4,
        offerings=(FIRM,),
        image_parameter=IMAGE_PARAMETERS["gpu"] if images else "",
        lent_labels=frozenset({"cpu"}) if lends else frozenset(),
        lend=Lending.IDLE if lends else Lending.NEVER,
        **(quick | both),
    )
    return cpu, gpu
