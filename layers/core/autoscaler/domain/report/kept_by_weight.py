"""Why an item does not take an executor that looks free where jobs have weights: a heavier one goes first, or it needs several at once."""

from autoscaler.domain.facts.fleet import FULL_LABEL
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.distrust import Want
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted

Doubt = tuple[str, str, str]  # the state of a queue item, in a few words, in a sentence


def why_kept(situation: Situation, controller: str, want: Want, machine: str, seconds: float) -> Doubt | None:
    """Say what goes before an item on the machine that was planned for it; None if nothing does."""
    weights = situation.fleet.weights
    agent = _agent_of(situation, controller, machine) if machine and weights else None
    if agent is None or agent.node is None:
        return None
    others = _others(situation, controller, want)
    return _for_heavier(weights, agent, want, others) or _for_several(weights, agent, want, others, seconds)


def _agent_of(situation: Situation, controller: str, machine: str) -> Agent | None:
    mine = (agent for agent in situation.agents if agent.record.controller == controller and agent.record.machine == machine)
    return next(mine, None)


def _others(situation: Situation, controller: str, want: Want) -> list[Want]:
    """Find the other items that agents of the same pools may take."""
    pools = {pool.name for pool in want.pools}
    wants = (other for other in situation.demands[controller].wants if other.item.id != want.item.id)
    return [other for other in wants if pools & {pool.name for pool in other.pools}]


def _for_heavier(weights: JobWeights, agent: Agent, want: Want, others: list[Want]) -> Doubt | None:
    """Name the job that goes first: its node shows no free executor to lighter ones while a heavier one waits."""
    mine = weights.of_running(want.item.job)
    heavier = max((other for other in others if weights.of_running(other.item.job) > mine), key=lambda other: other.weight, default=None)
    if heavier is None or _shows_free(agent):
        return None
    detail = (
        f"{heavier.item.job}, which weighs {heavier.weight}, goes first: what is free on {agent.record.node} is kept until it has begun"
    )
    return "after-heavier", "after a heavier job", detail


def _shows_free(agent: Agent) -> bool:
    """Tell whether Jenkins may hand an executor of a node out now."""
    return agent.node is not None and FULL_LABEL not in agent.node.labels and len(agent.node.builds) < agent.node.executors


def _for_several(weights: JobWeights, agent: Agent, want: Want, others: list[Want], seconds: float) -> Doubt | None:
    """Say that the Heavy Job plugin needs several executors at once, of which others may take each that is freed before."""
    needed = _at_once(weights, want)
    lighter = [other for other in others if _at_once(weights, other) < needed]
    if needed == 1 or not lighter or seconds == 0.0 or not agent.busy_executors:
        return None
    first = f"{counted(len(lighter), 'job')} that {'needs' if len(lighter) == 1 else 'need'} fewer may take each that is freed before"
    return "needs-several", "for several executors", f"it needs {needed} executors of one machine at once, and {first}"


def _at_once(weights: JobWeights, want: Want) -> int:
    """How many executors Jenkins itself gives out together: what the plugin asks for, else one."""
    return want.weight if want.weight > weights.of_running(want.item.job) else 1
