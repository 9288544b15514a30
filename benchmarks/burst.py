"""A burst of registrations in an account that allows few concurrent executions: how long agents wait to be told who they are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from autoscaler.config import check
from autoscaler.domain.facts.fleet import Fleet
from autoscaler_workbench.fakes.identity import ask_pass
from autoscaler_workbench.fakes.world.agents import Agents, Ask, IdentityAnswer, Machine
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.drive import InMemory
from benchmarks.figures import Figures, seconds

AGENTS = (20, 100, 400)
# Free beside the schedule in a fresh account; what doctor reserves for register_agent; free where the account has what doctor asks for.
EXECUTIONS = (7, 20, 47)
# A warm registration behind a busy Jenkins, and a cold one: creating a node took up to 0.1 s there, a cold start the rest.
LASTS_SECONDS = (0.5, 3.0)
_THROTTLED = 429  # what a function URL answers for Lambda
_START = 1_800_000_000.0
_PATIENCE_SECONDS = 1800.0


def measure() -> Iterator[Figures]:
    """Boot so many agents at once, and let them ask."""
    yield Figures(
        "A burst of registrations and Lambda's concurrent executions",
        "Agents that are launched by one pass and boot within the spread of the simulated world (0.75 to 1.35 times three minutes) ask "
        "register_agent; beyond the executions that are free Lambda answers 429, and the agent asks again as its script does. The time is "
        "from an agent's first ask to its answer. Fresh accounts allow 10 executions, of which the schedule takes three.",
        ("agents at once", "executions free", "one registration lasts", "median wait", "longest wait", "refused by Lambda"),
        tuple(_row(agents, free, lasts) for agents in AGENTS for lasts in LASTS_SECONDS for free in EXECUTIONS),
    )


@dataclass(slots=True)
class _Lambda:
    """A function with few executions."""

    fleet: InMemory
    ask: Ask
    free: int
    lasts_seconds: float
    refused: int = 0
    first_asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)

    def __call__(self, machine: Machine, connected: tuple[str, ...]) -> IdentityAnswer:
        """Answer, or refuse where no execution is free."""
        timeline = self.fleet.world.timeline
        self.first_asked.setdefault(machine.id, timeline.now)
        if not self.free:
            self.refused += 1
            return IdentityAnswer(status=_THROTTLED)
        self.free -= 1
        timeline.after(self.lasts_seconds, self._is_free)
        told = self.ask(machine, connected)
        self.answered.setdefault(machine.id, timeline.now + self.lasts_seconds)
        return told

    def _is_free(self) -> None:
        self.free += 1


def _row(agents: int, free: int, lasts_seconds: float) -> tuple[str, ...]:
    asked = _burst(agents, free, lasts_seconds)
    waits = [asked.answered[instance_id] - at for instance_id, at in asked.first_asked.items()]
    if len(waits) < agents:
        raise RuntimeError(f"{len(waits)} of {agents} agents were answered within {_PATIENCE_SECONDS:g} s")
    return str(agents), str(free), seconds(lasts_seconds), seconds(median(waits)), seconds(max(waits)), str(asked.refused)


def _burst(agents: int, free: int, lasts_seconds: float) -> _Lambda:
    fleet = _fleet(agents)
    memory = InMemory(build_world(fleet, start_at=_START, seed=1), fleet)
    asked = _Lambda(memory, ask_pass(lambda: memory.ports, lambda: fleet), free, lasts_seconds)
    memory.agents = Agents(memory.world, asked)
    memory.scale_up()
    memory.world.move_to(_START + _PATIENCE_SECONDS)
    return asked


def _fleet(agents: int) -> Fleet:
    pool = {"executors": 1, "launch_template": "t", "instance_types": ["c5.4xlarge"], "platform": "linux"}
    raw = {
        "fleet": "burst",
        "limits": {"max_agents": agents, "max_launches_per_hour": 100_000, "max_usd_per_hour": 1e6, "max_usd_per_month": 1e7},
        "controllers": {"main": {"url": "http://jenkins.invalid/"}},
        "pools": {"cpu": pool | {"max_agents": agents, "min_agents": agents}},
    }
    return check(raw, "burst").domain()
