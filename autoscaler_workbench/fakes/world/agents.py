"""The agents on the machines, EC2's and the operator's own: they boot, register, connect, and ask again, as ``agent/`` does."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.report.registration import POLL_SECONDS
from autoscaler_workbench.fakes.world.cards import Cards
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.hosts import Host
from autoscaler_workbench.fakes.world.jenkins.nodes import secret_of
from autoscaler_workbench.fakes.world.leases import Leases
from autoscaler_workbench.fakes.world.usage import SAMPLE_SECONDS
from autoscaler_workbench.fakes.world.world import World, ended_by

_CONNECTS_AGAIN_SECONDS = 15.0
# As agent/ asks: twice as long from one ask to the next, and after the first asks less often, since it is answered 60 times an hour.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _LATER_PAUSE_SECONDS = 2.0, 30.0, 120.0
_FIRST_ASKS = 30
_OK, _FORBIDDEN, _GONE, _UNAVAILABLE = 200, 403, 410, 503
# A machine that was told 503 lasts so long, and a day in all.
_TOLD_TO_WAIT_SECONDS, _WAITS_AT_MOST_SECONDS = 600.0, 86_400.0
# An operator installs the service on hosts once the functions run.
_HOSTS_BEGIN_SECONDS = 90.0
# What the script on an instance waits when the agent's process has ended, before it asks again.
_PAUSE_SECONDS = 2.0
# And once it says anything while it is connected, at the most.
_NEWS_SECONDS = 20.0
# Java whose node was deleted tries on, and a node of the same name has the same secret.
_TRIES_AGAIN_SECONDS = 5.0

Machine: TypeAlias = Instance | Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One connection that a machine is told to have. ``secret`` "": it has it already."""

    controller: str
    node: str
    secret: str = ""
    life: int = 0

    @property
    def key(self) -> str:
        """What the machine says that it is connected as."""
        return f"{self.controller}/{self.node}/{self.life}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityAnswer:
    """The answer to a registration: the HTTP status, and with 200 the connections, when to ask again, and who has a card."""

    status: int
    connections: tuple[Told, ...] = ()
    poll_seconds: float = POLL_SECONDS
    people: tuple[str, ...] = ()


# A machine asks, and says what it is connected as.
Ask = Callable[[Machine, tuple[str, ...]], IdentityAnswer]


