"""Builds that were lost with their agent: which of those that are followed, by facts alone, and what is done about each.

A build is lost once Jenkins has ended it as failed or aborted with its agent gone: not where a person or a time-out aborted it, where it
failed before the connection was lost, or where a pipeline has resumed or begun anything elsewhere since. What is lost is answered for
once: started again with the same parameters, unless a person has done that, or left to a person.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Held, LeaveLost, LostAnswer, RunAgain
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import NO_ITEM, Entry, Interruption, Job, Run, hidden, job_name_of
from autoscaler.domain.facts.snapshot import ControllerView, InstanceState, Node
from autoscaler.domain.facts.started_builds import (
    LeftBuild,
    LostBuild,
    LostFacts,
    RanAgain,
    Rerun,
    RerunPolicy,
    RerunState,
    RunOrder,
    claimed_try,
    item_key,
)
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Decided, Look, Situation
from autoscaler.domain.situation.states import DISCONNECT_GRACE_SECONDS

# Steps that answer for a lost build, and what is remembered of builds that were run again or left to a person.


_REMEMBERED_SECONDS = 30 * 86_400.0
_LEFT_SECONDS = 86_400.0
_MOST = 1000

_Noted = TypeVar("_Noted", RanAgain, LeftBuild)

_ORDINALS = {1: "first", 2: "second", 3: "third"}


def is_run_again(fleet: Fleet, lost: LostBuild) -> bool:
    """Tell whether the fleet file as it is now wants a lost build to be run again."""
    pool = fleet.pools.get(lost.pool)
    return pool is not None and is_covered(pool, lost.run)


def is_covered(pool: Pool, run: str) -> bool:
    """Tell whether a pool's builds of this job are to be run again if they are lost."""
    return pool.rerun is not None and pool.rerun.covers(job_name_of(run))


def wants_on_demand(memory: Memory, controller: str, item: int) -> bool:
    """Tell whether an on-demand agent is to be launched for a queue item: it was lost more often than chance explains."""
    again = memory.reruns.get(f"{controller}#{item}")
    return again is not None and again.on_demand


def new_rerun(situation: Situation, lost: LostBuild, unit: Run | None, times: int) -> Rerun:
    """Make the answer to a lost build."""
    return Rerun(
        controller=lost.controller,
        run=lost.unit,
        began_at=unit.started_at if unit else 0.0,
        state=RerunState.WRITTEN,
        times=times,
        on_demand=False,
        created_at=situation.now,
    )


def again_or_left(situation: Situation, lost: LostBuild, facts: LostFacts, unit: Run, policy: RerunPolicy) -> RunAgain | LeaveLost:
    """Start a build again, unless it was lost as often as is allowed: that is counted by what was noted of its queue item.

    Its parameter only names the answer that it may come from: a person who rebuilds what we started copies that, and begins anew. Where
    its queue item is not known, the parameter counts.
    """
    if refusal := _in_doubt(lost, facts, unit) or _not_repeatable(situation, facts, unit):
        return leave(situation, lost, facts, *refusal)
    again, origin = situation.memory.reruns.get(item_key(lost.controller, unit.item)), facts.origin
    is_origin = origin is not None and (unit.item in {origin.item, NO_ITEM} or (origin.item is None and origin.state is RerunState.WRITTEN))
    times = max(again.times if again else 0, origin.times if origin is not None and is_origin else 0)
    if times >= policy.most:
        told = f"it has been run again {times} times, and was lost each time"
        return leave(situation, lost, facts, Reason.LOST_TOO_OFTEN, told)
    rerun = new_rerun(situation, lost, unit, times + 1)
    return start(situation, lost, facts, replace(rerun, on_demand=policy.then_on_demand and times >= policy.times))


def start(situation: Situation, lost: LostBuild, facts: LostFacts, rerun: Rerun, found: int | None = None) -> RunAgain:
    """Start a build again; ``found``: it was, and its queue item is known now."""
    agent = "; an on-demand agent is launched for it, if one has to be" if rerun.on_demand else ""
    return RunAgain(
        controller=lost.controller,
        pool=lost.pool,
        job=job_name_of(rerun.run),
        lost=lost.key,
        rerun=rerun,
        parameters=_parameters(situation, facts, rerun),
        is_known=facts.rerun is not None,
        found=found,
        newest=max((entry.item for entry in facts.job.entries), default=-1) if facts.job else -1,
        reason=Reason.LOST_BUILD if found is None else Reason.RERUN_FOUND,
        detail=f"{rerun.run}: {lost.how}; it is run again for the {_ORDINALS.get(rerun.times, str(rerun.times) + 'th')} time{agent}",
    )


