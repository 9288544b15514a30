"""Time-lines: a fleet in memory, minute by minute."""

from dataclasses import replace
from typing import Any

from autoscaler.control import operate, passes
from autoscaler.domain.facts import orders
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.simulate.drive import InMemory, failed_steps

MINUTE = 60.0


class Day:
    """A fleet in memory whose functions run once a minute."""

    def __init__(self, fleet: InMemory, *, by_adapters: bool = False) -> None:
        """``by_adapters``: read the world through the adapters, which takes longer; for tests of connections, accounts and permissions."""
        if not by_adapters:
            fleet.read_in_process(keeps_looks=False)
        self.fleet, self._by_adapters = fleet, by_adapters
        self.world = fleet.world
        self.jenkins = fleet.world.controllers["main"]
        self.failed = 0

    def minutes(self, count: int) -> "Day":
        for _ in range(count):
            self.world.move_to(self.world.timeline.now + MINUTE)
            self.fleet.publish_metrics()
            self.failed += failed_steps(self.fleet.scale_up()) + failed_steps(self.fleet.scale_down())
        return self

    def hours(self, count: float) -> "Day":
        """Let hours pass with a look every three minutes, which is no gap: a third of the time for what takes days."""
        for _ in range(round(count * 20)):
            self.world.move_to(self.world.timeline.now + 2 * MINUTE)
            self.minutes(1)
        return self

    def queue(self, count: int, label: str = "cpu", seconds: float = 600.0, **facts) -> list[Build]:
        return [self.jenkins.submit(f"job-{n}", label, seconds, **facts) for n in range(count)]

    def agents(self, pool: str | None = None) -> int:
        return sum(pool in {None, instance.tags["autoscaler:pool"]} for instance in self.world.alive())

    def nodes(self) -> list[str]:
        return [name for name in self.jenkins.nodes if not name.startswith("autoscaler-beacon")]

    @property
    def _ports(self) -> Any:
        """What a person's questions and orders go through; of controllers that are in the fleet file now, unless it is the adapters."""
        return self.fleet.ports if self._by_adapters else self.fleet.ports_of("operate")

    def why(self, subject: str) -> list[str]:
        """What `autoscaler why` answers a person now."""
        return operate.why(self._ports, self.fleet.fleet, self.fleet.invocation(), subject)

    def status(self) -> Any:
        """What `autoscaler status` shows a person now."""
        return operate.status(self._ports, self.fleet.fleet, self.fleet.invocation())

    def order(self, order: Any, *, by_a_person: bool = False) -> list:
        """Carry out an order now."""
        invocation = replace(self.fleet.invocation(), by_a_person=by_a_person)
        return passes.carry_out(self._ports, self.fleet.fleet, invocation, order)

    def hold(self, **facts: Any) -> None:
        """Hold something as ada asks for it, until somebody resumes it; the schedule does the rest."""
        given = {"since_at": self.world.timeline.now, "until_at": None, "by": "ada", "reason": "upgrade"} | facts
        overrides = self.fleet.state.read().overrides
        self.fleet.state.save_overrides(orders.hold(overrides, orders.Hold(**given)))

    def lift(self, order: Any) -> None:
        """End a hold, as a person asks for it."""
        operate.lift(self._ports, self.fleet.fleet, self.fleet.invocation(), order)

    def done(self, kind: type) -> list:
        results = (result for report in self.fleet.reports for result in report.results)
        return [result.step for result in results if isinstance(result.step, kind) and result.outcome == "done"]
