"""Supervisors of gpu-lease that take turns at each of their acts, and are killed between any two of them.

Locks, files, cgroups and processes are in memory, as the kernel keeps them: with a process go the locks that it held, and nothing else.
What is judged is what really runs where, never what the files say.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from greenlet import GreenletExit, getcurrent, greenlet

from gpu_lease import life
from gpu_lease.order import can_ever
from gpu_lease.records import Device, Lease, Process, Request, Ticket

# Two kinds, and devices of two vendors.
DEVICES = [
    Device("a", "gfx1030", "amd"),
    Device("b", "gfx1030", "amd"),
    Device("c", "gfx90a", "amd"),
    Device("d", "sm_86", "nvidia"),
]
KINDS = ["", "", "gfx1030", "amd", "sm_86"]
TOO_LONG = 60_000  # acts: whatever waits by then waits for ever


class BrokenPromiseError(AssertionError):
    """A promise was broken."""


@dataclass(slots=True)
class Task:
    """A process that runs. ``holds``: the number of the lease whose devices it was told, 0 before; ``stays``: until it is killed."""

    pid: int
    holds: int = 0
    stays: bool = False


@dataclass(slots=True)
class World:
    """The machine, and everybody on it."""

    random: Random
    chance_of_a_kill: float
    acts: int = 0
    counter: int = 0
    mutex: "Supervisor | None" = None
    tickets: dict[int, Ticket] = field(default_factory=dict)
    leases: dict[int, Lease] = field(default_factory=dict)
    ticket_locks: dict[int, "Supervisor"] = field(default_factory=dict)
    device_locks: dict[str, "Supervisor"] = field(default_factory=dict)
    cgroups: dict[int, set[int]] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    told: dict[int, tuple[str, ...]] = field(default_factory=dict)  # by lease: what its command was told
    outsiders: set[str] = field(default_factory=set)  # devices that somebody uses without asking
    supervisors: list["Supervisor"] = field(default_factory=list)
    happened: Counter = field(default_factory=Counter)

    def a_task(self) -> Task:
        task = Task(len(self.tasks) + len(self.supervisors) * 1000 + self.acts * 100_000)
        self.tasks[task.pid] = task
        return task

    def ends(self, pid: int) -> None:
        self.tasks.pop(pid, None)
        for members in self.cgroups.values():
            members.discard(pid)

    def asks(self, request: Request) -> "Supervisor":
        supervisor = Supervisor(self, request)
        self.supervisors.append(supervisor)
        return supervisor

    # What is judged.

    def judge_start(self, lease: Lease) -> None:
        """Whether anything that was told one of these devices before still runs."""
        for task in self.tasks.values():
            if task.holds and task.holds != lease.number and set(self.told[task.holds]) & set(lease.devices):
                raise BrokenPromiseError(
                    f"{lease.devices} granted to {lease.number}, and {task.holds} still runs with {self.told[task.holds]}"
                )

    def judge_grant(self, lease: Lease) -> None:
        """Whether it overtakes one who could have used the device, or takes one that the driver shows in use."""
        if self.outsiders & set(lease.devices):
            raise BrokenPromiseError(f"{lease.devices} granted, and the driver shows {self.outsiders} in use")
        held = {device for other in self.leases.values() for device in other.devices}
        left = [d for d in DEVICES if d.id not in held and d.id not in self.outsiders and d.id not in lease.devices]
        taken = [d for d in DEVICES if d.id in lease.devices]
        for ticket in self.tickets.values():
            waits = ticket.number not in self.leases and ticket.number in self.ticket_locks
            could_use = any(device.is_a(ticket.request.kind) for device in taken)
            if ticket.number < lease.number and waits and could_use and not can_ever(ticket.request.count, ticket.request.kind, left):
                raise BrokenPromiseError(f"{lease.number} overtakes {ticket.number}: {ticket.request} is left {[d.id for d in left]}")

    def judge_kill(self, number: int) -> None:
        """Whether a command is killed that has not ended, and whose asker is there."""
        lease = self.leases.get(number)
        if lease and number in self.told and lease.command.pid in self.tasks and lease.anchor.pid in self.tasks:
            raise BrokenPromiseError(f"the command of {number} is killed")

    # What happens by chance.

    def chance(self) -> None:
        """Let something happen that no supervisor does."""
        what = self.random.random()
        if what < self.chance_of_a_kill and (living := [s for s in self.supervisors if not s.is_over]):
            self.random.choice(living).is_killed()
        elif what < 0.8 and self.tasks:
            self._to_a_task(self.random.choice(list(self.tasks)))
        elif what < 0.82 and self.outsiders:
            self.outsiders.discard(self.random.choice(sorted(self.outsiders)))

    def _to_a_task(self, pid: int) -> None:
        task, what = self.tasks[pid], self.random.random()
        place = next((number for number, members in self.cgroups.items() if pid in members), 0)
        if task.holds and place and what < 0.3 and len(self.tasks) < 40:
            # It starts something that outlives it, or a container joins its cgroup.
            other = self.a_task()
            other.holds, other.stays = task.holds, self.random.random() < 0.5
            self.cgroups[place].add(other.pid)
            self.happened["left something behind"] += 1
        elif (task.holds and not task.stays) or what < 0.05:
            self.happened["a command ended" if task.holds else "one who waits was killed"] += 1
            self.ends(pid)


class Supervisor:
    """One process of root, and the two of whoever asks. It is what ``life`` takes for the machine and for the client."""

    def __init__(self, world: World, request: Request) -> None:
        self.world, self.request = world, request
        task = world.a_task()
        self.anchor = Process(task.pid, 1)
        self.refused = self.is_over = self.has_begun = False
        self.waits = lambda: False  # what it waits for: not yet there
        self._running = greenlet(self._live)

    def _live(self) -> None:
        life.supervise(self, self, self.request)

    def step(self) -> None:
        """Let it do one act."""
        self._running.switch()
        if self._running.dead:
            self._is_gone()

    def is_killed(self) -> None:
        self.world.happened["a supervisor was killed"] += 1
        self._is_gone()
        self._running.throw(GreenletExit)

    def _is_gone(self) -> None:
        """Do what the kernel does at the end of a process."""
        self.is_over, world = True, self.world
        world.mutex = None if world.mutex is self else world.mutex
        world.ticket_locks = {number: holder for number, holder in world.ticket_locks.items() if holder is not self}
        world.device_locks = {device: holder for device, holder in world.device_locks.items() if holder is not self}
        if not self.has_begun:
            # Its client reads the end of the connection; this one does not ask again.
            world.ends(self.anchor.pid)

    def _act(self) -> None:
        """Give the others a turn before an act."""
        getcurrent().parent.switch()

    def _until(self, there) -> None:
        self.waits = lambda: not there()
        self._act()
        self.waits = lambda: False

    # The machine.

    @contextmanager
    def alone(self) -> Iterator[None]:
        self._until(lambda: self.world.mutex is None)
        self.world.mutex = self
        yield
        if not self.is_over:
            self._act()
            self.world.mutex = None

    def now(self) -> float:
        return float(self.world.acts)

    def sleep(self, _seconds: float) -> None:
        self._act()

    def runs(self, process: Process) -> bool:
        self._act()
        return process.pid in self.world.tasks

    def new_ticket(self, request: Request) -> Ticket:
        self._act()
        self.world.counter += 1
        ticket = Ticket(self.world.counter, request)
        self.world.tickets[ticket.number] = ticket
        self.world.ticket_locks[ticket.number] = self
        return ticket

    def tickets(self) -> list[Ticket]:
        self._act()
        return list(self.world.tickets.values())

    def is_alive(self, number: int) -> bool:
        self._act()
        return number in self.world.ticket_locks

    def remove_ticket(self, number: int) -> None:
        self._act()
        self.world.tickets.pop(number, None)

    def leases(self) -> list[Lease]:
        self._act()
        return list(self.world.leases.values())

    def write_lease(self, lease: Lease) -> None:
        self._act()
        if lease.number not in self.world.leases:
            self.world.judge_grant(lease)
        self.world.leases[lease.number] = lease

    def remove_lease(self, number: int) -> None:
        self._act()
        self.world.leases.pop(number, None)

    def device_is_locked(self, device: str) -> bool:
        self._act()
        return device in self.world.device_locks

    def lock_device(self, device: str) -> None:
        self._act()
        if self.world.device_locks.setdefault(device, self) is not self:
            raise BrokenPromiseError(f"{device} is locked by another")

    def cgroups(self) -> list[int]:
        self._act()
        return list(self.world.cgroups)

    def make_cgroup(self, number: int) -> None:
        self._act()
        self.world.cgroups[number] = set()

    def move_into_cgroup(self, number: int, process: Process) -> bool:
        self._act()
        if process.pid not in self.world.tasks:
            return False
        self.world.cgroups[number].add(process.pid)
        return True

    def is_populated(self, number: int) -> bool:
        self._act()
        return bool(self.world.cgroups.get(number))

    def kill_cgroup(self, number: int) -> None:
        self._act()
        self.world.judge_kill(number)
        for pid in list(self.world.cgroups.get(number, ())):
            if self.world.random.random() < 0.8:  # a killed process may take its time
                self.world.ends(pid)

    def remove_cgroup(self, number: int) -> bool:
        self._act()
        if self.world.cgroups.get(number):
            return False
        self.world.cgroups.pop(number, None)
        return True

    def devices(self) -> list[Device]:
        return DEVICES

    def in_use(self, devices) -> dict[str, str]:
        self._act()
        return {device.id: "somebody" for device in devices if device.id in self.world.outsiders}

    # Whoever asks.

    def is_gone(self) -> bool:
        return self.anchor.pid not in self.world.tasks

    def pause(self, _seconds: float) -> None:
        self._act()

    def tell_waiting(self, _ahead: int) -> None:
        """Nobody reads it here."""

    def refuse(self, _devices) -> None:
        self.refused = True

    def command(self, _lease: Lease) -> Process | None:
        self._act()
        return None if self.is_gone() else Process(self.world.a_task().pid, 1)

    def start(self, lease: Lease, devices) -> None:
        self._act()
        task = self.world.tasks.get(lease.command.pid)
        if task is None or self.is_gone():
            return
        self.world.judge_start(lease)
        self.world.told[lease.number] = lease.devices
        task.holds, self.has_begun = lease.number, True
        self.world.happened["a command began"] += 1

    def wait(self, command: Process) -> None:
        self._until(lambda: command.pid not in self.world.tasks or self.is_gone())


def interleaving(seed: int) -> Counter:
    """Play one: up to eight who ask for up to three of four devices. Return what happened; raise what broke."""
    random = Random(seed)
    world = World(random, random.choice([0.0, 0.1, 0.4]))
    world.outsiders = {device.id for device in DEVICES if random.random() < 0.1}
    later = [Request(random.choice([1, 1, 1, 2, 3]), random.choice(KINDS)) for _ in range(random.randint(2, 8))]
    while later or any(not supervisor.is_over for supervisor in world.supervisors):
        if later and random.random() < 0.05:
            world.asks(later.pop())
        _turn(world)
    _all_is_free_again(world)
    return world.happened


def _turn(world: World) -> None:
    world.acts += 1
    if world.acts > TOO_LONG:
        raise BrokenPromiseError(f"somebody waits for ever: {world.tickets}, {world.leases}")
    ready = [supervisor for supervisor in world.supervisors if not supervisor.is_over and not supervisor.waits()]
    if ready:
        world.random.choice(ready).step()
    if not ready or world.random.random() < 0.1:
        world.chance()


def _all_is_free_again(world: World) -> None:
    """Ask for every device of a vendor once whatever ran has ended: none may be lost, and nothing may be left."""
    world.chance_of_a_kill = 0.0
    world.outsiders.clear()
    for vendor in ("amd", "nvidia"):
        last = world.asks(Request(len([device for device in DEVICES if device.vendor == vendor]), vendor))
        while not last.is_over:
            _turn(world)
            if last.is_gone() and not last.has_begun:
                last = world.asks(last.request)
        if not last.has_begun:
            raise BrokenPromiseError(f"a device of {vendor} is lost: {world.leases}")
    # The last one looked at everything that the others left.
    left = {"tickets": world.tickets, "leases": world.leases, "cgroups": world.cgroups}
    if any(left.values()):
        raise BrokenPromiseError(f"left behind: {left}")