def leave(situation: Situation, lost: LostBuild, facts: LostFacts, reason: Reason, detail: str) -> LeaveLost:
    """Leave a lost build to a person."""
    rerun = facts.rerun or new_rerun(situation, lost, facts.unit, 0)
    return LeaveLost(
        controller=lost.controller,
        pool=lost.pool,
        job=job_name_of(lost.unit),
        lost=lost.key,
        rerun=replace(rerun, state=RerunState.LEFT, why=detail),
        is_known=facts.rerun is not None,
        reason=reason,
        detail=f"{lost.unit}: {lost.how}; {detail}",
    )


def answered(
    memory: Memory, answers: Collection[LostAnswer], now: float
) -> tuple[dict[str, LostBuild], dict[str, RanAgain], dict[str, LeftBuild]]:
    """Tell which builds are followed on once these were answered for, and which were run again or left to a person of late."""
    reruns, left = dict(memory.reruns), dict(memory.fleet.left)
    for one in (answer.rerun for answer in answers):
        if one.state is RerunState.LEFT:
            left[f"{one.controller} {one.run}"] = LeftBuild(controller=one.controller, run=one.run, why=one.why, at=now)
        elif one.item is not None:
            is_repeat = one.state is RerunState.REPEATED
            again = RanAgain(run=one.run, times=one.times, on_demand=one.on_demand, at=now, by_person=is_repeat)
            reruns[item_key(one.controller, one.item)] = again
    done = {answer.lost for answer in answers}
    followed = {key: lost for key, lost in memory.lost.items() if key not in done}
    return followed, _kept(reruns, now - _REMEMBERED_SECONDS), _kept(left, now - _LEFT_SECONDS)


def _kept(noted: Mapping[str, _Noted], since: float) -> dict[str, _Noted]:
    return dict([(key, one) for key, one in noted.items() if one.at > since][-_MOST:])


def _parameters(situation: Situation, facts: LostFacts, rerun: Rerun) -> dict[str, str] | None:
    """Return what a build is started with again; None for a job without parameters."""
    if facts.job is None or facts.unit is None or not facts.job.declares:
        return None
    own, declares = situation.fleet.rerun_parameter, facts.job.declares
    given = {one.name: one.value or "" for one in facts.unit.parameters if one.name in declares}
    return given | ({own: rerun.id} if own in declares else {})


# Builds that are followed since their agents have gone, until it is known what became of them.
#
# A build is followed from the look that shows its agent's instance ended, stopped, or its connection lost while it was there. After a
# restart of Jenkins, which knows of no connection that was lost before, all that were on agents that are not back yet are followed.


# A pipeline that waits for its agent for longer is not followed any more.
_FOLLOWED_SECONDS = 7 * 86_400.0
MOST_FOLLOWED = 500
_ENDED, _STOPPED = "its instance ended", "its instance was stopped"
_INTERRUPTED, _CUT_OFF = "EC2 took its instance back", "its agent is gone"
MISSING = "its agent has not come back since Jenkins restarted"
# A lost machine ends its builds the moment its connection is lost (recorded: 3 ms), or while it shuts down.
SLACK_SECONDS = 5.0


def next_lost(known: Mapping[str, LostBuild], look: Look) -> dict[str, LostBuild]:
    """Carry on which builds are followed since their agents have gone, and begin to follow those whose agents go now."""
    followed = _carried_on(known, look)
    for agent in look.agents:
        view = look.snapshot.controllers.get(agent.record.controller)
        if not (agent.pool.rerun or look.snapshot.run_orders) or view is None or not view.complete:
            continue
        if how := _how_it_went(agent) or _after_a_restart(agent, view, look):
            _follow(followed, agent, how, look)
    return dict(list(followed.items())[-MOST_FOLLOWED:])


def _carried_on(known: Mapping[str, LostBuild], look: Look) -> dict[str, LostBuild]:
    """Carry each one on by what Jenkins shows now; none for ever. If the fleet file asks for it no more, until no start is in doubt."""
    orders = look.snapshot.run_orders
    carried = [
        _seen_now(_with_its_node(lost, look), look.snapshot.controllers.get(lost.controller), look.snapshot.lost.get(lost.key))
        for lost in known.values()
        if (_is_wanted(lost, look) or orders is None or is_ordered(lost, orders)) and look.now - lost.since_at < _FOLLOWED_SECONDS
    ]
    return {lost.key: lost for lost in carried if lost}


