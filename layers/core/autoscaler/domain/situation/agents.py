"""Agents: each record joined with its instance and its node; the phase that results, and its monitor's mark.

That EC2 does not show an instance proves nothing for hours: lists lag, come back empty, or are of another account. EC2 tells of an
instance for an hour after its end. So one that it does not know any more is taken for gone only two hours after it was last seen,
when EC2 has twice been asked for it alone, ten minutes apart, and when its node is neither connected nor, within a day, busy. Where
EC2 and Jenkins disagree about many agents at once, something is wrong with what we see.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil
from types import MappingProxyType
from typing import NamedTuple

from autoscaler.domain.facts.fleet import CORDONED_LABEL, EMPTIED, Fleet, Pool, Share
from autoscaler.domain.facts.memory import AgentPast, Looks, Memory, Missing, MonitorMark
from autoscaler.domain.facts.nodes import Mark, MarkClass, executors_taken, read_mark
from autoscaler.domain.facts.plan import BootFailure
from autoscaler.domain.facts.snapshot import (
    INTERRUPTION_SECONDS,
    InstanceState,
    Node,
    OfflineCause,
    Record,
    RecordState,
    Snapshot,
)
from autoscaler.domain.memo import FOR_EVER, Memo
from autoscaler.domain.situation.looks import blind_seconds

# EC2 tells of an instance for an hour after its end, so that what nobody saw for twice as long is no lag and no outage of a list; and it
# is asked for alone, twice, so far apart that two answers are not one mistake. Each question is a call of its own. An hour is enough for
# what is in the fleet file no more: no job waits for it, and until it is closed it counts as an agent.
FORGOTTEN_AFTER_SECONDS = 7200.0
LEFT_FORGOTTEN_AFTER_SECONDS = 3600.0
FORGOTTEN_ASK_AGAIN_SECONDS = 600.0
FORGOTTEN_ASKED_A_LOOK = 10
# A pipeline stays on the executor of a machine that died, and Jenkins ends it only when its node is deleted: after a day on which EC2
# did not know the machine and nobody connected, nobody will.
FORGOTTEN_BUSY_AFTER_SECONDS = 86_400.0
# A list may show an instance before its tags, for seconds; by then it has them, or never had any.
TAGS_SHOWN_SECONDS = 600.0
# A sweep over a larger share of a pool is more likely our own mistake than the world's.
SWEEP_SHARE = 0.3
SWEEP_AT_LEAST = 2
# In place of the pass that set a mark which no record holds any more.
_NO_PASS = "labels"


AT_ONCE = "as soon as it had connected"
# What goes away sooner after it has connected still boots.
SETTLED_SECONDS = 300.0


class Phase(StrEnum):
    """The phase of an agent."""

    REQUESTED = "requested"  # launched or started, not registered yet
    INTERRUPTED = "interrupted"  # EC2 takes it back, and it has no mark of ours: no supply
    OVERDUE = "overdue"  # not registered by its boot deadline
    CONNECTING = "connecting"  # has a node, and time left to connect for the first time
    READY = "ready"  # takes builds
    RETIRING = "retiring"  # out of use by our retire mark: comes back when needed
    DRAINING = "draining"  # out of use by another mark of ours: demand does not count on it
    RESERVED = "reserved"  # a person has it, or is to have it once it has booted: no demand, not idle, hands off
    SET_ASIDE = "set-aside"  # offline by a person: hands off
    MARKED = "marked"  # offline by a monitor of Jenkins or of a plugin: no supply, and ended unless the monitor brings it back
    LOST = "lost"  # its connection is lost
    NODELESS = "nodeless"  # it was registered, and its node is not there
    STOPPING = "stopping"  # it is to be stopped, or stops
    STOPPED = "stopped"  # its disk alone is kept, and it can be started
    CONDEMNED = "condemned"
    UNSEEN = "unseen"  # its controller could not be read completely

    @property
    def boots(self) -> bool:
        """It is on its way, and in time."""
        return self in (Phase.REQUESTED, Phase.CONNECTING)

    @property
    def is_on_its_way(self) -> bool:
        """It is to connect for the first time, be it in time or not."""
        return self.boots or self is Phase.OVERDUE

    @property
    def is_in_service(self) -> bool:
        """It takes builds, or will."""
        return self.boots or self is Phase.READY

    @property
    def is_out_of_use(self) -> bool:
        """It carries our mark, and nobody has it."""
        return self in (Phase.RETIRING, Phase.DRAINING)


LATE = (Phase.OVERDUE, Phase.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent of ours. ``instance``: None where EC2 did not say; `NOT_FOUND` only where EC2 has forgotten it."""

    record: Record
    pool: Pool
    node: Node | None
    instance: InstanceState | None
    phase: Phase
    mark: Mark | None
    extra_executors: int = 0  # that its builds take beyond one each, by the weights of their jobs
    by_weight: bool = False  # its node shows as many executors as builds fit, not as many as it has

    @property
    def key(self) -> tuple[str, str]:
        """Controller and pool: whose demand it serves."""
        return self.record.controller, self.record.pool

    @property
    def busy_executors(self) -> int:
        """Executors at work."""
        return len(self.node.builds) if self.node else 0

    @property
    def executors(self) -> int:
        """Executors that it has."""
        return self.pool.executors if self.by_weight else self.node.executors if self.node else 0

    @property
    def taken_executors(self) -> int:
        """Executors that no other build may have: those at work, and as many more as heavy builds take."""
        return min(self.busy_executors + self.extra_executors, self.executors) if self.extra_executors else self.busy_executors

    def borrowed_executors(self, now: float) -> int:
        """Executors on which jobs run that began while it was lent: it was idle before."""
        is_lent, borrowers = self.record.is_lent(now), self.record.borrowers
        return sum(is_lent or build.key in borrowers for build in (self.node.builds if self.node else ()))

    @property
    def idle(self) -> bool:
        """Jenkins says so, and no executor contradicts it."""
        return self.node is not None and self.node.idle and not self.node.builds

    @property
    def is_emptied(self) -> bool:
        """We took labels of its node for a while."""
        return self.node is not None and not self.node.labels.isdisjoint(EMPTIED)

    @property
    def is_node_deleted(self) -> bool:
        """Jenkins has deleted its node, and goes on listing it until it has ended what is on it. It is not to be deleted twice."""
        return self.node is not None and not self.idle and (self.node.is_deleted or self.record.bindings[0].deleted_at > 0.0)

    @property
    def by_labels(self) -> bool:
        """Our mark on it is that its labels were taken; it may still be online."""
        return self.mark is not None and self.node is not None and not self.node.temporarily_offline

    @property
    def makes_room(self) -> bool:
        """Tell whether the limits have room for another agent once this one is gone: it is an instance that one controller uses."""
        return self.record.is_instance and self.pool.share is not Share.COOPERATIVE

    @property
    def is_of_monitor(self) -> bool:
        """A monitor took it offline, or our mark took the place of a monitor's."""
        return self.phase is Phase.MARKED or (self.mark is not None and self.mark.kind is MarkClass.MONITOR)

    @property
    def instance_ended(self) -> bool:
        """EC2 said that it is shutting down or gone: it is no supply any more."""
        return self.machine_gone or (self.instance is not None and self.instance.ended)

    @property
    def machine_gone(self) -> bool:
        """Nothing can run on it any more: EC2 said that it has terminated, or has long forgotten it."""
        return self.instance in _GONE


