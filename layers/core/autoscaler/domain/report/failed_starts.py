"""Stopped agents that do not start again: what people are told, and what `why` says."""

from collections.abc import Iterator

from autoscaler.domain.facts.memory import Failing, Trial
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import by_pool, of_starts
from autoscaler.domain.situation.canary import MACHINE_REFUSALS, is_tripped, refusals_of
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import moment, once_mended

_RUNBOOK = "operations.md#starts-failed"
# What EC2 says, and what is often missing then.
_CURES = {
    "InternalError": "Often the role may not give EC2 a grant on the key of the volumes (kms:CreateGrant).",
    "UnauthorizedOperation": "The role lacks ec2:StartInstances for it, or a right on the key of its volumes.",
}


def failed_starts_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools that stop no more agents since starts fail, and the machines that EC2 refuses to start."""
    for pool, trial in by_pool(situation.memory, of_starts).items():
        if is_tripped(trial) and pool in situation.fleet.pools:
            yield f"starts/{pool}", _pool(pool, trial)
    for agent in situation.agents:
        refusals = refusals_of(situation.memory, agent)
        if refusals is not None and refusals.times >= MACHINE_REFUSALS:
            yield f"starts/{agent.pool.name}/{agent.record.instance_id}", _machine(agent, refusals)


def told_failed_starts(trial: Trial) -> str:
    """Say how often starts failed in a row, why the last one did, and what follows."""
    starts = "the last start failed" if trial.failures == 1 else f"{trial.failures} starts in a row failed"
    then = f"; none is kept stopped, and one is tried from {moment(trial.until_at)} on" if is_tripped(trial) else ""
    said = f" (its console ends with: {trial.said})" if trial.said else ""
    return f"{starts}: {trial.why}{said}{then}"


def _pool(pool: str, trial: Trial) -> Seen:
    last = f" The last one: {trial.failed[-1]}." if trial.failed else ""
    cure = next((f"\n{cure}" for code, cure in _CURES.items() if code in trial.why), "")
    then = "Agents are launched instead, and terminated when nothing needs them."
    failed = told_failed_starts(trial)
    text = f"{failed[0].upper()}{failed[1:]}.{last}{cure}\n{then}"
    return Seen(f"stopped agents of {pool} do not start", text, _RUNBOOK, f"autoscaler why {pool}", cure=once_mended(pool))


def _machine(agent: Agent, refusals: Failing) -> Seen:
    name = agent.record.instance_id
    text = (
        f"EC2 refused {refusals.times} times since {moment(refusals.since_at)}: {refusals.why}.\nIt is terminated. Others serve its jobs."
    )
    return Seen(f"{name} of {agent.pool.name} does not start", text, _RUNBOOK, f"autoscaler why {agent.pool.name}")
