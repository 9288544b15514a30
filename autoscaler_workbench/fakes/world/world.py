"""The world put together: controllers, EC2, and agents that boot, register and connect."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from random import Random

from autoscaler.domain.facts.fleet import Fleet, Market, Platform, Pool, Share
from autoscaler_workbench.fakes.world.ec2.account import safe_template
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.region import WINDOWS, Ec2
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.nodes import Node, secret_of
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.fakes.world.timeline import Timeline

NODE_TAG = "autoscaler:node"
_CONNECTS_AGAIN_SECONDS = 15.0
# As agent/ asks: twice as long from one ask to the next, and after the first asks less often, since it is answered 60 times an hour.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _LATER_PAUSE_SECONDS = 2.0, 30.0, 120.0
_FIRST_ASKS = 30
_OK, _FORBIDDEN, _GONE = 200, 403, 410
# What the script on an instance waits when the agent's process has ended, before it asks again.
_PAUSE_SECONDS = 2.0
# And once it says anything while it is connected, at the most.
_NEWS_SECONDS = 20.0


@dataclass(slots=True)
class World:
    """Controllers, EC2 and the fleet, on one time-line."""

    fleet: Fleet
    timeline: Timeline
    controllers: dict[str, Controller]
    ec2: Ec2
    chance: Random
    physics: Physics = CALM
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
    by_template = {pool.launch_template: pool.boot_seconds for pool in fleet.pools.values()}

    def boot_seconds(template: str) -> float:
        return physics.boot_seconds(by_template.get(template, 120.0), chance)

    ec2 = Ec2(timeline, Random(seed + 1), boot_seconds, templates=set(by_template), physics=physics, seed=seed)  # noqa: S311
    ec2.template_data = {pool.launch_template: safe_template(fleet.name, pool.platform) for pool in fleet.pools.values()}
    ec2.platforms = {pool.launch_template: WINDOWS for pool in fleet.pools.values() if pool.platform is Platform.WINDOWS}
    offerings = [offering for pool in fleet.pools.values() for offering in pool.offerings]
    ec2.spot_usd_per_hour = {offering.key: offering.usd_per_hour for offering in offerings if offering.market is Market.SPOT}
    controllers = {name: Controller(name, timeline, physics) for name in fleet.controllers}
    return World(fleet, timeline, controllers, ec2, chance, physics)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityAnswer:
    """The answer to a registration: the HTTP status, and with 200 the node, controller and secret."""

    status: int
    node: str = ""
    controller: str = ""
    secret: str = ""


Ask = Callable[[Instance], IdentityAnswer]


class Agents:
    """The agents on the instances: they register, connect, and power off when refused."""

    def __init__(self, world: World, ask: Ask) -> None:
        """Live in this world, and ask so."""
        self._world = world
        self._ask = ask
        self._registered: set[str] = set()  # instances that were told who they are: only a 410 ends them
        self._asked: Counter[str] = Counter()  # by instance, since it was last told who it is
        self._connected: dict[tuple[str, str], str] = {}  # the instance that connected last, by controller and node
        world.ec2.on_running = self.booted
        world.ec2.on_end = self.ended
        for controller in world.controllers.values():
            controller.on_delete = partial(self.left, controller.name)

    def booted(self, instance: Instance) -> None:
        """Register until there is an answer, or the boot deadline has passed."""
        if not instance.is_on():
            return
        pool = self._world.fleet.pools[instance.tags["autoscaler:pool"]]
        late = self._world.timeline.now > instance.started_at + pool.boot_timeout_seconds
        if late and instance.id not in self._registered:
            self._world.ec2.end(instance)  # it powers itself off, which terminates it
        else:
            self.register(instance)

    def register(self, instance: Instance) -> None:
        """Register once, and act on the answer."""
        told = self._ask(instance)
        self._asked[instance.id] += 1
        if told.status == _OK:
            del self._asked[instance.id]
            self._registered.add(instance.id)
            seconds = self._world.physics.connects_in_seconds(self._world.chance)
            life = instance.life
            self._world.timeline.after(seconds, lambda: self._connect(instance, told, life))
        elif told.status == _GONE or (told.status == _FORBIDDEN and instance.id not in self._registered):
            self._world.ec2.end(instance)
        else:
            self._ask_again(instance, _pause_seconds(self._asked[instance.id]))

    def left(self, controller: str, node: str) -> None:
        """Let the agent of a deleted node ask who it is: its Java says that the connection is lost. Told of where its pool is shared."""
        instance = self._world.ec2.instances.get(self._connected.pop((controller, node), ""))
        if instance is None or not instance.is_on():
            return
        pool = self._world.fleet.pools.get(instance.tags.get("autoscaler:pool", ""))
        if pool is not None and pool.share is not Share.NONE:
            self._ask_again(instance, _NEWS_SECONDS)

    def restarts(self, instance: Instance) -> None:
        """End the agent's process, as a crash does: its connection is lost, and the instance asks anew who it is.

        A freestyle build dies with it; what a pipeline's durable step runs goes on and is found again.
        """
        node = self._world.node_of(instance)
        if instance.is_on() and node is not None and node.connected and self._is_connected(instance, node.name):
            self._world.controllers[instance.tags["autoscaler:controller"]].disconnect(node.name)
            self._ask_again(instance, _PAUSE_SECONDS)

    def _ask_again(self, instance: Instance, seconds: float) -> None:
        """Ask after a pause, unless the machine was stopped meanwhile: it asks anew when it is started."""
        life = instance.life
        self._world.timeline.after(seconds, lambda: self.booted(instance) if instance.life == life else None)

    def ended(self, instance: Instance) -> None:
        """Disconnect the agent of an instance that ended, unless another instance holds the connection."""
        controller = self._world.controllers.get(instance.tags.get("autoscaler:controller", ""))
        node = instance.tags.get(NODE_TAG, "")
        if controller is not None and self._is_connected(instance, node):
            controller.disconnect(node, killed_by=ended_by(instance))

    def _is_connected(self, instance: Instance, node: str) -> bool:
        return self._connected.get((instance.tags.get("autoscaler:controller", ""), node)) == instance.id

    def _connect(self, instance: Instance, told: IdentityAnswer, life: int) -> None:
        controller = self._world.controllers[told.controller]
        if not instance.is_on() or instance.life != life or told.secret != secret_of(told.node):
            return
        controller.connect(told.node)
        self._connected[controller.name, told.node] = instance.id
        if controller.up != "up":
            self._world.timeline.after(_CONNECTS_AGAIN_SECONDS, lambda: self._connect(instance, told, life))


def _pause_seconds(asked: int) -> float:
    longest = _LONGEST_PAUSE_SECONDS if asked < _FIRST_ASKS else _LATER_PAUSE_SECONDS
    return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(asked - 1, 10), longest)
