"""What each item of the queue waits for; and when a job's builds will start and end: those there are, and one that is queued now."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf
from shlex import quote

from autoscaler.domain.facts.fleet import FULL_LABEL
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.job_stats import Estimate, JobRow, JobTracker, Subject
from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, Build, ControllerView, Node, QueueItem
from autoscaler.domain.forecast.durations import (
    best_row,
    duration_of,
    left_of,
    quantiles_of_job,
    start_kinds,
    start_of,
    subjects_of,
    sum_of,
)
from autoscaler.domain.launch.budget import used_up_before
from autoscaler.domain.launch.placement import PlannedStart
from autoscaler.domain.launch.queue import BareStart, WaitsFor, expected_starts
from autoscaler.domain.report.controllers import in_quiet_mode, told_quiet
from autoscaler.domain.report.jobs import JobInPool, Rows
from autoscaler.domain.report.overdue import told_holds, told_takers
from autoscaler.domain.report.tracking import if_queued, item_duration, starts_of
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.bets import TrialOf, failing, in_the_way
from autoscaler.domain.situation.distrust import Refused
from autoscaler.domain.situation.looks import elapsed_seconds, ends_in_time
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.supply import ANY_MOMENT_SECONDS
from autoscaler.domain.situation.wants import Want, ignored_label, may_take, taker_of
from autoscaler.domain.wording import clock, counted, duration, listed

# Why an item may not take the executor that was planned for it: others go first; or, where jobs have weights, it needs several at once.


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of an item. ``state``: in a word; ``brief``: in a few; ``detail``: in a sentence.

    ``because``: why it waits, if ``detail`` is more than that; ``starts_in_seconds``: when it would start, None if nobody knows.
    """

    state: str
    brief: str
    detail: str
    because: str = ""
    starts_in_seconds: float | None = None


def why_kept(situation: Situation, controller: str, want: Want, starts: Mapping[int, PlannedStart | BareStart]) -> Fate | None:
    """Say what goes before an item where it was planned; None if nothing does. ``starts``: of all items, by id."""
    weights, start, demand = situation.fleet.weights, starts[want.item.id], situation.demands[controller]
    pools = {start.server} if start.server in situation.fleet.pools else {pool.name for pool in want.pools}
    # Once a try is won, or while some of their kind run, Jenkins gives refused jobs what boots. Until then they take nothing.
    due = (other.want for other in demand.refused if other.may_begin and other.want.item.waiting_seconds > want.item.waiting_seconds)
    first = [*_sharing(due, pools)]
    if first or not weights:
        return _after_others(len(first), "free executors refused them, but some of their kind begin") if first else None
    agents = {agent.record.machine: agent for agent in situation.agents if agent.record.controller == controller}
    nodes = {item: agents[other.machine].node for item, other in starts.items() if other.machine in agents}
    return _for_heavier(weights, nodes, want, demand.wants, pools) or _for_several(
        weights, agents.get(start.machine), want, _sharing(demand.wants, pools), start.seconds
    )


def _sharing(wants: Iterable[Want], pools: set[str]) -> Iterator[Want]:
    """Choose the items that agents of these pools may serve, too."""
    return (want for want in wants if pools & {pool.name for pool in want.pools})


def _for_heavier(weights: JobWeights, nodes: Mapping[int, Node | None], want: Want, wants: Sequence[Want], pools: set[str]) -> Fate | None:
    """Name the job that goes first: nodes show no free executor to lighter ones while a heavier one waits.

    If lighter ones before this item were planned on such nodes, they take its executor: Jenkins gives it to the first in the queue.
    ``nodes``: on which items were planned.
    """
    full = {item: node.name for item, node in nodes.items() if node and (FULL_LABEL in node.labels or len(node.builds) >= node.executors)}
    heavy = _sharing((other for other in wants if other.weight > 1), pools)
    heaviest = max(heavy, key=lambda other: weights.of_running(other.item.job), default=want)
    told, most = f"{heaviest.item.job}, which weighs {heaviest.weight}", weights.of_running(heaviest.item.job)
    front = (*takewhile(lambda other: other.item.id != want.item.id, wants), want)
    on_full = _sharing((other for other in front if other.item.id in full), pools)
    kept = [other.item.id for other in on_full if weights.of_running(other.item.job) < most]
    if kept[-1:] == [want.item.id]:
        return Fate(
            "after-heavier", "after a heavier job", f"{told}, goes first: what is free on {full[want.item.id]} is kept until it has begun"
        )
    return _after_others(len(kept), f"what is free elsewhere is kept for {told}") if kept else None


