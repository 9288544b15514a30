"""Lists for people: every agent with what its machine reports, and every item of the queue with what it waits for."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from autoscaler.domain.facts.nodes import Mark, room_on
from autoscaler.domain.facts.telemetry import SHORT, Reports, Telemetry
from autoscaler.domain.report.eta import QueueEntry, queue_of
from autoscaler.domain.report.machines import image_of, told_host, told_lent, told_stopped, usd_per_hour_of
from autoscaler.domain.report.ordered import told_reserved
from autoscaler.domain.report.overdue import told_held_labels
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.states import state_of
from autoscaler.domain.wording import counted, duration, size

# What agents told last of their machines, for people: how much is left, and how old that is.


# So much less than now was available in between that it is worth a word.
_MUCH_LESS = 0.9
# A healthy machine swaps a little.
_SWAPPED = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a machine told last. ``memory_soon``: what will be available in three minutes where it falls, else what is."""

    age_seconds: float
    memory_available: float
    memory_soon: float
    memory_total: float
    memory_least: float | None
    swap_used: float | None
    disk_free: float | None
    gpu_memory_free: float | None
    gpu_percent: float | None
    cpu_mean: float | None
    cores: float

    def text(self) -> str:
        """Say it in one line."""
        falls = f", {size(self.memory_soon)} in 3 min as it falls" if self.memory_soon < self.memory_available else ""
        least = self.memory_available if self.memory_least is None else self.memory_least
        swapped = self.swap_used or 0.0
        parts = [
            f"{size(self.memory_available)} of {size(self.memory_total)} memory available{falls}",
            f"{size(least)} at the least" if least < _MUCH_LESS * self.memory_available else "",
            f"{size(swapped)} swapped" if swapped > _SWAPPED * self.memory_total else "",
            f"disk {size(self.disk_free)} free" if self.disk_free is not None else "",
            f"GPU {size(self.gpu_memory_free)} free, {self.gpu_percent:.0f} % busy" if self.gpu_memory_free is not None else "",
            f"{self.cpu_mean:.1f} of {self.cores:g} cores used" if self.cpu_mean is not None else "",
        ]
        return f"{', '.join(filter(None, parts))}; told {duration(self.age_seconds)} ago"


def figures_of(report: Telemetry, now: float) -> Figures:
    """Return the figures of a report, however old."""
    return Figures(
        age_seconds=max(0.0, now - report.told_at),
        memory_available=report.memory_available,
        memory_soon=report.memory_soon,
        memory_total=report.memory_total,
        memory_least=report.memory_least,
        swap_used=report.swap_used,
        disk_free=report.disk_free,
        gpu_memory_free=report.gpu_memory_free,
        gpu_percent=report.gpu_percent,
        cpu_mean=report.cpu_mean,
        cores=report.cores,
    )


def told_short(situation: Situation, pool: PoolView, reports: Reports) -> Iterator[str]:
    """Say which agents of a pool are short of memory or disk now."""
    for agent, report in _fresh(situation, pool.agents, reports):
        name = agent.record.node or agent.record.instance_id
        if report.memory_soon < SHORT * report.memory_total:
            yield f"{name} is short of memory: {size(report.memory_soon)} of {size(report.memory_total)} available"
        if report.is_short_of_disk:
            yield f"{name} is short of disk: {size(report.disk_free or 0.0)} free"


def told_of(situation: Situation, subject: str, reports: Reports) -> Iterator[str]:
    """Say what an agent told last, and what its builds use."""
    for agent in (agent for agent in situation.agents if subject in {agent.record.node, agent.record.instance_id}):
        report = reports.get(agent.record.machine)
        if report is None:
            yield "its service tells nothing of the machine: it is of an older version, or has not asked yet"
            continue
        yield figures_of(report, situation.now).text()
        running = {build.key: build.job for build in agent.node.builds} if agent.node else {}
        for use in report.builds:
            if job := running.get(use.key):
                gpu = f", {size(use.gpu_memory)} of a GPU" if use.gpu else ""
                how = "" if use.alone else ", by its own processes, beside others"
                yield f"{job} has used {size(use.memory)} memory and {use.cpu / max(1.0, use.seconds):.1f} cores{gpu}{how}"


def silent(situation: Situation, reports: Reports, settled_seconds: float) -> tuple[list[str], int]:
    """Name the connected agents that tell nothing, and count all that should: those that have been there for some time."""
    due = [
        agent
        for agent in situation.agents
        if agent.node and not agent.node.offline and situation.now - (agent.record.registered_at or situation.now) > settled_seconds
    ]
    telling = {agent.record.instance_id for agent, _ in _fresh(situation, due, reports)}
    return [agent.record.node or agent.record.instance_id for agent in due if agent.record.instance_id not in telling], len(due)


