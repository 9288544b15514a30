"""Promises: a free executor takes what it may take. What stays free beside a waiting item for three minutes breaks that promise.

Jenkins hands an item to a free executor within seconds. Whatever keeps it from doing so stands in no part of its API. So each look
notes which nodes stand free beside which jobs, and since when; a gap in the looks, a restart, or a change of the node begins anew.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.memory import ControllerPast, FreeNode, Ration
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS, MINUTE_SECONDS, Build, ControllerView, Node
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import Outcome, TrialOf, note
from autoscaler.domain.situation.distrust import Distrust, is_broken, patience_of, refusers
from autoscaler.domain.situation.looks import begun_since
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.supply import builds_left, free_executors
from autoscaler.domain.situation.wants import Taker, Want, may_take, taker_of, was_launched_for

# A second look within one invocation is no look more.
_LOOK_SECONDS = 0.75 * MINUTE_SECONDS
# A job that has not waited beside a node for so long is forgotten, and so is how often an agent was launched for it.
FORGOTTEN_SECONDS = 3600.0
_HAND_OUTS_KEPT = 10
_REFUSALS_KEPT = _JOBS_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Free:
    """A node with a free executor. ``executors``: how many are free for builds of ours, by their weights; ``of``: of how many.

    Where jobs have weights, the node of an agent shows fewer than these: as many as builds fit.
    """

    node: Node
    taker: Taker
    executors: int
    of: int


def note_free_nodes(situation: Situation, view: ControllerView, past: ControllerPast) -> ControllerPast:
    """Note which nodes stand free beside waiting items, of a controller that is believed, and how slowly it hands executors out."""
    longest, now = _longest_waits(situation.demands[view.name].runnable), situation.now
    waits = {free.node.name: _jobs_beside(free, longest, now) for free in _free_nodes(situation, view)}
    beside = {job: max(past.beside.get(job, now), now - seconds) for jobs in waits.values() for job, seconds in jobs.items()}
    begun = begun_since(situation.snapshot.memory.sessions.get(view.name), view)
    hand_outs = _handed_out(past, beside, begun, now)
    # Jenkins is slower than was known: those were no refusals. What stood there for long enough refuses again in this very look.
    before = (
        {name: replace(node, refused={}, is_useless=False) for name, node in past.free_nodes.items()}
        if patience_of(hand_outs) > patience_of(past.hand_outs)
        else past.free_nodes
    )
    after = replace(past, beside=dict([*beside.items()][:_JOBS_KEPT]), hand_outs=hand_outs, free_nodes=before)
    return replace(after, free_nodes=_newest(dict(_on_controller(situation, view, after, begun, waits))))


def _handed_out(past: ControllerPast, beside: Mapping[str, float], begun: Mapping[str, Collection[Build]], now: float) -> tuple[float, ...]:
    """Note how long the job of this look's slowest hand-out had waited beside free executors.

    A look counts once, since Jenkins hands out in rounds. What no longer waits beside any was handed out late by Jenkins. If other items
    of that job still do, a throttle holds those; if it began on a node that was not free until now, others may refuse it. Neither counts.
    """
    jobs = {
        build.job
        for name, builds in begun.items()
        for build in builds
        if build.job not in past.beside or (name in past.free_nodes and past.free_nodes[name].looks)
    }
    waits = [now - past.beside.get(job, now) for job in jobs if past.beside.get(job, 0.0) < beside.get(job, now)]
    return (*past.hand_outs, *sorted(waits)[-1:])[-_HAND_OUTS_KEPT:]


def _on_controller(
    situation: Situation,
    view: ControllerView,
    after: ControllerPast,
    begun: Mapping[str, Collection[Build]],
    waits: Mapping[str, Mapping[str, float]],
) -> Iterator[tuple[str, FreeNode]]:
    won = {
        job
        for ration in after.rations.values()
        if _running(situation, view, ration) > ration.most and not _begun_on_others(situation, view).isdisjoint(ration.jobs)
        for job in ration.jobs
    }
    for node in view.nodes:
        past = _without_taken(after.free_nodes.get(node.name), view, {build.job for build in begun.get(node.name, ())}, situation.now)
        if jobs := waits.get(node.name):
            seen = _looked_at(past, node, view.session, jobs, situation.now, patience_of(after.hand_outs))
            # If others take more of what it refuses than before, the node is at fault; if nobody does, or it runs one, the jobs are.
            is_at_fault = won.isdisjoint(build.job for build in node.builds) and not won.isdisjoint(jobs.keys() & seen.refused.keys())
            yield node.name, replace(seen, is_useless=seen.is_useless or is_at_fault)
        elif past and (past.refused or past.is_useless):
            yield node.name, replace(past, looks=0)


def _begun_on_others(situation: Situation, view: ControllerView) -> set[str]:
    """Name the jobs that have begun on nodes which had not refused them. On one that had, the cause has gone, or left another label."""
    begun = begun_since(situation.snapshot.memory.sessions.get(view.name), view)
    return {build.job for name, builds in begun.items() for build in builds if not situation.distrust[view.name].refuses(name, build.job)}


def _without_taken(past: FreeNode | None, view: ControllerView, taken: Collection[str], now: float) -> FreeNode | None:
    """Carry a node's refusals on, except for the jobs that it took since; a restart of the controller ends them."""
    if past is None or past.session != view.session:
        return None
    refused = {job: at for job, at in past.refused.items() if job not in taken and now - at < FORGOTTEN_SECONDS}
    return replace(past, refused=refused, is_useless=past.is_useless and not taken)


