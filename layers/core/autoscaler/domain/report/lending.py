"""Loans for people: which agents are lent to jobs of a more general kind, until when, and why others are not."""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import Lending
from autoscaler.domain.launch.placement import needed_by_its_own, why_refused
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration

_WHEN = {
    Lending.NEVER: "never lent",
    Lending.IDLE: "lent while they are idle and nobody who needs their own kind waits or is foreseen",
    Lending.ALWAYS: "lent while they are idle and nobody who needs their own kind waits",
}


def count_lent(pool: PoolView) -> int:
    """Count its agents that are lent now."""
    return sum(agent.record.is_lent(pool.now) for agent in pool.agents if agent.node)


def told_lent(situation: Situation, agent: Agent) -> str:
    """Say until when an agent is lent, or how many jobs still use it; "" where it is neither."""
    labels = " ".join(agent.record.lent_labels)
    if agent.record.is_lent(situation.now):
        return f"lent to jobs that ask for {labels}, for another {duration(agent.record.lent_until - situation.now)} at most"
    if borrowed := agent.borrowed_executors(situation.now):
        return f"{counted(borrowed, 'job')} began on it while it was lent"
    return ""


def lending_of(situation: Situation, pool: PoolView) -> Iterator[str]:
    """Say when agents of a pool are lent, and whether they are now."""
    if not pool.spec.lent_labels:
        return
    yield f"agents of {pool.name} are {_WHEN[pool.spec.lend]} (lend: {pool.spec.lend}), to jobs that ask for {_labels(pool)}"
    if pool.spec.lend is Lending.NEVER:
        return
    if refusal := why_refused(situation, pool):
        yield f"none is lent now: {refusal}"
    elif needed := needed_by_its_own(situation, pool):
        yield f"{counted(needed, 'agent')} kept for jobs of its own kind, {count_lent(pool)} lent"
    else:
        yield f"{count_lent(pool)} lent now"


def _labels(pool: PoolView) -> str:
    return " or ".join(sorted(pool.spec.lent_labels))