# What EC2 takes back is none of these any more.
_TAKEN_BACK = (Phase.REQUESTED, Phase.OVERDUE, Phase.CONNECTING, Phase.READY)
_GONE = (InstanceState.TERMINATED, InstanceState.NOT_FOUND)
_OUT_OF_SERVICE = {
    RecordState.CONDEMNED: Phase.CONDEMNED,
    RecordState.STOPPING: Phase.STOPPING,
    RecordState.STOPPED: Phase.STOPPED,
}
_HIDES_WHO_MARKED = (OfflineCause.NONE, OfflineCause.LOST)


class _Facts(NamedTuple):
    """All that one agent is joined from. ``state``: what EC2 says of its instance; ``is_seen``: its controller was read, and its node.

    ``extra_executors``: those that its builds take beyond one each; ``blind_seconds``: of its life in which nobody could see it boot.
    """

    record: Record
    pool: Pool
    node: Node | None
    state: InstanceState | None
    is_seen: bool
    was_connected: bool
    was_marked: bool  # by a monitor, when it was last seen
    extra_executors: int
    blind_seconds: float


def join_agents(
    snapshot: Snapshot,
    fleet: Fleet,
    memo: Memo,
    looks: Mapping[str, Looks],
    gone: Mapping[str, float] = MappingProxyType({}),
    slow: Collection[str] = (),
) -> tuple[Agent, ...]:
    """Join every open record with its state in Jenkins and EC2; unknown pools are left out.

    ``gone``: what `forgotten` says; ``slow``: instances that have twice the time to boot.
    """
    nodes = {(view.name, node.name): node for view in snapshot.controllers.values() for node in view.nodes}
    views, states, memory = snapshot.controllers, snapshot.states, snapshot.memory
    facts: dict[str, _Facts] = {}
    for record in _of_agents(snapshot):
        pool, instance_id, controller = _pool_of(record, fleet), record.instance_id, record.controller
        if pool is None:
            continue
        if instance_id in slow:
            pool = replace(pool, boot_timeout_seconds=2 * pool.boot_timeout_seconds)
        node, view = nodes.get((controller, record.node or "")), views.get(controller)
        state = states.get(instance_id)
        if state is InstanceState.NOT_FOUND:
            after_seconds = LEFT_FORGOTTEN_AFTER_SECONDS if view is None or pool.has_left else FORGOTTEN_AFTER_SECONDS
            if not _is_gone(node, gone.get(record.machine, 0.0), after_seconds):
                state = None
        is_seen = view is not None and view.complete and record.node not in view.unread
        extra = executors_taken(node, fleet) - len(node.builds) if node and fleet.weights else 0
        past = memory.agent(instance_id)
        was_connected, was_marked = has_settled(past, record, snapshot.taken_at), past.mark is not None
        blind = blind_seconds(looks.get(controller), record.began_at, snapshot.taken_at)
        facts[instance_id] = _Facts(record, pool, node, state, is_seen, was_connected, was_marked, extra, blind)
    # Passes that ask EC2 and those that do not take turns: each remembers its own.
    name = "agents", bool(snapshot.instances)
    joined = memo.values(name, facts, snapshot.taken_at, lambda _, of: _join(of, fleet, snapshot.taken_at))
    return tuple(joined.values())


