"""Play a run, and tell what each pass decided. Steps have the names of the corpus.

What the oracle knows of the project's own names stands here and in `runs`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autoscaler.control.outcomes import Report
from autoscaler.domain.facts.plan import Step
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended
from autoscaler_workbench.simulate.drive import InMemory
from autoscaler_workbench.simulate.result import dollars, wait_of
from corpus.neutral import KINDS
from oracle.hours import Hour, hour_of

_MINUTES = 60


@dataclass(slots=True)
class Teller:
    """Tells what was decided, in words that stay.

    What the world numbers by itself is named in the order in which a run first speaks of it; what is held back is told when it begins.
    """

    named: dict[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()

    def tell(self, reports: Iterable[Report]) -> list[str]:
        """A line for each step, and for whatever is newly held back: kind, controller, pool, target, count, reason."""
        reports = list(reports)
        held = frozenset(f"held {h.controller or '-'} {h.pool or '-'} - 1 {h.reason}" for report in reports for h in report.plan.held)
        new, self.held = sorted(held - self.held), held
        return [self._step(step) for report in reports for step in report.plan.steps] + new

    def _step(self, step: Step) -> str:
        facts: dict[str, Any] = {name: getattr(step, name, None) for name in ("pool", "instance_id", "node", "item", "count")}
        target = self._name(facts["instance_id"] or facts["node"] or str(facts["item"] or ""))
        return f"{KINDS[type(step)]} {step.controller or '-'} {facts['pool'] or '-'} {target} {facts['count'] or 1} {step.reason}"

    def _name(self, target: str) -> str:
        return self.named.setdefault(target, f"#{len(self.named) + 1}") if target else "-"


def play(fleet: InMemory, builds: Callable[[], Iterable[Build]], hours: int) -> Iterator[Hour]:
    """Look once a minute for so many hours."""
    teller = Teller()
    begin = fleet.world.timeline.now
    for hour in range(hours):
        lines: list[str] = []
        for minute in range(_MINUTES):
            fleet.world.move_to(begin + (hour * _MINUTES + minute) * 60.0)
            lines += [f"{minute:02} {line}" for line in _look(fleet, teller)]
        yield hour_of(lines, totals(fleet, builds()))


def totals(fleet: InMemory, builds: Iterable[Build]) -> str:
    """What the run has come to, counted from the world."""
    builds = list(builds)
    waited = sum(wait_of(build) for build in builds if build.started_at is not None)
    ended = sum(build.ended is Ended.FINISHED for build in builds)
    launched = len(fleet.world.ec2.instances)
    return f"usd={dollars(fleet.world):.4f} waited={waited:.0f}s queued={len(builds)} finished={ended} launched={launched}"


def _look(fleet: InMemory, teller: Teller) -> list[str]:
    for function in (fleet.publish_metrics, fleet.scale_up, fleet.scale_down):
        try:
            function()
        except AutoscalerError:
            continue  # as in production: this pass did nothing more, the next one repairs
    lines = teller.tell(fleet.reports)
    fleet.reports.clear()
    fleet.logged.clear()
    fleet.metrics.published.clear()
    return lines
