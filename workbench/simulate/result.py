"""What is true in the end: counted from the world, not from what the autoscaler believes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from autoscaler.domain.facts.fleet import Fleet, Market, Pool
from autoscaler.domain.facts.metering import MINIMUM_BILLED_SECONDS
from autoscaler.domain.labels import LabelExpression
from workbench.fakes.world.ec2.region import Instance
from workbench.fakes.world.jenkins.builds import Build, Ended
from workbench.fakes.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The measures of one run, once it has come to rest: what is then beyond the pools' minimum is leaked.

    ``interrupted``: builds on machines that EC2 took back.
    Waits are from buildable to running, in seconds, of every build that got an executor. ``total_usd``: the bill, and what the
    fleet file says that this waiting was worth. ``utilisation``: the share of the paid executor time in which builds ran.
    """

    jobs: int
    finished: int
    killed: int
    interrupted: int
    unservable: int
    wait_p50_s: float
    wait_p95_s: float
    wait_max_s: float
    wait_p99_s: float
    wait_mean_s: float
    wait_hours: float
    agent_hours: float
    utilisation: float
    usd: float
    total_usd: float
    launches: int
    terminations: int
    leaked_instances: int
    leaked_nodes: int


def measure_result(world: World, builds: Iterable[Build]) -> RunResult:
    """Count everything now."""
    builds = list(builds)
    waits = sorted(wait_of(build) for build in builds if build.started_at is not None)
    instances = list(world.ec2.instances.values())
    executor_seconds = sum(seconds_of(world, i) * pool_of(world, i).executors for i in instances)
    return RunResult(
        jobs=len(builds),
        finished=sum(build.ended is Ended.FINISHED for build in builds),
        killed=sum(is_lost(build) and not is_interrupted(build) for build in builds),
        interrupted=sum(is_lost(build) and is_interrupted(build) for build in builds),
        unservable=sum(not is_servable(world.fleet, build) for build in builds),
        wait_p50_s=quantile(waits, 0.5),
        wait_p95_s=quantile(waits, 0.95),
        wait_max_s=quantile(waits, 1.0),
        wait_p99_s=quantile(waits, 0.99),
        wait_mean_s=round(sum(waits) / len(waits), 1) if waits else 0.0,
        wait_hours=round(sum(waits) / 3600, 3),
        agent_hours=round(sum(seconds_of(world, instance) for instance in instances) / 3600, 3),
        utilisation=round(sum(run_seconds(world, build) for build in builds) / executor_seconds, 4) if executor_seconds else 0.0,
        usd=round(dollars(world), 2),
        total_usd=round(dollars(world) + _waiting_dollars(world, builds), 2),
        launches=len(instances),
        terminations=sum(not instance.alive() for instance in instances),
        leaked_instances=len({i.id for i in (*leaked_instances(world), *beyond_floor(world))}),
        leaked_nodes=len(leaked_nodes(world)),
    )


def is_lost(build: Build) -> bool:
    """Tell whether a build did not come to its own end."""
    return build.ended is Ended.KILLED or (build.ended is None and bool(build.killed_by))


def is_interrupted(build: Build) -> bool:
    """Tell whether EC2 took the machine under a build back: nobody's decision."""
    return "was interrupted" in build.killed_by


def is_servable(fleet: Fleet, build: Build) -> bool:
    """Tell whether any pool could ever run this build."""
    return any(serving_pools(fleet, build))


def serving_pools(fleet: Fleet, build: Build) -> Iterator[str]:
    """Name the pools that could run a build, as the fleet file lists them."""
    for pool in fleet.pools_of(build.controller):
        if _serves(fleet, pool.labels, pool.exclusive, build.expression):
            yield pool.name


def is_at_rest(world: World, builds: Iterable[Build]) -> bool:
    """Tell whether all that could run has run, and no more agents are there than the fleet file keeps."""
    if any(build.ended is None and is_servable(world.fleet, build) for build in builds):
        return False
    return not leaked_nodes(world) and not leaked_instances(world) and not beyond_floor(world)


def beyond_floor(world: World) -> list[Instance]:
    """Instances of each pool beyond what it keeps without any demand."""
    extra: list[Instance] = []
    for pool in world.fleet.pools.values():
        floor = max(pool.min_agents, ceil(pool.warm_executors / pool.executors))
        extra += [i for i in world.alive() if i.tags.get("autoscaler:pool") == pool.name][floor:]
    return extra


