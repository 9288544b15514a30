"""Actors of one world that take turns at their outside calls, as a schedule says: two at once with at most two pre-emptions, or more."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any, NamedTuple

from greenlet import getcurrent, greenlet

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import DrainNodes, LaunchSome
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_mark, a_pool
from support.busy import FIRM, Hour
from support.forks import in_a_child
from support.sampling import some
from support.worlds import in_memory

PERSON = "a_person_brings_the_retiring_node_online"
_FINE = "fine "
_OFF = ("ec2 TerminateInstances", "ec2 StopInstances")
# More calls than any actor makes.
ALL = sys.maxsize
Actor = Callable[["Scene"], None]
Turn = tuple[str, int]  # an actor, and how many of its calls it makes before another one gets its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One schedule. ``preempted_again``: the second actor's turn was over before it was done."""

    broken: str
    preempted_again: bool


@dataclass(slots=True)
class Stage:
    """Runs actors in one world, one at a time, each until its turn is over, it waits, or it is done."""

    hour: "Scene"
    left: int = 0
    log: list[tuple[str, str]] = field(default_factory=list)  # actor and call, in their order
    preempted: list[str] = field(default_factory=list)
    running: dict[str, greenlet] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)  # until when

    def __post_init__(self) -> None:
        fleet = self.hour.fleet
        fleet.faults.meanwhile = self._call
        self.hour.stage_log = self.log
        fleet.ports = replace(fleet.ports, sleep=self._sleep)

    def run(self, actors: dict[str, Actor], schedule: Iterable[Turn]) -> None:
        """Run them all to their end: by the schedule, then in their order."""
        for name, actor in actors.items():
            self.running[name] = greenlet(lambda actor=actor: _act(actor, self.hour))
        for name, quota in schedule:
            self._resume(name, quota)
        while any(not one.dead for one in self.running.values()):
            for name in actors:
                self._resume(name, ALL)
        self.hour.fleet.faults.meanwhile = lambda _call: None
        self.hour.fleet.ports = replace(self.hour.fleet.ports, sleep=self.hour.world.timeline.sleep)

    def _resume(self, name: str, quota: int) -> None:
        if self.running[name].dead:
            return
        if name in self.waiting:
            others = [one for other, one in self.running.items() if other != name and other not in self.waiting and not one.dead]
            if others:
                return  # who waits lets the others go first; time passes when nobody has anything else to do
            self.hour.world.move_to(self.waiting.pop(name))
        self.left = quota
        self.running[name].switch()

    def _name(self) -> str | None:
        return next((name for name, one in self.running.items() if one is getcurrent()), None)

    def lost_the_last_race(self) -> bool:
        """Tell whether somebody brought a node online between our last read of it and EC2's answer: nobody outside Jenkins can see that."""
        actors = [actor for actor, _ in self.log]
        return any(call in _OFF and PERSON in actors[last_read(self.log, at) : at] for at, (_, call) in enumerate(self.log))

    def _call(self, call: str) -> None:
        """An outside call is about to be made: whose turn is over stops before it."""
        name = self._name()
        if name is None:
            return  # the world's own doing
        if self.left == 0:
            self.preempted.append(name)
            getcurrent().parent.switch()
        self.hour.before_a_call()
        self.left -= 1
        self.log.append((name, call))

    def _sleep(self, seconds: float) -> None:
        name = self._name()
        if name is None:
            self.hour.world.timeline.sleep(seconds)
            return
        self.waiting[name] = self.hour.now() + seconds
        getcurrent().parent.switch()


def last_read(log: list[tuple[str, str]], at: int) -> int:
    """Where the actor of this call last read a node before it."""
    reads = (i for i in range(at - 1, -1, -1) if log[i] == (log[at][0], "jenkins computer"))
    return next(reads, 0)


def _act(actor: Actor, hour: "Scene") -> None:
    try:
        actor(hour)
    except AutoscalerError:
        return  # an error in the log, or in a person's terminal


# The scene: as much as can meet at one instant.


