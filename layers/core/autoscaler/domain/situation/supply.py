"""Supply: which executors can take a build now or later, and which idle agents go to another controller."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from autoscaler.domain.facts.fleet import FULL_LABEL, Share
from autoscaler.domain.facts.nodes import MarkClass, has_static_node
from autoscaler.domain.facts.plan import Held, Launch, Step
from autoscaler.domain.facts.snapshot import Build, Node
from autoscaler.domain.forecast.forecast import NOTHING
from autoscaler.domain.grouping import grouped
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.canary import is_to_be_counted, starts_late
from autoscaler.domain.situation.looks import build_remaining_seconds
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.wants import Taker, taker_of
from autoscaler.domain.situation.warm_pool import builds_had

# Rotation: which idle agents of a shared pool go from one controller to another, and to which.


# From the look that decides it until builds begin elsewhere: two looks, one node deleted, one made, and the agent's next question.
ROTATION_SECONDS = 90.0
# An agent that has just come is not sent on: controllers that both have short jobs would toss it to and fro.
_STAYS_SECONDS = 300.0


def destinations(situation: Situation, pool: str) -> dict[str, str]:
    """Say to which controller each agent of a pool goes that was taken out of use for that, by instance id.

    Those that nobody waits for any more are left out: they stay where they are.
    """
    if not _rotates(situation, pool):
        return {}
    taken = sorted((agent for agent in situation.agents if is_leaving(agent, pool)), key=lambda agent: agent.record.instance_id)
    short = {view.controller: _short(situation, view) for view in _views(situation, pool)} if taken else {}
    found: dict[str, str] = {}
    for agent in taken:
        wanting = {name: count for name, count in short.items() if count > 0 and name != agent.record.controller}
        if wanting:
            neediest = max(wanting, key=lambda name: (_longest_wait(situation, name, pool), name))
            short[neediest] -= agent.pool.executors
            found[agent.record.instance_id] = neediest
    return found


def _rotates(situation: Situation, pool: str) -> bool:
    spec = situation.fleet.pools.get(pool)
    return spec is not None and spec.share is Share.ROTATE and not situation.stopped_by(pool)


def is_leaving(agent: Agent, pool: str) -> bool:
    """Tell whether an agent of a pool was taken out of use to serve another controller, and is still there."""
    is_marked = agent.mark is not None and agent.mark.kind is MarkClass.ROTATE
    return agent.pool.name == pool and is_marked and not agent.instance_ended and not agent.pool.has_left


def spare_elsewhere(situation: Situation, pool: PoolView) -> Iterator[Agent]:
    """Find the idle agents that other controllers have of a shared pool and do not need, those idle longest first."""
    for view in _views(situation, pool.name):
        if view.controller == pool.controller or view.on_hold or situation.no_giving_up(view.controller):
            continue
        idle = [agent for agent in view.ready if agent.idle and _may_leave(situation, agent)]
        spare = max(0, len(idle) - _own_need(situation, view))
        yield from sorted(idle, key=lambda agent: situation.past(agent).idle_since or situation.now)[:spare]


def _may_leave(situation: Situation, agent: Agent) -> bool:
    kept = situation.now < agent.record.keep_until or situation.now - agent.record.rotated_at < _STAYS_SECONDS
    kept = kept or has_static_node(agent.record)
    return not kept and not situation.protected(agent) and not agent.record.is_lent(situation.now)


def _own_need(situation: Situation, pool: PoolView) -> int:
    """Count the agents that a controller's own jobs wait for, or are foreseen to."""
    executors = len(situation.demands[pool.controller].waits_for(pool.name)) + pool.spec.warm_executors * pool.has_floor
    executors += situation.forecasts(pool.controller).get(pool.name, NOTHING).executors
    return -(-executors // pool.executors)


def _short(situation: Situation, pool: PoolView) -> int:
    """Count the executors that a controller lacks for the jobs that wait there, those on their way counted as there."""
    view = situation.snapshot.controllers[pool.controller]
    if not view.complete or view.quieting_down or pool.on_hold:
        return 0
    coming = sum(agent.record.state.is_asked_for and not agent.record.reservation for agent in pool.agents) * pool.executors
    free = sum(pool.executors - agent.taken_executors for agent in pool.ready)
    return len(situation.demands[pool.controller].waits_for(pool.name)) - coming - free


def _longest_wait(situation: Situation, controller: str, pool: str) -> float:
    return max(situation.demands[controller].waits_for(pool), default=0.0)


def _views(situation: Situation, pool: str) -> list[PoolView]:
    views: Mapping[tuple[str, str], PoolView] = situation.pools
    return [view for (controller, name), view in views.items() if name == pool and controller in situation.demands]


# Executors, and when each is free.


# An agent past its expected boot may be there any moment; this keeps it from looking free already.
ANY_MOMENT_SECONDS = 15.0
# After a controller's restart its agents are back within this (recorded: 6-7 s).
_RECONNECT_SECONDS = 30.0


@dataclass(eq=False, slots=True)
class ExecutorSlot:
    """One executor in planning: when it is free next. Planning changes nothing else.

    ``first_seconds``: when it is free for the first time; ``build``: the key of the build that runs there until then; ``bought``: its
    agent is yet to be launched or started; ``machine``: which executors are of one, "" where nobody knows.
    """

    server: str
    free_seconds: float
    spare: bool = True  # nothing runs on it, and nothing was planned on it
    build: str = ""
    bought: bool = False
    machine: str = ""
    first_seconds: float = field(init=False)

    def __post_init__(self) -> None:
        """Keep when it is free before anything is planned on it."""
        self.first_seconds = self.free_seconds


@dataclass(slots=True)
class Supply:
    """Executors by server (a pool, or nodes that take the same items, and not those of a pool), soonest first. ``takers``: the latter.

    Those of a pool are counted when somebody first asks for them: of most pools nobody does.
    """

    takers: dict[str, Taker] = field(default_factory=dict)
    refused: dict[str, frozenset[str]] = field(default_factory=dict)  # jobs that a server does not take
    sizes: dict[str, int] = field(default_factory=dict)  # executors of each machine of a pool, where others may take some of them first
    _heaps: dict[str, list[tuple[float, int, ExecutorSlot]]] = field(default_factory=dict)
    _uncounted: dict[str, Callable[[], Iterable[ExecutorSlot]]] = field(default_factory=dict)
    _order: Iterator[int] = field(default_factory=count)

    def add(self, slot: ExecutorSlot) -> ExecutorSlot:
        """Take a slot in, or in again after its time was changed."""
        heappush(self._heap(slot.server), (slot.free_seconds, next(self._order), slot))
        return slot

    def add_when_asked(self, server: str, slots: Callable[[], Iterable[ExecutorSlot]]) -> None:
        """Take in what a server has, once anybody asks for it."""
        self._uncounted[server] = slots

    def soonest(self, servers: Iterable[str]) -> ExecutorSlot | None:
        """Find the slot that is free first among these servers; None where there is none that ever will be."""
        found: ExecutorSlot | None = None
        for server in servers:
            heap = self._heaps.get(server) or self._heap(server)
            # Entries whose slot was moved since are stale; the slot has a newer one.
            while heap and heap[0][0] != heap[0][2].free_seconds:
                heappop(heap)
            if heap and heap[0][0] < inf and (found is None or heap[0][0] < found.free_seconds):
                found = heap[0][2]
        return found

    def room(self, servers: Iterable[str], executors: int) -> tuple[ExecutorSlot, ...]:
        """Find so many executors of one machine, or all that it has, which are free together first: the last one last. Empty: nowhere.

        What others leave of a machine is not all that it has.
        """
        if executors == 1:
            slot = self.soonest(servers)
            return (slot,) if slot else ()
        machines = grouped(((server, slot.machine), slot) for server in servers for slot in self._slots(server))
        wide = [slots for (server, _), slots in machines.items() if len(slots) >= min(executors, self.sizes.get(server, 0))]
        rooms = (tuple(sorted(slots, key=lambda slot: slot.free_seconds)[:executors]) for slots in wide)
        return min((room for room in rooms if room[-1].free_seconds < inf), key=lambda room: room[-1].free_seconds, default=())

    def occupy(self, slot: ExecutorSlot, seconds: float) -> None:
        """Plan ``seconds`` of work on a slot; negative: take planned work back."""
        slot.free_seconds += seconds
        slot.spare = False
        self.add(slot)

    def occupy_together(self, room: Sequence[ExecutorSlot], seconds: float) -> list[tuple[ExecutorSlot, float]]:
        """Plan work that needs these executors together, once the last is free; return what was planned on each, to take it back."""
        began = room[-1].free_seconds
        planned = [(slot, began - slot.free_seconds + seconds) for slot in room]
        for slot, more in planned:
            self.occupy(slot, more)
        return planned

    def unnamed_machine(self) -> str:
        """Name a machine that is yet to come: its executors are of one."""
        return f"coming-{next(self._order)}"

    def spare(self, server: str, within_seconds: float) -> int:
        """Count executors without planned work that are there within that time."""
        return sum(slot.spare and slot.free_seconds <= within_seconds for slot in self._slots(server))

    def all_slots(self) -> Iterator[ExecutorSlot]:
        """Return the executors of all servers that anybody has asked for."""
        for server in tuple(self._heaps):
            yield from self._slots(server)

    def executors(self, server: str) -> int:
        """Count all its executors, also coming ones."""
        return len(self._slots(server))

    def _slots(self, server: str) -> Collection[ExecutorSlot]:
        return {id(entry[2]): entry[2] for entry in self._heap(server)}.values()

    def _heap(self, server: str) -> list[tuple[float, int, ExecutorSlot]]:
        heap = self._heaps.get(server)
        if heap is None:
            heap = self._heaps[server] = []
            heap += [(slot.free_seconds, next(self._order), slot) for slot in self._uncounted.pop(server, tuple)()]
            heapify(heap)
        return heap


def agent_remaining_seconds(situation: Situation, agent: Agent) -> tuple[float, ...]:
    """Estimate the end of every build on an agent."""
    if agent.node is None or not agent.node.builds:
        return ()
    controller, pool, now = agent.record.controller, agent.pool.name, situation.now
    learned, runs = situation.snapshot.learned[controller], situation.queued_runs[controller]
    return tuple([build_remaining_seconds(build, pool, learned, now, runs) for build in agent.node.builds])


def builds_left(situation: Situation, agent: Agent) -> int | None:
    """Return how many more builds may begin on an agent; None: any number."""
    if agent.pool.max_builds is None or agent.node is None:
        return None
    return max(0, agent.pool.max_builds - builds_had(situation, agent))


def ready_slots(situation: Situation, agent: Agent) -> list[tuple[float, str]]:
    """Return when each executor of a connected agent is free: now, or at the expected end of the build with this key."""
    builds = agent.node.builds if agent.node else ()
    ends: Iterable[tuple[float, str]] = zip(agent_remaining_seconds(situation, agent), [build.key for build in builds], strict=True)
    if agent.extra_executors:
        ends = _freed_by_weight(situation, agent, sorted(ends))
    return [*ends, *[(0.0, "")] * free_executors(situation, agent)]


def _freed_by_weight(situation: Situation, agent: Agent, ends: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Return when executors become free as builds end: as many as each weighs, once they weigh no more than the agent has."""
    builds = {build.key: build for build in (agent.node.builds if agent.node else ())}
    executors = agent.executors
    weighs = sum(situation.fleet.weights.of_running(build.job) for build in builds.values())
    for seconds, key in ends:
        before, weighs = min(weighs, executors), weighs - situation.fleet.weights.of_running(builds[key].job)
        yield from ((seconds, key) for _ in range(before - min(weighs, executors)))


def free_executors(situation: Situation, agent: Agent) -> int:
    """Count the executors of a connected agent that are free: where its machine serves several controllers, those that devices are for.

    As far as the machine reports its devices. If it does not, as many builds as it has executors run on all sides together.
    """
    executors = agent.executors
    here = executors - agent.taken_executors
    if agent.pool.share is not Share.COOPERATIVE:
        return here
    sides = situation.sides.get(agent.record.machine, [agent])
    builds = [build for side in sides if side.node for build in side.node.builds]
    told = situation.snapshot.devices.get(agent.record.machine)
    if told is None or not told.is_fresh(situation.now):
        return max(0, min(here, executors - len(builds)))
    return max(0, min(here, told.free - _taken_since(situation, told.told_at, builds, sides)))


def _taken_since(situation: Situation, at: float, builds: Iterable[Build], sides: Iterable[Agent]) -> int:
    """Count the builds that have begun on a machine since then, and the devices that were reserved for people."""
    begun = sum(build.elapsed_seconds is not None and build.elapsed_seconds < situation.now - at for build in builds)
    return begun + sum(one.since_at >= at and not one.is_over(situation.now) for side in sides for one in side.record.devices_for)


def build_supply(situation: Situation, controller: str, decided: Iterable[Step | Held] = ()) -> Supply:
    """Gather the present and coming executors of one controller, launches without a record included.

    ``decided``: what this pass does already; launches for other controllers come to this one, too, where a machine serves all at once.
    """
    supply, pools = Supply(), situation.pools_of(controller)
    alone = _stand_alone(situation, controller)
    for pool in pools.values():
        is_shared = pool.spec.share is Share.COOPERATIVE
        slots = partial(_shared_slots, situation, pool, decided, alone) if is_shared else partial(_pool_slots, situation, pool, alone)
        supply.sizes |= {pool.name: pool.executors} if is_shared else {}
        supply.add_when_asked(pool.name, slots)
    for agent in alone.values():
        add_by_labels(supply, situation, agent, situation.labels_of(agent))
    for name, launched_at, agents in situation.expected(controller):
        for number in range(0 if pools[name].spec.share is Share.COOPERATIVE else agents * pools[name].executors):
            coming = f"{launched_at}/{number // pools[name].executors}"
            supply.add(ExecutorSlot(name, _boots_in(launched_at, pools[name]), machine=coming))
    for node in _of_others(situation, controller):
        _add_others_node(supply, situation, controller, node)
    return supply


def _of_others(situation: Situation, controller: str) -> Iterator[Node]:
    """Find the nodes of other people that may take a build."""
    ours = {agent.node.name for pool in situation.pools_of(controller).values() for agent in pool.agents if agent.node}
    for node in situation.snapshot.controllers[controller].nodes:
        if node.name not in ours and not situation.fleet.is_beacon(node.name) and not node.offline and node.executors:
            yield node


def _stand_alone(situation: Situation, controller: str) -> dict[str, Agent]:
    """Find the agents that take other items than the rest of their pool: lent, with other labels, or refusing jobs; by instance."""
    distrust = situation.distrust[controller]
    agents = (agent for pool in situation.pools_of(controller).values() for agent in pool.ready if agent.node)
    return {
        agent.record.instance_id: agent
        for agent in agents
        if agent.record.is_lent(situation.now) or distrust.counts_less(agent.pool.name, agent.node) or has_other_labels(situation, agent)
    }


def has_other_labels(situation: Situation, agent: Agent) -> bool:
    """Tell whether a node lacks a label of its pool, or has one more that somebody asks about, were it its name."""
    labels, own = situation.labels_of(agent), agent.pool.labels | {situation.fleet.ownership_label}
    return not (own <= labels and (labels - own).isdisjoint(situation.asked_labels[agent.record.controller]))


def add_by_labels(supply: Supply, situation: Situation, agent: Agent, labels: frozenset[str]) -> None:
    """Take in an agent by the labels that its node is to have: whoever they satisfy may have it, except for the jobs that it refuses."""
    distrust, taker = situation.distrust[agent.record.controller], situation.taker(agent)._replace(labels=labels)
    server = _enter(supply, situation, agent.record.controller, taker, distrust.takes_next(agent.pool.name, agent.node))
    for seconds, build in _open_slots(situation, agent) if server else ():
        supply.add(ExecutorSlot(server, seconds, spare=not agent.busy_executors, build=build, machine=agent.record.machine))


def _enter(supply: Supply, situation: Situation, controller: str, taker: Taker, refused: frozenset[str] = frozenset()) -> str:
    """Make a server of nodes that take the same items; of one alone if it refuses jobs, or its name is asked about. "": it takes none."""
    if free_node := situation.distrust[controller].nodes.get(taker.name):
        if free_node.is_useless:
            return ""
        refused |= free_node.refused.keys()
    is_single = refused or taker.name in situation.asked_labels[controller]
    alike = taker if is_single else Taker(taker.labels - {taker.name}, taker.pool)
    server = "\n".join(["", *sorted(alike.labels), f"{alike.pool} {alike.name}"])  # unlike any pool's name
    supply.takers[server] = alike
    if refused:
        supply.refused[server] = refused
    return server


def _open_slots(situation: Situation, agent: Agent) -> Iterable[tuple[float, str]]:
    """The executors of a connected agent, as far as builds may still begin on it."""
    left = builds_left(situation, agent)
    return ready_slots(situation, agent) if left is None else sorted(ready_slots(situation, agent))[:left]


def _pool_slots(situation: Situation, pool: PoolView, alone: Container[str]) -> Iterator[ExecutorSlot]:
    yield from _rotating_slots(situation, pool)
    # Those first that Jenkins may hand out now: the others have their labels back once there is room.
    for agent in sorted((agent for agent in pool.agents if agent.record.instance_id not in alone), key=_is_full):
        is_idle, machine = not agent.busy_executors, agent.record.machine
        for seconds, build in _agent_slots(situation, agent, pool):
            yield ExecutorSlot(pool.name, seconds, spare=is_idle and seconds <= pool.boot_seconds, build=build, machine=machine)


def _is_full(agent: Agent) -> bool:
    return agent.node is not None and FULL_LABEL in agent.node.labels


def _shared_slots(situation: Situation, pool: PoolView, decided: Iterable[Step | Held], alone: Container[str]) -> Iterator[ExecutorSlot]:
    """Return the executors of machines that serve all of a pool's controllers at once, without those that others take first."""
    agents = [(agent, not agent.busy_executors) for agent in pool.agents if agent.record.instance_id not in alone]
    slots = [
        (seconds, build, is_idle, agent.record.machine)
        for agent, is_idle in agents
        for seconds, build in _agent_slots(situation, agent, pool)
    ]
    coming = enumerate(_coming_to_all(situation, pool, decided))
    slots += [(seconds, "", True, f"coming/{number}") for number, seconds in coming for _ in range(pool.executors)]
    for seconds, build, is_idle, machine in sorted(slots)[_wanted_before(situation, pool) :]:
        yield ExecutorSlot(pool.name, seconds, spare=seconds <= pool.boot_seconds and is_idle, build=build, machine=machine)


def _coming_to_all(situation: Situation, pool: PoolView, decided: Iterable[Step | Held]) -> Iterator[float]:
    """Return in how long each machine comes that was launched for any of a pool's controllers, and is no agent of this one yet."""
    for controller in pool.spec.controllers:
        yield from (_boots_in(at, pool) for name, at, agents in situation.expected(controller) if name == pool.name for _ in range(agents))
    yield from (_is_there_in(agent, pool) for agent in _booting_elsewhere(situation, pool))
    launches = sum(
        step.count
        for step in decided
        if isinstance(step, Launch) and step.pool == pool.name and step.controller != pool.controller and step.reservation is None
    )
    yield from (pool.boot_seconds for _ in range(launches))


def _booting_elsewhere(situation: Situation, pool: PoolView) -> Iterator[Agent]:
    here = {agent.record.machine for agent in pool.agents}
    others = (view for (_, name), view in situation.pools.items() if name == pool.name)
    new = (agent for view in others for agent in view.agents if agent.record.machine not in here and not agent.instance_ended)
    yield from (agent for agent in new if agent.phase.boots)


def _wanted_before(situation: Situation, pool: PoolView) -> int:
    """Count the executors that jobs of other controllers will take first of machines which serve all of them at once.

    Each controller is planned for alone. So that two do not plan on the same device, the jobs of those before this one go first.
    """
    before = pool.spec.controllers[: pool.spec.controllers.index(pool.controller)]
    return sum(situation.executors_wanted[name].get(pool.name, 0) for name in before if name in situation.demands)


def _rotating_slots(situation: Situation, pool: PoolView) -> Iterator[ExecutorSlot]:
    """Return the executors of agents that other controllers are about to give to this one."""
    if pool.spec.share is not Share.ROTATE:
        return
    coming = sum(to == pool.controller for to in destinations(situation, pool.name).values())
    executors = range(coming * pool.executors)
    yield from (ExecutorSlot(pool.name, ROTATION_SECONDS, machine=f"rotates/{n // pool.executors}") for n in executors)


def _agent_slots(situation: Situation, agent: Agent, pool: PoolView) -> Iterable[tuple[float, str]]:
    match agent.phase:
        case Phase.READY:
            return _open_slots(situation, agent)
        case Phase.REQUESTED | Phase.CONNECTING if not (agent.instance_ended or starts_late(situation, agent, pool)):
            return [(_is_there_in(agent, pool), "")] * (pool.executors - agent.busy_executors)  # it may have gone away with its builds
        case Phase.OVERDUE | Phase.LOST if is_to_be_counted(situation, agent):
            return [(ANY_MOMENT_SECONDS, "")] * pool.executors
        case Phase.LOST if situation.recovering(pool.controller):
            return [(_RECONNECT_SECONDS, "")] * pool.executors
        case _:
            return ()


def _is_there_in(agent: Agent, pool: PoolView) -> float:
    """How long one that was launched or started takes until it is there."""
    if not agent.record.is_measured:
        return max(agent.record.began_at + ROTATION_SECONDS - pool.now, ANY_MOMENT_SECONDS)
    if not agent.record.starts:
        return _boots_in(agent.record.launched_at, pool)
    return max(agent.record.began_at + pool.start_seconds - pool.now, ANY_MOMENT_SECONDS)


def _boots_in(launched_at: float, pool: PoolView) -> float:
    return max(launched_at + pool.boot_seconds - pool.now, ANY_MOMENT_SECONDS)


def _add_others_node(supply: Supply, situation: Situation, controller: str, node: Node) -> None:
    if situation.fleet.ownership_label in node.labels:
        return  # ours without a record: it may be given up any moment
    server = _enter(supply, situation, controller, taker_of(node, None))
    if not server:
        return
    learned, runs = situation.snapshot.learned[controller], situation.queued_runs[controller]
    for build in node.builds:
        seconds = build_remaining_seconds(build, "", learned, situation.now, runs)
        supply.add(ExecutorSlot(server, seconds, spare=False, build=build.key, machine=node.name))
    for _ in range(node.executors - len(node.builds)):
        supply.add(ExecutorSlot(server, 0.0, machine=node.name))
