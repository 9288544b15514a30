"""Lists for people: every agent with what its machine reports, and every item of the queue with what it waits for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from autoscaler.domain.facts.nodes import Mark, room_on
from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.snapshot import Build, ControllerView, QueueItem
from autoscaler.domain.facts.telemetry import SHORT, Reports, Telemetry
from autoscaler.domain.forecast.durations import quantiles_of_job
from autoscaler.domain.launch.placement import PlannedStart
from autoscaler.domain.launch.queue import expected_starts
from autoscaler.domain.report.controllers import in_quiet_mode, told_quiet
from autoscaler.domain.report.eta import why_uncertain
from autoscaler.domain.report.machines import image_of, told_host, told_lent, told_stopped, usd_per_hour_of
from autoscaler.domain.report.ordered import told_reserved
from autoscaler.domain.report.overdue import told_held_labels, told_holds
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.distrust import Refused
from autoscaler.domain.situation.looks import elapsed_seconds, ends_in_time
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.states import state_of
from autoscaler.domain.situation.wants import Want, ignored_label
from autoscaler.domain.wording import clock, counted, duration, listed, size

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


def figures_of(report: Telemetry | None, now: float) -> Figures | None:
    """Return the figures of a report, however old; None where there is none."""
    if report is None:
        return None
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
    for agent in situation.agents:
        record = agent.record
        if subject not in {record.node, record.instance_id}:
            continue
        report = reports.get(record.machine)
        if report is None:
            yield "its service tells nothing of the machine: it is of an older version, or has not asked yet"
            continue
        figures = figures_of(report, situation.now)
        yield figures.text() if figures else ""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """One item of the queue. ``state``: what becomes of it, in a word; ``brief``: in a few; ``detail``: in a sentence.

    ``because``: why it waits; ``starts_in_seconds``: when it would start, None if nobody knows; ``of_pipeline``: a part of a pipeline.
    """

    id: int
    controller: str
    job: str
    of_pipeline: bool
    stage: str  # or branch, or parameters, that tell it from other items of its job; "" if nothing does
    label: str
    waiting_seconds: float
    pools: tuple[str, ...]
    state: str
    brief: str
    detail: str
    because: str
    starts_in_seconds: float | None


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of an item. ``because``: why it waits, if ``detail`` is more than that."""

    state: str
    brief: str
    detail: str
    because: str = ""
    starts_in_seconds: float | None = None


def words_of(situation: Situation, agents: Iterable[Agent]) -> Counter[str]:
    """Count agents by the word for their state."""
    return Counter(str(state_of(situation, agent).word) for agent in agents)


def list_agents(situation: Situation, reports: Reports = MappingProxyType({})) -> tuple[AgentEntry, ...]:
    """List all agents, by controller, pool and age. ``reports``: what their machines told last."""
    agents = sorted(situation.agents, key=lambda agent: (*agent.key, agent.record.launched_at, agent.record.instance_id))
    return tuple(_agent(situation, agent, reports) for agent in agents)


def _agent(situation: Situation, agent: Agent, reports: Reports) -> AgentEntry:
    record, since, state = agent.record, situation.past(agent).idle_since, state_of(situation, agent)
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
        telemetry=None if situation.snapshot.is_off(record) else figures_of(reports.get(record.machine), situation.now),
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
    entries = [entry for controller in situation.demands for entry in _queue_of(situation, controller)]
    return tuple(sorted(entries, key=lambda entry: -entry.waiting_seconds))


def _queue_of(situation: Situation, controller: str) -> Iterator[QueueEntry]:
    """Tell of each item of a controller what becomes of it."""
    view, fates = situation.snapshot.controllers[controller], list(_demanded(situation, controller))
    yield from (_entry(controller, item, fate, pools) for item, fate, pools in fates)
    nodes, listed_ids = {node.name: node for node in view.nodes}, {item.id for item, _, _ in fates}
    for item in view.items:
        if item.id not in listed_ids:
            label = ignored_label(situation.fleet, nodes, item)
            ignored = _Fate("ignored", "another cloud's", f"another cloud serves {label} (ignore_labels)") if label else None
            yield _entry(controller, item, ignored or _of_other(situation, view, item))