def _is_wanted(lost: LostBuild, look: Look) -> bool:
    """Tell whether a lost build is to be run again, or may have been started: then that is settled, whatever the fleet file says now."""
    facts = look.snapshot.lost.get(lost.key)
    return is_run_again(look.fleet, lost) or facts is None or facts.may_have_been_started


def _follow(followed: dict[str, LostBuild], agent: Agent, how: str, look: Look) -> None:
    """Follow the builds of an agent that goes; those that only missed it know now how it went."""
    for key, lost in followed.items():
        if lost.how == MISSING and lost.instance_id == agent.record.instance_id:
            followed[key] = replace(lost, how=how)
    for lost in _of(agent, how, look):
        followed.setdefault(lost.key, lost)


def _how_it_went(agent: Agent) -> str | None:
    """Say how an agent went, where EC2 or Jenkins says that it did; None: it may be there."""
    if agent.instance_ended:
        return _INTERRUPTED if agent.mark is not None and agent.mark.kind is MarkClass.INTERRUPTED else _ENDED
    if agent.instance in (InstanceState.STOPPING, InstanceState.STOPPED):
        return _STOPPED
    is_cut_off = agent.node is not None and _is_disconnected(agent.node) and agent.node.lost_at is not None
    return _CUT_OFF if is_cut_off else None


def _after_a_restart(agent: Agent, view: ControllerView, look: Look) -> str | None:
    """Say that an agent is not there in the first look after a restart of Jenkins."""
    before = look.snapshot.memory.sessions.get(view.name)
    is_first = before is not None and before.session != view.session
    return MISSING if is_first and agent.node is not None and _is_disconnected(agent.node) else None


def _is_disconnected(node: Node) -> bool:
    return node.offline and not node.temporarily_offline


def _of(agent: Agent, how: str, look: Look) -> Iterator[LostBuild]:
    """Find the builds that were on an agent when it was last seen; after a restart of Jenkins those, too, that have not resumed."""
    controller, node, memory = agent.record.controller, agent.record.node or "", look.snapshot.memory
    session, window = memory.sessions.get(controller), memory.needs(controller, agent.pool.name).window
    runs = {*session.busy.get(node, ()), *session.suspects.get(node, ())} - {""} if session and node else set()
    orders = look.snapshot.run_orders or ()
    for run in sorted(runs):
        if not (is_covered(agent.pool, run) or any(run in order.runs_on(controller) for order in orders)):
            continue
        yield LostBuild(
            controller=controller,
            run=run,
            pool=agent.pool.name,
            node=node,
            instance_id=agent.record.instance_id,
            how=how,
            since_at=look.now,
            seen_at=window.seen_at if window else 0.0,
            lost_at=agent.node.lost_at if agent.node else None,
            others=tuple(sorted(_elsewhere(run, node, look.snapshot.controllers[controller]))),
        )


def _elsewhere(run: str, node: str, view: ControllerView) -> set[str]:
    """Name what a run has on other nodes, and in the queue for others than this one."""
    builds = {build.key for other in view.nodes if other.name != node for build in other.builds if build.run == run}
    items = (item for item in view.items if item.run == run and node not in item.wait.nodes and item.wait.named != node)
    return builds | {f"item {item.id}" for item in items}


def _seen_now(lost: LostBuild, view: ControllerView | None, facts: LostFacts | None) -> LostBuild | None:
    """Carry one on by what Jenkins shows now; None: its agent has come back, and it goes on there or ended by itself."""
    if view is None or not view.complete:
        return lost
    node = next((node for node in view.nodes if node.name == lost.node), None)
    if node is not None and not node.offline:
        # What it ran goes on, but a machine that was stopped or ended has lost it whatever connects.
        resumed = any(build.run == lost.run for build in node.builds) or _has_resumed_and_ended(lost, facts)
        if lost.how == MISSING or (lost.how == _CUT_OFF and resumed):
            return None
    lost_at = lost.lost_at if node is None or lost.lost_at is not None else node.lost_at
    begun = _elsewhere(lost.run, lost.node, view).difference(lost.others)
    return replace(lost, lost_at=lost_at, elsewhere=lost.elsewhere or bool(begun))