class Agents:
    """The agents on the machines: they register, connect, and power off when refused; hosts disconnect, and ask again."""

    def __init__(self, world: World, ask: Ask) -> None:
        """Live in this world, and ask so."""
        self._world = world
        self._ask = ask
        self.all_ask_on = False  # each asks again while it is connected, as it does in earnest, though it is told nothing new
        self._registered: set[str] = set()  # machines that were told who they are: only a 410 ends them
        self._asked: Counter[str] = Counter()  # by machine, since it was last told who it is
        self._lasts_until: dict[str, float] = {}  # by machine that was told to wait
        self._held: dict[str, dict[str, Told]] = {}  # by machine: the connections that its processes hold or try to get, by key
        self._connected: dict[tuple[str, str], str] = {}  # the machine that connected last, by controller and node
        self._machines: dict[str, Machine] = {}
        self._asks_at: dict[str, tuple[int, float]] = {}  # by machine: in which life, and when it asks next
        self._leases = Leases(world.controllers.values(), self._cards_of)
        world.ec2.on_running = self.booted
        world.ec2.on_end = self.ended
        for controller in world.controllers.values():
            controller.on_delete = partial(self.left, controller.name)
            controller.on_add = partial(self.came, controller.name)
        for host in world.hosts.values():
            host.started_at = world.timeline.now
            self._ask_again(host, _HOSTS_BEGIN_SECONDS)

    def booted(self, machine: Machine) -> None:
        """Register until there is an answer, or twice the time for a boot has passed."""
        if not machine.is_on():
            return
        if isinstance(machine, Instance):
            pool = self._world.fleet.pools[machine.tags["autoscaler:pool"]]
            deadline = max(machine.started_at + 2 * pool.boot_timeout_seconds, self._lasts_until.get(machine.id, 0.0))
            if self._world.timeline.now > deadline and machine.id not in self._registered:
                self._world.ec2.end(machine)  # it powers itself off, which terminates it
                return
        self.register(machine)

    def register(self, machine: Machine) -> None:
        """Register once, and act on the answer."""
        self._begin_sampling(machine)
        self._machines[machine.id] = machine
        held = self._held.setdefault(machine.id, {})
        told = self._ask(machine, tuple(held))
        self._asked[machine.id] += 1
        if told.status == _UNAVAILABLE:
            self._lasts_until[machine.id] = min(
                self._world.timeline.now + _TOLD_TO_WAIT_SECONDS, machine.started_at + _WAITS_AT_MOST_SECONDS
            )
        if told.status == _OK:
            self._obey(machine, told)
        elif held and not (told.status == _GONE and isinstance(machine, Host)):
            # A build may run there: nothing but a good answer changes anything. Java that has lost its node says so, and it asks soon.
            at_rest = all(self._is_connected(machine, one.controller, one.node) for one in held.values())
            self._ask_again(machine, POLL_SECONDS if at_rest else _NEWS_SECONDS)
        elif isinstance(machine, Host):
            self._let_go(machine, tuple(held))
            self._ask_again(machine, _pause_seconds(self._asked[machine.id]))
        elif told.status == _GONE or (told.status == _FORBIDDEN and machine.id not in self._registered):
            self._world.ec2.end(machine)
        else:
            self._ask_again(machine, _pause_seconds(self._asked[machine.id]))

    def _begin_sampling(self, machine: Machine) -> None:
        if self._world.usage and machine.id not in self._machines:
            self._world.timeline.after(SAMPLE_SECONDS, partial(self._sample, machine))

    def _sample(self, machine: Machine) -> None:
        """Take a sample, as the service does each 15 s, and ask at once where that is urgent."""
        usage, held = self._world.usage, self._held.get(machine.id)
        if machine.is_on() and held and usage and usage.is_urgent(machine.id, tuple(held)):
            self._ask_again(machine, 0.0)
        if machine.is_on():
            self._world.timeline.after(SAMPLE_SECONDS, partial(self._sample, machine))

    def begins_anew(self, machine: Machine) -> None:
        """Let a machine ask that does not know what it is connected to, as when its service has just begun."""
        self._held.pop(machine.id, None)
        self.register(machine)

    def _obey(self, machine: Machine, told: IdentityAnswer) -> None:
        """Be connected to exactly what is listed."""
        del self._asked[machine.id]
        self._registered.add(machine.id)
        held, wanted = self._held[machine.id], {one.key: one for one in told.connections}
        self._let_go(machine, [key for key in held if key not in wanted])
        for key, one in wanted.items():
            if key not in held and one.secret:
                held[key] = one
                seconds = self._world.physics.connects_in_seconds(self._world.chance)
                self._world.timeline.after(seconds, partial(self._connect, machine, one, machine.life))
        if isinstance(machine, Host) and machine.cards:
            self._leases.give(machine.cards, told.people)
        if self._polls(machine):
            self._ask_again(machine, told.poll_seconds)

    def _let_go(self, machine: Machine, keys: "tuple[str, ...] | list[str]") -> None:
        """End connections: what runs by them ends."""
        for key in keys:
            one = self._held[machine.id].pop(key)
            if self._connected.get((one.controller, one.node)) == machine.id:
                del self._connected[one.controller, one.node]
                told = f"{machine.id} was told that it is not connected there any more"
                self._world.controllers[one.controller].disconnect(one.node, killed_by=told)

    def _polls(self, machine: Machine) -> bool:
        """Tell whether it matters that it asks again now and then: others are told nothing new while they are connected."""
        if self.all_ask_on:
            return True
        return self._world.usage is not None or isinstance(machine, Host) or machine.life > 0 or self._share(machine) is not Share.NONE

    def _share(self, machine: Machine) -> Share:
        name = machine.pool if isinstance(machine, Host) else machine.tags.get("autoscaler:pool", "")
        pool = self._world.fleet.pools.get(name)
        return pool.share if pool is not None else Share.NONE

    def left(self, controller: str, node: str) -> None:
        """Let the agent of a deleted node ask who it is: its Java says that the connection is lost. Told of where that may matter."""
        machine = self._machines.get(self._connected.pop((controller, node), ""))
        if machine is None or not machine.is_on():
            return
        if isinstance(machine, Host) or self._share(machine) is not Share.NONE:
            self._ask_again(machine, _NEWS_SECONDS)

    def came(self, controller: str, node: str) -> None:
        """Let Java that lost a node of this name find it again."""
        for machine_id, held in self._held.items():
            for one in held.values():
                if (one.controller, one.node) == (controller, node):
                    machine = self._machines[machine_id]
                    self._world.timeline.after(_TRIES_AGAIN_SECONDS, partial(self._connect, machine, one, machine.life))

    def restarts(self, machine: Machine) -> None:
        """End the agent's processes, as a crash does: its connections are lost, and the machine asks anew who it is.

        A freestyle build dies with it; what a pipeline's durable step runs goes on and is found again.
        """
        mine = [one for one in self._held.get(machine.id, {}).values() if self._is_connected(machine, one.controller, one.node)]
        online = [one for one in mine if self._world.controllers[one.controller].nodes[one.node].connected]
        if machine.is_on() and online:
            for one in online:
                self._world.controllers[one.controller].disconnect(one.node)
            self._held[machine.id].clear()
            self._ask_again(machine, _PAUSE_SECONDS)

    def power_fails(self, host: Host) -> None:
        """Take the power from a host: what runs there dies with it."""
        host.on, host.life = False, host.life + 1
        if host.cards:
            host.cards.power_fails()
            self._leases.forget_people(host.cards)
        for one in self._held.pop(host.id, {}).values():
            if self._is_connected(host, one.controller, one.node):
                self._world.controllers[one.controller].disconnect(one.node, killed_by=f"{host.id} lost its power")

    def power_returns(self, host: Host) -> None:
        """Switch a host on again."""
        host.on, host.started_at = True, self._world.timeline.now
        self._ask_again(host, 0.0)

    def _ask_again(self, machine: Machine, seconds: float) -> None:
        """Ask after a pause, or sooner if it does so anyway; not if it was stopped meanwhile: it asks anew when it is started."""
        asks = machine.life, self._world.timeline.now + seconds
        life, at = self._asks_at.get(machine.id, (-1, 0.0))
        if life == machine.life and self._world.timeline.now <= at <= asks[1]:
            return
        self._asks_at[machine.id] = asks

        def ask() -> None:
            if machine.life == asks[0] and self._asks_at.get(machine.id) == asks:
                del self._asks_at[machine.id]
                self.booted(machine)

        self._world.timeline.at(asks[1], ask)

    def ended(self, instance: Instance) -> None:
        """Disconnect the agent of an instance that ended, unless another instance holds the connection."""
        self._held.pop(instance.id, None)
        for controller, node in [key for key, machine in self._connected.items() if machine == instance.id]:
            self._world.controllers[controller].disconnect(node, killed_by=ended_by(instance))

    def _cards_of(self, controller: str, node: str) -> Cards | None:
        machine = self._machines.get(self._connected.get((controller, node), ""))
        return machine.cards if isinstance(machine, Host) else None

    def _is_connected(self, machine: Machine, controller: str, node: str) -> bool:
        return self._connected.get((controller, node)) == machine.id and node in self._world.controllers[controller].nodes

    def _connect(self, machine: Machine, told: Told, life: int) -> None:
        controller = self._world.controllers[told.controller]
        if not machine.is_on() or machine.life != life or told.secret != secret_of(told.node):
            return
        if told.key not in self._held.get(machine.id, {}):
            return  # it was told something else meanwhile
        controller.connect(told.node)
        self._connected[controller.name, told.node] = machine.id
        if controller.up != "up":
            self._world.timeline.after(_CONNECTS_AGAIN_SECONDS, partial(self._connect, machine, told, life))


def _pause_seconds(asked: int) -> float:
    longest = _LONGEST_PAUSE_SECONDS if asked < _FIRST_ASKS else _LATER_PAUSE_SECONDS
    return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(asked - 1, 10), longest)
