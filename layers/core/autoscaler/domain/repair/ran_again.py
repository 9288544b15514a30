"""Steps that answer for a lost build, and what is remembered of builds that were run again or left to a person."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.plan import LeaveLost, RunAgain
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import NO_ITEM, Run, job_name_of
from autoscaler.domain.facts.started_builds import LeftBuild, LostBuild, LostFacts, RanAgain, Rerun, RerunPolicy, RerunState
from autoscaler.domain.situation.situation import Situation

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


def times_before(situation: Situation, lost: LostBuild, facts: LostFacts, unit: Run) -> int:
    """Count how often a build had been run again when it was lost, by what was noted of its queue item.

    Its parameter only names the answer that it may come from: a person who rebuilds what we started copies that, and begins anew. Where
    its queue item is not known, the parameter counts.
    """
    again, origin = situation.memory.reruns.get(f"{lost.controller}#{unit.item}"), facts.origin
    is_origin = origin is not None and (unit.item in {origin.item, NO_ITEM} or (origin.item is None and origin.state is RerunState.WRITTEN))
    return max(again.times if again else 0, origin.times if origin is not None and is_origin else 0)


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
    """Start a build again, unless it was lost as often as is allowed."""
    times = times_before(situation, lost, facts, unit)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What is followed on, and remembered of builds that were run again or left to a person, once some were answered for."""

    lost: Mapping[str, LostBuild]
    reruns: Mapping[str, RanAgain]
    left: Mapping[str, LeftBuild]


def answered(memory: Memory, answers: Iterable[tuple[str, Rerun]], now: float) -> Answered:
    """Tell what is to be remembered of these answers: the name in the memory, and the answer."""
    answers, reruns, left = list(answers), dict(memory.reruns), dict(memory.left)
    for _, one in answers:
        if one.state is RerunState.LEFT:
            left[f"{one.controller} {one.run}"] = LeftBuild(controller=one.controller, run=one.run, why=one.why, at=now)
        elif one.item is not None:
            is_repeat = one.state is RerunState.REPEATED
            again = RanAgain(run=one.run, times=one.times, on_demand=one.on_demand, at=now, by_person=is_repeat)
            reruns[f"{one.controller}#{one.item}"] = again
    done = {name for name, _ in answers}
    return Answered(
        lost={key: lost for key, lost in memory.lost.items() if key not in done},
        reruns=_kept(reruns, now - _REMEMBERED_SECONDS),
        left=_kept(left, now - _LEFT_SECONDS),
    )


def _kept(noted: Mapping[str, _Noted], since: float) -> dict[str, _Noted]:
    return dict([(key, one) for key, one in noted.items() if one.at > since][-_MOST:])


def _parameters(situation: Situation, facts: LostFacts, rerun: Rerun) -> dict[str, str] | None:
    """Return what a build is started with again; None for a job without parameters."""
    if facts.job is None or facts.unit is None or not facts.job.declares:
        return None
    own, declares = situation.fleet.rerun_parameter, facts.job.declares
    given = {one.name: one.value or "" for one in facts.unit.parameters if one.name in declares}
    return given | ({own: rerun.id} if own in declares else {})