def _with_its_node(lost: LostBuild, look: Look) -> LostBuild:
    """Note since when its node is known to be gone: Jenkins answered that it has deleted it, or shows that there is none."""
    if lost.node_gone_at is not None:
        return lost
    records = [record for record in look.snapshot.records if record.instance_id == lost.instance_id]
    for place in (place for record in records for place in (*record.bindings, *record.leaves)):
        if (place.controller, place.node) == (lost.controller, lost.node) and place.deleted_at:
            return replace(lost, node_gone_at=place.deleted_at)
    return replace(lost, node_gone_at=look.now) if _shows_no_node(look.snapshot.controllers.get(lost.controller), lost.node) else lost


def _shows_no_node(view: ControllerView | None, name: str) -> bool:
    if view is None or not view.complete or name in view.unread:
        return False
    return all(node.name != name or node.is_deleted for node in view.nodes)


def _has_resumed_and_ended(lost: LostBuild, facts: LostFacts | None) -> bool:
    """Tell whether a pipeline went on after the loss, and ended by itself: a step that cannot wait for its agent fails at once."""
    run = facts.run if facts else None
    if run is None or not run.is_pipeline or run.interruptions or run.ended_at is None or lost.lost_at is None:
        return False
    return run.ended_at > lost.lost_at + SLACK_SECONDS


def is_ordered(lost: LostBuild, orders: Iterable[RunOrder]) -> bool:
    """Tell whether a build is one of those that people ordered: what becomes of it is up to the order."""
    return any(lost.unit in order.runs_on(lost.controller) for order in orders)


# Lost builds that a person has started again meanwhile: nothing is started beside that.


def leave_repeated(situation: Situation, lost: LostBuild, facts: LostFacts, unit: Run, taken: Collection[str] = ()) -> LeaveLost | None:
    """Leave a lost build to the person who has started it again; None: nobody has.

    A person's build answers for one lost build only. ``taken``: names of the queue items that answer for others in this look.
    """
    entries = sorted(facts.job.entries if facts.job else (), key=lambda entry: entry.item)
    answering = {*situation.memory.reruns, *taken}
    repeats = (entry for entry in entries if item_key(lost.controller, entry.item) not in answering)
    entry = next((entry for entry in repeats if _is_repeat(situation, lost, unit, entry)), None)
    if entry is None:
        return None
    where = entry.run or f"queue item {entry.item}"
    left = leave(situation, lost, facts, Reason.REPEATED_BY_PERSON, f"a person has started it again: {where}")
    return replace(left, rerun=replace(left.rerun, state=RerunState.REPEATED, times=0, item=entry.item))


def _is_repeat(situation: Situation, lost: LostBuild, unit: Run, entry: Entry) -> bool:
    """Tell whether a person asked for this since the build was lost, and for the same: it names the build, or has its parameters."""
    # When it was lost, as far as that is known: a pipeline ends minutes later, and people do not wait for that.
    since = min(at for at in (lost.lost_at, unit.ended_at, lost.since_at) if at is not None)
    if not entry.is_by_person or entry.item <= unit.item or entry.at < since:
        return False
    return unit.path in entry.repeats if entry.repeats else _is_alike(entry, unit, situation.fleet.rerun_parameter)


def _is_alike(entry: Entry, unit: Run, own: str) -> bool:
    return {given for given in entry.parameters if given.name != own} == {given for given in unit.parameters if given.name != own}


# Starts of lost builds that Jenkins did not answer: each is found, was surely not done, or is in doubt, and then nothing is sent.


# Jenkins shows what it was asked for at once, as soon as it answers again; a request that was under way then has ended, too.
FIND_AFTER_SECONDS = 60.0


