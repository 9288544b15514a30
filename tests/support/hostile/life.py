"""A hostile world while it lives: its unkindnesses strike, the functions run each minute, and the judge's notes are taken."""

import re
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from autoscaler.control.operate import why
from autoscaler.domain.facts.fleet import HELD_LABEL, Fleet, Lending, Pool
from autoscaler.domain.facts.orders import Scope
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.report.told import Message
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.state import InMemoryNotifier
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.heavy import fits
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.simulate.drive import InMemory
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.deployed import essential_thresholds
from support.hostile import (
    of_ec2,
    of_graphs,
    of_jenkins,
    of_labels,
    of_orders,
    of_others,
    of_ourselves,
    of_people,
    of_stopped,
    of_the_file,
    of_the_queue,
)
from support.hostile.claims import Claim, claim_of
from support.hostile.drawn import MINUTE, Arrival, Drawn, Job, draw, pools_for
from support.hostile.hooks import AtEc2, AtJenkins, Calls
from support.hostile.unkind import Draw, Unkindness
from support.worlds import a_world

SWITCHES: dict[str, Callable[[Draw], Unkindness]] = of_ec2.SWITCHES | of_jenkins.SWITCHES | of_people.SWITCHES | of_ourselves.SWITCHES
SWITCHES |= of_the_file.SWITCHES | of_orders.SWITCHES | of_stopped.SWITCHES | of_graphs.SWITCHES | of_others.SWITCHES | of_labels.SWITCHES
SWITCHES |= of_the_queue.SWITCHES
# They are drawn by themselves, so that a seed goes on drawing what it drew of the others before.
LATER = {
    "gives-up-in-queue",
    "quicker-cloud",
    "reboots-after-connect",
    "slow-hand-outs",
    "stages-on-two-labels",
    "throttled-over-folders",
    "zone-without-network",
}
Edit = Callable[[Fleet], Fleet]
_AT_ONCE, _OF_LATER = (2, 3, 4, 5, 6), (0, 0, 1, 1, 2)  # so many unkindnesses has a world
_ASKED_EVERY = 4  # minutes
_ASKED_AT_ONCE = 2
_REFUSES_SECONDS = 3 * MINUTE
_GUESS = re.compile(r"(?:(?P<agents>\d+) of \d+ agents: )?\d+ executors? for what is to come: (?P<job>.+) (follows .+|comes at this time)$")
RECORD_OF = "the record of "


def switches_of(seed: int, among: Collection[str] | None = None) -> tuple[str, ...]:
    """Draw the switches of a world."""
    allowed = {*(SWITCHES if among is None else among)}
    drawn = _sample(Random(f"{seed}/switches"), allowed - LATER, _AT_ONCE)
    return tuple(sorted(drawn + _sample(Random(f"{seed}/later switches"), allowed & LATER, _OF_LATER)))


def _sample(chance: Random, names: Collection[str], counts: tuple[int, ...]) -> list[str]:
    return chance.sample(sorted(names), min(len(names), chance.choice(counts)))


@dataclass(slots=True)
class TimedNotifier(InMemoryNotifier):
    """Keeps when people were told what."""

    now: Callable[[], float] = float
    timed: list[tuple[float, Message]] = field(default_factory=list)

    def send(self, message: Message) -> None:
        count = len(self.sent)
        try:
            super(TimedNotifier, self).send(message)
        finally:
            self.timed += [(self.now(), one) for one in self.sent[count:]]


@dataclass(slots=True)
class Asked:
    """What ``why`` said of a build that waited, and when."""

    at: float
    build: Build
    claim: Claim


@dataclass(slots=True)
class Stand:
    """How long a node has stood free beside a build that it may take; ``known_at``: that it had done so for three minutes."""

    build: Build
    since_at: float
    last_at: float
    known_at: float | None = None

    def goes_on(self, now: float) -> None:
        """Count from now if it was not free a minute ago."""
        self.since_at = self.since_at if now - self.last_at <= MINUTE else now
        self.last_at = now
        if self.known_at is None and now - self.since_at >= _REFUSES_SECONDS:
            self.known_at = now