def _demanded(situation: Situation, controller: str) -> Iterator[tuple[QueueItem, _Fate, tuple[str, ...]]]:
    """Tell of the items that pools may serve, that free executors do not take, that are on hold, and that no pool takes."""
    demand, starts = situation.demands[controller], expected_starts(situation, controller)
    learned, unknown = situation.snapshot.learned[controller], dict[PlannedStart, tuple[float, str]]()
    for want in demand.wants:
        start = starts.get(want.item.id)
        if start is None or any(quantiles_of_job(learned, want.item.job, pool.name) for pool in want.pools):
            continue
        # The first item on each executor whose job has no known duration: later starts there are a guess.
        place, first = _executor(start), (start.seconds, want.item.job)
        unknown[place] = min(first, unknown.get(place, first))
    for want in demand.wants:
        yield want.item, _of_want(situation, controller, want, starts, unknown), tuple(pool.name for pool in want.pools)
    for refused in demand.refused:
        yield refused.want.item, _of_refused(situation, controller, refused), tuple(pool.name for pool in refused.want.pools)
    for item, holds in demand.held:
        authors = listed(list(dict.fromkeys(hold.by for hold in holds)))
        yield item, _Fate("held", f"held by {authors}", told_holds(situation, controller, item, holds), text_of(holds, situation.now)), ()
    for unmet in demand.unmet:
        yield unmet.item, _Fate(str(unmet.reason), str(unmet.reason), f"{unmet.reason}: {unmet.detail}", unmet.detail), ()


def _entry(controller: str, item: QueueItem, fate: _Fate, pools: tuple[str, ...] = ()) -> QueueEntry:
    detail = fate.detail
    if item.unclear and item.wait.unclear not in detail:
        detail = f"{detail}; Jenkins says: {item.wait.unclear}"
    return QueueEntry(
        id=item.id,
        controller=controller,
        job=item.job,
        of_pipeline=bool(item.run),
        stage=item.signature,
        label=item.asked_label or item.wait.named or "",
        waiting_seconds=item.waiting_seconds,
        pools=pools,
        state=fate.state,
        brief=fate.brief,
        detail=detail,
        because=fate.because or detail,
        starts_in_seconds=fate.starts_in_seconds,
    )


def _executor(start: PlannedStart) -> PlannedStart:
    """Name the executor of a start, whoever takes it when."""
    return start._replace(seconds=start.first_seconds)


def _of_want(
    situation: Situation,
    controller: str,
    want: Want,
    starts: Mapping[int, PlannedStart],
    unknown: Mapping[PlannedStart, tuple[float, str]],
) -> _Fate:
    if not want.mature:
        seconds = duration(min(pool.queue_maturity_seconds for pool in want.pools))
        because = f"a job counts as demand once it has waited {seconds} (queue_maturity_seconds)"
        return _Fate("young", f"counts after {seconds}", f"it counts once it has waited {seconds} (queue_maturity_seconds)", because)
    start = starts.get(want.item.id)
    if doubt := why_uncertain(situation, controller, want, start):
        return _Fate(*doubt)
    if start is None:
        return _Fate("no-executor", "no executor", "no running or booting agent can take it")
    pools = [situation.pools[controller, pool.name] for pool in want.pools]
    starts_in = min((pool.start_seconds for pool in pools if pool.stopped), default=None)
    boots_in = duration(min(pool.boot_seconds for pool in pools))
    another = f"a new agent takes {boots_in} to boot" if starts_in is None else f"a stopped agent takes {duration(starts_in)} to start"
    where = "another node" if start.server.startswith("\n") else start.server
    if build := _of_unknown_length(situation, controller, start):
        since = duration(elapsed_seconds(build, situation.snapshot.learned[controller], situation.now))
        running = f"{build.job} on {where}, which has run for {since}; nobody knows when it ends"
        return _Fate("placed", "once a build ends", f"it waits for {running}; {another}")
    first_seconds, ahead = unknown.get(_executor(start), (inf, ""))
    if first_seconds < start.seconds:
        before = f"{ahead}, which waits before it for {where}; no build of {ahead} was seen to end, so that nobody knows how long it takes"
        return _Fate("placed", "once a build ends", f"it waits for {before}; {another}")
    when = f"in {duration(start.seconds)}" if start.seconds else "at once"
    detail = f"it would start {when} on an executor of {where}; {another}"
    return _Fate("placed", when, detail, starts_in_seconds=start.seconds)


