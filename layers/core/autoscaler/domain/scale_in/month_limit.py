"""At the month's limit nothing new starts: agents are cordoned until the month ends or the limit is raised."""

from collections.abc import Iterator

from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.plan import Cordon, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving

_MAY_TAKE_BUILDS = (Phase.READY, Phase.CONNECTING)


def stop_for_month_limit(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Terminate]:
    """Cordon every agent of a controller, except those a build may be bound to; one without a node is terminated.

    Holds, `min_agents` and what a person wants kept do not count: the limit is a ceiling.
    """
    taken = leaving(decided, controller)
    for agent in situation.agents if situation.month_is_spent else ():
        if agent.record.controller != controller or agent.record.node in taken or agent.instance_ended:
            continue
        if agent.phase is Phase.REQUESTED:
            yield _terminate(situation, agent)
        elif agent.phase in _MAY_TAKE_BUILDS and not situation.protected(agent):
            yield cordon(situation, agent, MarkClass.MONTH_LIMIT, Reason.USD_PER_MONTH, what_holds(situation))


def what_holds(situation: Situation) -> str:
    """Say how much is spent, and what follows."""
    usd, limit = situation.memory.month.usd, situation.fleet.limits.max_usd_per_month
    return f"${usd:,.2f} of ${limit:,.2f} are spent this month: nothing new starts until it ends or max_usd_per_month is raised"


def _terminate(situation: Situation, agent: Agent) -> Terminate:
    record = agent.record
    return Terminate(
        controller=record.controller,
        pool=record.pool,
        instance_id=record.instance_id,
        node=None,
        mark=None,
        reason=Reason.USD_PER_MONTH,
        detail=what_holds(situation),
    )