@dataclass(slots=True)
class Wanted:
    """What people have ordered, or made themselves, so that the judge can see whether they got and kept it."""

    orders: list[str] = field(default_factory=list)  # of runs
    reserved: list[tuple[str, float, float]] = field(default_factory=list)  # instance, from, until
    nodes: list[tuple[str, str]] = field(default_factory=list)  # of their own: controller and name
    hosts_off: set[str] = field(default_factory=set)  # hosts that lose their power
    labels: dict[str, frozenset[str]] = field(default_factory=dict)  # that agents of a pool carry only while they are lent
    others: dict[str, str] = field(default_factory=dict)  # the second autoscaler on a controller
    others_there: list[float] = field(default_factory=list)  # minutes in which it had nodes
    meddled: list[str] = field(default_factory=list)  # what was done to nodes of that
    held: list[tuple[str, float, float]] = field(default_factory=list)  # labels on hold: from, until


@dataclass(slots=True)
class Launched:
    """Agents that were launched at once. ``named``: the job that waits longest for them; ``guesses``: how many for which job to come."""

    agents: int = 0
    named: str = ""
    guesses: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Notes:
    """What the judge needs of the past, minute by minute."""

    crowded: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # minutes in which a pool had more work than room
    leaked: dict[str, float] = field(default_factory=dict)  # since when, by what is left over now
    events: list[float] = field(default_factory=list)  # of the world, that change what may be promised
    asked: list[Asked] = field(default_factory=list)
    stands: dict[str, dict[Build, Stand]] = field(default_factory=lambda: defaultdict(dict))  # by node and build
    launches: dict[tuple[str, str, float], Launched] = field(default_factory=lambda: defaultdict(Launched))
    crashes: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class Life:
    """One world with these switches."""

    def __init__(self, seed: int, switches: Collection[str] | None = None) -> None:
        self.switches = switches_of(seed) if switches is None else tuple(sorted(switches))
        self.drawn: Drawn = draw(seed, self.switches)
        fleet = self.drawn.fleet
        self.world = a_world(fleet, seed)
        self.fleet = InMemory(self.world, fleet, Faults(), thresholds=essential_thresholds())
        notifier = TimedNotifier(now=lambda: self.world.timeline.now)
        self.fleet.ports = replace(self.fleet.ports, notifier=notifier)
        self.fleet.notifier = notifier
        notifier.faults = self.fleet.faults
        self.fleet.read_in_process(keeps_looks=False)
        self.calls, self.ec2, self.jenkins = Calls(self.fleet.faults), AtEc2(self.world), dict[str, AtJenkins]()
        for name, controller in self.world.controllers.items():
            self.fleet.apis[name].faults = Faults()
            self.jenkins[name] = AtJenkins(controller, Calls(self.fleet.apis[name].faults))
            mine = [job for job in self.drawn.jobs if job.weight > 1 and job.controller == name]
            controller.heavy = {job.name: job.weight for job in mine if job.by_plugin}
        self.functions = (self.fleet.publish_metrics, self.fleet.scale_up, self.fleet.scale_down)
        self.notes, self.tick_minutes, self.in_pass = Notes(), 1, False
        self.zombies: dict[Build, float] = {}  # when runs ended that their executors show for ever
        self.changed_at: dict[Build, float] = {}  # when what a build asks for changed
        self.edits: list[Edit] = []  # of the fleet file, as long as they hold
        self.wanted = Wanted()
        self.draws = {name: Draw(self, Random(f"{seed}/{name}"), name) for name in self.switches}
        self.unkind = [SWITCHES[name](drawing) for name, drawing in self.draws.items()]
        self._chance, self._minute, self._reports = Random(f"{seed}/why"), 0, 0
        for arrival in self.drawn.arrivals:
            self.world.timeline.at(arrival.at, lambda arrival=arrival: self._arrive(arrival))

    def live(self) -> "Life":
        """Live until the end of the calm."""
        while self.world.timeline.now < self.drawn.end_at:
            self.world.move_to(self.world.timeline.now + MINUTE)
            self._minute += 1
            for controller in self.world.controllers.values():
                controller.schedule()  # Jenkins does so every five seconds
            if self._minute % self.tick_minutes == 0:
                self._pass()
            self._take_notes()
        return self

    @property
    def bit(self) -> frozenset[str]:
        """The switches that did anything."""
        return frozenset(name for name, drawing in self.draws.items() if drawing.bites)

    def builds(self) -> Iterator[Build]:
        for controller in self.world.controllers.values():
            yield from controller.builds

    def pools_of(self, job: Job) -> list[Pool]:
        return pools_for(self.drawn.fleet, job.controller, job.label)

    def may_serve(self, pool: Pool, job: Job) -> bool:
        return pool in self.pools_of(job)

    def pools_serving(self, build: Build) -> list[Pool]:
        """The pools whose fresh agents could take a build, by their labels."""
        fleet, expression = self.drawn.fleet, build.expression
        pools = fleet.launched.pools_of(build.controller)
        return [pool for pool in pools if expression and expression.matches(pool.labels | {fleet.ownership_label})]

    def served_by(self, pool: Pool) -> Callable[[Build], bool]:
        return lambda build: pool in self.pools_serving(build)

    def instances_of(self, pool: Pool) -> Callable[[Instance], bool]:
        return lambda instance: instance.tags.get("autoscaler:pool") == pool.name

    def deploy(self) -> None:
        """Deploy the fleet file as it is drawn, with all edits that hold now."""
        file = self.drawn.fleet
        for edit in self.edits:
            file = edit(file)
        self.fleet.deploy(file)
        self.notes.events.append(self.world.timeline.now)

    def reconnect(self, at: AtJenkins, node: Node) -> None:
        """Let a node's agent come back, if its machine is on; it tries each minute while Jenkins does not answer."""
        if at.controller.up != "up":
            self.world.timeline.after(MINUTE, partial(self.reconnect, at, node))
            return
        machine = next((one for one in self.world.alive() if one.tags.get("autoscaler:node") == node.name), None)
        if machine is not None and machine.is_on() and at.controller.nodes.get(node.name) is node:
            at.controller.connect(node.name)

    def forget_item(self, build: Build) -> None:
        """Let the readers of the world read the names of a queue item anew."""
        for controller in self.fleet.ports.controllers:
            controller._items.pop(build.id, None)

    def _arrive(self, arrival: Arrival) -> None:
        controller = self.world.controllers[arrival.job.controller]
        for seconds in arrival.seconds:
            controller.submit(arrival.job.name, arrival.job.label, seconds, kind=arrival.job.kind)
        self.notes.events.append(arrival.at)

    def _pass(self) -> None:
        self.in_pass = True
        for function in self.functions:
            try:
                function()
            except AutoscalerError as error:
                self.notes.errors[f"{function.__name__}: {type(error).__name__}"] += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
                place = traceback.extract_tb(error.__traceback__)[-1]
                self.notes.crashes.append(f"{function.__name__}: {error!r} in {place.name} ({place.filename}:{place.lineno})")
        self.in_pass = False

    def _take_notes(self) -> None:
        now = self.world.timeline.now
        left = (
            *(one.id for one in leaked_instances(self.world)),
            *leaked_nodes(self.world),
            *self._lost_records(),
            *self._lent_in_vain(),
            *self._held_in_vain(),
            *self._nodes_of_left_hosts(),
        )
        self.notes.leaked = {name: self.notes.leaked.get(name, now) for name in left}
        self._note_crowds(now)
        self._note_stands(now)
        self._note_guesses(now)
        if self._minute % _ASKED_EVERY == 0 and now > self.drawn.begin_at:
            self._ask(now)

    def _note_guesses(self, now: float) -> None:
        """Note how many agents a pool launches, and for which jobs that are yet to come some of them are."""
        reports, self._reports = self.fleet.reports[self._reports :], len(self.fleet.reports)
        for step in (step for report in reports for step in report.plan.steps if isinstance(step, Launch)):
            launched = self.notes.launches[step.controller, step.pool, now]
            launched.agents += step.count
            launched.named = launched.named or step.detail.partition(" ")[0]
            if guess := _GUESS.search(step.detail):  # both steps of a launch that tries a place tell of all its guesses
                launched.guesses[guess["job"]] = int(guess["agents"] or launched.agents)

    def _lost_records(self) -> Iterator[str]:
        """Records of what has ended."""
        for record in self.fleet.state.records.values():
            instance = self.world.ec2.instances.get(record.machine)
            if record.is_host:
                is_seen = record.controller in self.fleet.fleet.controllers  # else a person confirms that nothing runs there
                is_lost = is_seen and not any(host.id == record.machine for host in self.fleet.fleet.hosts.values())
            else:
                is_lost = instance is None or not instance.alive()
            if is_lost:
                yield f"{RECORD_OF}{record.instance_id}"

    def _lent_in_vain(self) -> Iterator[str]:
        """Agents that carry labels of a loan, though the fleet file lends them no more."""
        for name, lent in self.wanted.labels.items():
            pool = self.fleet.fleet.pools.get(name)
            if pool is None or pool.lend is Lending.NEVER or not lent <= pool.lent_labels:
                nodes = (node for at in self._seen() for node in at.ours(self.drawn.fleet.pools[name]))
                yield from (f"a loan of {node.name}" for node in nodes if not lent.isdisjoint(node.labels))

    def _held_in_vain(self) -> Iterator[str]:
        """Nodes that are without a label, or stand for it, though nobody holds any."""
        if any(hold.scope is Scope.LABEL for hold in self.fleet.state.overrides.at(self.world.timeline.now).holds):
            return
        for at in self._seen():
            nodes = (node for node in at.controller.nodes.values() if HELD_LABEL in node.labels and not node.temporarily_offline)
            yield from (f"the hold of {node.name}" for node in nodes)

    def _seen(self) -> Iterator[AtJenkins]:
        """The controllers of the fleet file: on others nobody changes anything."""
        return (at for at in self.jenkins.values() if at.controller.name in self.fleet.fleet.controllers)

    def _nodes_of_left_hosts(self) -> Iterator[str]:
        for name in self.drawn.fleet.hosts.keys() - self.fleet.fleet.hosts.keys():
            controllers = (each for each in self.fleet.fleet.controllers if name in self.world.controllers[each].nodes)
            yield from (f"the node of {name} on {controller}" for controller in controllers)

    def _note_crowds(self, now: float) -> None:
        """Note pools whose work is near what their limits carry: there a job may wait for another one."""
        fleet, asked = self.drawn.fleet, Counter[str]()
        weights = {job.name: job.weight for job in self.drawn.jobs}
        for controller in self.world.controllers.values():
            running = (build for node in controller.nodes.values() for build in node.builds.values())
            for build in (*controller.queue, *running):
                if pools := self.pools_serving(build):
                    asked[pools[0].name] += weights.get(build.job, 1)
        agents = {name: -(-count // fleet.pools[name].executors) for name, count in asked.items()}
        full = sum(agents.values()) + len(agents) * len(fleet.controllers) > fleet.limits.max_agents - 2
        for name, count in agents.items():
            if full or count > fleet.pools[name].max_agents - 3:
                self.notes.crowded[name].append(now)

    def _note_stands(self, now: float) -> None:
        """Note nodes that stand free beside builds that they may take, whatever keeps these from them."""
        for controller in self.world.controllers.values():
            if controller.up != "up" or controller.quieting_down:
                continue
            waiting = (build for build in controller.queue if build.buildable_at <= now and not build.blocked and not build.is_taken)
            for build in (build for build in waiting if build.resumes_on is None):
                for node in controller.matching(build):
                    if not node.offline and fits(controller, build, node):
                        self.notes.stands[node.name].setdefault(build, Stand(build, now, now)).goes_on(now)

    def _ask(self, now: float) -> None:
        waiting = [
            one
            for controller in self.world.controllers.values()
            for one in controller.queue
            if one.buildable_at <= now and not one.blocked and one.resumes_on is None
        ]
        names = Counter(one.job for one in waiting)  # the answer tells of all items of a job, whatever the controller
        for name in self.fleet.fleet.controllers:  # nobody sees the jobs of others
            alone = [one for one in waiting if one.controller == name and names[one.job] == 1 and self.pools_serving(one)]
            for build in self._chance.sample(alone, min(len(alone), _ASKED_AT_ONCE)):
                try:
                    lines = why(self.fleet.ports_of("why"), self.fleet.fleet, self.fleet.invocation(), build.job)
                except AutoscalerError:
                    continue
                self.notes.asked.append(Asked(now, build, claim_of(lines, now)))


def is_over(message: Message) -> bool:
    return "over: " in message.subject


def not_over(life: Life, when: float) -> dict[str, Message]:
    """Return the messages that are not over at a time, by what they are about."""
    last = {message.about: message for time, message in life.fleet.notifier.timed if time <= when}
    return {about: message for about, message in last.items() if not is_over(message)}
