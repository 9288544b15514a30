"""Cordon surplus agents: those not needed at any time inside the break-even window. Reversible, and free."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import ceil

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.forecast import NOTHING
from autoscaler.domain.forecast.keeping import needed_lately
from autoscaler.domain.scale_in.device_reservations import devices_reserved
from autoscaler.domain.scale_in.stranded import has_jobs, stranded_of
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.canary import why_replaced
from autoscaler.domain.situation.distrust import is_on_trial
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon
from autoscaler.domain.situation.supply import agent_remaining_seconds
from autoscaler.domain.wording import counted, duration, durations_apart


def surplus(situation: Situation, controller: str, _decided: Decided) -> Iterator[Cordon | Held]:
    """Choose which ready agents of a pool to cordon: idle longest first, then least work left."""
    for pool in situation.pools_of(controller).values():
        if not situation.stopped_by(pool.name) and not pool.spec.of_hosts:
            yield from _surplus_at_once(situation, pool) if pool.spec.share is Share.COOPERATIVE else _surplus_of(situation, pool)


def _surplus_of(situation: Situation, pool: PoolView) -> list[Cordon] | list[Held]:
    ready = pool.ready
    if len(ready) <= (least := least_kept(situation, pool) if ready else 0):
        return []
    window = situation.memory.windows[pool.full_name]
    most = max(needed_lately(window, pool.keep.seconds, situation.now), least)
    extra = len(ready) - most
    if extra <= 0:
        return []
    if pool.on_hold:
        return [_held(pool, Reason.HELD, f"{counted(extra, 'agent')} too many; {pool.paused_detail}")]
    watched_seconds, kept_seconds = situation.now - window.opened_at, pool.keep.seconds(most + 1)
    if watched_seconds < kept_seconds:
        watched, kept = durations_apart(watched_seconds, kept_seconds)
        seem = "seems" if extra == 1 else "seem"
        return [_held(pool, Reason.WINDOW_OPEN, f"{counted(extra, 'agent')} {seem} too many, seen for {watched} of {kept}")]
    detail = f"no more than {most} of {len(ready)} agents were needed at once for {duration(kept_seconds)}"
    chosen = least_missed(situation, free_to_go(situation, ready))[:extra]
    return [cordon(situation, agent, MarkClass.RETIRE, Reason.SURPLUS, detail) for agent in chosen]


def _surplus_at_once(situation: Situation, pool: PoolView) -> Iterator[Cordon]:
    """Choose of machines that serve all of a pool's controllers at once those that are idle on all of them, and that none needs."""
    views = [view for (_, name), view in situation.pools.items() if name == pool.name]
    if any(situation.no_giving_up(view.controller) or view.on_hold for view in views):
        return
    machines = _by_machine(agent for view in views for agent in view.ready)
    needed = max(pool.spec.min_agents, sum(_needed(situation, view) for view in views))
    chosen = _least_missed_machines(situation, machines)[: max(0, len(machines) - needed)]
    detail = f"no more than {needed} of {len(machines)} machines were needed at once on all of its controllers"
    for side in pool.ready:
        if side.record.machine in chosen:
            yield cordon(situation, side, MarkClass.RETIRE, Reason.SURPLUS, detail)


def _by_machine(agents: Iterable[Agent]) -> dict[str, list[Agent]]:
    found: dict[str, list[Agent]] = {}
    for agent in agents:
        found.setdefault(agent.record.machine, []).append(agent)
    return found


def _least_missed_machines(situation: Situation, machines: Mapping[str, list[Agent]]) -> list[str]:
    """Order the machines that are idle on all sides, and to which no build may be bound on any, by how little is lost with them."""
    loose = [sides for machine, sides in machines.items() if not devices_reserved(situation, machine)]
    free = [sides for sides in loose if len(free_to_go(situation, sides)) == len(sides)]
    idle = [sides[0] for sides in free if all(side.idle for side in sides)]
    return [agent.record.machine for agent in least_missed(situation, idle)]