@dataclass(slots=True)
class Scene(Hour):
    """One agent retires and will be given up; one has not registered by its deadline, and asks now; one is busy; one is stopped."""

    stopped: Instance | None = None
    retiring: Instance | None = None
    late: Instance | None = None
    busy_one: Instance | None = None
    stage_log: list[tuple[str, str]] = field(default_factory=list)

    def set_up(self) -> "Scene":
        """Live until that instant."""
        asks = self.world.ec2.on_running
        self.run(until=3)
        self.queue(1, "gpu", 60.0)
        self.run(until=7)
        [self.stopped] = self.world.alive()
        self.queue(1, "cpu", 700.0)
        self.queue(2, "cpu", 100.0)
        self.run(until=9)
        self.by_hand("scale_up by hand", LaunchSome(**GPU, count=1, keep_seconds=0.0, reason="a test", request_id=None))
        [self.late] = [i for i in self.world.alive() if i.tags["autoscaler:pool"] == "gpu" and i is not self.stopped]
        self.world.ec2.stop(self.stopped.id)
        self.world.ec2.on_running = lambda instance: None if instance is self.late else asks(instance)
        self.run(until=13)
        self.world.move_to(self.now() + 60.0)
        self.retiring, self.busy_one = self.idle("cpu"), self.busy("cpu")
        self.jenkins.set_offline(self.retiring.tags["autoscaler:node"], a_mark(MarkClass.RETIRE, "earlier").text, "bot")
        self.queue(3, "gpu", 200.0)
        return self

    @property
    def retiring_node(self) -> str:
        return self.retiring.tags["autoscaler:node"]

    def before_a_call(self) -> None:
        """Let the world do what is due at once."""


# So briefly that in the end nothing is left.
WARM = WarmPool(min_agents=0, max_agents=2, max_age_seconds=1800.0)
GPU = {"pool": "gpu", "controller": "main"}


def a_scene(*, warm: bool = False) -> Scene:
    quick = {"idle_seconds": 400.0, "boot_seconds": 60.0, "boot_timeout_seconds": 240.0, "queue_maturity_seconds": 0.0}
    cpu = a_pool("cpu", executors=2, offerings=(FIRM,), max_agents=4, warm_pool=WARM if warm else None, **quick)
    gpu = a_pool("gpu", offerings=(FIRM,), max_agents=3, warm_pool=WARM, **quick)
    return Scene(in_memory(cpu, gpu, seed=5, max_agents=6), script={}, schedule=("scale_up", "scale_down")).set_up()


def scale_up(scene: Scene) -> None:
    scene.fleet.scale_up()


def scale_down(scene: Scene) -> None:
    scene.fleet.scale_down()


def register_agent(scene: Scene) -> None:
    scene.fleet.agents.register(scene.late)


def spot_interruption(scene: Scene) -> None:
    """Of the one that retires: then it must not come back."""
    scene.fleet.instance_events(scene.retiring, "interruption")


def launch_by_hand(scene: Scene) -> None:
    order = LaunchSome(**GPU, count=2, keep_seconds=0.0, reason="a test", request_id="r-1")
    passes.carry_out(scene.fleet.ports, scene.fleet.fleet, replace(scene.fleet.invocation(), by_a_person=True), order)


def drain_by_hand(scene: Scene) -> None:
    order = DrainNodes(nodes=(scene.busy_one.tags["autoscaler:node"],), reason="a test", request_id="r-2")
    passes.carry_out(scene.fleet.ports, scene.fleet.fleet, replace(scene.fleet.invocation(), by_a_person=True), order)


# These take one moment, whatever they meet.


def a_job_arrives(scene: Scene) -> None:
    scene.queue(1, "cpu", 100.0)


def a_person_takes_the_retiring_node(scene: Scene) -> None:
    """With words of their own; half an hour later they give it back."""
    if scene.retiring_node in scene.jenkins.nodes:
        scene.jenkins.set_offline(scene.retiring_node, "disk swap", "anna")
        scene.world.timeline.after(1800.0, lambda: _give_back(scene))


def a_person_brings_the_retiring_node_online(scene: Scene) -> None:
    node = scene.jenkins.nodes.get(scene.retiring_node)
    if node is not None and node.temporarily_offline:
        scene.jenkins.toggle(node.name, "", "anna")
        scene.stage_log.append((PERSON, "toggle"))
        scene.queue(4, "cpu", 100.0)  # more than the other agent can take


def a_person_starts_the_stopped_machine(scene: Scene) -> None:
    if scene.stopped.state == "stopped":
        scene.world.ec2.start(scene.stopped.id)


def a_person_terminates_the_stopped_machine(scene: Scene) -> None:
    """With what was begun on it meanwhile."""
    scene.stopped.interrupted = True
    scene.world.ec2.end(scene.stopped)


def the_controller_restarts(scene: Scene) -> None:
    scene.jenkins.restart()


def _give_back(scene: Scene) -> None:
    node = scene.jenkins.nodes.get(scene.retiring_node)
    if node is not None and node.reason == "disk swap":
        scene.jenkins.toggle(node.name, "", "anna")


FUNCTIONS = (scale_up, scale_down, register_agent, spot_interruption, launch_by_hand, drain_by_hand)
MOMENTS = (
    *(a_job_arrives, a_person_takes_the_retiring_node, a_person_brings_the_retiring_node_online, the_controller_restarts),
    *(a_person_starts_the_stopped_machine, a_person_terminates_the_stopped_machine),
)


