"""Who is there now: jobs that wait, by pool, and agents, by pool and state. Counted from the world."""

from collections import Counter
from enum import StrEnum

from workbench.fakes.world.jenkins.builds import Build
from workbench.fakes.world.jenkins.nodes import Node
from workbench.fakes.world.world import World
from workbench.simulate.result import serving_pools


class AgentState(StrEnum):
    """What an agent is doing, as somebody who looks at Jenkins would say."""

    BOOTING = "booting"
    BUSY = "busy"
    IDLE = "idle"
    DRAINING = "draining"


class FleetCounts:
    """Counts one world; remembers which pool serves which label."""

    def __init__(self, world: World) -> None:
        """Count this world."""
        self._world = world
        self._pools: dict[tuple[str, str | None], str | None] = {}

    def waiting(self) -> Counter[str]:
        """Jobs in the queue by the first pool that serves them; what no pool can serve is not counted."""
        queues = (controller.queue for controller in self._world.controllers.values())
        pools = (self.pool_of(build) for queue in queues for build in queue if build.buildable_at <= self._world.timeline.now)
        return Counter(pool for pool in pools if pool is not None)

    def agents(self) -> dict[str, Counter[AgentState]]:
        """Agents by pool and state; every pool is there."""
        counts: dict[str, Counter[AgentState]] = {name: Counter() for name in self._world.fleet.pools}
        for instance in self._world.alive():
            counts[instance.tags["autoscaler:pool"]][_state(self._world.node_of(instance))] += 1
        return counts

    def pool_of(self, build: Build) -> str | None:
        """The first pool of the fleet file that serves a build; None: no pool can."""
        asked = build.controller, build.label
        if asked not in self._pools:
            self._pools[asked] = next(serving_pools(self._world.fleet, build), None)
        return self._pools[asked]


def _state(node: Node | None) -> AgentState:
    if node is None or (not node.connected and not node.temporarily_offline):
        return AgentState.BOOTING
    if node.temporarily_offline:
        return AgentState.DRAINING
    return AgentState.BUSY if node.builds else AgentState.IDLE
