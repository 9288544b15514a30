"""Canaries: pools of which only one agent may boot at a time, after failed boots or a new launch template."""

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import is_tripped, told_boots
from autoscaler.domain.situation.situation import Situation


def why_one_at_a_time(situation: Situation, pool: str) -> tuple[Reason, str] | None:
    """Say why only one agent may boot for now; None where as many may as are needed."""
    breaker = situation.memory.breakers.get(pool)
    if breaker is not None and is_tripped(breaker):
        return Reason.ONE_TRIAL, f"{told_boots(breaker)}; one agent is tried until one connects"
    if is_canary(situation, pool):
        proven, version = situation.memory.proven[pool], situation.snapshot.template_versions[pool]
        return Reason.CANARY, f"version {version} of its launch template follows {proven}; one agent is tried until one connects"
    return None


def is_canary(situation: Situation, pool: str) -> bool:
    """Tell whether the pool's present launch template version never booted, where another one did."""
    proven, version = situation.memory.proven.get(pool), situation.snapshot.template_versions.get(pool)
    return proven is not None and version is not None and proven != version


def why_outdated(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent differs from what would be launched now; None where it does not, or nobody knows."""
    version, current = situation.template_version(agent), situation.snapshot.template_versions.get(agent.pool.name)
    if version and current and version != current:
        return Reason.OUTDATED, f"launched from version {version} of its launch template, now it is {current}"
    hours = (situation.now - agent.record.launched_at) / 3600.0
    if agent.pool.max_agent_hours is not None and hours > agent.pool.max_agent_hours:
        return Reason.MAX_AGENT_HOURS, f"launched {hours:.1f} h ago, at most {agent.pool.max_agent_hours:g} h are wanted"
    return None
