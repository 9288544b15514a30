"""What is true in the end: counted from the world, not from what the autoscaler believes."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

from autoscaler.domain.labels import LabelExpression
from autoscaler.domain.model import Fleet, Market
from autoscaler.domain.numbers import MINIMUM_BILLED_SECONDS
from workbench.world.ec2 import Instance
from workbench.world.jenkins import Build, Ended
from workbench.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The measures of one run, once it has come to rest: what is then beyond the pools' minimum is leaked.

    Waits are from buildable to running, in seconds, of every build that got an executor.
    """

    jobs: int
    finished: int
    killed: int
    unservable: int
    wait_p50_s: float
    wait_p95_s: float
    wait_max_s: float
    agent_hours: float
    usd: float
    launches: int
    terminations: int
    leaked_instances: int
    leaked_nodes: int


def count_truth(world: World, builds: Iterable[Build]) -> Truth:
    """Count everything now."""
    builds = list(builds)
    waits = sorted(build.started_at - build.buildable_at for build in builds if build.started_at is not None)
    instances = list(world.ec2.instances.values())
    return Truth(
        jobs=len(builds),
        finished=sum(build.ended is Ended.FINISHED for build in builds),
        killed=sum(build.ended is Ended.KILLED or (build.ended is None and bool(build.killed_by)) for build in builds),
        unservable=sum(not is_servable(world.fleet, build) for build in builds),
        wait_p50_s=quantile(waits, 0.5),
        wait_p95_s=quantile(waits, 0.95),
        wait_max_s=quantile(waits, 1.0),
        agent_hours=round(sum(_seconds(world, instance) for instance in instances) / 3600, 3),
        usd=round(dollars(world), 2),
        launches=len(instances),
        terminations=sum(not instance.alive() for instance in instances),
        leaked_instances=len({i.id for i in (*leaked_instances(world), *beyond_floor(world))}),
        leaked_nodes=len(leaked_nodes(world)),
    )


def is_servable(fleet: Fleet, build: Build) -> bool:
    """Tell whether any pool could ever run this build."""
    return any(_serves(fleet, pool.labels, pool.exclusive, build.expression) for pool in fleet.pools_of(build.controller))


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
    """Nodes of ours whose instance does not live."""
    living = {instance.tags.get("autoscaler:node") for instance in world.alive()}
    return [
        node.name
        for controller in world.controllers.values()
        for node in controller.nodes.values()
        if world.fleet.ownership_label in node.labels and node.name not in living
    ]


def dollars(world: World) -> float:
    """The bill so far: each instance by the second, for a minute at least, at its own type's price."""
    return sum(_rate(world, i) * max(_seconds(world, i), MINIMUM_BILLED_SECONDS) / 3600 for i in world.ec2.instances.values())


def quantile(ordered: list[float], share: float) -> float:
    """Nearest rank of an ordered list; 0 of an empty one."""
    return round(ordered[max(0, ceil(share * len(ordered)) - 1)], 1) if ordered else 0.0


def as_json(truth: Truth) -> dict[str, Any]:
    """Plain names and numbers."""
    return {name: getattr(truth, name) for name in Truth.__dataclass_fields__}


def _leaks(world: World, instance: Instance) -> bool:
    pool = world.fleet.pools.get(instance.tags.get("autoscaler:pool", ""))
    node = world.node_of(instance)
    in_time = pool is not None and world.timeline.now < instance.launched_at + pool.boot_timeout_seconds
    return not in_time and (node is None or not node.connected)


def _serves(fleet: Fleet, labels: frozenset[str], exclusive: bool, expression: LabelExpression | None) -> bool:  # noqa: FBT001
    return expression.matches(labels | {fleet.ownership_label}) if expression else not exclusive


def _seconds(world: World, instance: Instance) -> float:
    return (instance.ended_at if instance.ended_at is not None else world.timeline.now) - instance.launched_at


def _rate(world: World, instance: Instance) -> float:
    pool = world.fleet.pools[instance.tags["autoscaler:pool"]]
    kind = (instance.instance_type, Market(instance.market))
    return next(o.usd_per_hour for o in pool.offerings if (o.instance_type, o.market) == kind)
