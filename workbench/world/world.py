"""The world put together: controllers, EC2, and agents that boot, register and connect."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from autoscaler.domain.model import Fleet, agent_spec
from autoscaler.domain.snapshot import Record, RecordState
from autoscaler.errors import TransientError
from autoscaler.ports import Ledger
from workbench.world.ec2 import Ec2, Instance
from workbench.world.jenkins import Controller, Node
from workbench.world.timeline import Timeline

NODE_TAG = "autoscaler:node"
_ASKS_AGAIN_SECONDS = 15.0
_CONNECTS_IN_SECONDS = (3.0, 9.0)
# How far a boot strays from the pool's own figure, as a factor.
_BOOT_SPREAD = (0.75, 1.35)


@dataclass(slots=True)
class World:
    """Everything there is, on one time-line."""

    fleet: Fleet
    timeline: Timeline
    controllers: dict[str, Controller]
    ec2: Ec2
    chance: Random

    def move_to(self, when: float) -> None:
        """Let time pass until then."""
        self.timeline.move_to(when)

    def node_of(self, instance: Instance) -> Node | None:
        """The node that an instance registered as, if it is still there."""
        controller = self.controllers.get(instance.tags.get("autoscaler:controller", ""))
        return controller.nodes.get(instance.tags.get(NODE_TAG, "")) if controller else None

    def alive(self) -> list[Instance]:
        """Instances that may still cost money."""
        return [instance for instance in self.ec2.instances.values() if instance.alive()]


def build_world(fleet: Fleet, *, start_at: float, seed: int) -> World:
    """Make a world without agents or jobs."""
    timeline, chance = Timeline(start_at), Random(seed)  # noqa: S311 - a simulation's chance, repeatable by its seed
    by_template = {pool.launch_template: pool.boot_seconds for pool in fleet.pools.values()}

    def boot_seconds(template: str) -> float:
        return by_template.get(template, 120.0) * chance.uniform(*_BOOT_SPREAD)

    ec2 = Ec2(timeline, Random(seed + 1), boot_seconds)  # noqa: S311
    controllers = {name: Controller(name, timeline) for name in fleet.controllers}
    return World(fleet, timeline, controllers, ec2, chance)


def let_agents_register(world: World, ledger: Ledger) -> "Registrar":
    """Let every instance that has booted register through the ledger, as ``register_agent`` will do it."""
    registrar = Registrar(world, ledger)
    world.ec2.on_running = registrar.booted
    world.ec2.on_end = registrar.ended
    return registrar


class Registrar:
    """What instances do once they run, and what becomes of their nodes when they end."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        """Register through this ledger."""
        self._world = world
        self._ledger = ledger

    def booted(self, instance: Instance) -> None:
        """Ask for an identity until one is given, the record is condemned, or the boot deadline has passed."""
        if not instance.alive():
            return
        pool = self._world.fleet.pools[instance.tags["autoscaler:pool"]]
        controller = self._world.controllers[instance.tags["autoscaler:controller"]]
        if self._world.timeline.now > instance.launched_at + pool.boot_timeout_seconds:
            self._world.ec2.end(instance)  # it powers itself off, which terminates it
            return
        # Where the state does not answer, it asks again, as after any answer but "no".
        with suppress(TransientError):
            record = self._find(self._ledger.read().records, instance.id)
            if record is not None and record.state is RecordState.CONDEMNED:
                self._world.ec2.end(instance)
                return
            if record is not None and controller.up == "up" and self._register(record, instance, controller):
                return
        self._world.timeline.after(_ASKS_AGAIN_SECONDS, lambda: self.booted(instance))

    def ended(self, instance: Instance) -> None:
        """Take the agent from its controller."""
        controller = self._world.controllers.get(instance.tags.get("autoscaler:controller", ""))
        if controller is not None and NODE_TAG in instance.tags:
            controller.disconnect(instance.tags[NODE_TAG], killed_by=f"{instance.id} was terminated")

    def _register(self, record: Record, instance: Instance, controller: Controller) -> bool:
        """Win the record first, then create the node: the order that repair relies on."""
        fleet, now = self._world.fleet, self._world.timeline.now
        spec = agent_spec(fleet, fleet.pools[record.pool], instance.id)
        if record.state is RecordState.REQUESTED:
            registered = replace(record, state=RecordState.REGISTERED, node=spec.name, registered_at=now, changed_at=now)
            self._ledger.change_record(registered, expected=RecordState.REQUESTED)
        if spec.name not in controller.nodes:
            controller.add_node(
                Node(
                    name=spec.name,
                    labels=spec.labels,
                    executors=spec.executors,
                    exclusive=spec.exclusive,
                    description=spec.description,
                    remote_dir=spec.remote_dir,
                )
            )
        instance.tags[NODE_TAG] = spec.name
        delay = self._world.chance.uniform(*_CONNECTS_IN_SECONDS)
        self._world.timeline.after(delay, lambda: self._connect(instance, controller, spec.name))
        return True

    def _connect(self, instance: Instance, controller: Controller, node: str) -> None:
        if not instance.alive():
            return
        controller.connect(node)
        if controller.up != "up":
            self._world.timeline.after(_ASKS_AGAIN_SECONDS, lambda: self._connect(instance, controller, node))

    @staticmethod
    def _find(records: Iterable[Record], instance_id: str) -> Record | None:
        return next((record for record in records if record.instance_id == instance_id), None)