def _looked_at(
    past: FreeNode | None, node: Node, session: str, waits: Mapping[str, float], now: float, patience_seconds: float
) -> FreeNode:
    """Note that a node is free in one look more. ``waits``: seconds that each job beside it has waited."""
    labels = tuple(sorted(node.labels))
    if past is None:
        return FreeNode(since_at=now, seen_at=now, looks=1, session=session, labels=labels)
    if past.looks == 0 or past.labels != labels or now - past.seen_at > LOOK_GAP_SECONDS:
        return replace(past, since_at=now, seen_at=now, looks=1, labels=labels)
    refused = dict(past.refused)
    is_new = now - past.seen_at >= _LOOK_SECONDS
    looks = past.looks + is_new
    if is_broken(replace(past, looks=looks), now, patience_seconds):
        refused |= {job: now for job, seconds in waits.items() if seconds >= patience_seconds}
    return replace(past, seen_at=now if is_new else past.seen_at, looks=looks, refused=refused)


def _free_nodes(situation: Situation, view: ControllerView) -> Iterator[_Free]:
    agents = {agent.node.name: agent for agent in situation.agents if agent.record.controller == view.name and agent.node}
    for node in view.nodes:
        idle = 0 if node.offline or situation.fleet.is_beacon(node.name) else node.executors - len(node.builds)
        agent = agents.get(node.name) if idle > 0 else None
        if agent is not None:
            idle = _free_of_ours(situation, agent)
        if idle > 0:
            taker = taker_of(node, agent.record if agent else None)
            yield _Free(node=node, taker=taker, executors=idle, of=agent.executors if agent else node.executors)


def _free_of_ours(situation: Situation, agent: Agent) -> int:
    """Count the executors that an agent has for further builds; none if it is out of use, or had as many builds as it may."""
    if agent.phase is not Phase.READY:
        return 0
    left = builds_left(situation, agent)
    free = free_executors(situation, agent)
    return free if left is None else min(free, left)


def _longest_waits(wants: Iterable[Want]) -> list[tuple[Want, dict[str, float]]]:
    """Group items that the same nodes may take: one of them, and how long each of their jobs has waited."""
    kinds: dict[tuple[object, ...], tuple[Want, dict[str, float]]] = {}
    for want in wants:
        jobs = kinds.setdefault((want.kind, want.weight), (want, {}))[1]
        jobs[want.item.job] = max(jobs.get(want.item.job, 0.0), want.item.waiting_seconds)
    return list(kinds.values())


def _jobs_beside(free: _Free, kinds: Iterable[tuple[Want, Mapping[str, float]]], now: float) -> dict[str, float]:
    """Find the jobs that wait beside a free node which should take them, and the seconds that each has waited."""
    waits: dict[str, float] = {}
    for want, jobs in kinds:
        if min(want.weight, free.of) <= free.executors:
            may = may_take(want, free.taker)
            waits |= {
                job: max(seconds, waits.get(job, 0.0))
                for job, seconds in jobs.items()
                if may or was_launched_for(want, free.taker, now - seconds)
            }
    return waits