def _of_unknown_length(situation: Situation, controller: str, start: PlannedStart) -> Build | None:
    """Find the build that has the executor, if nobody knows how long builds of its job take, or if it takes longer."""
    builds = (build for node in situation.snapshot.controllers[controller].nodes for build in node.builds if build.key == start.build)
    build = next(builds, None) if start.build else None
    return build if build and not ends_in_time(build, start.server, situation.snapshot.learned[controller], situation.now) else None


def _of_refused(situation: Situation, controller: str, refused: Refused) -> _Fate:
    nodes = situation.distrust[controller].nodes
    since_at = min((nodes[name].since_at for name in refused.nodes), default=situation.now)
    have = "has" if len(refused.nodes) == 1 else "have"
    refusal = f"{listed(refused.nodes)} {have} been free for {duration(situation.now - since_at)} and did not take it"
    if not refused.nodes:
        refusal = "free executors did not take it, and their agents have ended since"
    then = f"another agent is tried for {refused.scope or 'any job'} at {clock(max(refused.until_at, situation.now))}"
    if not refused.scope:
        detail = f"{refusal}; no build has begun on {controller} meanwhile; {then}"
        return _Fate("refused", "Jenkins starts nothing", detail)
    return _Fate("refused", "no free executor takes it", f"{refusal}; {then}")


def _of_other(situation: Situation, view: ControllerView, item: QueueItem) -> _Fate:
    if item.in_quiet_mode:
        return _Fate("quiet-mode", "for quiet mode to end", told_quiet(view), in_quiet_mode(situation, view))
    if item.wait.unclear:
        state, words = "waits-for-something-unknown", f"Jenkins says: {item.wait.unclear}"
        return _Fate(state, "for an unknown reason", f"what it waits for is no executor; {words}", words)
    if item.starved:  # after a restart: it waits for the node that it had
        detail = "what it waits for is the node that it had before the restart"
        return _Fate("waits-for-its-node", "on its old node", detail)
    detail = "what it waits for is no executor"
    return _Fate(
        "not-for-an-executor", "not for an executor", detail, "it needs something other than an executor, so that no agent would help"
    )


# Graphics cards as a machine last reported them: who holds which one, and how many commands wait.


def told_devices(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say it in one line; nothing where the machine has none."""
    told = situation.snapshot.devices.get(agent.record.machine)
    if told is None:
        return
    devices = [f"{one.id} ({one.kind}) {one.state}" + (f" by {one.user}" if one.user else "") for one in told.devices]
    waiting = f"; {counted(told.waiting, 'command')} waiting for one" if told.waiting else ""
    stale = "" if told.is_fresh(situation.now) else ", too long ago to say anything of now"
    ago = duration(max(0.0, situation.now - told.told_at))
    yield f"its devices: {', '.join(devices)}{waiting}; told {ago} ago{stale}"


# Tells people how much of an agent its builds take, where jobs have weights.


def told_weights(situation: Situation, agent: Agent) -> str:
    """Say what the builds on an agent weigh, and what fits beside them; "" where no job has a weight, or nothing runs there."""
    room = room_on(agent.record, agent.node, situation.fleet) if agent.node and agent.node.builds else None
    if room is None:
        return ""
    weigh = f"its builds weigh {room.taken} of {room.of}"
    return f"{weigh}: it takes no further ones" if room.is_full else f"{weigh}: {counted(room.of - room.taken, 'executor')} left"