def _after_others(many: int, because: str) -> Fate:
    return Fate("after-others", "after other jobs", f"{counted(many, 'job')} before it in the queue may take its executor first: {because}")


def _for_several(weights: JobWeights, agent: Agent | None, want: Want, others: Iterable[Want], seconds: float) -> Fate | None:
    """Say that the Heavy Job plugin needs several executors at once, of which others may take each that is freed before."""
    needed = _at_once(weights, want)
    lighter = [other for other in others if _at_once(weights, other) < needed] if needed > 1 else []
    if not lighter or seconds == 0.0 or agent is None or not agent.busy_executors:
        return None
    first = f"{counted(len(lighter), 'job')} that {'needs' if len(lighter) == 1 else 'need'} fewer may take each that is freed before"
    return Fate("needs-several", "for several executors", f"it needs {needed} executors of one machine at once, and {first}")


def _at_once(weights: JobWeights, want: Want) -> int:
    """How many executors Jenkins itself gives out together: what the plugin asks for, else one."""
    return want.weight if want.weight > weights.of_running(want.item.job) else 1


# Why nobody can say when a job starts, though it has a place: what it counts on was refused, is broken, or is late.


def why_uncertain(situation: Situation, controller: str, want: Want, starts: Mapping[int, PlannedStart | BareStart]) -> Fate | None:
    """Say why an item may not start as planned; None if nothing speaks against it. ``starts``: without those that never start."""
    start = starts.get(want.item.id)
    if start is None:
        return _why_broken(situation, controller, want, None)
    view = situation.pools.get((controller, start.server))
    # A stopped agent is asked for all the same, and may be refused, too.
    if start.bought and view is not None and in_the_way(view.spec, situation.memory):
        words = f"it starts once EC2 lets an agent of {view.name} start again: {view.refused_detail}"
        return Fate("refused-by-ec2", "EC2 refuses", words)
    if broken := why_kept(situation, controller, want, starts) or _why_broken(situation, controller, want, start):
        return broken
    if start.server in situation.fleet.pools and (limit := used_up_before(situation, start.server, start.seconds)):
        words = f"{limit} once {start.server} has an executor for it, in {duration(start.seconds)}: nothing new starts then"
        return Fate("limit-first", "a limit comes first", words)
    # An agent that may come at any moment has been late for so long already: so are those that it takes after others.
    if start.first_seconds == ANY_MOMENT_SECONDS and start.server in situation.fleet.pools:
        timeouts = [agent.pool.boot_timeout_seconds for agent in situation.agents if agent.pool.name == start.server]
        timeout = duration(max(timeouts, default=situation.fleet.pools[start.server].boot_timeout_seconds))
        words = f"it waits for an agent of {start.server} that takes longer than usual; each has {timeout} in all"
        return Fate("late-agent", "agent is late", words)
    # Jenkins, or a plugin, holds it back in words of its own: nobody knows for how long.
    return Fate("unclear", "Jenkins holds it", f"Jenkins holds it back: {want.item.wait.unclear}") if want.item.unclear else None


def _why_broken(situation: Situation, controller: str, want: Want, start: PlannedStart | BareStart | None) -> Fate | None:
    """Say what was refused, is broken or is late. ``start``: None if it never takes an executor."""
    tried = (
        Fate("tried", "an agent is tried", "free executors did not take it; an agent is tried for it")
        if start and situation.distrust[controller].scope_without_nodes(want) is not None
        else None
    )
    # An idle agent, or one that is uncordoned for the job, may refuse it as well. What Jenkins says comes first.
    if start and start.seconds == 0.0:
        return _not_taken_yet(situation, controller, want) or (None if want.item.unclear else tried)
    if tried:
        return tried
    pools = [start.server] if start else [pool.name for pool in want.pools]
    if pool := next((pool for pool in pools if _waits_for_a_boot(situation, pool, start)), None):
        return Fate("pool-broken", "boots failed", f"it starts once an agent of {pool} boots")
    if refused := failing(situation.memory, TrialOf.CONNECT.scope(controller)):
        return Fate("cannot-connect", "no agent can connect", f"it starts once a new agent can connect to {controller} ({refused.why})")
    if no_node := situation.no_node(controller):
        return Fate("cannot-connect", "no agent can connect", f"it starts once nodes can be made on {controller} ({no_node})")
    return None