def has_settled(past: AgentPast, record: Record, now: float) -> bool:
    """Tell whether an agent has stayed connected since it first was: first boots end with a reboot, a domain join or an update."""
    since_at = past.ready_since
    return past.connected == record.life_id and since_at is not None and record.began_at <= since_at <= now - SETTLED_SECONDS


def _of_agents(snapshot: Snapshot) -> Iterator[Record]:
    """Find the open records of what we launched. Of what is new EC2 may show the tags later than the rest."""
    for record in snapshot.records:
        is_new = snapshot.taken_at - record.launched_at < TAGS_SHOWN_SECONDS and record.machine in snapshot.fates
        if record.state is not RecordState.GONE and (is_new or snapshot.states.get(record.instance_id) is not InstanceState.FOREIGN):
            yield record


def _pool_of(record: Record, fleet: Fleet) -> Pool | None:
    """Find the pool of an agent. Hosts, and further sides of a machine, have rules of their own for what their pool does not serve."""
    pool = fleet.pools.get(record.pool)
    return pool if pool is not None and not record.is_instance else fleet.pool_of(record.pool, record.controller)


def _join(of: _Facts, fleet: Fleet, now: float) -> tuple[Agent, float]:
    """Join one agent; it stays so until its boot deadline and the end of its reservation, if those are to come."""
    deadline = of.record.began_at + of.pool.boot_timeout_seconds + of.blind_seconds
    boots = now < deadline and not of.was_connected  # one that was connected, and stayed, has booted
    mark = _mark_of(of.record, of.node, fleet.name)
    ends_at = of.record.reservation.until_at if of.record.reservation else FOR_EVER
    phase = _phase(of, mark, boots=boots, is_over=now >= ends_at)
    if of.record.is_interrupted(now) and phase in _TAKEN_BACK:
        phase = Phase.INTERRUPTED
    elif phase is Phase.NODELESS and boots and of.record.node_life != of.record.life and of.blind_seconds > 0:
        phase = Phase.REQUESTED  # its node was refused while nobody could see it: the machine asks again, within two minutes
    agent = Agent(
        record=of.record,
        pool=of.pool,
        node=of.node,
        instance=of.state,
        phase=phase,
        mark=mark,
        extra_executors=of.extra_executors,
        by_weight=bool(fleet.weights and of.record.labels and of.node),
    )
    stays_until = of.record.interrupted_at + INTERRUPTION_SECONDS if of.record.is_interrupted(now) else FOR_EVER
    return agent, min(deadline if boots else FOR_EVER, ends_at if now < ends_at else FOR_EVER, stays_until)