def _fresh(situation: Situation, agents: Iterable[Agent], reports: Reports) -> Iterator[tuple[Agent, Telemetry]]:
    for agent in agents:
        if (report := reports.get(agent.record.machine)) and report.is_fresh(situation.now):
            yield agent, report


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry:
    """One agent. ``idle_seconds`` None: it is not idle; ``note``: what is unusual about it; ``telemetry`` None: it tells nothing."""

    controller: str
    pool: str
    node: str
    instance_id: str
    instance_type: str
    word: str
    state: str
    busy: int
    executors: int
    jobs: tuple[str, ...]
    age_seconds: float
    idle_seconds: float | None
    usd_per_hour: float
    note: str
    image: str  # where a parameter names it, else ""
    telemetry: Figures | None


def words_of(situation: Situation, agents: Iterable[Agent]) -> Counter[str]:
    """Count agents by the word for their state."""
    return Counter(str(state_of(situation, agent).word) for agent in agents)


def list_agents(situation: Situation, reports: Reports = MappingProxyType({})) -> tuple[AgentEntry, ...]:
    """List all agents, by controller, pool and age. ``reports``: what their machines told last."""
    agents = sorted(situation.agents, key=lambda agent: (*agent.key, agent.record.launched_at, agent.record.instance_id))
    return tuple(_agent(situation, agent, reports) for agent in agents)


def _agent(situation: Situation, agent: Agent, reports: Reports) -> AgentEntry:
    record, since, state = agent.record, situation.past(agent).idle_since, state_of(situation, agent)
    report = None if situation.snapshot.is_off(record) else reports.get(record.machine)
    return AgentEntry(
        controller=record.controller,
        pool=record.pool,
        node=record.node or "",
        instance_id=record.instance_id,
        instance_type="host" if record.is_host else record.instance_type,
        word=str(state.word),
        state=state.name,
        busy=agent.busy_executors,
        executors=agent.executors if agent.node else agent.pool.executors,
        jobs=tuple(sorted({build.job for build in agent.node.builds})) if agent.node else (),
        age_seconds=situation.now - record.launched_at,
        idle_seconds=None if since is None else situation.now - since,
        usd_per_hour=usd_per_hour_of(situation, record),
        note=_note(situation, agent),
        image=image_of(situation, agent),
        telemetry=figures_of(report, situation.now) if report else None,
    )


def _note(situation: Situation, agent: Agent) -> str:
    """Say in a few words what somebody did to it, or what it lacks."""
    record, node = agent.record, agent.node
    if situation.snapshot.is_off(record):
        return told_stopped(situation, agent)
    if reserved := told_reserved(situation, agent):
        return reserved
    if (why := record.trouble or record.problem) and agent.phase.is_on_its_way:
        return why
    if agent.mark:
        return _note_of_mark(situation, agent, agent.mark)
    if node and node.offline and node.reason:
        return node.reason
    if situation.now < record.keep_until:
        return f"kept for another {duration(record.keep_until - situation.now)}"
    return told_held_labels(situation, agent) or told_lent(situation, agent) or told_host(situation.fleet.hosts, record)


def _note_of_mark(situation: Situation, agent: Agent, mark: Mark) -> str:
    """Say what our mark on an agent is for; what took the place of a monitor's mark, in the monitor's words."""
    if agent.phase is Phase.RETIRING:
        return ""
    monitor = situation.past(agent).mark
    return monitor.words if agent.is_of_monitor and monitor else str(mark.kind)


def list_queue(situation: Situation) -> tuple[QueueEntry, ...]:
    """List what waits on every controller, longest first."""
    entries = [entry for controller in situation.demands for entry in queue_of(situation, controller)]
    return tuple(sorted(entries, key=lambda entry: -entry.waiting_seconds))


# Graphics cards as a machine last reported them: who holds which one, and how many commands wait.


def told_devices(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say it in one line; nothing where the machine has none."""
    told = situation.snapshot.devices.get(agent.record.machine)
    if told is None:
        return
    devices = [f"{one.id} ({one.kind}) {one.state}" + (f" by {one.user}" if one.user else "") for one in told.devices]
    waiting = f"; {counted(told.waiting, 'command')} waiting for one" if told.waiting else ""
    stale = "" if told.is_fresh(situation.now) else ", too long ago to say anything of now"
    yield f"its devices: {', '.join(devices)}{waiting}; told {duration(situation.now - told.told_at)} ago{stale}"


# Tells people how much of an agent its builds take, where jobs have weights.


def told_weights(situation: Situation, agent: Agent) -> str:
    """Say what the builds on an agent weigh, and what fits beside them; "" where no job has a weight, or nothing runs there."""
    room = room_on(agent.record, agent.node, situation.fleet) if agent.node and agent.node.builds else None
    if room is None:
        return ""
    weigh = f"its builds weigh {room.taken} of {room.of}"
    return f"{weigh}: it takes no further ones" if room.is_full else f"{weigh}: {counted(room.of - room.taken, 'executor')} left"
