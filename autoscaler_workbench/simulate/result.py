"""Results, counted in the world and not from what the autoscaler believes: bills, waits, what was left over."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Self

from autoscaler.domain.facts.fleet import Market, Pool
from autoscaler.domain.facts.metering import MINIMUM_BILLED_SECONDS
from autoscaler.domain.facts.nodes import described_instance
from autoscaler.domain.facts.pools import fleet_at, pool_at_its_widest
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.spot_market import mean_move, price_at
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.world import World


@dataclass(slots=True)
class StepCurve:
    """A step function: from ``times[i]`` on it is ``counts[i]``, and 0 before the first."""

    times: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, spans: Iterable[tuple[float, float | None, float]]) -> Self:
        """Sum up spans: their beginning, their end (None: they go on) and their weight."""
        changes = [change for begin, end, weight in spans for change in ((begin, weight), (end, -weight))]
        curve = cls()
        total: float = 0
        for at, change in sorted((at, change) for at, change in changes if at is not None):
            total += change
            if curve.times and curve.times[-1] == at:
                curve.counts[-1] = total
            else:
                curve.times.append(at)
                curve.counts.append(total)
        return curve

    def at(self, when: float) -> float:
        """The value at an instant."""
        place = bisect_right(self.times, when)
        return self.counts[place - 1] if place else 0

    def most(self, begin: float, end: float) -> float:
        """The highest value between two instants."""
        running, last = bisect_right(self.times, begin), bisect_left(self.times, end)
        return max(self.counts[max(0, running - 1) : max(running, last)], default=0)


def is_at_rest(world: World, builds: Iterable[Build]) -> bool:
    """Tell whether all that could run has run, and no more agents are there than the fleet file keeps."""
    if any(build.ended is None and world.home_of(build) is not None for build in builds):
        return False
    return not leaked_nodes(world) and not leaked_instances(world) and not beyond_floor(world)


def beyond_floor(world: World) -> list[Instance]:
    """Instances beyond the minimum of their pool, and stopped ones beyond those that it may keep."""
    extra: list[Instance] = []
    for pool in fleet_at(world.fleet, world.timeline.now).pools.values():
        floor = max(pool.min_agents, ceil(pool.warm_executors / pool.executors))
        mine = [i for i in world.alive() if i.tags.get("autoscaler:pool") == pool.name]
        extra += [i for i in mine if i.is_on()][floor:]
        extra += [i for i in mine if not i.is_on()][pool.warm_pool.max_agents if pool.warm_pool else 0 :]
    return extra


def leaked_instances(world: World) -> list[Instance]:
    """Instances that nobody will ever use: past twice their boot deadline without a connected node, or stopped where that is not wanted."""
    return [instance for instance in world.alive() if _leaks(world, instance)]


def leaked_nodes(world: World) -> list[str]:
    """Our nodes without a machine that is on; of pre-made nodes, those that we left offline."""
    on = {instance.tags.get("autoscaler:node") for instance in world.alive() if instance.is_on()} | set(world.hosts)
    return [
        node.name
        for controller in world.controllers.values()
        for node in controller.nodes.values()
        if world.fleet.ownership_label in node.labels
        and node.name not in on
        and not world.fleet.is_beacon(node.name)
        and (is_ours(world, node) or node.reason.startswith(f"autoscaler:{world.fleet.name}:"))
    ]


def is_ours(world: World, node: Node) -> bool:
    """Tell whether a node was made for a machine, and not by an operator beforehand."""
    return described_instance(world.fleet, node.name, node.description) is not None


def dollars(world: World) -> float:
    """The bill so far."""
    return sum(dollars_of(world, instance) for instance in world.ec2.instances.values())


def dollars_of(world: World, instance: Instance, since: float = 0.0) -> float:
    """The cost of an instance from an instant on: while it is on by the second, at least a minute each time; stopped, its disk."""
    price, now = rate_of(world, instance), world.timeline.now
    usd = 0.0
    for spell in instance.spells:
        seconds = spell.seconds(now, since)
        rate = price * mean_move(world.ec2, instance, max(spell.began_at, since), spell.ended_at or now)
        usd += rate * (seconds if spell.began_at < since else max(seconds, MINIMUM_BILLED_SECONDS)) / 3600
    if capacity := pool_of(world, instance).capacity if instance.reserved else None:
        after = sum(capacity.unpaid_seconds(max(spell.began_at, since), spell.ended_at or now) for spell in instance.spells)
        usd += capacity.usd_per_hour * after / 3600
    stopped = seconds_of(world, instance, since) - on_seconds_of(world, instance, since)
    return usd + disk_rate_of(world, instance) * stopped / 3600


def billed_dollars(world: World) -> float:
    """The bill so far as EC2 would write it, with what `dollars` leaves out, which rivals are compared by.

    That are the disks of machines that are on, and reserved capacity from its beginning on, used or not.
    """
    disks = sum(disk_rate_of(world, one) * on_seconds_of(world, one) / 3600 for one in world.ec2.instances.values())
    kept = (pool.capacity for pool in world.fleet.pools.values() if pool.capacity)
    reserved = sum(one.count * one.usd_per_hour * one.paid_seconds(0.0, world.timeline.now) / 3600 for one in kept)
    return dollars(world) + disks + reserved


def disk_rate_of(world: World, instance: Instance) -> float:
    """The price of an instance's disk per hour."""
    return pool_of(world, instance).offerings[0].volume_usd_per_hour


