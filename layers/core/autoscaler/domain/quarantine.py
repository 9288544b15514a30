"""Quarantine: an agent on which builds fail, or never end, takes no more of them; the builds on it go on.

Blamed is the machine only where it is likelier than the code: other agents of its pool succeed meanwhile, or a build runs many
times longer than its job ever does. What is cordoned is replaced by demand, and given up when idle, unless its operator wants it kept.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from autoscaler.domain.agents import Agent
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.memory import Memory
from autoscaler.domain.model import Quarantine
from autoscaler.domain.numbers import FAR_OVERDUE_AT_LEAST_SECONDS, FAR_OVERDUE_FACTOR, QUARANTINE_FAILURES
from autoscaler.domain.overdue import times_over
from autoscaler.domain.pace import PACE, Taking, left_this_hour
from autoscaler.domain.plan import Cordon, Held, Step
from autoscaler.domain.reasons import Reason
from autoscaler.domain.situation import Situation

_SUSPECTED = {Reason.FAILURE_STREAK, Reason.FAR_OVERDUE}


def quarantine(situation: Situation, controller: str, cordoned: Collection[Cordon]) -> Iterator[Cordon | Held]:
    """Cordon suspect agents of one controller, as many as the hour's share still allows. ``cordoned``: what this pass takes already."""
    taking = Taking(
        kind=MarkClass.QUARANTINE,
        adjective="suspect",
        reason=Reason.FAILURE_STREAK,
        wrong_with=lambda agent: why_suspect(situation, agent),
        allowed=lambda pool, mine: left_this_hour(situation, MarkClass.QUARANTINE, pool, len(mine)),
        pace=lambda _pool: PACE,
    )
    yield from taking.of(situation, controller, cordoned)


def why_suspect(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent is not to be trusted with builds; None where it is, or its operator wants no quarantine."""
    if agent.pool.quarantine is Quarantine.OFF or agent.node is None:
        return None
    learned = situation.snapshot.learned[agent.record.controller]
    streak = learned.streaks.get(agent.node.name)
    # A build that succeeded on this node would have ended its streak: a later success in the pool is another agent's.
    if streak and streak.failures >= QUARANTINE_FAILURES and learned.succeeded_at.get(agent.pool.name, 0.0) > streak.since_at:
        minutes, jobs = (situation.now - streak.since_at) / 60, len(streak.jobs)
        of_jobs = f"of {jobs} jobs " if jobs > 1 else f"of {streak.jobs[0]} "
        detail = f"{streak.failures} builds {of_jobs}failed in a row on it within {minutes:.0f} min, while others of its pool succeeded"
        return Reason.FAILURE_STREAK, detail
    for build in agent.node.builds:
        times, longest = times_over(build, agent.pool.name, learned, situation.now)
        if times > FAR_OVERDUE_FACTOR and times * longest > FAR_OVERDUE_AT_LEAST_SECONDS:
            hours = times * longest / 3600
            return Reason.FAR_OVERDUE, f"{build.job} has run on it for {hours:.1f} h; the longest of its last builds took {longest:.0f} s"
    return None


def note_kept(memory: Memory, situation: Situation, decided: list[Step | Held]) -> Memory:
    """Remember which agents were taken as suspect where their operator wants to look at them, as long as they are cordoned for it."""
    wanted = {agent.record.node: agent.record.instance_id for agent in situation.agents if agent.pool.quarantine is Quarantine.KEEP}
    marked = {a.record.instance_id for a in situation.agents if a.mark and a.mark.kind is MarkClass.QUARANTINE}
    fresh = {wanted[step.node] for step in decided if isinstance(step, Cordon) and step.reason in _SUSPECTED and step.node in wanted}
    return replace(memory, kept=frozenset((memory.kept & marked) | fresh))


def is_kept(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent in quarantine waits for a person to look at it."""
    return agent.record.instance_id in situation.memory.kept and agent.mark is not None and agent.mark.kind is MarkClass.QUARANTINE