def _mark_of(record: Record, node: Node | None, fleet: str) -> Mark | None:
    """Find our mark on a node, in its offline reason or, where its labels were taken, in the record. A person's comes first."""
    if node is None:
        return None
    if node.temporarily_offline:
        return read_mark(node.reason, fleet) if node.cause is OfflineCause.PERSON else None
    if record.cordon:
        return read_mark(record.cordon, fleet)
    # Its labels were to be given back, and are not yet: no job that asks for one starts there.
    return Mark(fleet=fleet, kind=MarkClass.RETIRE, pass_id=_NO_PASS) if CORDONED_LABEL in node.labels else None


def _is_gone(node: Node | None, seconds: float, after_seconds: float) -> bool:
    """NotFound says nothing by itself, and nothing at all against a node that is connected or busy. ``seconds``: since it was seen."""
    is_left = node is None or (node.offline and (seconds >= FORGOTTEN_BUSY_AFTER_SECONDS or (node.idle and not node.builds)))
    return seconds >= after_seconds and is_left


def _phase(of: _Facts, mark: Mark | None, *, boots: bool, is_over: bool) -> Phase:
    """The phase of an agent. ``is_over``: its reservation, where it has one."""
    record, node = of.record, of.node
    if record.state in _OUT_OF_SERVICE:
        return _OUT_OF_SERVICE[record.state]
    if record.state.is_asked_for:
        in_time = Phase.RESERVED if record.reservation else Phase.REQUESTED
        return in_time if boots else Phase.OVERDUE
    if not of.is_seen:
        return Phase.UNSEEN
    takes_none = node is None or mark is not None or node.temporarily_offline
    if record.reservation and not (is_over and takes_none):  # until then nobody counts on it, whatever its node shows
        return Phase.RESERVED
    if node is None:
        return Phase.NODELESS
    if mark:  # what was reserved never comes back, whatever its mark
        return Phase.RETIRING if mark.kind is MarkClass.RETIRE and record.reservation is None else Phase.DRAINING
    return _phase_of_node(node, boots=boots, was_marked=of.was_marked)


def _phase_of_node(node: Node, *, boots: bool, was_marked: bool) -> Phase:
    """The phase of an agent that carries no mark of ours. ``was_marked``: by a monitor, when it was last seen."""
    if not node.offline:
        return Phase.READY
    if node.temporarily_offline:
        # A lost connection may hide who marked it; then it is who did when it was last seen.
        is_of_monitor = was_marked if node.cause in _HIDES_WHO_MARKED else node.cause is not OfflineCause.PERSON
        return Phase.MARKED if is_of_monitor else Phase.SET_ASIDE
    return Phase.CONNECTING if boots else Phase.LOST


_NOT_ALIVE = (InstanceState.NOT_FOUND, InstanceState.TERMINATED)


def next_missing(memory: Memory, snapshot: Snapshot) -> dict[str, Missing]:
    """Carry on since when each instance is missing; one that EC2 shows again is not."""
    return {
        instance_id: _next_missing(memory.agent(instance_id).missing, snapshot.taken_at, alone=instance_id in snapshot.unknown_alone)
        for instance_id, state in snapshot.fates.items()
        if state is InstanceState.NOT_FOUND
    }


def ids_to_ask_alone(memory: Memory, fates: Mapping[str, InstanceState], now: float) -> list[str]:
    """Name the instances that are missing for so long that EC2 is asked for each alone."""
    missing = {name: memory.agent(name).missing for name, state in fates.items() if state is InstanceState.NOT_FOUND}
    return sorted(name for name, known in missing.items() if known and now - known.since_at >= LEFT_FORGOTTEN_AFTER_SECONDS)


def forgotten(missing: Mapping[str, Missing], snapshot: Snapshot) -> dict[str, float]:
    """Say for how many seconds EC2 has not shown each instance that it does not know any more, as far as EC2 alone can prove that."""
    now = snapshot.taken_at
    return {
        instance_id: now - known.since_at
        for instance_id in snapshot.unknown_alone
        if (known := missing.get(instance_id)) and known.asked_at is not None and now - known.asked_at >= FORGOTTEN_ASK_AGAIN_SECONDS
    }


def disagreement(agents: Iterable[Agent], snapshot: Snapshot) -> str | None:
    """Say for how many connected agents EC2 shows no living instance, if they are too many to be true; else None."""
    connected = [agent for agent in agents if agent.node is not None and not agent.node.offline and not agent.record.is_host]
    gone = sum(snapshot.states.get(agent.record.instance_id) in _NOT_ALIVE for agent in connected)
    if gone <= max(SWEEP_AT_LEAST, ceil(SWEEP_SHARE * len(connected))):
        return None
    return f"EC2 shows no living instance of {gone} of {len(connected)} connected agents: nothing is given up until they agree"