def _waits_for_a_boot(situation: Situation, pool: str, start: PlannedStart | BareStart | None) -> bool:
    """Tell whether the last boot of a pool failed, so that a new launch may fail, too. Agents that boot count until few are tried."""
    trial = failing(situation.memory, TrialOf.BOOT.scope(pool))
    return trial is not None and (trial.is_closed or bool(start and start.bought))


def _not_taken_yet(situation: Situation, controller: str, want: Want) -> Fate | None:
    """Name a node that has stood free beside the item for a look or more: Jenkins gives it out within seconds."""
    agents = {agent.record.node: agent.record for agent in situation.agents if agent.record.controller == controller}
    for node in situation.snapshot.controllers[controller].nodes:
        free = situation.memory.controller(controller).free_nodes.get(node.name)
        if free is None or want.item.job in free.refused or free.is_useless or not may_take(want, taker_of(node, agents.get(node.name))):
            continue
        since = min(situation.now - free.since_at, want.item.waiting_seconds)
        if since >= MINUTE_SECONDS and free.looks:
            until = clock(max(free.since_at + situation.distrust[controller].patience_seconds, situation.now))
            return Fate(
                "not-taken",
                "not taken yet",
                f"{node.name} has been free for {duration(since)} and has not taken it; from {until} on it does not count for it",
            )
    return None


# What becomes of each item of the queue.


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry(Fate):
    """One item of the queue, and what becomes of it. ``of_pipeline``: it is a part of a pipeline. Here ``because`` is never empty."""

    id: int
    controller: str
    job: str
    of_pipeline: bool
    stage: str  # or branch, or parameters, that tell it from other items of its job; "" if nothing does
    label: str
    waiting_seconds: float
    pools: tuple[str, ...]


def queue_of(situation: Situation, controller: str) -> Iterator[QueueEntry]:
    """Tell of each item of a controller what becomes of it."""
    view, fates = situation.snapshot.controllers[controller], list(_demanded(situation, controller))
    yield from (_queue_entry(controller, item, fate, pools) for item, fate, pools in fates)
    nodes, listed_ids = {node.name: node for node in view.nodes}, {item.id for item, _, _ in fates}
    for item in view.items:
        if item.id not in listed_ids:
            label = ignored_label(situation.fleet, nodes, item)
            ignored = Fate("ignored", "another cloud's", f"another cloud serves {label} (ignore_labels)") if label else None
            yield _queue_entry(controller, item, ignored or _of_other(situation, view, item))


def _demanded(situation: Situation, controller: str) -> Iterator[tuple[QueueItem, Fate, tuple[str, ...]]]:
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
        yield want.item, _fate_of(situation, controller, want, starts, unknown), tuple(pool.name for pool in want.pools)
    for refused in demand.refused:
        yield refused.want.item, _of_refused(situation, controller, refused), tuple(pool.name for pool in refused.want.pools)
    for item, holds in demand.held:
        authors = listed(list(dict.fromkeys(hold.by for hold in holds)))
        yield item, Fate("held", f"held by {authors}", told_holds(situation, controller, item, holds), text_of(holds, situation.now)), ()
    for unmet in demand.unmet:
        yield unmet.item, Fate(str(unmet.reason), str(unmet.reason), f"{unmet.reason}: {unmet.detail}", unmet.detail), ()


def _queue_entry(controller: str, item: QueueItem, fate: Fate, pools: tuple[str, ...] = ()) -> QueueEntry:
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


