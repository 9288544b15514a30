"""Records a run: a sample a tick, what each agent did, each step taken, and each span in which something was wanted and not done."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.pools import pool_at_its_widest
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.world import World
from autoscaler_workbench.simulate.drive import Progress

# Two ticks of the same hold belong together; a longer pause makes it another one.
_SAME_HOLD_SECONDS = 150.0


class AgentState(StrEnum):
    """What an agent is doing, as somebody who looks at Jenkins would say."""

    BOOTING = "booting"
    BUSY = "busy"
    IDLE = "idle"
    DRAINING = "draining"
    STOPPED = "stopped"  # its disk alone is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One instant: jobs waiting and agents by state, of each pool that has any."""

    at: float
    waiting: dict[str, int]
    agents: dict[str, dict[AgentState, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTaken:
    """One step that was taken, or tried. ``count``: agents of a launch or a start."""

    at: float
    step: str
    pool: str
    count: int
    node: str
    reason: str
    detail: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSpan:
    """Something wanted and not done, from its first tick to its last. ``detail``: of the last."""

    first_at: float
    last_at: float
    pool: str
    reason: str
    detail: str


@dataclass(slots=True)
class Recording:
    """One run. ``states``: by instance, each state and since when."""

    world: World
    samples: list[Sample] = field(default_factory=list)
    states: dict[str, list[tuple[float, AgentState]]] = field(default_factory=dict)
    taken: list[StepTaken] = field(default_factory=list)
    held: list[HeldSpan] = field(default_factory=list)
    _open: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(self, progress: Progress) -> None:
        """Record this tick."""
        now = self.world.timeline.now
        seen = agent_states(self.world)
        agents = {pool: dict(states) for pool, states in _by_pool(self.world, seen).items() if states}
        self.samples.append(Sample(at=now, waiting=dict(waiting_by_pool(self.world)), agents=agents))
        self._note_states(seen, now)
        for plan in progress.plans:
            self.taken += _steps(plan, now)
            for held in plan.get("held", []):
                self._note_held(held, now)

    def _note_states(self, seen: list[tuple[Instance, AgentState]], now: float) -> None:
        for instance, state in seen:
            past = self.states.setdefault(instance.id, [])
            if not past or past[-1][1] is not state:
                past.append((now, state))

    def _note_held(self, held: dict[str, Any], now: float) -> None:
        key = held["pool"], held["reason"]
        place = self._open.get(key)
        if place is not None and now - self.held[place].last_at <= _SAME_HOLD_SECONDS:
            self.held[place] = replace(self.held[place], last_at=now, detail=held["detail"])
            return
        self._open[key] = len(self.held)
        self.held.append(HeldSpan(first_at=now, last_at=now, pool=key[0], reason=key[1], detail=held["detail"]))


def _steps(plan: dict[str, Any], now: float) -> Iterator[StepTaken]:
    for step in plan.get("steps", []):
        about = {name: step[name] for name in ("step", "reason", "detail", "outcome")}
        node = step.get("node") or step.get("instance_id") or ""
        yield StepTaken(at=now, pool=step.get("pool", ""), count=step.get("launched", step.get("started", 1)), node=node, **about)


def waiting_by_pool(world: World) -> Counter[str]:
    """Jobs in the queue by the first pool that serves them; those that match no pool are not counted."""
    queues = (controller.queue for controller in world.controllers.values())
    homes = (world.home_of(build) for queue in queues for build in queue if build.buildable_at <= world.timeline.now)
    return Counter(pool.name for pool in homes if pool is not None)


def agents_by_state(world: World) -> dict[str, Counter[AgentState]]:
    """Agents by pool and state; every pool is there."""
    return _by_pool(world, agent_states(world))


def agent_states(world: World) -> list[tuple[Instance, AgentState]]:
    """Every agent that is there, and what it is doing."""
    return [(instance, _state(instance, world.node_of(instance))) for instance in world.alive()]


def _by_pool(world: World, seen: list[tuple[Instance, AgentState]]) -> dict[str, Counter[AgentState]]:
    counts: dict[str, Counter[AgentState]] = {name: Counter() for name in world.fleet.pools}
    for instance, state in seen:
        counts[instance.tags["autoscaler:pool"]][state] += 1
    return counts


def states_of(fleet: Fleet) -> list[AgentState]:
    """The states that agents of a fleet may have: none is stopped where no pool keeps any."""
    stops = any(pool_at_its_widest(pool).warm_pool for pool in fleet.pools.values())
    return [state for state in AgentState if stops or state is not AgentState.STOPPED]


def _state(instance: Instance, node: Node | None) -> AgentState:
    if not instance.is_on():
        return AgentState.STOPPED if instance.state == "stopped" else AgentState.DRAINING
    if node is None or (not node.connected and not node.temporarily_offline):
        return AgentState.BOOTING
    if node.temporarily_offline:
        return AgentState.DRAINING
    return AgentState.BUSY if node.builds else AgentState.IDLE
