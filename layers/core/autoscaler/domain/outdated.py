"""Outdated agents: launched from another version of their launch template than would be launched now, or too old.

They go first where agents are surplus, and a share of them an hour where none is: cordoned for good, drained, replaced by
demand. Of a version that never booted one agent is tried first, before more than one of the old ones is taken for it.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from autoscaler.domain.agents import Agent, Phase
from autoscaler.domain.limits import HOUR_SECONDS
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.memory import Memory
from autoscaler.domain.numbers import OUTDATED_AT_LEAST, OUTDATED_SHARE
from autoscaler.domain.plan import Cordon, Held, Step
from autoscaler.domain.reasons import Reason
from autoscaler.domain.retire import cordon, least_missed
from autoscaler.domain.situation import Situation
from autoscaler.domain.trials import is_canary, why_outdated


def outdated(situation: Situation, controller: str, cordoned: Collection[Cordon]) -> Iterator[Cordon | Held]:
    """Cordon outdated agents of one controller, as many as the hour's share still allows. ``cordoned``: what this pass takes already."""
    leaving = {step.node for step in cordoned if step.controller == controller}
    by_pool: dict[str, list[Agent]] = {}
    for agent in situation.agents:
        by_pool.setdefault(agent.pool.name, []).append(agent)
    for name in situation.pools_of(controller):
        mine = by_pool.get(name, [])
        ready = [a for a in mine if a.phase is Phase.READY and a.record.controller == controller and not situation.protected(a)]
        staying = [agent for agent in ready if agent.record.node not in leaving]
        old = {agent.record.instance_id: why for agent in staying if (why := why_outdated(situation, agent))}
        if not old:
            continue
        pool = situation.pools[controller, name]
        if pool.on_hold:
            yield Held(pool=name, controller=controller, reason=Reason.HELD, detail=f"{len(old)} outdated agents; {pool.paused_detail}")
            continue
        now = sum(step.pool == name and step.mark.kind is MarkClass.OUTDATED for step in cordoned)  # on other controllers
        allowed = max(0, _allowed(situation, name, mine) - now)
        chosen = least_missed(situation, [agent for agent in staying if agent.record.instance_id in old])
        for agent in chosen[:allowed]:
            yield cordon(situation, agent, MarkClass.OUTDATED, *old[agent.record.instance_id])
        if len(chosen) > allowed:
            detail = f"{len(chosen) - allowed} more agents are outdated; {_pace(situation, name)}"
            yield Held(pool=name, controller=controller, reason=Reason.OUTDATED, detail=detail)


def note_outdated(memory: Memory, decided: list[Step | Held], now: float) -> Memory:
    """Remember when agents were taken as outdated, as long as they count in the hour's share."""
    taken = {pool: tuple(at for at in instants if now - at < HOUR_SECONDS) for pool, instants in memory.outdated.items()}
    for step in decided:
        if isinstance(step, Cordon) and step.mark.kind is MarkClass.OUTDATED:
            taken[step.pool] = (*taken.get(step.pool, ()), now)
    return replace(memory, outdated={pool: instants for pool, instants in taken.items() if instants})


def _allowed(situation: Situation, pool: str, mine: list[Agent]) -> int:
    if is_canary(situation, pool):
        # One makes room for the first agent of the new version; the others stay until that one has connected.
        under_way = any(_makes_room(agent) or agent.record.instance_id not in situation.memory.connected for agent in mine)
        return 0 if under_way or pool in situation.memory.breakers else 1
    lately = [at for at in situation.memory.outdated.get(pool, ()) if situation.now - at < HOUR_SECONDS]
    return max(0, max(OUTDATED_AT_LEAST, int(OUTDATED_SHARE * len(mine))) - len(lately))


def _makes_room(agent: Agent) -> bool:
    return agent.mark is not None and agent.mark.kind is MarkClass.OUTDATED


def _pace(situation: Situation, pool: str) -> str:
    if is_canary(situation, pool):
        return "the new version has not been seen to boot yet"
    return f"at most {OUTDATED_SHARE:.0%} of a pool, or one agent, are taken in an hour"
