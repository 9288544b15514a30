"""Starts of lost builds that Jenkins did not answer: each is found, was surely not done, or is in doubt, and then nothing is sent."""

from collections.abc import Collection
from dataclasses import replace

from autoscaler.domain.facts.plan import LeaveLost, RunAgain
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import Entry, Job, Run
from autoscaler.domain.facts.started_builds import LostBuild, LostFacts, Rerun
from autoscaler.domain.repair.ran_again import is_run_again, leave, start
from autoscaler.domain.repair.repeated_builds import leave_repeated
from autoscaler.domain.situation.situation import Situation

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
    if not is_told and _is_ambiguous(situation, lost, found):
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


def _is_ambiguous(situation: Situation, lost: LostBuild, found: list[int]) -> bool:
    """Tell whether it may be any of several, or is another lost build's already."""
    return len(found) > 1 or any(f"{lost.controller}#{item}" in situation.memory.reruns for item in found)


def _by_time(parameter: str, unit: Run, job: Job) -> list[int]:
    """Find what our account asked for since the build was lost, with the same parameters. Jenkins keeps no other trace of a start."""
    since = unit.ended_at if unit.ended_at is not None else unit.started_at

    def is_it(entry: Entry) -> bool:
        alike = {one for one in entry.parameters if one.name != parameter} == {one for one in unit.parameters if one.name != parameter}
        return entry.is_ours and entry.at >= since and entry.item != unit.item and alike

    return sorted({entry.item for entry in job.entries if is_it(entry)})
