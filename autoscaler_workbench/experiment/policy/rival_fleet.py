"""The fleet as a rival sees and changes it: queue and agents by pool. Builds that it kills are counted, not prevented."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from math import ceil

from autoscaler.domain.facts.fleet import Fleet, Market, Pool
from autoscaler_workbench.experiment.policy.perfect_forecast import PerfectForecast
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.stopping import why_not_started, why_not_stopped
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.world import NODE_TAG, World, ended_by


@dataclass(eq=False, slots=True, kw_only=True)
class Agent:
    """One instance of a rival, and the node that it becomes."""

    instance: Instance
    pool: str
    node: Node | None = None  # once it has connected
    since: float  # its launch, or its last start
    node_stays: bool = False  # in Jenkins, offline, while it is stopped

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
    """One pool at this moment; ``waiting`` are the builds that could run and have no executor, in queue order.

    ``stopped``: agents that are stopped or will be, the longest first; they are none of ``agents``.
    """

    pool: Pool
    agents: dict[str, Agent] = field(default_factory=dict)
    stopped: dict[str, Agent] = field(default_factory=dict)
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
    def startable(self) -> list[Agent]:
        """Agents that have stopped."""
        return [agent for agent in self.stopped.values() if agent.instance.state == "stopped"]

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
    """One controller with its pools: `look`, then read and act. ``forecast``: for policies that may know the future.

    ``counted``: states in which an agent fills the limits though it is no agent now. None by default: each rival that stops agents says
    what its product counts.
    """

    def __init__(self, world: World, forecast: PerfectForecast | None = None) -> None:
        """Start without agents; a booted instance becomes a node by itself."""
        self.world = world
        self.forecast = forecast
        self.counted: frozenset[str] = frozenset()
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
            pool.stopped = {one: agent for one, agent in pool.stopped.items() if agent.instance.alive()}
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
            number = min(number, self.room(pool))
        launched = 0
        for market in dict.fromkeys(offering.market for offering in pool.pool.offerings):
            fresh = self._launch_of(pool, number - launched, market)
            pool.agents |= fresh
            launched += len(fresh)
        return launched

    def prepare(self, pool: RivalPool, number: int) -> int:
        """Launch on-demand agents that stop once they have booted, and never connect before; no limit holds here. Return how many."""
        if all(offering.market is not Market.ON_DEMAND for offering in pool.pool.offerings):
            return 0
        fresh = self._launch_of(pool, number, Market.ON_DEMAND)
        pool.stopped |= fresh
        return len(fresh)

    def room(self, pool: RivalPool) -> int:
        """How many more agents the limits of the pool and of the fleet allow."""
        in_all = sum(self._filled(other) for other in self.pools.values())
        return min(pool.pool.max_agents - self._filled(pool), self._fleet.limits.max_agents - in_all)

    def _filled(self, pool: RivalPool) -> int:
        return len(pool.agents) + sum(agent.instance.state in self.counted for agent in pool.stopped.values())

    def _launch_of(self, pool: RivalPool, number: int, market: Market) -> dict[str, Agent]:
        if number <= 0 or self._call_fails():
            return {}
        answer = self.world.ec2.create_fleet(self._request(pool.pool, number, market))
        ids = [instance_id for group in answer["Instances"] for instance_id in group["InstanceIds"]]
        return {one: Agent(instance=self.world.ec2.instances[one], pool=pool.pool.name, since=self.now) for one in ids}

    def stop(self, agents: Iterable[Agent], *, node_stays: bool = False) -> list[Agent]:
        """Stop agents, whatever runs on them; return those that go on: EC2 refuses, as for spot, or the call fails."""
        refused = []
        for agent in list(agents):
            if self._call_fails() or why_not_stopped(agent.instance):
                refused.append(agent)
                continue
            agent.node_stays = node_stays and not (agent.node and agent.node.builds)  # a pipeline must not find its machine again
            self.world.ec2.stop(agent.instance.id)
        return refused

    def start(self, pool: RivalPool, agents: Iterable[Agent]) -> list[Agent]:
        """Start agents that have stopped, up to the limits; return those that start. Without capacity they stay stopped."""
        started = []
        for agent in list(agents):
            if self.room(pool) <= 0:
                break
            if self._call_fails() or why_not_started(self.world.ec2, agent.instance):
                continue
            self.world.ec2.start(agent.instance.id)
            pool.agents[agent.instance.id] = pool.stopped.pop(agent.instance.id)
            agent.since = self.now
            started.append(agent)
        return started

    def end(self, agents: Iterable[Agent]) -> None:
        """Terminate agents, whatever runs on them; stopped ones, too."""
        for agent in list(agents):
            self.world.ec2.end(agent.instance)
            was_stopped = self.pools[agent.pool].stopped.pop(agent.instance.id, None)
            if was_stopped and agent.node_stays:
                self._controller.delete_node(self._name_of(agent.instance))

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
        if instance.id in self._pool_of(instance).stopped:
            self.world.ec2.stop(instance.id)  # it was launched to be stopped
            return
        life = instance.life
        seconds = self.world.physics.connects_in_seconds(self.world.chance)  # as our own agents connect, once they have booted
        self.world.timeline.after(seconds, lambda: self._connect(instance, life))

    def _connect(self, instance: Instance, life: int) -> None:
        if not instance.is_on() or instance.life != life:
            return
        pool = self._pool_of(instance)
        name = self._name_of(instance)
        if name not in self._controller.nodes:
            self._controller.add_node(
                Node(
                    name=name,
                    labels=(*pool.pool.labels, self._fleet.ownership_label),
                    executors=pool.executors,
                    exclusive=pool.pool.exclusive,
                    description="",
                    remote_dir="",
                )
            )
            instance.tags[NODE_TAG] = name
        pool.agents[instance.id].node = self._controller.nodes[name]
        self._controller.connect(name)

    def _ended(self, instance: Instance) -> None:
        """Take an agent out that was on until now: it ends, or stops."""
        pool = self._pool_of(instance)
        stops = instance.state == "stopping"
        agent = pool.agents.pop(instance.id, None)
        if agent is None:  # it was being prepared, and never connected
            return
        if agent.node is not None:
            self._controller.disconnect(agent.node.name, killed_by=ended_by(instance))
            if not (stops and agent.node_stays):
                self._controller.delete_node(agent.node.name)
        if stops:
            agent.node = None
            pool.stopped[instance.id] = agent

    def _pool_of(self, instance: Instance) -> RivalPool:
        return self.pools[instance.tags["autoscaler:pool"]]

    @staticmethod
    def _name_of(instance: Instance) -> str:
        return f"{instance.tags['autoscaler:pool']}-{instance.id[2:]}"