def _next_missing(known: Missing | None, now: float, *, alone: bool) -> Missing:
    if known is None:
        return Missing(since_at=now)
    # An answer in between that showed it would have ended this; one that did not come leaves it as it is.
    return Missing(since_at=known.since_at, asked_at=known.asked_at if known.asked_at is not None else now if alone else None)


# Remembers which instances EC2 has reported as terminated. That is final, whatever a later answer leaves out or still shows.
#
# EC2's answers come from several machines, which learn of an end one after another and forget it an hour later.


def with_terminated(snapshot: Snapshot) -> Snapshot:
    """Correct what EC2 shows in a look by what it has said before."""
    ended = {name: past.ended_why for name, past in snapshot.memory.agents.items() if past.ended_why is not None}
    shown = {instance.id for instance in snapshot.instances}
    fates = {**snapshot.fates, **{name: InstanceState.TERMINATED for name in ended if name in shown or name in snapshot.fates}}
    instances = (
        tuple(instance for instance in snapshot.instances if instance.id not in ended) if shown & ended.keys() else snapshot.instances
    )
    reasons = {**{name: why for name, why in ended.items() if why}, **snapshot.end_reasons}
    return replace(snapshot, fates=fates, instances=instances, end_reasons=reasons)


def next_terminated(memory: Memory, snapshot: Snapshot) -> dict[str, str]:
    """Note which instances have terminated, and why, as long as a record or a node names them."""
    named = {record.machine for record in snapshot.records} | snapshot.fates.keys()
    before = {name: why for name in named if (why := memory.agent(name).ended_why) is not None}
    seen = {name for name, state in snapshot.fates.items() if state is InstanceState.TERMINATED}
    return {name: snapshot.end_reasons.get(name, before.get(name, "")) for name in seen | before.keys()}


# Marks of monitors: which agents Jenkins takes offline by itself, since when, and whether the agents are to blame.
#
# Monitors of Jenkins (disk, temporary space, response time, clock) and of plugins mark a node some seconds after it has connected, and
# once an hour. A marked agent is replaced.


# Monitors look once an hour, and bring back what has recovered. Builds are served by a new agent long before.
MARKED_SECONDS = 600.0
# The first look of all monitors is over by then: hudson.node_monitors.NodeMonitorUpdater, 5 s after a connection.
PROVEN_SECONDS = 180.0
# A monitor's words are kept up to this length.
WORDS_CHARACTERS = 200
_KEPT = (Phase.UNSEEN, Phase.CONDEMNED)


def next_marks(memory: Memory, agents: Iterable[Agent], now: float) -> dict[str, MonitorMark]:
    """Carry on since when each agent is marked by a monitor, also after our own mark has taken its place."""
    marks: dict[str, MonitorMark] = {}
    for agent in agents:
        name, registered_at = agent.record.instance_id, agent.record.registered_at
        if mark := memory.agent(name).mark:
            if agent.is_of_monitor or agent.phase in _KEPT:
                marks[name] = mark
        elif agent.phase is Phase.MARKED:
            at_once = registered_at is not None and now - registered_at <= PROVEN_SECONDS
            marks[name] = MonitorMark(since_at=now, words=words_of(agent), at_once=at_once)
    return marks


def words_of(agent: Agent) -> str:
    """Return what a monitor says of an agent, in its own words."""
    words = " ".join(agent.node.reason.split()) if agent.node else ""
    return words[:WORDS_CHARACTERS] or "(it gives no reason)"


def is_doubtful(agents: Collection[Agent]) -> bool:
    """Tell whether agents of a pool may be marked as most of their controller are: some of them are, or none takes builds."""
    return any(agent.phase is Phase.MARKED for agent in agents) or all(agent.phase is not Phase.READY for agent in agents)


def failed_by_marks(memory: Memory, agents: Iterable[Agent], versions: Mapping[str, str]) -> tuple[BootFailure, ...]:
    """Name the agents that a monitor marked as soon as they had connected: the next one of their pool would fare as they did."""
    return tuple(
        BootFailure(
            controller=agent.record.controller,
            pool=agent.pool.name,
            instance_id=agent.record.instance_id,
            why=f"a monitor took it offline {AT_ONCE}: {mark.words}",
            version=versions.get(agent.record.instance_id, ""),
            launched_at=agent.record.began_at,
        )
        for agent in agents
        if (mark := memory.agent(agent.record.instance_id).mark) is not None and mark.at_once and not mark.is_counted
        if agent.phase is Phase.MARKED and agent.record.is_instance
    )