def leaked_instances(world: World) -> list[Instance]:
    """Instances that nobody will ever use: past their boot deadline without a connected node."""
    return [instance for instance in world.alive() if _leaks(world, instance)]


def leaked_nodes(world: World) -> list[str]:
    """Nodes of ours whose instance does not live; of slots, which an operator made, those that are left offline by us."""
    living = {instance.tags.get("autoscaler:node") for instance in world.alive()}
    return [
        node.name
        for controller in world.controllers.values()
        for node in controller.nodes.values()
        if world.fleet.ownership_label in node.labels
        and node.name not in living
        and (controller.name not in world.fleet.slot_controllers or node.reason.startswith(f"autoscaler:{world.fleet.name}:"))
    ]


def dollars(world: World) -> float:
    """The bill so far."""
    return sum(dollars_of(world, instance) for instance in world.ec2.instances.values())


def dollars_of(world: World, instance: Instance, since: float = 0.0) -> float:
    """What an instance cost so far, from an instant on: by the second, for a minute at least, at its own type's price."""
    seconds = seconds_of(world, instance, since)
    return rate_of(world, instance) * (seconds if instance.launched_at < since else max(seconds, MINIMUM_BILLED_SECONDS)) / 3600


def rate_of(world: World, instance: Instance) -> float:
    """Dollars an hour of what really runs."""
    kind = (instance.instance_type, Market(instance.market))
    return next(o.usd_per_hour for o in pool_of(world, instance).offerings if (o.instance_type, o.market) == kind)


def dollars_an_hour(world: World) -> float:
    """What all that is alive costs an hour at the spot prices that stand."""
    return sum(_rate_now(world, instance) for instance in world.alive())


def _rate_now(world: World, instance: Instance) -> float:
    key = f"{instance.instance_type}/{instance.subnet}/{instance.market}"
    return world.ec2.spot_usd_per_hour.get(key, rate_of(world, instance))


def seconds_of(world: World, instance: Instance, since: float = 0.0) -> float:
    """How long an instance has run, from its launch or from an instant after it."""
    return (instance.ended_at if instance.ended_at is not None else world.timeline.now) - max(instance.launched_at, since)


def pool_of(world: World, instance: Instance) -> Pool:
    """The pool that an instance was launched for."""
    return world.fleet.pools[instance.tags["autoscaler:pool"]]


def wait_of(build: Build) -> float:
    """Seconds that a build which has started waited for its executor."""
    return (build.started_at or build.buildable_at) - build.buildable_at


def quantile(ordered: list[float], share: float) -> float:
    """Nearest rank of an ordered list; 0 of an empty one."""
    return round(ordered[max(0, ceil(share * len(ordered)) - 1)], 1) if ordered else 0.0


def as_json(result: RunResult) -> dict[str, Any]:
    """Plain names and numbers."""
    return {name: getattr(result, name) for name in RunResult.__dataclass_fields__}


def _leaks(world: World, instance: Instance) -> bool:
    pool = world.fleet.pools.get(instance.tags.get("autoscaler:pool", ""))
    node = world.node_of(instance)
    in_time = pool is not None and world.timeline.now < instance.launched_at + pool.boot_timeout_seconds
    return not in_time and (node is None or not node.connected)


def _serves(fleet: Fleet, labels: frozenset[str], exclusive: bool, expression: LabelExpression | None) -> bool:  # noqa: FBT001
    return expression.matches(labels | {fleet.ownership_label}) if expression else not exclusive


def run_seconds(world: World, build: Build) -> float:
    """How long a build has had its executor."""
    if build.started_at is None:
        return 0.0
    return (build.ended_at if build.ended_at is not None else world.timeline.now) - build.started_at


def _waiting_dollars(world: World, builds: Iterable[Build]) -> float:
    """What the waiting of builds that got their executor was worth, by the price of the first pool that serves them."""
    prices: dict[tuple[str, str | None], float] = {}
    total = 0.0
    for build in builds:
        asked = build.controller, build.label
        if asked not in prices:
            pool = next(serving_pools(world.fleet, build), None)
            prices[asked] = world.fleet.pools[pool].wait_usd_per_hour if pool else 0.0
        total += wait_of(build) / 3600 * prices[asked]
    return total
