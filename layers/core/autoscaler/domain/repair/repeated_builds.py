"""Lost builds that a person has started again meanwhile: nothing is started beside that."""

from collections.abc import Collection
from dataclasses import replace

from autoscaler.domain.facts.plan import LeaveLost
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import Entry, Run
from autoscaler.domain.facts.started_builds import LostBuild, LostFacts, RerunState, item_key
from autoscaler.domain.repair.ran_again import leave
from autoscaler.domain.situation.situation import Situation


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
    if not entry.is_by_person or entry.item <= unit.item or entry.at < _lost_since(lost, unit):
        return False
    if entry.repeats:
        return unit.path in entry.repeats
    own = situation.fleet.rerun_parameter
    return {given for given in entry.parameters if given.name != own} == {given for given in unit.parameters if given.name != own}


def _lost_since(lost: LostBuild, unit: Run) -> float:
    """Say when a build was lost, as far as that is known: a pipeline ends minutes later, and people do not wait for that."""
    return min(at for at in (lost.lost_at, unit.ended_at, lost.since_at) if at is not None)
