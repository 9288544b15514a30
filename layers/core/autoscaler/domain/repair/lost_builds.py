"""Builds that were lost with their agent: which of those that are followed, by facts alone, and what is done about each.

A build is lost once Jenkins has ended it as failed or aborted with its agent gone: not where a person or a time-out aborted it, where it
failed before the connection was lost, or where a pipeline has resumed or begun anything elsewhere since. What is lost is answered for
once: started again with the same parameters, unless a person has done that, or left to a person.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.plan import Held, LeaveLost, RunAgain
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import NO_ITEM, Interruption, Run, hidden, job_name_of
from autoscaler.domain.facts.started_builds import LostBuild, LostFacts, RerunPolicy, RerunState, claimed_try, item_key
from autoscaler.domain.repair.followed_builds import MISSING, SLACK_SECONDS, is_ordered
from autoscaler.domain.repair.ran_again import again_or_left, is_run_again, leave
from autoscaler.domain.repair.repeated_builds import leave_repeated
from autoscaler.domain.repair.two_looks import DISCONNECT_GRACE_SECONDS
from autoscaler.domain.repair.unanswered_starts import find
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided

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
    if facts is None or not _may_judge(situation, lost):
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
    return leave_repeated(situation, lost, facts, unit, repeats) or _first_answer(situation, lost, facts, unit, pool)


def _may_judge(situation: Situation, lost: LostBuild) -> bool:
    """Tell whether what Jenkins shows can be believed now; agents come back within seconds of a restart, some within minutes."""
    is_early = lost.how == MISSING and situation.seen_seconds(lost.controller, lost.since_at) < DISCONNECT_GRACE_SECONDS
    return not is_early and not situation.no_giving_up(lost.controller)


def _first_answer(situation: Situation, lost: LostBuild, facts: LostFacts, unit: Run, pool: Pool) -> RunAgain | LeaveLost:
    if refusal := _in_doubt(lost, facts, unit) or _not_repeatable(situation, facts, unit):
        return leave(situation, lost, facts, *refusal)
    return again_or_left(situation, lost, facts, unit, pool.rerun or RerunPolicy())


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