def _fate_of(
    situation: Situation,
    controller: str,
    want: Want,
    starts: Mapping[int, PlannedStart],
    unknown: Mapping[PlannedStart, tuple[float, str]],
) -> Fate:
    if not want.mature:
        return _of_young(want, [item.node for item in situation.snapshot.learned[controller].left_queue.get(want.label_set, ())])
    view = situation.snapshot.controllers[controller]
    if view.quieting_down:
        return _until_quiet_mode_ends(situation, view)
    start = starts.get(want.item.id)
    if doubt := why_uncertain(situation, controller, want, starts):
        return doubt
    if start is None:
        return Fate("no-executor", "no executor", "no running or booting agent can take it")
    pools = [situation.pools[controller, pool.name] for pool in want.pools]
    starts_in = min((pool.start_seconds for pool in pools if pool.stopped), default=None)
    boots_in = duration(min(pool.boot_seconds for pool in pools))
    another = f"a new agent takes {boots_in} to boot" if starts_in is None else f"a stopped agent takes {duration(starts_in)} to start"
    where = "another node" if start.server.startswith("\n") else start.server
    if build := _of_unknown_length(situation, controller, start):
        since = duration(elapsed_seconds(build, situation.snapshot.learned[controller], situation.now))
        running = f"{build.job} on {where}, which has run for {since}; nobody knows when it ends"
        return Fate("placed", "once a build ends", f"it waits for {running}; {another}")
    first_seconds, ahead = unknown.get(_executor(start), (inf, ""))
    if first_seconds < start.seconds:
        before = f"{ahead}, which waits before it for {where}; no build of {ahead} was seen to end, so that nobody knows how long it takes"
        return Fate("placed", "once a build ends", f"it waits for {before}; {another}")
    when = f"in {duration(start.seconds)}" if start.seconds else "at once"
    return Fate("placed", when, f"it would start {when} on an executor of {where}; {another}", starts_in_seconds=start.seconds)


def _of_young(want: Want, takers: Iterable[str]) -> Fate:
    seconds, since = duration(want.matures_after_seconds), f", since {told_takers(takers)}"
    waits = f"once it has waited {seconds}{since if want.patience_seconds else ' (queue_maturity_seconds)'}"
    return Fate("young", f"counts after {seconds}", f"it counts {waits}", f"a job counts as demand {waits}")


def _of_unknown_length(situation: Situation, controller: str, start: PlannedStart) -> Build | None:
    """Find the build that has the executor, if nobody knows how long builds of its job take, or if it takes longer."""
    builds = (build for node in situation.snapshot.controllers[controller].nodes for build in node.builds if build.key == start.build)
    build = next(builds, None) if start.build else None
    return build if build and not ends_in_time(build, start.server, situation.snapshot.learned[controller], situation.now) else None


def _of_refused(situation: Situation, controller: str, refused: Refused) -> Fate:
    nodes = situation.distrust[controller].nodes
    since_at = min((nodes[name].since_at for name in refused.nodes), default=situation.now)
    have = "has" if len(refused.nodes) == 1 else "have"
    refusal = f"{listed(refused.nodes)} {have} been free for {duration(situation.now - since_at)} and did not take it"
    if not refused.nodes:
        refusal = "free executors did not take it, and their agents have ended since"
    then = f"another agent is tried for {refused.scope or 'any job'} at {clock(max(refused.until_at, situation.now))}"
    if not refused.scope:
        return Fate("refused", "Jenkins starts nothing", f"{refusal}; no build has begun on {controller} meanwhile; {then}")
    return Fate("refused", "no free executor takes it", f"{refusal}; {then}")


def _until_quiet_mode_ends(situation: Situation, view: ControllerView) -> Fate:
    return Fate("quiet-mode", "for quiet mode to end", told_quiet(view), in_quiet_mode(situation, view))


def _of_other(situation: Situation, view: ControllerView, item: QueueItem) -> Fate:
    if item.in_quiet_mode:
        return _until_quiet_mode_ends(situation, view)
    if item.wait.unclear:
        state, words = "waits-for-something-unknown", f"Jenkins says: {item.wait.unclear}"
        return Fate(state, "for an unknown reason", f"what it waits for is no executor; {words}", words)
    if item.starved:  # after a restart
        return Fate("waits-for-its-node", "on its old node", "what it waits for is the node that it had before the restart")
    return Fate(
        "not-for-an-executor",
        "not for an executor",
        "what it waits for is no executor",
        "it needs something other than an executor, so that no agent would help",
    )


# When builds start and end.


