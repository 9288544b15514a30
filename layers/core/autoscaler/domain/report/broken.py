"""Broken pools: since when their boots fail, why the last one did, and what is tried next."""

from collections.abc import Iterator
from dataclasses import dataclass

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import boots_failed, is_tripped, of_boot, told_last
from autoscaler.domain.situation.canary import why_one_at_a_time
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration, resume_command

_BOOTING = (Phase.REQUESTED, Phase.CONNECTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPool:
    """A pool whose breaker is open, or that tries one agent after it was. ``why``: as far as Jenkins or the console told."""

    pool: str
    failures: int
    since_seconds: float
    instance_id: str  # of the last boot that failed
    why: str
    next: str

    def lines(self) -> Iterator[str]:
        """Tell it, a fact a line."""
        yield f"{self.pool} has been broken for {duration(self.since_seconds)}: its last {counted(self.failures, 'boot')} failed"
        if self.instance_id:
            yield f"the last was {self.instance_id}; {self.why or 'its console said nothing'}"
        yield f"next: {self.next}"
        yield f"once it is mended: {resume_command(self.pool)}"


def broken_pool(situation: Situation, pool: str) -> BrokenPool | None:
    """Describe the open breaker of a pool; None where it is closed."""
    breaker = situation.memory.trials.get(of_boot(pool))
    if breaker is None or not is_tripped(breaker):
        return None
    return BrokenPool(
        pool=pool,
        failures=boots_failed(breaker),
        since_seconds=max(0.0, situation.now - breaker.since_at),
        instance_id=breaker.failed[-1] if breaker.failed else "",
        why=told_last(breaker),
        next=_next(situation, pool, breaker.until_at),
    )


def _next(situation: Situation, pool: str, until_at: float) -> str:
    if booting := _booting(situation, pool):
        last = max(booting, key=lambda agent: agent.record.launched_at).record
        these = f"{last.instance_id} boots" if len(booting) == 1 else f"{len(booting)} agents boot, {last.instance_id} the last"
        return f"{these}, launched {duration(situation.now - last.launched_at)} ago; others follow once one connects"
    if situation.now < until_at:
        return f"one agent is tried in {duration(until_at - situation.now)}, if jobs wait for it then"
    return "one agent is tried as soon as jobs wait for it"


def _booting(situation: Situation, pool: str) -> list[Agent]:
    return [agent for agent in situation.agents if agent.pool.name == pool and agent.phase in _BOOTING and not agent.instance_ended]


def why_paused(situation: Situation, pool: PoolView) -> str:
    """Say why nothing, or only one agent at a time, is launched in a pool: the reason, a colon, the details; "" where all may be."""
    broken = broken_pool(situation, pool.name)
    if pool.paused and not (broken and pool.paused is Reason.BREAKER_OPEN):
        return f"{pool.paused}: {pool.paused_detail}"
    if broken:
        reason = pool.paused or Reason.ONE_TRIAL
        why = f" ({broken.why})" if broken.why else ""
        return f"{reason}: its last {counted(broken.failures, 'boot')} failed{why}; {broken.next}"
    one_at_a_time = why_one_at_a_time(situation, pool.name)
    return f"{one_at_a_time[0]}: {one_at_a_time[1]}" if one_at_a_time else ""
