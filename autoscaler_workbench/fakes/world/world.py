"""The world put together: controllers, EC2, and the operator's own hosts, on one time-line."""

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from autoscaler.domain.facts.fleet import CapacityReservation, Fleet, Market, Platform, Pool
from autoscaler_workbench.fakes.world.ec2.account import safe_template
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.region import Ec2
from autoscaler_workbench.fakes.world.ec2.reserved import Reserved, naming
from autoscaler_workbench.fakes.world.ec2.spot_market import WINDOWS, key_of
from autoscaler_workbench.fakes.world.hosts import Host
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.fakes.world.timeline import Timeline
from autoscaler_workbench.fakes.world.usage import Usage

NODE_TAG = "autoscaler:node"


@dataclass(slots=True)
class World:
    """Controllers, EC2 and the fleet, on one time-line."""

    fleet: Fleet
    timeline: Timeline
    controllers: dict[str, Controller]
    ec2: Ec2
    chance: Random
    physics: Physics = CALM
    hosts: dict[str, Host] = field(default_factory=dict)  # the operator's own machines, by name
    usage: Usage | None = None  # None: no machine tells what it uses
    _homes: dict[tuple[str, str], Pool | None] = field(default_factory=dict)

    def move_to(self, when: float) -> None:
        """Let time pass until then."""
        self.timeline.move_to(when)

    def node_of(self, instance: Instance) -> Node | None:
        """The node that an instance registered as, if it is still there."""
        controller = self.controllers.get(instance.tags.get("autoscaler:controller", ""))
        return controller.nodes.get(instance.tags.get(NODE_TAG, "")) if controller else None

    def home_of(self, build: Build) -> Pool | None:
        """The first pool of the fleet file that could run a build; None: no pool can."""
        asked = build.controller, build.asks_for
        if asked not in self._homes:
            self._homes[asked] = next((pool for pool in self.fleet.pools_of(build.controller) if self._serves(pool, build)), None)
        return self._homes[asked]

    def _serves(self, pool: Pool, build: Build) -> bool:
        return build.expression.matches(pool.labels | {self.fleet.ownership_label}) if build.expression else not pool.exclusive

    def alive(self) -> list[Instance]:
        """Instances that may still cost money."""
        return [instance for instance in self.ec2.remembered.values() if instance.alive()]


def build_world(fleet: Fleet, *, start_at: float, seed: int, physics: Physics = CALM) -> World:
    """Make a world without agents or jobs."""
    timeline, chance = Timeline(start_at), Random(seed)  # noqa: S311 - a simulation's chance, repeatable by its seed
    launched = [pool for pool in fleet.pools.values() if not pool.of_hosts]
    by_template = {pool.launch_template: pool.boot_seconds for pool in launched}

    def boot_seconds(template: str) -> float:
        return physics.boot_seconds(by_template.get(template, 120.0), chance)

    ec2 = Ec2(timeline, Random(seed + 1), boot_seconds, templates=set(by_template), physics=physics, seed=seed)  # noqa: S311
    _furnish(ec2, fleet, launched)
    controllers = {name: Controller(name, timeline, physics) for name in fleet.controllers}
    hosts = {host.name: Host(name=host.name, pool=host.pool, role_id=host.role_id) for host in fleet.hosts.values()}
    return World(fleet, timeline, controllers, ec2, chance, physics, hosts)


def _furnish(ec2: Ec2, fleet: Fleet, launched: Collection[Pool]) -> None:
    """Let EC2 know the launch templates of these pools, and the prices of their spot instances."""
    ec2.template_data = {pool.launch_template: safe_template(fleet.name, pool.platform) for pool in launched}
    ec2.platforms = {pool.launch_template: WINDOWS for pool in launched if pool.platform is Platform.WINDOWS}
    for pool in launched:
        if pool.capacity:
            ec2.reserved[pool.capacity.id] = reserved = reserved_for(pool, pool.capacity)
            ec2.template_data[pool.launch_template] |= naming(reserved)
        platform = WINDOWS if pool.platform is Platform.WINDOWS else ""
        spot = [offering for offering in pool.offerings if offering.market is Market.SPOT]
        ec2.spot_usd_per_hour |= {key_of(one.instance_type, one.subnet, platform): one.usd_per_hour for one in spot}


def reserved_for(pool: Pool, capacity: CapacityReservation) -> Reserved:
    """The capacity that a pool's operator has."""
    first = pool.offerings[0]
    return Reserved(
        id=capacity.id,
        instance_type=first.instance_type,
        subnet=first.subnet,
        count=capacity.count,
        block=capacity.block,
        starts_at=capacity.starts_at,
        ends_at=capacity.ends_at,
    )


def break_boots(world: World, pools: Collection[str]) -> None:
    """Let the agents of these pools, as long as they are in the set, hang before they ask who they are, as with a broken image."""
    comes_up = world.ec2.on_running

    def hangs_or_comes_up(instance: Instance) -> None:
        if instance.tags.get("autoscaler:pool") in pools:
            instance.console = "dracut: FATAL: no root device found"
        else:
            comes_up(instance)

    world.ec2.on_running = hangs_or_comes_up


def ended_by(instance: Instance) -> str:
    """The reason why builds on an instance died with it."""
    how = "interrupted" if instance.interrupted else "stopped" if instance.state == "stopping" else "terminated"
    return f"{instance.id} was {how}"
