"""Stranded agents: idle while jobs wait, and no job that waits can take them.

A pool counts its agents by the labels of the fleet file. Jenkins places builds by the labels that a node has now: somebody may have changed
those, or the file.
"""

from collections.abc import Iterable

from autoscaler.domain.facts.fleet import CORDONED_LABEL, FULL_LABEL, HELD_LABEL, Lending, Share
from autoscaler.domain.labels import LabelExpression
from autoscaler.domain.launch.placement import why_refused
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.demand import Unmet
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.wants import Want


def stranded_of(situation: Situation, pool: PoolView) -> list[Agent]:
    """Find the idle agents of a pool that no job which waits can take, though the pool has such jobs, or they lack its labels."""
    idle = [agent for agent in pool.ready if agent.idle and agent.makes_room]
    if not idle:
        return []
    own = _own(pool, _waiting(situation, pool)[0])
    if _any_will_do(own):
        return []
    asked = _asked(situation, pool)
    useless = [agent for agent in idle if not (_labels_are_taken(agent) or _may_take_any(situation, agent, asked))]
    return useless if own else [agent for agent in useless if not pool.spec.labels <= _labels(agent)]


def has_jobs(situation: Situation, pool: PoolView) -> bool:
    """Tell whether jobs wait that the fleet file gives to this pool."""
    return bool(_own(pool, _waiting(situation, pool)[0]))


def _own(pool: PoolView, wants: Iterable[Want]) -> list[Want]:
    return [want for want in wants if any(served.name == pool.name for served in want.pools)]


def _any_will_do(wants: Iterable[Want]) -> bool:
    """Tell whether any of these asks for no label, or for one that nobody shows."""
    return any(want.expression is None for want in wants)


def _waiting(situation: Situation, pool: PoolView) -> tuple[list[Want], list[Unmet]]:
    """What waits on the controllers that an agent may serve, with what no pool serves."""
    names = pool.spec.controllers if pool.spec.share is Share.ROTATE else (pool.controller,)
    demands = [situation.demands[name] for name in names if name in situation.demands]
    return [want for demand in demands for want in demand.wants], [unmet for demand in demands for unmet in demand.unmet]


def _asked(situation: Situation, pool: PoolView) -> list[LabelExpression]:
    """List the label expressions of what waits, each once."""
    wants, unmet = _waiting(situation, pool)
    expressions = (*(want.expression for want in wants), *(item.expression for item in unmet))
    return list({expression.name: expression for expression in expressions if expression is not None}.values())


def _may_take_any(situation: Situation, agent: Agent, asked: Iterable[LabelExpression]) -> bool:
    """Tell whether an agent's labels satisfy one of these, as they are or while it is lent."""
    is_lent_never = agent.pool.lend is Lending.NEVER or why_refused(situation, situation.pools[agent.key])
    labels = _labels(agent)
    several = (labels,) if is_lent_never else (labels, labels | agent.pool.lent_labels)
    return any(expression.matches(some) for expression in asked for some in several)


def _labels(agent: Agent) -> frozenset[str]:
    return agent.node.labels if agent.node else frozenset()


def _labels_are_taken(agent: Agent) -> bool:
    """Tell whether its labels are away for a while: they come back by themselves."""
    return not _labels(agent).isdisjoint({CORDONED_LABEL, FULL_LABEL, HELD_LABEL})