def _newest(free_nodes: Mapping[str, FreeNode]) -> dict[str, FreeNode]:
    """Keep the newest refusals; what is forgotten is seen again within minutes."""
    ages = sorted((at for node in free_nodes.values() for at in node.refused.values()), reverse=True)
    if len(ages) <= _REFUSALS_KEPT:
        return dict(free_nodes)
    oldest = ages[_REFUSALS_KEPT - 1]
    return {
        name: replace(node, refused={job: at for job, at in list(node.refused.items())[-_JOBS_KEPT:] if at >= oldest})
        for name, node in free_nodes.items()
    }


def note_rations(situation: Situation, view: ControllerView, free_nodes: Mapping[str, FreeNode]) -> Mapping[str, Ration]:
    """Note for which labels free executors refuse jobs, how often in a row they did, and when an agent may be tried again."""
    waiting = {want.item.job for want in situation.demands[view.name].runnable}
    kept = {
        name: ration if waiting.isdisjoint(ration.jobs) else replace(ration, seen_at=situation.now)
        for name, ration in situation.memory.controller(view.name).rations.items()
    }
    kept = {name: ration for name, ration in kept.items() if situation.now - ration.seen_at < FORGOTTEN_SECONDS}
    tried = {name: _after_begun(situation, view, ration) for name, ration in kept.items()}
    kept = {name: _cut_short(situation, view, ration) for name, ration in tried.items() if ration}
    return kept | _refused_now(situation, view, free_nodes, kept)


def without_refused(past: ControllerPast, pool: str) -> ControllerPast:
    """Forget that free executors refused jobs of a pool, since a person says that the cause is mended."""
    forgotten = {job for ration in past.rations.values() if pool in ration.pools for job in ration.jobs}
    nodes = {
        name: replace(node, refused={job: at for job, at in node.refused.items() if job not in forgotten})
        for name, node in past.free_nodes.items()
    }
    rations = {scope: ration for scope, ration in past.rations.items() if pool not in ration.pools}
    return replace(past, rations=rations, free_nodes=nodes)


def _cut_short(situation: Situation, view: ControllerView, ration: Ration) -> Ration:
    """End a pause if no executor is free beside its jobs any more: what refused them is busy or gone.

    Only once until a try is won. Else each agent that is tried in vain, and then runs other jobs or ends, brings the next.
    """
    if situation.now >= ration.until_at or ration.is_cut_short:
        return ration
    wants = [want for want in situation.demands[view.name].runnable if want.item.job in ration.jobs]
    kinds = _longest_waits(wants)
    if not wants or any(_jobs_beside(free, kinds, situation.now) for free in _free_nodes(situation, view)):
        return ration
    return replace(ration, until_at=situation.now, is_cut_short=True)


def _running(situation: Situation, view: ControllerView, ration: Ration) -> int:
    """Count the builds of refused jobs that run where agents are tried for them: a job's stages on other labels say nothing."""
    nodes = [a.node for a in situation.agents if a.node and a.record.controller == view.name and a.pool.name in ration.pools]
    jobs = [build.job for node in nodes for build in node.builds if not build.is_one_off]
    # When they are refused for the first time, whatever runs there may be what they wait for: one deploy at a time, each of another job.
    return max(sum(job in ration.jobs for job in jobs), bool(jobs) and not ration.failed_at)


def _after_begun(situation: Situation, view: ControllerView, ration: Ration) -> Ration | None:
    """Note a bet that is won: then further agents may be tried at once. None once no loss is left to remember.

    What has not run at once for an hour is no measure: the cause may be another one by now. What one look shows is one bet. After a win,
    the next is won by agents that came since: a throttle may let several builds go elsewhere, one after another, and each begins on an
    agent that had refused it.
    """
    running = _running(situation, view, ration)
    if running <= ration.most:
        is_past = situation.now - ration.most_at >= FORGOTTEN_SECONDS
        return replace(ration, most=running, most_at=situation.now) if is_past or running == ration.most else ration
    after = replace(ration, most=running, most_at=situation.now)
    if ration.wins and _begun_on_others(situation, view).isdisjoint(ration.jobs):
        return after
    win = Outcome(scope=TrialOf.REFUSED, won=True, name=f"{running} at once")
    return _with_outcomes(replace(after, is_cut_short=False), [win], situation.now)


