"""Why a job waits, in one sentence: `why` begins with it. The facts behind it follow, each once."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from autoscaler.domain.facts.metering import LevelKind
from autoscaler.domain.facts.plan import Held, Launch, Plan, Start, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Build
from autoscaler.domain.launch.budget import Budget, Usage
from autoscaler.domain.report.broken import broken_pool
from autoscaler.domain.report.job_facts import PLACES_NAMED, PLANNED
from autoscaler.domain.report.listing import QueueEntry
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import clock, counted, dollars, duration, listed

_BOOTING = (Phase.REQUESTED, Phase.OVERDUE, Phase.CONNECTING)
# If several reasons keep agents from being launched, the first of these is the answer: what a person ordered, then what is broken.
_WEIGHTIEST = (
    Reason.FROZEN,
    Reason.HELD,
    Reason.USD_PER_MONTH,
    Reason.HOURS_PER_DAY,
    Reason.MAX_AGENTS,
    Reason.TEAM_MAX_AGENTS,
    Reason.FLEET_MAX_AGENTS,
    Reason.LAUNCH_RATE,
    Reason.USD_PER_HOUR,
    Reason.NOT_ITS_TURN,
)
# What is no obstacle, only a choice, comes last.
_CHOICES = (Reason.WORTH_WAITING, Reason.NOT_LENT)
_FULL = {
    Reason.MAX_AGENTS: (LevelKind.POOL, "max_agents"),
    Reason.TEAM_MAX_AGENTS: (LevelKind.TEAM, "max_agents of its team"),
    Reason.FLEET_MAX_AGENTS: (LevelKind.FLEET, "limits.max_agents"),
}


def answer_of_waiting(situation: Situation, plans: Sequence[Plan], entries: Sequence[QueueEntry], running: int, named: str = "") -> str:
    """Say how many items of a job wait, why, and when the next one starts. ``named``: the job, if it was asked for by another name."""
    causes: dict[str, int] = {}
    for entry in sorted(entries, key=lambda entry: -entry.waiting_seconds):
        cause = _cause(situation, plans, entry)
        causes[cause] = causes.get(cause, 0) + 1
    by_number = sorted(causes.items(), key=lambda pair: -pair[1])
    because = by_number[0][0] if len(by_number) == 1 else "; ".join(f"{number} because {cause}" for cause, number in by_number)
    nouns = _noun(entries)
    of = f" of {named}" if named else ""
    also = f" {counted(running, 'other')} {'runs' if running == 1 else 'run'}." if running else ""
    return f"{counted(len(entries), nouns)}{of} {'waits' if len(entries) == 1 else 'wait'}: {because}.{_next(situation, entries)}{also}"


def _noun(entries: Iterable[QueueEntry]) -> str:
    kinds = {entry.of_pipeline for entry in entries}
    return "stage" if kinds == {True} else "item" if len(kinds) > 1 else "build"


def answer_of_running(builds: Sequence[tuple[Agent, Build, float]], named: str = "") -> str:
    """Say where builds of a job run, and for how long. Beside each build: its agent, and how many seconds it has run."""
    longest = sorted(builds, key=lambda running: -running[2])
    places = [f"{agent.record.node} of {agent.pool.name} for {duration(elapsed)}" for agent, _, elapsed in longest]
    of = f" of {named}" if named else ""
    return (
        f"{counted(len(builds), 'build')}{of} {'runs' if len(builds) == 1 else 'run'}, and none waits: on {listed(places, PLACES_NAMED)}."
    )


def is_said(situation: Situation, refusal: Held, answer: str) -> bool:
    """Tell whether an answer has all that a refusal says."""
    has_figures = refusal.reason in (*_FULL, Reason.HELD, Reason.FROZEN)
    return (has_figures and _obstacle(situation, refusal) in answer) or bool(refusal.detail and refusal.detail in answer)


def _cause(situation: Situation, plans: Sequence[Plan], entry: QueueEntry) -> str:
    """Say why an item waits."""
    if entry.state == "pool-broken":
        broken = [pool for name in entry.pools if (pool := broken_pool(situation, name))]
        return "; ".join(f"agents of {pool.pool} do not boot (the last {counted(pool.failures, 'boot')} failed)" for pool in broken)
    if entry.state == "late-agent":
        return f"an agent of {listed(entry.pools)} takes longer than usual to boot"
    if entry.state not in PLANNED:
        return entry.because
    if entry.starts_in_seconds == 0:
        return f"an executor of {listed(entry.pools)} is free, and Jenkins starts it within seconds"
    if on_the_way := list(_launched_now(plans, entry)):
        return " and ".join(on_the_way)
    return "; ".join(dict.fromkeys(_why_not_launched(situation, plans, entry)))


def _launched_now(plans: Iterable[Plan], entry: QueueEntry) -> Iterator[str]:
    """Say which agents the plan launches, starts or brings back for an item."""
    for step in (step for plan in plans for step in plan.steps):
        if getattr(step, "controller", "") != entry.controller:
            continue
        if isinstance(step, Launch) and step.pool in entry.pools:
            yield f"{counted(step.count, 'agent')} of {step.pool} {_is(step.count)} launched now{_which_shows(step)}"
        elif isinstance(step, Start) and step.pool in entry.pools:
            count = len(step.instance_ids)
            yield f"{counted(count, 'stopped agent')} of {step.pool} {_is(count)} started now{_which_shows(step)}"
        elif isinstance(step, Uncordon) and step.pool in entry.pools:
            yield f"{step.node} of {step.pool} is brought back now"


def _which_shows(step: Launch | Start) -> str:
    """Say of an agent that EC2 may refuse again, as it refused the last ones, what is tried."""
    return f", which shows {step.detail}" if step.reason is Reason.TRIES_AGAIN else ""


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _why_not_launched(situation: Situation, plans: Iterable[Plan], entry: QueueEntry) -> Iterator[str]:
    """Say for each pool of an item what keeps its agents from being launched; if nothing does, what the item waits for."""
    held = [refusal for plan in plans for refusal in plan.held if refusal.controller in ("", entry.controller)]
    for name in entry.pools:
        yield _why_not_in(situation, entry.controller, name, [refusal for refusal in held if refusal.pool == name])


def _why_not_in(situation: Situation, controller: str, pool: str, held: Collection[Held]) -> str:
    booting = _booting(situation, controller, pool)
    weightiest = min(held, key=_weight) if held else None
    if weightiest and (weightiest.reason not in _CHOICES or not booting):
        return _obstacle(situation, weightiest)
    if booting:
        return _still_booting(booting, pool)
    return f"every executor of {pool} is busy or promised to jobs before it"


def _still_booting(booting: Sequence[Agent], pool: str) -> str:
    if len(booting) > 1:
        return f"{len(booting)} agents of {pool} are booting"
    return f"an agent of {pool} is booting ({booting[0].record.node or booting[0].record.instance_id})"


def _weight(refusal: Held) -> int:
    if refusal.reason in _WEIGHTIEST:
        return _WEIGHTIEST.index(refusal.reason)
    return len(_WEIGHTIEST) + (refusal.reason in _CHOICES)


def _booting(situation: Situation, controller: str, pool: str) -> list[Agent]:
    view = situation.pools.get((controller, pool))
    return [agent for agent in view.agents if agent.phase in _BOOTING] if view else []


def _obstacle(situation: Situation, refusal: Held) -> str:
    """Say what keeps agents of a pool from being launched, with the figures of the limit."""
    usage = _usage(situation, refusal)
    if usage is not None and (limit := _limit(refusal, usage)):
        return limit
    match refusal.reason:
        case Reason.HELD | Reason.FROZEN:
            return refusal.detail
        case Reason.OF_HOSTS:
            return f"every host of {refusal.pool} is busy or offline, and hosts are not launched"
        case Reason.WORTH_WAITING:
            return f"a busy executor of {refusal.pool} will be free so soon that waiting for it costs less than another agent"
        case Reason.NO_OFFERING | Reason.POOL_PAUSED | Reason.ACCOUNT_THROTTLED:
            return f"EC2 launches no agent of {refusal.pool} ({refusal.detail})"
        case _:
            return f"no agent of {refusal.pool} is launched: {refusal.detail} ({refusal.reason})"


def _limit(refusal: Held, usage: Usage) -> str:
    """Say which limit is reached, and how much of it is used; "" if the refusal is for something else."""
    whose, ceilings = usage.level.text, usage.level.ceilings
    if refusal.reason in _FULL:
        full = refusal.pool if usage.level.kind is LevelKind.POOL else whose
        return f"{full} is full ({usage.agents} of {ceilings.max_agents:g} agents, {_FULL[refusal.reason][1]})"
    if refusal.reason is Reason.LAUNCH_RATE:
        return f"{whose} has launched {counted(usage.launched, 'agent')} within the hour (max_launches_per_hour)"
    if refusal.reason is Reason.USD_PER_HOUR:
        most = dollars(ceilings.max_usd_per_hour)
        return f"another agent of {refusal.pool} would cost more than {whose} may, {most} an hour (max_usd_per_hour)"
    return f"the month's money of {whose} is spent (max_usd_per_month)" if refusal.reason is Reason.USD_PER_MONTH else ""


def _usage(situation: Situation, refusal: Held) -> Usage | None:
    """Find what is used of the limit that was reached."""
    levels = Budget(situation).levels_of(refusal.pool)
    kind = _FULL[refusal.reason][0] if refusal.reason in _FULL else None
    return next((use for use in levels if refusal.limit_of == use.level.text or (kind is not None and use.level.kind is kind)), None)


def _next(situation: Situation, entries: Iterable[QueueEntry]) -> str:
    """Say when the first of these items would start."""
    planned = [entry for entry in entries if entry.state == "placed"]
    seconds = [entry.starts_in_seconds for entry in planned if entry.starts_in_seconds is not None]
    if not planned or 0 in seconds:
        return ""
    if not seconds:
        return " Nobody knows when the next executor is free."
    return f" The next executor is expected in about {duration(min(seconds))}, at {clock(situation.now + min(seconds))}."
