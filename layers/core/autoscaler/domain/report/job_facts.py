"""What is known of the waiting and running builds of one job, each fact once however many wait."""

from collections.abc import Iterable, Iterator, Sequence

from autoscaler.domain.facts.snapshot import Build
from autoscaler.domain.report.listing import QueueEntry
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.looks import elapsed_seconds
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import duration

# States of items that have a place in the plan: what they wait for is said beside the answer.
PLANNED = ("placed", "no-executor")
_STAGES_NAMED = 5
PLACES_NAMED = 3


def builds_of(situation: Situation, job: str) -> list[tuple[Agent, Build, float]]:
    """Find the builds of a job that run, each with its agent and for how long it has run."""
    agents = [agent for agent in situation.agents if agent.node]
    return [
        (agent, build, elapsed_seconds(build, situation.snapshot.learned[agent.record.controller], situation.now))
        for agent in agents
        for build in (agent.node.builds if agent.node else ())
        if build.job == job
    ]


def facts_of_waiting(entries: Sequence[QueueEntry]) -> Iterator[str]:
    """Say of items of one job what they wait for, beyond the answer; items that wait alike share a line."""
    alike: dict[tuple[str, str, tuple[str, ...], str], list[QueueEntry]] = {}
    for entry in entries:
        alike.setdefault((entry.controller, entry.label, entry.pools, entry.state), []).append(entry)
    for group in alike.values():
        yield _of_group(group, is_all=len(alike) == 1)
        if group[0].state in PLANNED:
            yield from _starts(group)
    if stages := _stages(entries):
        yield stages


def _of_group(group: Sequence[QueueEntry], *, is_all: bool) -> str:
    first, several = group[0], len(group) > 1
    waits = [duration(seconds) for seconds in sorted(entry.waiting_seconds for entry in group)]
    who = ("they wait" if is_all else f"{len(group)} wait") if several else f"{first.job} waits"
    label = f" for {first.label}" if first.label else ""
    so_far = f"{waits[0]} to {waits[-1]}" if waits[0] != waits[-1] else waits[0]
    served = f"; {', '.join(first.pools)} may serve {'them' if several else 'it'}" if first.pools else ""
    return f"{who}{label} on {first.controller}, for {so_far} so far{served}"


def _starts(group: Sequence[QueueEntry]) -> Iterator[str]:
    details = list(dict.fromkeys(entry.detail for entry in sorted(group, key=_when)))
    if len(details) == 1:
        yield details[0]
    elif all(entry.starts_in_seconds is None for entry in group):
        yield f"for example: {details[0]}"
    else:
        yield f"the first of them: {details[0]}"
        yield f"the last of them: {details[-1]}"


def _when(entry: QueueEntry) -> tuple[bool, float]:
    return entry.starts_in_seconds is None, entry.starts_in_seconds or 0.0


def _stages(entries: Iterable[QueueEntry]) -> str:
    """Name the stages or the parameters, if there are several."""
    names = list(dict.fromkeys(entry.stage for entry in entries if entry.stage))
    if len(names) < 2:
        return ""
    more = f" and {len(names) - _STAGES_NAMED} more" if len(names) > _STAGES_NAMED else ""
    return f"they are: {', '.join(names[:_STAGES_NAMED])}{more} (autoscaler queue lists all)"


def facts_of_running(builds: Sequence[tuple[Agent, Build, float]]) -> Iterator[str]:
    """Say where builds run, the longest first."""
    for agent, build, elapsed in sorted(builds, key=lambda running: -running[2])[:PLACES_NAMED]:
        yield f"{build.job} (for {duration(elapsed)} so far) runs on {agent.record.node} of {agent.pool.name}"
    if len(builds) > PLACES_NAMED:
        yield f"{len(builds) - PLACES_NAMED} more run (autoscaler agents lists all)"