def find(situation: Situation, lost: LostBuild, facts: LostFacts, unit: Run, repeats: Collection[str] = ()) -> RunAgain | LeaveLost | None:
    """Go on with a start that was not answered. ``repeats``: queue items by which people answer for other builds in this look."""
    job, rerun = facts.job, facts.rerun
    if job is None or rerun is None:
        return leave(situation, lost, facts, Reason.RERUN_IN_DOUBT, "its job is not there any more")
    parameter = situation.fleet.rerun_parameter
    is_told = parameter in job.declares
    # A person who rebuilds what we started copies the parameter: ours is the first that has it.
    found = sorted(one.item for one in job.entries if one.has(parameter, rerun.id)) if is_told else _by_time(parameter, unit, job)
    # It may be any of several, or is another lost build's already.
    is_ambiguous = len(found) > 1 or any(item_key(lost.controller, item) in situation.memory.reruns for item in found)
    if not is_told and is_ambiguous:
        told = f"queue items {', '.join(map(str, found))} may be it; a job that declares {parameter} leaves no doubt"
        return leave(situation, lost, facts, Reason.RERUN_IN_DOUBT, told)
    if found:
        return start(situation, lost, facts, replace(rerun, item=found[0]), found[0])
    if situation.now - rerun.created_at < FIND_AFTER_SECONDS:
        return None
    if not job.is_whole:
        return leave(situation, lost, facts, Reason.RERUN_IN_DOUBT, "its job has had too many builds since to find it among them")
    return leave_repeated(situation, lost, facts, unit, repeats) or _once_more(situation, lost, facts, rerun)


def _once_more(situation: Situation, lost: LostBuild, facts: LostFacts, rerun: Rerun) -> RunAgain | LeaveLost:
    """Send what Jenkins surely does not have, unless the fleet file wants the build to be run again no more."""
    if is_run_again(situation.fleet, lost):
        return start(situation, lost, facts, replace(rerun, created_at=situation.now))
    why = "Jenkins did not start it, and the fleet file asks for no rerun of it any more"
    return leave(situation, lost, facts, Reason.RERUN_UNWANTED, why)


def _by_time(parameter: str, unit: Run, job: Job) -> list[int]:
    """Find what our account asked for since the build was lost, with the same parameters. Jenkins keeps no other trace of a start."""
    since = unit.ended_at if unit.ended_at is not None else unit.started_at
    ours = (entry for entry in job.entries if entry.is_ours and entry.at >= since and entry.item != unit.item)
    return sorted({entry.item for entry in ours if _is_alike(entry, unit, parameter)})


# Which builds are lost, and the answer for each.


# A build that failed so long after the last look that saw its agent well may have failed before the agent went.
IN_DOUBT_AFTER_SECONDS = 600.0
_NOT_LOST = {"SUCCESS", "UNSTABLE", "NOT_BUILT"}  # unstable: tests failed


def run_again(situation: Situation, _: Decided) -> Iterator[RunAgain | LeaveLost | Held]:
    """Answer for each build that is lost: start it again, or leave it to a person."""
    answered: set[str] = set()
    repeats: set[str] = set()
    for lost in situation.memory.lost.values():
        step = _answer(situation, lost, repeats)
        if isinstance(step, Held):
            yield step
        elif step is not None and step.rerun.key not in answered:  # configurations of one matrix are answered for together
            answered.add(step.rerun.key)
            repeats.add(item_key(lost.controller, step.rerun.item or 0))
            yield step


def still_lost(situation: Situation) -> dict[str, LostBuild]:
    """Return the builds that are followed on: those that were not lost after all, or are answered for, are not."""
    facts = situation.snapshot.lost
    return {key: lost for key, lost in situation.memory.lost.items() if key not in facts or not _is_over(situation, lost, facts[key])}


def _is_over(situation: Situation, lost: LostBuild, facts: LostFacts) -> bool:
    """Tell whether a build need not be followed any more: it is answered for, or was not lost."""
    if _is_of_an_order(situation, lost, facts):
        orders = situation.snapshot.run_orders
        return facts.has_ended and not (is_lost(lost, facts) and (orders is None or is_ordered(lost, orders)))
    if facts.rerun is not None:
        return facts.rerun.state is not RerunState.WRITTEN
    return facts.has_ended and not is_lost(lost, facts)


def _with_part(situation: Situation, lost: LostBuild, facts: LostFacts) -> LostFacts:
    """Put the lost part of a matrix, which has the same parameters, in place of a whole that a restart took before it was saved."""
    life, part = situation.memory.sessions.get(lost.controller), facts.run
    if facts.unit or part is None or lost.unit == lost.run or life is None or not life.restarted or life.since_at <= lost.seen_at:
        return facts
    return replace(facts, unit=replace(part, path=lost.unit, started_at=0.0, item=NO_ITEM, upstream=()))


def _is_of_an_order(situation: Situation, lost: LostBuild, facts: LostFacts) -> bool:
    """Tell whether a person ordered a build with `autoscaler run`, by what the order has noted: its order answers for it."""
    if facts.is_ordered is not None:
        return facts.is_ordered or is_ordered(lost, situation.snapshot.run_orders or ())
    own = situation.fleet.rerun_parameter
    return any(claimed_try(run.parameters, own) for run in (facts.run, facts.unit) if run)