def rate_of(world: World, instance: Instance) -> float:
    """The price of an instance per hour, by its own type and market; in reserved capacity none of its own."""
    if instance.reserved:
        return pool_of(world, instance).offerings[0].usd_per_hour
    kind = (instance.instance_type, Market(instance.market))
    return next(o.usd_per_hour for o in pool_of(world, instance).offerings if (o.instance_type, o.market) == kind)


def dollars_an_hour(world: World) -> float:
    """The cost per hour of all living instances at current spot prices; of those that are stopped, of their disks."""
    return sum(_rate_now(world, one) if one.is_on() else disk_rate_of(world, one) for one in world.alive())


def _rate_now(world: World, instance: Instance) -> float:
    if instance.market != Market.SPOT:
        return rate_of(world, instance)
    usd = price_at(world.ec2, instance.instance_type, instance.subnet, instance.platform, world.timeline.now)
    return rate_of(world, instance) if usd is None else usd


def on_seconds_of(world: World, instance: Instance, since: float = 0.0) -> float:
    """How long an instance has been a machine, stops left out."""
    return sum(spell.seconds(world.timeline.now, since) for spell in instance.spells)


def seconds_of(world: World, instance: Instance, since: float = 0.0) -> float:
    """How long an instance has been there, from its launch or from an instant after it."""
    return (instance.ended_at if instance.ended_at is not None else world.timeline.now) - max(instance.launched_at, since)


def pool_of(world: World, instance: Instance) -> Pool:
    """The pool that an instance was launched for."""
    return world.fleet.pools[instance.tags["autoscaler:pool"]]


def wait_of(build: Build, now: float | None = None) -> float:
    """Seconds that a build waited for its executor; one that has not started, until now."""
    until = build.started_at if build.started_at is not None else now
    return until - build.buildable_at if until is not None else 0.0


def _leaks(world: World, instance: Instance) -> bool:
    pool = world.fleet.pools.get(instance.tags.get("autoscaler:pool", ""))
    node = world.node_of(instance)
    if pool is not None and pool_at_its_widest(pool).warm_pool is not None and not instance.is_on():
        return False  # it is kept on purpose
    in_time = pool is not None and instance.is_on() and world.timeline.now < instance.started_at + 2 * pool.boot_timeout_seconds
    return not in_time and (node is None or not node.connected)


def run_seconds(world: World, build: Build) -> float:
    """How long a build has had its executor."""
    if build.started_at is None:
        return 0.0
    return (build.ended_at if build.ended_at is not None else world.timeline.now) - build.started_at
