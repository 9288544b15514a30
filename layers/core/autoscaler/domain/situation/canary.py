"""Canaries: pools of which only one agent may boot at a time, after failed boots or a new launch template."""

from collections.abc import Collection, Iterator

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.nodes import why_of_other_kind
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record, differ, told_follows, told_outdated
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import TOGETHER_SECONDS, told_boots
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.trials import of_boot, open_trial
from autoscaler.domain.wording import durations_apart


def why_one_at_a_time(situation: Situation, pool: str) -> tuple[Reason, str] | None:
    """Say why only one agent may boot for now; None where as many may as are needed."""
    if failed := open_trial(situation.memory, of_boot(pool)):
        return Reason.ONE_TRIAL, f"{told_boots(failed)}; one agent is tried until one connects"
    if late := next(late_agents(situation, pool), None):
        return Reason.ONE_TRIAL, f"{late.record.instance_id} has not connected by its deadline; one agent is tried until one connects"
    if is_canary(situation, pool) and pool not in situation.to_try:
        follows = told_follows(situation.current[pool], situation.memory.proven[pool])
        return Reason.CANARY, f"{follows}; one agent is tried until one connects"
    return None


def late_agents(situation: Situation, pool: str) -> Iterator[Agent]:
    """Find the agents that have not connected by their deadline, and do not count as failed boots yet: that takes a second look.

    Without those that were started: what starts lack says nothing about boots.
    """
    trial = situation.memory.trials.get(of_boot(pool))
    counted = trial.failed if trial else ()
    for agent in (agent for agent in situation.late_launches if agent.pool.name == pool):
        is_new = agent.record.instance_id not in counted and never_connected(agent.record, situation.memory.connected)
        if is_new and not shows_that_it_boots(situation, agent.record):
            yield agent


def never_connected(record: Record, connected: Collection[str]) -> bool:
    """Tell whether an agent never connected. One that was made for a person is offline for builds, and nobody sees it connect."""
    return record.life_id not in connected and (record.reservation is None or bool(record.trouble))


def shows_that_it_boots(situation: Situation, failed: Record) -> bool:
    """Tell whether an agent that was launched together with one that failed, or later, has connected."""
    return any(_shows(situation, agent.record, failed) for agent in situation.agents if agent.pool.name == failed.pool)


def _shows(situation: Situation, record: Record, failed: Record) -> bool:
    if record.life_id not in situation.memory.connected or record.began_at <= failed.began_at - TOGETHER_SECONDS:
        return False
    return not differ(situation.versions.get(record.instance_id, ""), situation.versions.get(failed.instance_id, ""))


def is_canary(situation: Situation, pool: str) -> bool:
    """Tell whether the pool's present version never booted, where another one did."""
    proven, version = situation.memory.proven.get(pool), situation.current.get(pool)
    return proven is not None and version is not None and proven != version


def why_outdated(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent differs from what would be launched now; None where it does not, or nobody knows."""
    version, current = situation.version_of(agent), situation.current.get(agent.pool.name)
    if version and current and version != current:
        return Reason.OUTDATED, told_outdated(version, current)
    seconds, most = situation.now - agent.record.launched_at, agent.pool.max_agent_hours
    if most is not None and seconds > most * 3600.0:
        ago, wanted = durations_apart(seconds, most * 3600.0)
        return Reason.MAX_AGENT_HOURS, f"launched {ago} ago, at most {wanted} are wanted (max_agent_hours)"
    return None


def why_relabelled(agent: Agent, fleet: Fleet) -> str | None:
    """Say which labels the node of an agent was made with, if the fleet file gives others now; a static node's are its operator's."""
    made_with, given = frozenset(agent.record.labels), agent.pool.labels | {fleet.ownership_label}
    if agent.node is None or not made_with or agent.record.reservation or made_with == given:
        return None
    return f"its node was made with the labels {_text(made_with, fleet)}, the fleet file gives {_text(given, fleet)}"


def _text(labels: frozenset[str], fleet: Fleet) -> str:
    return " ".join(sorted(labels - {fleet.ownership_label})) or "none"


def why_replaced(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent is to make way for another one: what it was launched from, its age, its node or labels. A host has none of these."""
    if agent.record.is_host:
        return None
    relabelled = why_of_other_kind(situation.fleet, agent.record) or why_relabelled(agent, situation.fleet)
    return why_outdated(situation, agent) or ((Reason.OUTDATED, relabelled) if relabelled else None)


def is_launched_meanwhile(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent is of the version that goes on to be launched while a new image is tried: nothing is wrong with it yet."""
    pool = agent.pool.name
    return pool in situation.to_try and situation.version_of(agent) == situation.launched[pool]