def is_lost(lost: LostBuild, facts: LostFacts) -> bool:
    """Tell whether a build that has ended came to its end with its agent."""
    ended = [run for run in (facts.run, facts.unit) if run is not None]
    if any(run.result in _NOT_LOST for run in ended):
        return False
    if stops := {stop for run in ended for stop in run.interruptions}:
        return Interruption.AGENT_GONE in stops or (Interruption.BLOCK_CANCELLED in stops and _was_stranded(lost, facts.run, stops))
    return facts.run is not None and not _went_on(lost, facts.run) and not _failed_before(lost, facts.run)


def _was_stranded(lost: LostBuild, run: Run | None, stops: Collection[Interruption]) -> bool:
    """Tell whether Jenkins, and no person, cancelled the block of a pipeline: we knew before it ended that its node was gone."""
    if run is None or Interruption.PERSON in stops or _went_on(lost, run) or lost.node_gone_at is None:
        return False
    return run.ended_at is None or run.ended_at >= lost.node_gone_at


def _went_on(lost: LostBuild, run: Run) -> bool:
    """Tell whether a build had another agent than the one that is gone."""
    return lost.elsewhere if run.is_pipeline else run.node not in {"", lost.node}


def _failed_before(lost: LostBuild, run: Run) -> bool:
    """Tell whether a build failed while its agent was connected: its tests did, or somebody's script."""
    return lost.lost_at is not None and run.ended_at is not None and run.ended_at < lost.lost_at - SLACK_SECONDS


def _answer(situation: Situation, lost: LostBuild, repeats: Collection[str]) -> RunAgain | LeaveLost | Held | None:
    facts, pool = situation.snapshot.lost.get(lost.key), situation.fleet.pools.get(lost.pool)
    # Agents come back within seconds of a restart, some within minutes.
    is_early = lost.how == MISSING and situation.seen_seconds(lost.controller, lost.since_at) < DISCONNECT_GRACE_SECONDS
    if facts is None or is_early or situation.no_giving_up(lost.controller):
        return None
    if not is_run_again(situation.fleet, lost) and not facts.may_have_been_started:
        return None
    if facts.is_building:
        detail = f"{job_name_of(lost.unit)}: {lost.how}, and Jenkins has not ended {lost.run}"
        return Held(pool=lost.pool, controller=lost.controller, reason=Reason.MAY_RESUME, detail=detail)
    if _is_of_an_order(situation, lost, facts) or _is_over(situation, lost, facts):
        return None
    facts = _with_part(situation, lost, facts)
    unit = facts.unit
    if unit is None:
        return leave(situation, lost, facts, Reason.RERUN_IN_DOUBT, "Jenkins does not show the build any more")
    if facts.rerun or pool is None:
        return find(situation, lost, facts, unit, repeats)
    return leave_repeated(situation, lost, facts, unit, repeats) or again_or_left(situation, lost, facts, unit, pool.rerun or RerunPolicy())


def _in_doubt(lost: LostBuild, facts: LostFacts, unit: Run) -> tuple[Reason, str] | None:
    """Say why it is not certain that a build was lost, or that running it again would help whoever waits for it."""
    if lost.lost_at is None and lost.since_at - lost.seen_at > IN_DOUBT_AFTER_SECONDS:
        return Reason.RERUN_IN_DOUBT, "nobody looked for long before its agent was gone, so it may have failed by itself"
    waited = [up.path for up in facts.upstream if up.building or (up.ended_at or 0.0) >= (unit.ended_at or 0.0)]
    return (Reason.PARENT_WAITS, f"{waited[0]} waited for it: run that one again") if waited else None


def _not_repeatable(situation: Situation, facts: LostFacts, unit: Run) -> tuple[Reason, str] | None:
    """Say why a build cannot be started with the same parameters."""
    if facts.job is None or not facts.job.buildable:
        return Reason.NOT_BUILDABLE, "its job is disabled or deleted"
    if names := hidden(unit.parameters):
        return Reason.HIDDEN_PARAMETERS, f"Jenkins does not show {', '.join(names)}"
    unknown = sorted({one.name for one in unit.parameters} - facts.job.declares - {situation.fleet.rerun_parameter})
    return (Reason.OTHER_PARAMETERS, f"{', '.join(unknown)}: the job does not declare it") if unknown else None