def _needed(situation: Situation, pool: PoolView) -> int:
    """Count the machines that one controller has needed at once for as long as one is kept, or is foreseen to need; all, if not known."""
    window, due = situation.memory.windows[pool.full_name], situation.forecasts(pool.controller).get(pool.name, NOTHING)
    most = needed_lately(window, pool.keep.seconds, situation.now)
    if situation.now - window.opened_at < pool.keep.seconds(most + 1):
        return len(pool.agents)
    return max(most, window.peaks[-1][1] + ceil((due.executors - due.stages) / pool.executors))


def _held(pool: PoolView, reason: Reason, detail: str) -> Held:
    return Held(pool=pool.name, controller=pool.controller, reason=reason, detail=detail)


def idle_beyond_need(situation: Situation) -> tuple[list[Agent], list[Agent]]:
    """Choose the idle agents that are kept only for returning demand, not needed now, nor soon; and those that are stranded."""
    believed = [view.name for view in situation.views() if not situation.no_giving_up(view.name)]
    pools = [pool for name in believed for pool in situation.pools_of(name).values() if not pool.on_hold]
    beyond, stranded = list[Agent](), list[Agent]()
    for pool in pools:
        if not situation.stopped_by(pool.name):
            useless = _stranded(situation, pool)
            stranded += useless
            beyond += _idle_beyond_need(situation, pool, useless)
    return beyond, stranded


def _idle_beyond_need(situation: Situation, pool: PoolView, stranded: Collection[Agent]) -> list[Agent]:
    ready = [agent for agent in pool.ready if agent not in stranded] if stranded else pool.ready
    idle = [agent for agent in _not_bound(situation, ready) if agent.idle and agent.makes_room]
    return least_missed(situation, idle)[: max(0, len(ready) - least_kept(situation, pool))] if idle else []


def _stranded(situation: Situation, pool: PoolView) -> list[Agent]:
    """Choose the stranded agents that may go: the pool's minimum stays, unless jobs of its own wait that these cannot take."""
    useless = _not_bound(situation, stranded_of(situation, pool))
    if not useless or has_jobs(situation, pool):
        return useless
    return least_missed(situation, useless)[: max(0, len(pool.ready) - floor_here(situation, pool))]


def least_kept(situation: Situation, pool: PoolView) -> int:
    """Count the agents that stay in any case: needed now or by a forecast, and the pool's minimum."""
    due = situation.forecasts(pool.controller).get(pool.name, NOTHING)
    soon = situation.memory.windows[pool.full_name].peaks[-1][1] + ceil((due.executors - due.stages) / pool.executors)
    return max(floor_here(situation, pool), soon)


def _not_bound(situation: Situation, agents: list[Agent]) -> list[Agent]:
    """Leave out agents to which a build may be bound, that are kept, or that may still take a job which waits beside them."""
    free_nodes, now = situation.memory.free_nodes, situation.now
    loose = (agent for agent in agents if not situation.protected(agent) and now >= agent.record.keep_until)
    return [agent for agent in loose if not is_on_trial(free_nodes.get(f"{agent.record.controller}/{agent.record.node}"), now)]


def free_to_go(situation: Situation, agents: list[Agent]) -> list[Agent]:
    """Leave out these, and agents that are tried for longer for jobs which others refused: for room under a limit those go all the same."""
    return [
        agent
        for agent in _not_bound(situation, agents)
        if not situation.distrust(agent.record.controller).is_tried(agent.record.node or "")
    ]


def least_missed(situation: Situation, agents: list[Agent]) -> list[Agent]:
    """Order agents by how little is lost with them: outdated first, idle longest, then the least remaining work."""

    def loss(agent: Agent) -> tuple[bool, float, float, str]:
        instance_id = agent.record.instance_id
        wanted = why_replaced(situation, agent) is None
        if agent.idle:
            return wanted, 0.0, situation.memory.idle_since.get(instance_id, situation.now), instance_id
        return wanted, 1.0, sum(agent_remaining_seconds(situation, agent)), instance_id

    return sorted(agents, key=loss)


def floor_here(situation: Situation, pool: PoolView) -> int:
    """Return the pool's minimum, less the agents that other controllers have of it."""
    if not pool.spec.min_agents:
        return 0
    elsewhere = sum(
        agent.phase is Phase.READY
        for agent in situation.agents
        if agent.pool.name == pool.name and agent.record.controller != pool.controller
    )
    return max(0, pool.spec.min_agents - elsewhere)