@dataclass(slots=True)
class _Refusal:
    """The jobs that are refused now in one scope, and the nodes that refuse for the first time."""

    jobs: dict[str, None] = field(default_factory=dict)
    pools: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)


def _refused_now(
    situation: Situation, view: ControllerView, free_nodes: Mapping[str, FreeNode], kept: Mapping[str, Ration]
) -> dict[str, Ration]:
    before = situation.distrust[view.name]
    nodes = {name: node for name, node in free_nodes.items() if node.looks}
    distrust = Distrust(nodes=nodes, rations=kept, began_at=before.began_at, now=situation.now)
    refusing = [free.taker for free in _free_nodes(situation, view) if free.node.name in nodes]
    refusals: dict[str, _Refusal] = {}
    for want, waits in _longest_waits(situation.demands[view.name].runnable):
        for job, seconds in waits.items():
            of_job = replace(want, item=replace(want.item, job=job, waiting_seconds=seconds))
            if names := refusers(of_job, distrust, refusing):
                refusal = refusals.setdefault(distrust.scope(of_job, names), _Refusal())
                refusal.jobs[job] = None
                refusal.pools.update(pool.name for pool in want.pools)
                refusal.new.update(name for name in names if not before.refuses(name, job))
    refused = {scope: (_with_refused(kept.get(scope), refusal, situation.now), refusal) for scope, refusal in refusals.items()}
    return {
        scope: _next(ration, _running(situation, view, ration), _refusing(refusal, nodes, view, ration.failed_at), situation.now)
        for scope, (ration, refusal) in refused.items()
    }


def _with_refused(ration: Ration | None, refusal: _Refusal, now: float) -> Ration:
    # With the first loss, which pauses nothing, its count of pauses is 0.
    ration = ration or Ration(failures=0, since_at=now, failed_at=0.0, until_at=now, why="", pauses=-1, seen_at=now, jobs=(), most_at=now)
    jobs = tuple(dict.fromkeys((*ration.jobs, *refusal.jobs)))[-_JOBS_KEPT:]
    return replace(ration, seen_at=now, jobs=jobs, pools=tuple(sorted({*ration.pools, *refusal.pools})))


def _refusing(refusal: _Refusal, nodes: Mapping[str, FreeNode], view: ControllerView, since_at: float) -> list[str]:
    """Name the nodes that refuse for the first time, are free since the last loss, and run none of the jobs.

    A node that came after the last loss was tried in vain. An older one proves nothing new, nor does one that took such a job and
    refuses the next: a throttle on each node does so, and there further agents help.
    """
    runs_one = {node.name for node in view.nodes if any(build.job in refusal.jobs for build in node.builds)}
    return sorted(name for name in refusal.new - runs_one if nodes[name].since_at >= since_at)


def _next(ration: Ration, running: int, refusing: Collection[str], now: float) -> Ration:
    """Carry a ration on. ``refusing``: nodes that were tried in vain. They are one round: all count in the share, the last also pauses.

    The nodes that refuse first were not launched for these jobs: they bring no pause.
    """
    most = max(ration.most, running)
    if ration.failed_at and not refusing:
        return replace(ration, most=most)
    *earlier, latest = refusing or ("",)
    losses = [Outcome(scope=TrialOf.REFUSED, name=node, at=0.0) for node in earlier]
    losses.append(Outcome(scope=TrialOf.REFUSED, name=latest, at=now if ration.failed_at else 0.0))
    return replace(_with_outcomes(ration, losses, now) or ration, most=most if ration.is_closed else running)


def _with_outcomes(ration: Ration, outcomes: Iterable[Outcome], now: float) -> Ration | None:
    """Note how bets ended; None once no loss is left to remember."""
    after = note({TrialOf.REFUSED: ration}, outcomes, now).get(TrialOf.REFUSED)
    return after if isinstance(after, Ration) else None
