"""Two at once: actors of one world that take turns at their outside calls, as a schedule says.

Run as a process of its own, for it forks: ``python -m support.interleaving ONE OTHER`` tries every schedule of the two with
at most two pre-emptions; ``python -m support.interleaving random N`` tries N schedules of three or more with any number.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from greenlet import getcurrent, greenlet

from autoscaler.control import passes
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.orders import DrainNodes, LaunchSome
from autoscaler.errors import AutoscalerError
from support.builders import a_mark, a_pool
from support.busy import FIRM, Hour
from support.forks import in_a_child
from support.worlds import in_memory
from workbench.world.ec2 import Instance
from workbench.world.jenkins import Ended

# More calls than any actor makes.
ALL = sys.maxsize
Actor = Callable[["Scene"], None]
Turn = tuple[str, int]  # an actor, and how many of its calls it makes before another one gets its turn


@dataclass(slots=True)
class Stage:
    """Runs actors in one world, one at a time, each until its turn is over, it waits, or it is done."""

    hour: "Scene"
    left: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    running: dict[str, greenlet] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)  # until when

    def __post_init__(self) -> None:
        fleet = self.hour.fleet
        fleet.faults.meanwhile = self._call
        fleet.ports = replace(fleet.ports, sleep=self._sleep)

    def run(self, actors: dict[str, Actor], schedule: Iterable[Turn]) -> None:
        """Run them all to their end: by the schedule, then in their order."""
        for name, actor in actors.items():
            self.calls[name] = 0
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

    def _call(self, _call: str) -> None:
        """An outside call is about to be made: whose turn is over stops before it."""
        name = self._name()
        if name is None:
            return  # the world's own doing
        self.calls[name] += 1
        if self.left == 0:
            getcurrent().parent.switch()
        self.left -= 1

    def _sleep(self, seconds: float) -> None:
        name = self._name()
        if name is None:
            self.hour.world.timeline.sleep(seconds)
            return
        self.waiting[name] = self.hour.now() + seconds
        getcurrent().parent.switch()


def _act(actor: Actor, hour: "Scene") -> None:
    try:
        actor(hour)
    except AutoscalerError:
        return  # an error in the log, or in a person's terminal


# The scene: as much as can meet at one instant.


@dataclass(slots=True)
class Scene(Hour):
    """One agent retires and will be given up; one has not registered by its deadline, and asks now; one is busy."""

    retiring: Instance | None = None
    late: Instance | None = None
    busy_one: Instance | None = None

    def set_up(self) -> "Scene":
        """Live until that instant."""
        asks = self.world.ec2.on_running
        self.run(until=3)
        self.queue(1, "cpu", 700.0)
        self.queue(2, "cpu", 100.0)
        self.run(until=5)
        self.by_hand("scale_up by hand", LaunchSome(**GPU, count=1, keep_seconds=0.0, reason="a test", request_id=None))
        [self.late] = [i for i in self.world.alive() if i.tags["autoscaler:pool"] == "gpu"]
        self.world.ec2.on_running = lambda instance: None if instance is self.late else asks(instance)
        self.run(until=9)
        self.world.move_to(self.now() + 60.0)
        self.retiring, self.busy_one = self.idle("cpu"), self.busy("cpu")
        self.jenkins.set_offline(self.retiring.tags["autoscaler:node"], a_mark(MarkClass.RETIRE, "earlier").text, "bot")
        self.queue(3, "gpu", 200.0)
        return self

    @property
    def retiring_node(self) -> str:
        return self.retiring.tags["autoscaler:node"]


GPU = {"pool": "gpu", "controller": "main"}


def a_scene() -> Scene:
    quick = {"idle_seconds": 400.0, "boot_seconds": 60.0, "boot_timeout_seconds": 240.0, "queue_maturity_seconds": 0.0}
    cpu = a_pool("cpu", executors=2, offerings=(FIRM,), max_agents=4, **quick)
    gpu = a_pool("gpu", offerings=(FIRM,), max_agents=3, **quick)
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
    passes.carry_out(scene.fleet.ports, scene.fleet.fleet, replace(scene.fleet.turn(), by_a_person=True), order)


def drain_by_hand(scene: Scene) -> None:
    order = DrainNodes(nodes=(scene.busy_one.tags["autoscaler:node"],), reason="a test", request_id="r-2")
    passes.carry_out(scene.fleet.ports, scene.fleet.fleet, replace(scene.fleet.turn(), by_a_person=True), order)


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
        a_job_arrives(scene)


def the_controller_restarts(scene: Scene) -> None:
    scene.jenkins.restart()


def _give_back(scene: Scene) -> None:
    node = scene.jenkins.nodes.get(scene.retiring_node)
    if node is not None and node.reason == "disk swap":
        scene.jenkins.toggle(node.name, "", "anna")


FUNCTIONS = (scale_up, scale_down, register_agent, spot_interruption, launch_by_hand, drain_by_hand)
MOMENTS = (a_job_arrives, a_person_takes_the_retiring_node, a_person_brings_the_retiring_node_online, the_controller_restarts)
ACTORS: dict[str, Actor] = {actor.__name__: actor for actor in (*FUNCTIONS, *MOMENTS)}


def schedules(one: str, other: str, calls: dict[str, int]) -> Iterator[tuple[Turn, ...]]:
    """Every schedule of two actors with at most two pre-emptions: either begins, and after its turn the other one has its."""
    for first, second in ((one, other), (other, one)):
        yield ((first, ALL), (second, ALL))
        for turn in range(1, calls[first]):
            yield ((first, turn), (second, ALL), (first, ALL))
            for answer in range(1, calls[second]):
                yield ((first, turn), (second, answer), (first, ALL), (second, ALL))


def a_random_schedule(chance: Random) -> tuple[tuple[str, ...], tuple[Turn, ...]]:
    """Three to five actors, and turns of any length."""
    names = tuple(chance.sample(sorted(ACTORS), chance.randint(3, 5)))
    return names, tuple((chance.choice(names), chance.choice([1, 1, 2, 3, 5, 8, 13])) for _ in range(40))


def tried(scene: Scene, names: Iterable[str], schedule: Iterable[Turn]) -> str:
    """Run one schedule, live on until the fleet is at rest, and say what is broken then."""
    names, schedule = tuple(names), tuple(schedule)

    def act() -> str:
        Stage(scene).run({name: ACTORS[name] for name in names}, schedule)
        scene.settle()
        scene.dead += [b for b in scene.builds if b.ended is Ended.RESTARTED or "was interrupted" in b.killed_by]
        scene.assert_whole()
        return ""

    broken = in_a_child(act)
    return f"{names} {[turn for turn in schedule if turn]}: {broken}" if broken else ""


def calls_of(scene: Scene, name: str) -> int:
    """How many outside calls an actor makes when nobody disturbs it."""

    def act() -> str:
        stage = Stage(scene)
        stage.run({name: ACTORS[name]}, ())
        return str(stage.calls[name])

    return int(in_a_child(act))


def main(one: str, other: str) -> None:
    scene = a_scene()
    if one == "random":
        chosen = [a_random_schedule(Random(seed)) for seed in range(int(other))]
        calls: dict[str, int] = {}
    else:
        calls = {name: calls_of(scene, name) for name in (one, other)}
        chosen = [((one, other), schedule) for schedule in schedules(one, other, calls)]
    broken = [said for names, schedule in chosen if (said := tried(scene, names, schedule))]
    print(json.dumps({"calls": calls, "schedules": len(chosen), "broken": broken}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