# What is tried.


class Case(NamedTuple):
    """One schedule of two: the first has its turn, the second has one, and both go on to their ends in this order."""

    first: str
    turn: int
    second: str
    answer: int

    @property
    def schedule(self) -> tuple[Turn, ...]:
        return ((self.first, self.turn), (self.second, self.answer), (self.first, ALL), (self.second, ALL))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Meeting:
    """Pairs of actors that meet in one scene, and how many of their schedules `make test` tries.

    ``moments``: actors that make no calls. ``alike``: actors that have nothing to do alone, and others that make as many calls.
    """

    scene: Callable[[], Scene]
    pairs: tuple[tuple[Actor, Actor], ...]
    moments: tuple[Actor, ...]
    most: int
    alike: Mapping[Actor, Actor] = field(default_factory=dict)

    @property
    def actors(self) -> dict[str, Actor]:
        return {actor.__name__: actor for pair in self.pairs for actor in pair}


@cache
def set_up(meeting: Meeting) -> tuple[Scene, dict[str, int]]:
    """Set the scene; count the calls of each actor while nobody disturbs it."""
    scene = meeting.scene()
    return scene, {name: calls_of(scene, meeting.alike.get(actor, actor)) for name, actor in meeting.actors.items()}


def calls_of(scene: Scene, actor: Actor) -> int:
    def act() -> str:
        stage = Stage(scene)
        stage.run({actor.__name__: actor}, ())
        return str(len(stage.log))

    return int(in_a_child(act))


def try_out(meeting: Meeting, part: int = 0, parts: int = 1) -> dict[str, Any]:
    """Try a sample of one part of a meeting's schedules. Return how many there are, how many were tried, and which broke."""
    scene, calls = set_up(meeting)
    turns = [
        (one.__name__, turn, other.__name__) for pair in meeting.pairs for one, other in (pair, pair[::-1]) for turn in _turns(calls, one)
    ]
    every = [
        Case(first, turn, second, answer)
        for first, turn, second in turns[part::parts]
        for answer in (_turns(calls, meeting.actors[second]) if turn != ALL else (ALL,))
    ]
    chosen = {*some(map(str, every), most=meeting.most)}
    broken, ended = [], set()
    for case in every:
        # If the second actor ended or waited before its turn was over, a longer turn is the same schedule.
        if str(case) not in chosen or case[:3] in ended:
            continue
        result = tried(scene, {name: meeting.actors[name] for name in (case.first, case.second)}, case.schedule)
        broken += [result.broken] if result.broken else []
        if not result.preempted_again:
            ended.add(case[:3])
    calling = {name: count for name, count in calls.items() if meeting.actors[name] not in meeting.moments}
    return {"cases": len(every), "tried": len(chosen), "broken": broken, "calls": calling}


def _turns(calls: Mapping[str, int], actor: Actor) -> tuple[int, ...]:
    return (*range(1, calls[actor.__name__]), ALL)


def try_random(meeting: Meeting, seeds: Iterable[int]) -> list[str]:
    """Try schedules of three to five actors of a meeting, with any pre-emptions; return those that broke."""
    scene, _ = set_up(meeting)
    results = [tried(scene, *_random_schedule(meeting, Random(seed))) for seed in seeds]
    return [result.broken for result in results if result.broken]


def _random_schedule(meeting: Meeting, chance: Random) -> tuple[dict[str, Actor], tuple[Turn, ...]]:
    names = chance.sample(sorted(meeting.actors), chance.randint(3, 5))
    schedule = tuple((chance.choice(names), chance.choice([1, 1, 2, 3, 5, 8, 13])) for _ in range(40))
    return {name: meeting.actors[name] for name in names}, schedule


def tried(scene: Scene, actors: dict[str, Actor], schedule: tuple[Turn, ...]) -> Tried:
    """Run one schedule, live on until the fleet is at rest, and say what is broken then."""

    def act() -> str:
        stage = Stage(scene)
        stage.run(actors, schedule)
        scene.fleet.read_in_process()
        scene.settle()
        scene.dead += [b for b in scene.builds if b.ended is Ended.RESTARTED or "was interrupted" in b.killed_by]
        if stage.lost_the_last_race():
            scene.dead += [b for b in scene.builds if b.node == scene.retiring_node]
        scene.assert_whole()
        return _FINE + str(len(stage.preempted))

    said = in_a_child(act)
    if said.startswith(_FINE):
        return Tried(broken="", preempted_again=int(said.removeprefix(_FINE)) > 1)
    return Tried(broken=f"{said} after {schedule} of {[*actors]}", preempted_again=True)
