"""Starts that take too long, at a limit: their place goes to a launch, since jobs wait."""

from collections.abc import Iterator

from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.repair.instances import Condition, is_fact
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.start_trials import starts_late
from autoscaler.domain.situation.steps import Decided, terminate
from autoscaler.domain.wording import duration


def late_starts(situation: Situation, controller: str, _decided: Decided) -> Iterator[Terminate]:
    """Terminate agents whose start takes too long, if jobs wait and no limit leaves them another agent; each was seen late twice."""
    for name, pool in situation.pools_of(controller).items():
        late = [agent for agent in pool.agents if _is_late(situation, pool, agent)]
        if not late or not situation.starved_by_pool(controller).get(name, 0):
            continue
        if refused := Budget(situation).over_limit(pool.spec, pool.usd_per_hour):
            for agent in late:
                since = duration(situation.now - agent.record.began_at)
                yield terminate(agent, Reason.START_FAILED, f"started {since} ago, and has not registered; {refused[1]}")


def _is_late(situation: Situation, pool: PoolView, agent: Agent) -> bool:
    look = situation.memory.observations.get(agent.record.instance_id)
    if agent.phase is not Phase.REQUESTED or look is None or look.condition != Condition.OVERDUE:
        return False
    return is_fact(look, situation.now, situation.snapshot.request_id) and starts_late(situation, agent, pool)
