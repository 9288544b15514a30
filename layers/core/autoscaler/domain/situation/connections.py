"""Connections of new agents that a controller refuses to all of them: a right is missing, or a login page is in the way.

Nothing is launched for that controller after the first such agent. It goes on asking, and so finds out when that is mended. Once it has
ended, one agent at a time is launched, at growing intervals, until one connects.

A beacon that Jenkins refuses for such a reason shows it before anything is launched: then nothing is, until Jenkins makes the beacon.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from autoscaler.domain.facts.memory import Memory, Trial
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import CREATE_BEACON
from autoscaler.domain.situation.trials import CONNECT_PAUSES, by_pool, due_at, failed_once_more, of_connections, open_trial
from autoscaler.domain.wording import moment

# A record's trouble begins with the name of an error; these are the same for every agent.
_FOR_ALL_AGENTS = ("LackingPermissionError", "RefusedCredentialsError", "RedirectedError", "InTheWayError", "DoubtfulError")
_LOGIN_PAGE = "login page"
_FAILED_KEPT = 20


def is_for_all_agents(trouble: str) -> bool:
    """Tell whether what keeps an agent from connecting keeps every other one of its controller, too."""
    return trouble.startswith(_FOR_ALL_AGENTS) or _LOGIN_PAGE in trouble


def why_no_node(failed: Mapping[str, str | None], controller: str) -> str:
    """Say why Jenkins refuses to make any node: it refused a beacon; "" if it refused none. ``failed``: by the key of a step."""
    key = f"{CREATE_BEACON} {controller}/"
    return next((why for name, why in failed.items() if why and name.startswith(key) and is_for_all_agents(why)), "")


def why_none_connects(memory: Memory, controller: str, no_node: str, now: float) -> str:
    """Say why nothing is launched for a controller now; "" if Jenkins refuses nothing. ``no_node``: why it makes none."""
    if no_node:
        return f"no node can be made on {controller} ({no_node}); a beacon tries again"
    refused = open_trial(memory, of_connections(controller))
    if refused is None or now >= refused.until_at:
        return ""
    return f"no new agent can connect to {controller} ({refused.why}); one is tried at {moment(refused.until_at)}"


def still_refused(memory: Memory, agents: Iterable[Agent], controllers: Collection[str], now: float) -> dict[str, Trial]:
    """Carry on which controllers refuse new agents: an agent that connects, or is refused no more, ends it."""
    of_each: dict[str, list[Agent]] = {}
    for agent in agents:
        if agent.record.is_instance and not agent.instance_ended:
            of_each.setdefault(agent.record.controller, []).append(agent)
    before = by_pool(memory, of_connections)
    trials = {name: _next(before.get(name), memory, of_each.get(name, []), now) for name in controllers}
    return {of_connections(name): trial for name, trial in trials.items() if trial}


def _next(before: Trial | None, memory: Memory, agents: Collection[Agent], now: float) -> Trial | None:
    if any(_works(before, memory, agent) for agent in agents):
        return None
    counted = before.failed if before else ()
    refused = [agent for agent in agents if _is_refused(memory, agent) and agent.record.instance_id not in counted]
    if not refused:
        return before
    failed = (*counted, *(agent.record.instance_id for agent in refused))[-_FAILED_KEPT:]
    if before and all(agent.record.began_at < before.failed_at for agent in refused):
        trial = before  # they were launched before it was known
    else:
        trial = failed_once_more(before, CONNECT_PAUSES, refused[-1].record.trouble, now)
    until_at = min(trial.until_at, due_at(trial, refused[-1].pool))
    return replace(trial, until_at=until_at, why=refused[-1].record.trouble, failed=failed)


def _works(before: Trial | None, memory: Memory, agent: Agent) -> bool:
    """Tell whether an agent has connected for the first time, or what was refused has its node and its secret now."""
    record = agent.record
    if agent.phase is Phase.READY and record.life_id not in memory.connected:
        return True
    was_refused = before is not None and record.instance_id in before.failed
    return was_refused and record.state is RecordState.REGISTERED and not record.trouble


def _is_refused(memory: Memory, agent: Agent) -> bool:
    return agent.record.life_id not in memory.connected and is_for_all_agents(agent.record.trouble)
