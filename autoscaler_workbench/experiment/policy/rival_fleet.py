"""The fleet as a rival sees and changes it: queue and agents by pool. Builds that it kills are counted, not prevented."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from math import ceil

from autoscaler.domain.facts.fleet import Fleet, Market, Pool
from autoscaler_workbench.experiment.policy.perfect_forecast import PerfectForecast
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.world import NODE_TAG, World, ended_by


@dataclass(eq=False, slots=True, kw_only=True)
class Agent:
    """One instance of a rival, and the node that it becomes."""

    instance: Instance
    pool: str
    node: Node | None = None  # once it has connected
    since: float  # its launch

    @property
    def online(self) -> bool:
        """It takes builds."""
        return self.node is not None and not self.node.offline

    @property
    def idle(self) -> bool:
        """It is connected, and nothing runs on it."""
        return self.node is not None and not self.node.builds

    def idle_seconds(self, now: float) -> float:
        """How long nothing has run on it; 0 while something does, or before it is connected."""
        return now - self.node.idle_since if self.node is not None and not self.node.builds else 0.0


@dataclass(slots=True, kw_only=True)
class RivalPool:
    """One pool at this moment; ``waiting`` are the builds that could run and have no executor, in queue order."""

    pool: Pool
    agents: dict[str, Agent] = field(default_factory=dict)
    waiting: list[Build] = field(default_factory=list)

    @property
    def executors(self) -> int:
        """Of one agent."""
        return self.pool.executors

    @property
    def online(self) -> list[Agent]:
        """Agents that take builds."""
        return [agent for agent in self.agents.values() if agent.online]

    @property
    def booting(self) -> list[Agent]:
        """Agents that have not connected yet."""
        return [agent for agent in self.agents.values() if agent.node is None]

    @property
    def idle(self) -> list[Agent]:
        """Agents on which nothing runs."""
        return [agent for agent in self.agents.values() if agent.online and agent.idle]

    @property
    def running(self) -> int:
        """Builds that run."""
        return sum(len(agent.node.builds) for agent in self.agents.values() if agent.node is not None)

    @property
    def free_executors(self) -> int:
        """Executors that take a build now."""
        return sum(agent.node.executors - len(agent.node.builds) for agent in self.online if agent.node is not None)

    def agents_for(self, executors: float) -> int:
        """The agents needed for this many executors."""
        return ceil(executors / self.executors)


class RivalFleet:
    """One controller with its pools: `look`, then read and act. ``forecast``: for policies that may know the future."""

    def __init__(self, world: World, forecast: PerfectForecast | None = None) -> None:
        """Start without agents; a booted instance becomes a node by itself."""
        self.world = world
        self.forecast = forecast
        self._fleet: Fleet = world.fleet
        self.pools = {name: RivalPool(pool=pool) for name, pool in world.fleet.pools.items()}
        self._controller = world.controllers[world.fleet.controllers[0]]
        self._numbers = count(1)
        world.ec2.on_running = self._booted
        world.ec2.on_end = self._ended

    @property
    def now(self) -> float:
        """The world's time."""
        return self.world.timeline.now

    def look(self) -> None:
        """Sort the queue by the pools that serve it."""
        for pool in self.pools.values():
            pool.waiting.clear()
        now = self.now
        for build in self._controller.queue:
            home = self.world.home_of(build)
            if home is not None and build.buildable_at <= now:
                self.pools[home.name].waiting.append(build)

    def queued_since(self, last_id: int) -> Iterator[tuple[str, Build]]:
        """Yield the builds queued after this id, each with its pool."""
        for build in reversed(self._controller.builds):
            if build.id <= last_id:
                return
            home = self.world.home_of(build)
            if home is not None:
                yield home.name, build

    def launch(self, pool: RivalPool, number: int) -> int:
        """Launch agents up to the limits and EC2's capacity, in the pool's markets; return how many."""
        if number > 0:
            in_all = sum(len(other.agents) for other in self.pools.values())
            number = min(number, pool.pool.max_agents - len(pool.agents), self._fleet.limits.max_agents - in_all)
        launched = 0
        for market in dict.fromkeys(offering.market for offering in pool.pool.offerings):
            launched += self._launch_of(pool, number - launched, market)
        return launched

    def _launch_of(self, pool: RivalPool, number: int, market: Market) -> int:
        if number <= 0 or self._call_fails():
            return 0
        answer = self.world.ec2.create_fleet(self._request(pool.pool, number, market))
        ids = [instance_id for group in answer["Instances"] for instance_id in group["InstanceIds"]]
        for instance_id in ids:
            instance = self.world.ec2.instances[instance_id]
            pool.agents[instance_id] = Agent(instance=instance, pool=pool.pool.name, since=self.now)
        return len(ids)

    def end(self, agents: Iterable[Agent]) -> None:
        """Terminate agents, whatever runs on them."""
        for agent in list(agents):
            self.world.ec2.end(agent.instance)

    def end_idle(self, seconds: float) -> None:
        """Terminate every agent on which nothing has run for longer than this."""
        for pool in self.pools.values():
            self.end(agent for agent in pool.idle if agent.idle_seconds(self.now) > seconds)

    def _call_fails(self) -> bool:
        share = self.world.physics.failing_calls
        return bool(share) and self.world.chance.random() < share

    def _request(self, pool: Pool, number: int, market: Market) -> dict[str, object]:
        overrides = [
            {"InstanceType": o.instance_type, "Priority": float(place)} | ({"SubnetId": o.subnet} if o.subnet else {})
            for place, o in enumerate(pool.offerings)
            if o.market is market
        ]
        tags = {"autoscaler:pool": pool.name, "autoscaler:controller": self._controller.name, "autoscaler:fleet": self._fleet.name}
        return {
            "ClientToken": f"rival-{next(self._numbers)}",
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": number,
                "DefaultTargetCapacityType": "spot" if market is Market.SPOT else "on-demand",
            },
            "LaunchTemplateConfigs": [
                {"LaunchTemplateSpecification": {"LaunchTemplateName": pool.launch_template}, "Overrides": overrides}
            ],
            "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}],
        }

    def _booted(self, instance: Instance) -> None:
        seconds = self.world.physics.connects_in_seconds(self.world.chance)  # as our own agents connect, once they have booted
        self.world.timeline.after(seconds, lambda: self._connect(instance))

    def _connect(self, instance: Instance) -> None:
        pool = self._fleet.pools[instance.tags["autoscaler:pool"]]
        if not instance.alive():
            return
        node = Node(
            name=f"{pool.name}-{instance.id[2:]}",
            labels=(*pool.labels, self._fleet.ownership_label),
            executors=pool.executors,
            exclusive=pool.exclusive,
            description="",
            remote_dir="",
        )
        instance.tags[NODE_TAG] = node.name
        self.pools[pool.name].agents[instance.id].node = node
        self._controller.add_node(node)
        self._controller.connect(node.name)

    def _ended(self, instance: Instance) -> None:
        agent = self.pools[instance.tags["autoscaler:pool"]].agents.pop(instance.id)
        if agent.node is not None:
            self._controller.disconnect(agent.node.name, killed_by=ended_by(instance))
            self._controller.delete_node(agent.node.name)
