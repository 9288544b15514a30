"""Two at once: actors of one world that take turns at their outside calls, as a schedule says.

Run as a process of its own, for it forks: ``python -m support.interleaving ONE OTHER ONE_IN`` tries the schedules of the two with at
most two pre-emptions, one in so many lengths of a first turn; ``random N`` tries N schedules of three or more with any number. With
``warm`` as a last word the agent that retires is stopped, and else terminated.
"""

import gc
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import Any

from greenlet import getcurrent, greenlet

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.orders import DrainNodes, LaunchSome
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_mark, a_pool
from support.busy import FIRM, Hour
from support.forks import in_a_child
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
ACTORS: dict[str, Actor] = {actor.__name__: actor for actor in (*FUNCTIONS, *MOMENTS)}


def try_two(
    scene: "Scene", one: str, other: str, calls: dict[str, int], one_in: int, since: Mapping[str, int] = MappingProxyType({})
) -> Iterator[Tried]:
    """Schedules of two actors with at most two pre-emptions: either begins, and after its turn the other one has its.

    ``since``: how many calls an actor makes before it is pre-empted, where those before only read.
    """
    for first, second in ((one, other), (other, one)):
        yield tried(scene, (one, other), ((first, ALL), (second, ALL)))
        for turn in range(since.get(first, 1), calls[first], one_in):
            for answer in range(since.get(second, 1), calls[second]):
                told = tried(scene, (one, other), ((first, turn), (second, answer), (first, ALL), (second, ALL)))
                yield told
                if not told.preempted_again:
                    break  # it was done, or had to wait, before its turn was over: a longer turn is the same schedule
            else:
                yield tried(scene, (one, other), ((first, turn), (second, ALL), (first, ALL)))


def a_random_schedule(chance: Random) -> tuple[tuple[str, ...], tuple[Turn, ...]]:
    """Three to five actors, and turns of any length."""
    names = tuple(chance.sample(sorted(ACTORS), chance.randint(3, 5)))
    return names, tuple((chance.choice(names), chance.choice([1, 1, 2, 3, 5, 8, 13])) for _ in range(40))


def tried(scene: Scene, names: Iterable[str], schedule: Iterable[Turn]) -> Tried:
    """Run one schedule, live on until the fleet is at rest, and say what is broken then."""
    names, schedule = tuple(names), tuple(schedule)

    def act() -> str:
        stage = Stage(scene)
        stage.run({name: ACTORS[name] for name in names}, schedule)
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
    return Tried(broken=f"{said} after {schedule} of {names}", preempted_again=True)


def calls_of(scene: Scene, name: str) -> int:
    """How many outside calls an actor makes when nobody disturbs it."""
    return len(calls_by(scene, name))


def calls_by(scene: Scene, name: str) -> list[str]:
    """The outside calls that an actor makes when nobody disturbs it."""

    def act() -> str:
        stage = Stage(scene)
        stage.run({name: ACTORS[name]}, ())
        return json.dumps([call for _, call in stage.log])

    return json.loads(in_a_child(act))


def told_of(all_tried: Collection[Tried], calls: Mapping[str, int] = MappingProxyType({})) -> dict[str, Any]:
    """What came of some schedules, and how many calls each actor makes."""
    return {"calls": dict(calls), "schedules": len(all_tried), "broken": [told.broken for told in all_tried if told.broken]}


def try_each(scene: "Scene", one: str, others: str, one_in: str) -> dict[str, Any]:
    """Try an actor with each of the others."""
    made = {name: calls_of(scene, name) for name in (one, *others.split(","))}
    pairs = {other: {name: made[name] for name in (one, other)} for other in others.split(",")}
    return {other: told_of(list(try_two(scene, one, other, calls, int(one_in))), calls) for other, calls in pairs.items()}


def main(one: str, others: str, one_in: str = "1", warm: str = "") -> None:
    gc.freeze()  # what all children share is not gone through in each
    scene = a_scene(warm=bool(warm))
    if one == "random":
        found = told_of([tried(scene, *a_random_schedule(Random(seed))) for seed in range(int(others))])
    else:
        found = try_each(scene, one, others, one_in)
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
