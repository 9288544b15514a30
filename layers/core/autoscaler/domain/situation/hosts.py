"""Hosts that are not connected, and since when."""

from collections.abc import Mapping

from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Look


def next_hosts_off(known: Mapping[str, float], look: Look) -> dict[str, float]:
    """Carry on since when each host of the fleet file is not connected to any controller, by name."""
    agents: dict[str, list[Agent]] = {}
    for agent in look.agents:
        agents.setdefault(agent.record.machine, []).append(agent)
    return {
        name: known.get(name, look.now)
        for name, host in look.fleet.hosts.items()
        if not any(map(_may_be_connected, agents.get(host.id, ())))
    }


def _may_be_connected(agent: Agent) -> bool:
    """Tell whether a host is connected; one that is marked offline may be, and nobody knows of one that could not be read."""
    return agent.phase is Phase.UNSEEN or (agent.node is not None and (not agent.node.offline or agent.node.temporarily_offline))