# Of a job with more builds at once, the first ones tell enough.
_BUILDS_TOLD = 50
_TOLD_ONE_BY_ONE = 3  # more lines than that hide what else is known of a job
_FOR = {
    WaitsFor.JENKINS: "an executor is free",
    WaitsFor.BOOT: "an agent that boots",
    WaitsFor.LAUNCH: "an agent that is yet to be launched",
    WaitsFor.BUILD: "a build that runs now",
    WaitsFor.QUEUE: "builds that wait before it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EtaEntry(JobInPool):
    """One build: seconds from now until it starts and ends; None: not known. ``state``: waits, runs, or not queued; ``item``: its id."""

    state: str
    item: int | None
    starts: Estimate | None
    ends: Estimate | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a question about one controller is answered from. ``item``: of the queue, where that was asked for instead of a job."""

    controller: str
    job: str
    item: int | None = None


def asked_on(situation: Situation, subject: str) -> tuple[Asked, ...]:
    """Say which controllers a question is about: those where a job or an item of this name waits or runs, or all of them."""
    found = [asked for view in situation.snapshot.controllers.values() if (asked := _asked_of(view, subject))]
    return tuple(found) or tuple(Asked(controller=view.name, job=subject) for view in situation.snapshot.controllers.values())


def _asked_of(view: ControllerView, subject: str) -> Asked | None:
    for item in view.items:
        if subject in {str(item.id), item.job}:
            return Asked(controller=view.name, job=item.job, item=item.id if subject == str(item.id) else None)
    runs = any(build.job == subject for node in view.nodes for build in node.builds)
    return Asked(controller=view.name, job=subject) if runs else None


def subjects_asked(situation: Situation, asked: Asked) -> frozenset[Subject]:
    """Name the subjects whose rows an answer needs."""
    of_items = (subjects_of(want.item.job, want.item.run, want.item.signature) for want in _wants(situation, asked))
    return frozenset(subject for many in (*of_items, subjects_of(asked.job, asked.job, "")) for subject in many)


def eta(situation: Situation, asked: Asked, tracker: JobTracker, rows: Iterable[JobRow]) -> tuple[EtaEntry, ...]:
    """Answer: what waits, then what runs; where nothing of the job does, when one would start that is queued now."""
    known = {(row.subject, row.pool): row for row in rows}
    estimates = [*_waiting(situation, asked, tracker, known), *(_running(situation, asked, tracker) if asked.item is None else ())]
    return tuple(estimates[:_BUILDS_TOLD]) or tuple(_if_queued_now(situation, asked, tracker, known))


def _wants(situation: Situation, asked: Asked) -> list[Want]:
    wants = situation.demands[asked.controller].wants
    return [want for want in wants if want.item.job == asked.job and asked.item in {None, want.item.id}]


def _waiting(situation: Situation, asked: Asked, tracker: JobTracker, rows: Rows) -> Iterator[EtaEntry]:
    wants = _wants(situation, asked)
    durations = {want.item.id: item_duration(want, rows, tracker) for want in wants}
    takes = {item: known.mid for item, known in durations.items() if known}
    starts = starts_of(situation, asked.controller, tracker, takes) if wants else {}
    for want in wants:
        uncertain = why_uncertain(situation, asked.controller, want, starts)
        entry = _of_want(asked.controller, want, starts.get(want.item.id), durations[want.item.id], tracker)
        yield replace(entry, pool="", starts=None, ends=None, detail=uncertain.detail) if uncertain else entry
    # What is no demand waits for something else.
    items = situation.snapshot.controllers[asked.controller].items
    others = {item.id: item for item in items if item.job == asked.job and asked.item in {None, item.id} and item.id not in durations}
    for waiting in queue_of(situation, asked.controller) if others else ():
        if item := others.get(waiting.id):
            # Since when its controller is in quiet mode is the answer of `why`, and said there.
            yield _entry(
                asked.controller,
                item,
                pool="",
                starts=None,
                ends=None,
                detail=waiting.detail if item.in_quiet_mode else waiting.because,
            )


def _of_want(controller: str, want: Want, bare: BareStart | None, takes: Estimate | None, tracker: JobTracker) -> EtaEntry:
    if bare is None:
        detail = "nobody knows when it starts: no running or booting agent can take it, and nothing may be launched for it"
        return _entry(controller, want.item, pool=want.pools[0].name, starts=None, ends=None, detail=f"{detail}; {_told_duration(takes)}")
    where = "another node" if bare.server.startswith("\n") else bare.server
    if bare.is_guess:
        detail = f"it waits for {_FOR[bare.waits_for]} ({where}), and nobody knows when the build ends that runs there"
        return _entry(controller, want.item, pool=where, starts=None, ends=None, detail=f"{detail}; {_told_duration(takes)}")
    starts, _ = start_of(bare.seconds, start_kinds(bare.waits_for, bare.server, mature=want.mature), tracker)
    ends = sum_of(starts, takes) if takes else None
    detail = (
        f"it waits for {_FOR[bare.waits_for]} ({where})" if bare.waits_for is not WaitsFor.JENKINS else f"an executor of {where} is free"
    )
    return _entry(controller, want.item, pool=where, starts=starts, ends=ends, detail=f"{detail}; {_told_duration(takes)}")


def _told_duration(takes: Estimate | None) -> str:
    if takes is None:
        return "no build of it was seen to end, so that nobody knows how long it takes"
    return f"it takes {duration(takes.mid)} ({duration(takes.low)} to {duration(takes.high)})"


def _running(situation: Situation, asked: Asked, tracker: JobTracker) -> Iterator[EtaEntry]:
    running = situation.snapshot.learned[asked.controller].running
    for key, sighting in ((key, sighting) for key, sighting in running.items() if sighting.job == asked.job):
        build = tracker.running.get(key)
        since_at = build.since_at if build else sighting.since_at
        left = left_of(build.duration, situation.now - since_at) if build and build.duration else None
        detail = f"it has run for {duration(situation.now - since_at)} on {sighting.node}"
        if build is None or build.duration is None:
            detail += "; no build of it was seen to end before it began, so that nobody knows how long it takes"
        elif left is None:
            detail += f", where others took {duration(build.duration.mid)}: nobody knows when it ends"
        yield EtaEntry(
            controller=asked.controller,
            job=asked.job,
            signature=build.signature if build else "",
            pool=sighting.pool,
            state="runs",
            item=None,
            starts=None,
            ends=left,
            detail=detail,
        )


def _if_queued_now(situation: Situation, asked: Asked, tracker: JobTracker, rows: Rows) -> Iterator[EtaEntry]:
    """Tell of each pool that has run the job when a build would start and end that comes now. An item that waits is told of before."""
    pools = situation.pools_of(asked.controller)
    for row in rows.values():
        if row.subject != Subject(asked.job) or row.pool not in pools or situation.fleet.declines(asked.controller, row.pool, asked.job):
            continue
        queued, [want] = if_queued(situation, pools[row.pool], asked.job, 1)
        takes = duration_of(best_row([row], tracker.skills), tracker)
        bare = starts_of(queued, asked.controller, tracker, {want.item.id: takes.mid} if takes else {}).get(want.item.id)
        yield replace(_of_want(asked.controller, want, bare, takes, tracker), state="not queued", item=None)


def _entry(controller: str, item: QueueItem, *, pool: str, starts: Estimate | None, ends: Estimate | None, detail: str) -> EtaEntry:
    return EtaEntry(
        controller=controller,
        job=item.job,
        signature=item.signature,
        pool=pool,
        state="waits",
        item=item.id,
        starts=starts,
        ends=ends,
        detail=detail,
    )


def told(entry: EtaEntry) -> str:
    """Say it in a sentence."""
    of = f"{entry.job} ({entry.signature})" if entry.signature else entry.job
    what = {"waits": "waits", "runs": "runs", "not queued": "is not queued"}[entry.state]
    starts = f"would start {_in(entry.starts)}" if entry.starts else ""
    ends = f"{'would end' if entry.starts else 'is to end'} {_in(entry.ends)}" if entry.ends else ""
    predicted = " and ".join(filter(None, (starts, ends)))
    return f"{of} {what}" + (f", and {predicted}" if predicted else "") + f"; {entry.detail}"


def told_together(entries: Sequence[EtaEntry]) -> list[str]:
    """Say it of some builds one by one; of many, from when to when they start and end."""
    if len(entries) <= _TOLD_ONE_BY_ONE:
        return [told(entry) for entry in entries]
    return [line for state in ("waits", "runs") if (line := _told_range(state, [entry for entry in entries if entry.state == state]))]


def _told_range(state: str, entries: Sequence[EtaEntry]) -> str:
    starts, ends = [entry.starts.mid for entry in entries if entry.starts], [entry.ends.mid for entry in entries if entry.ends]
    said = " and ".join(f"{what} in {from_to(seconds)}" for what, seconds in (("start", starts), ("end", ends)) if seconds)
    of = {"waits": "that wait", "runs": "that run"}[state]
    return f"those {of} will probably {said} (autoscaler eta {quote(entries[0].job)} lists each)" if said else ""


def from_to(seconds: Collection[float]) -> str:
    """Write the shortest and the longest of some durations, or the one that they are."""
    first, last = duration(min(seconds)), duration(max(seconds))
    return first if first == last else f"{first} to {last}"


def _in(seconds: Estimate) -> str:
    return f"in {duration(seconds.mid)} (four in five: {duration(seconds.low)} to {duration(seconds.high)})"
