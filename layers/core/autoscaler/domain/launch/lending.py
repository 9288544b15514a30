"""Lending: jobs of a general kind borrow an idle agent of a rarer one, where its pool allows that.

Jenkins places builds, and not we: an agent is lent by giving its node the labels of the general kind, and taken back by removing them.
A loan is for jobs that wait now. It ends once they have begun or left, once its own kind is needed, or by itself; what was matched
until then runs to its end.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from autoscaler.domain.facts.fleet import Lending
from autoscaler.domain.facts.plan import Held, Lend, TakeBack
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import QueueItem
from autoscaler.domain.forecast.forecast import NOTHING
from autoscaler.domain.labels import LabelExpression
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Look, Situation
from autoscaler.domain.situation.steps import Decided
from autoscaler.domain.wording import counted, duration

# Longer than Jenkins and a look take to start what waits; what still waits then is lent to again.
LOAN_SECONDS = 600.0
# A job that was seen so lately comes again, and would find no agent while they are lent.
_REFUSED_FOR_SECONDS = 7 * 86_400.0


@dataclass(slots=True)
class Loans:
    """The agents of one controller that may still be lent in this pass, as one job after another borrows them."""

    situation: Situation
    controller: str
    steps: list[Lend] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)  # by pool
    _lendable: dict[str, list[Agent]] = field(default_factory=dict)
    _lending: list[PoolView] = field(init=False)  # the pools that have labels to lend agents by, the cheapest first; mostly there are none

    def __post_init__(self) -> None:
        """Find the pools that lend once, and not for each job."""
        pools = (pool for pool in self.situation.pools_of(self.controller).values() if pool.spec.lent_labels)
        self._lending = sorted(pools, key=lambda pool: (pool.usd_per_hour, pool.name))

    def borrow(self, item: QueueItem, expression: LabelExpression | None) -> Agent | None:
        """Lend an idle agent to this job; None where there is none, or its pool does not lend it."""
        if expression is None:
            return None
        for pool in self._lenders(expression):
            if item.waiting_seconds < pool.spec.queue_maturity_seconds or self._declines(pool, item):
                continue
            if pool.spec.lend is Lending.NEVER:
                self._refuse(pool, item, "lend: never")
            elif refusal := why_refused(self.situation, pool):
                self._refuse(pool, item, refusal)
            elif agent := self._take(pool):
                self._lend(agent, item)
                return agent
        return None

    def _lenders(self, expression: LabelExpression) -> Iterator[PoolView]:
        """Find the pools whose agents could run a job only while they are lent, the cheapest first."""
        for pool in self._lending:
            labels = pool.spec.labels | {self.situation.fleet.ownership_label}
            if expression.matches(labels | pool.spec.lent_labels) and not expression.matches(labels):
                yield pool

    def _declines(self, pool: PoolView, item: QueueItem) -> bool:
        return self.situation.fleet.declines(self.controller, pool.name, item.job, of_pipeline=bool(item.run)) is not None

    def _take(self, pool: PoolView) -> Agent | None:
        if pool.name not in self._lendable:
            idle = _idle(self.situation, pool)
            self._lendable[pool.name] = idle[: max(0, len(idle) - needed_by_its_own(self.situation, pool))]
        there = self._lendable[pool.name]
        return there.pop() if there else None

    def _lend(self, agent: Agent, item: QueueItem) -> None:
        if agent.node is None:
            raise ValueError(f"{agent.record.instance_id} has no node to lend")
        self.steps.append(
            Lend(
                controller=self.controller,
                pool=agent.pool.name,
                node=agent.node.name,
                instance_id=agent.record.instance_id,
                until_at=self.situation.now + LOAN_SECONDS,
                reason=Reason.LENT,
                detail=f"{item.job or 'a job'} waits for {item.asked_label}",
            )
        )

    def _refuse(self, pool: PoolView, item: QueueItem, why: str) -> None:
        if _idle(self.situation, pool):
            detail = f"{item.job or 'a job'} waits for {item.asked_label}, and an idle agent of {pool.name} is not lent ({why})"
            self.held[pool.name] = Held(pool=pool.name, controller=self.controller, reason=Reason.NOT_LENT, detail=detail)


def take_back(situation: Situation, controller: str, _decided: Decided) -> Iterator[TakeBack]:
    """End the loans that nobody waits for any more, those of agents that their own kind needs, and those that the file wants no more."""
    for pool in situation.pools_of(controller).values():
        lent = [agent for agent in pool.agents if agent.node is not None and agent.record.is_lent(situation.now)]
        if not lent:
            continue
        needed = needed_by_its_own(situation, pool)
        for agent in lent:
            if why := _why_unwanted(agent):
                yield _taken_back(agent, Reason.LENDS_NO_MORE, why)
            elif needed > len(_idle(situation, pool)):
                detail = f"{counted(needed, 'agent')} of {pool.name} needed by jobs of their own kind"
                yield _taken_back(agent, Reason.NEEDED_BY_ITS_OWN, detail)
            elif not _is_waited_for(situation, agent):
                yield _taken_back(agent, Reason.LOAN_OVER, "no job that it could be lent to waits any more")


def why_refused(situation: Situation, pool: PoolView) -> str:
    """Say why no agent of a pool is lent, whoever waits; "" where they are."""
    if pool.on_hold:
        return "a person paused the pool"
    seen_at = situation.memory.never_lent.get(pool.name)
    if seen_at is not None and situation.now - seen_at < _REFUSED_FOR_SECONDS:
        ago = duration(situation.now - seen_at)
        return f"a job that excludes a label of the general kind asked for it {ago} ago: it could not start on an agent that is lent"
    return ""


def needed_by_its_own(situation: Situation, pool: PoolView) -> int:
    """Count the agents that jobs of the pool's own kind wait for; where it lends idle ones only, those foreseen and kept free, too."""
    executors = len(situation.demands[pool.controller].waits_for(pool.name))
    if pool.spec.lend is Lending.IDLE:
        executors += situation.forecasts(pool.controller).get(pool.name, NOTHING).executors
    return -(-(executors + pool.spec.warm_executors) // pool.executors)


def note_never_lent(known: Mapping[str, float], look: Look) -> dict[str, float]:
    """Remember when jobs were last seen that need an agent of a pool and could not start on one that is lent."""
    kept = {name: at for name, at in known.items() if look.now - at < _REFUSED_FOR_SECONDS}
    if not any(pool.lent_labels for pool in look.fleet.pools.values()):
        return kept
    for demand in look.demands.values():
        for want in demand.wants:
            for pool in want.pools:
                own = pool.labels | {look.fleet.ownership_label}
                if pool.lent_labels and want.expression and not want.expression.matches(own | pool.lent_labels):
                    kept[pool.name] = look.now
    return kept


def _idle(situation: Situation, pool: PoolView) -> list[Agent]:
    """Find its idle agents that are not lent; of those that are made from a static node the labels are its operator's."""
    now = situation.now
    return [agent for agent in pool.ready if agent.idle and agent.record.labels and not agent.record.is_lent(now)]


def _is_waited_for(situation: Situation, agent: Agent) -> bool:
    """Tell whether a job waits that the agent may take only because it is lent."""
    demand = situation.demands[agent.record.controller]
    own = agent.pool.labels | {situation.fleet.ownership_label}
    waiting = [one for one in (*(w.expression for w in demand.wants), *(u.expression for u in demand.unmet)) if one is not None]
    return any(one.matches(own.union(agent.record.lent_labels)) and not one.matches(own) for one in waiting)


def _why_unwanted(agent: Agent) -> str:
    """Say why the fleet file as it is now lends an agent no more by the labels that it was lent with; "" where it does."""
    if agent.pool.lend is Lending.NEVER:
        return f"the fleet file lends agents of {agent.pool.name} no more"
    labels = set(agent.record.lent_labels).difference(agent.pool.lent_labels)
    return f"the fleet file lends agents of {agent.pool.name} no more to jobs that ask for {' '.join(sorted(labels))}" if labels else ""


def _taken_back(agent: Agent, reason: Reason, detail: str) -> TakeBack:
    if agent.node is None:
        raise ValueError(f"{agent.record.instance_id} has no node to take back")
    return TakeBack(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.node.name,
        instance_id=agent.record.instance_id,
        reason=reason,
        detail=detail,
    )
