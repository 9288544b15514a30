"""What agents told last of their machines, for people: how much is left, and how old that is."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from autoscaler.domain.facts.telemetry import SHORT, Telemetry
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import duration, size

# So much less than now was available in between that it is worth a word.
_MUCH_LESS = 0.9
# A healthy machine swaps a little.
_SWAPPED = 0.01

Reports = Mapping[str, Telemetry]  # by machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a machine told last. ``memory_soon``: what will be available in three minutes where it falls, else what is."""

    age_seconds: float
    memory_available: float
    memory_soon: float
    memory_total: float
    memory_least: float | None
    swap_used: float | None
    disk_free: float | None
    gpu_memory_free: float | None
    gpu_percent: float | None
    cpu_mean: float | None
    cores: float

    def text(self) -> str:
        """Say it in one line."""
        falls = f", {size(self.memory_soon)} in 3 min as it falls" if self.memory_soon < self.memory_available else ""
        least = self.memory_available if self.memory_least is None else self.memory_least
        swapped = self.swap_used or 0.0
        parts = [
            f"{size(self.memory_available)} of {size(self.memory_total)} memory available{falls}",
            f"{size(least)} at the least" if least < _MUCH_LESS * self.memory_available else "",
            f"{size(swapped)} swapped" if swapped > _SWAPPED * self.memory_total else "",
            f"disk {size(self.disk_free)} free" if self.disk_free is not None else "",
            f"GPU {size(self.gpu_memory_free)} free, {self.gpu_percent:.0f} % busy" if self.gpu_memory_free is not None else "",
            f"{self.cpu_mean:.1f} of {self.cores:g} cores used" if self.cpu_mean is not None else "",
        ]
        return f"{', '.join(filter(None, parts))}; told {duration(self.age_seconds)} ago"


def figures_of(report: Telemetry | None, now: float) -> Figures | None:
    """Return the figures of a report, however old; None where there is none."""
    if report is None:
        return None
    return Figures(
        age_seconds=max(0.0, now - report.told_at),
        memory_available=report.memory_available,
        memory_soon=report.memory_soon,
        memory_total=report.memory_total,
        memory_least=report.memory_least,
        swap_used=report.swap_used,
        disk_free=report.disk_free,
        gpu_memory_free=report.gpu_memory_free,
        gpu_percent=report.gpu_percent,
        cpu_mean=report.cpu_mean,
        cores=report.cores,
    )


def told_short(situation: Situation, pool: PoolView, reports: Reports) -> Iterator[str]:
    """Say which agents of a pool are short of memory or disk now."""
    for agent, report in _fresh(situation, pool.agents, reports):
        name = agent.record.node or agent.record.instance_id
        if report.memory_soon < SHORT * report.memory_total:
            yield f"{name} is short of memory: {size(report.memory_soon)} of {size(report.memory_total)} available"
        if report.is_short_of_disk:
            yield f"{name} is short of disk: {size(report.disk_free or 0.0)} free"


def told_of(situation: Situation, subject: str, reports: Reports) -> Iterator[str]:
    """Say what an agent told last, and what its builds use."""
    for agent in situation.agents:
        record = agent.record
        if subject not in {record.node, record.instance_id}:
            continue
        report = reports.get(record.machine)
        if report is None:
            yield "its service tells nothing of the machine: it is of an older version, or has not asked yet"
            continue
        figures = figures_of(report, situation.now)
        yield figures.text() if figures else ""
        running = {build.key: build.job for build in agent.node.builds} if agent.node else {}
        for use in report.builds:
            if job := running.get(use.key):
                gpu = f", {size(use.gpu_memory)} of a GPU" if use.gpu else ""
                how = "" if use.alone else ", by its own processes, beside others"
                yield f"{job} has used {size(use.memory)} memory and {use.cpu / max(1.0, use.seconds):.1f} cores{gpu}{how}"


def silent(situation: Situation, reports: Reports, settled_seconds: float) -> tuple[list[str], int]:
    """Name the connected agents that tell nothing, and count all that should: those that have been there for some time."""
    due = [
        agent
        for agent in situation.agents
        if agent.node and not agent.node.offline and situation.now - (agent.record.registered_at or situation.now) > settled_seconds
    ]
    telling = {agent.record.instance_id for agent, _ in _fresh(situation, due, reports)}
    return [agent.record.node or agent.record.instance_id for agent in due if agent.record.instance_id not in telling], len(due)


def _fresh(situation: Situation, agents: Iterable[Agent], reports: Reports) -> Iterator[tuple[Agent, Telemetry]]:
    for agent in agents:
        if (report := reports.get(agent.record.machine)) and report.is_fresh(situation.now):
            yield agent, report
