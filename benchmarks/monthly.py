"""What the autoscaler itself costs a month, by the size of the fleet: counted in a simulated hour, at list prices."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from autoscaler.adapters.history import EVENTS_A_DAY
from autoscaler.config import FleetSettings, check
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.report.dashboard.cloudformation import read_template
from autoscaler_workbench.simulate.drive import InMemory, Progress, tick_once
from benchmarks.figures import Figures

SIZES = ((10, 2), (100, 6), (1000, 20))  # agents, pools
_EXECUTORS, _JOB_SECONDS, _BUSY = 4, 1200.0, 0.7
_WARM_UP_MINUTES, _MINUTES, _MINUTES_A_MONTH = 25, 30, 60 * 730

# List prices of us-west-2, arm64, November 2026, without the free tier: https://aws.amazon.com/cloudwatch/pricing/, /lambda/pricing/,
# /dynamodb/pricing/on-demand/
_METRIC_USD, _PUT_USD, _ALARM_USD, _COMPOSITE_USD, _DASHBOARD_USD = 0.30, 0.01e-3, 0.10, 0.50, 3.00
_LOG_GB_USD, _GB_SECOND_USD, _REQUEST_USD = 0.50, 0.0000133334, 0.2e-6
_READ_USD, _WRITE_USD = 0.125e-6, 0.625e-6
_GB, _LINE_BYTES = 0.5, 450  # of a line with what Lambda's logger adds to it
_CALLS_SECONDS, _SLOWER = 1.5, 4.0  # a look's calls; half a GB is a quarter of a core
_READS_A_MINUTE, _SAVES_A_MINUTE = 4, {"memory": 1, "learned": 1}
_MINUTES_A_DAY = 1440


@dataclass(slots=True)
class Hour:
    """What was counted, a minute."""

    metrics: int
    lines: float
    events: float
    history_bytes: float  # packed, of each event
    state_bytes: dict[str, int] = field(default_factory=dict)
    look_seconds: float = 0.0


def measure() -> Iterator[Figures]:
    """Count an hour of each size, and price a month of it."""
    rows = [(agents, pools, _count(agents, pools)) for agents, pools in SIZES]
    yield Figures(
        "What the autoscaler itself costs a month",
        "Dollars at list price, a look a minute; without the free tier, which takes most of what the smallest fleet costs. Counted in a "
        f"simulated half hour of so many agents with {_EXECUTORS} executors each, {_BUSY:.0%} of them busy with jobs of "
        f"{_JOB_SECONDS / 60:.0f} minutes, all pools in use: metrics that were sent, lines that were logged, the state's size, and the "
        f"passes' time. A look is assumed to last {_CALLS_SECONDS:g} s for its calls, and {_SLOWER:g} times as long as the passes here.",
        ("agents", "pools", "metrics", "alarms and dashboard", "PutMetricData", "logs", "Lambda", "DynamoDB", "together"),
        tuple(_row(*row) for row in rows),
    )
    yield Figures(
        "What was counted",
        "A metric is a name with its dimensions; state is the packed size in DynamoDB.",
        ("agents", "metrics", "log lines a minute", "state, KB", "of it learned, KB", "events of the history a minute", "three passes, s"),
        tuple(
            (
                str(agents),
                str(hour.metrics),
                f"{hour.lines:.0f}",
                f"{sum(hour.state_bytes.values()) / 1000:.0f}",
                f"{hour.state_bytes['learned'] / 1000:.0f}",
                f"{hour.events:.1f}",
                f"{hour.look_seconds:.2f}",
            )
            for agents, _, hour in rows
        ),
    )


def _row(agents: int, pools: int, hour: Hour) -> tuple[str, ...]:
    billed = 3 * _CALLS_SECONDS + _SLOWER * hour.look_seconds
    kept = sum(hour.state_bytes.values())
    reads = _READS_A_MINUTE * kept / 4096 * _READ_USD
    writes = sum(times * hour.state_bytes[name] / 1024 for name, times in _SAVES_A_MINUTE.items()) * _WRITE_USD
    noted = _history_usd(hour)
    parts = (
        hour.metrics * _METRIC_USD,
        _alarms_usd(),
        3 * _MINUTES_A_MONTH * _PUT_USD,
        hour.lines * _LINE_BYTES / 1e9 * _LOG_GB_USD * _MINUTES_A_MONTH,
        (billed * _GB * _GB_SECOND_USD + 3 * _REQUEST_USD) * _MINUTES_A_MONTH,
        (reads + writes + noted) * _MINUTES_A_MONTH,
    )
    return str(agents), str(pools), *(f"${usd:.2f}" for usd in (*parts, sum(parts)))


def _history_usd(hour: Hour) -> float:
    """Dollars a minute: a pass that did something reads and writes the item of its day, which grows until midnight."""
    kept = min(EVENTS_A_DAY, hour.events * _MINUTES_A_DAY) / 2 * hour.history_bytes
    return min(1.0, hour.events) * (kept / 4096 * _READ_USD + kept / 1024 * _WRITE_USD)


def _alarms_usd() -> float:
    """The template's alarms, each metric of one with several counted; those that need a parameter are left out."""
    resources = read_template(Path(__file__).parents[1] / "template.yaml")["Resources"].values()
    usd = _DASHBOARD_USD
    for resource in resources:
        if resource["Type"] == "AWS::CloudWatch::Alarm" and "Condition" not in resource:
            metrics = [one for one in resource["Properties"].get("Metrics", [None]) if one is None or "MetricStat" in one]
            usd += _ALARM_USD * len(metrics)
        elif resource["Type"] == "AWS::CloudWatch::CompositeAlarm":
            usd += _COMPOSITE_USD
    return usd


def _count(agents: int, pools: int) -> Hour:
    settings = _fleet(agents, pools)
    world = build_world(settings.domain(), start_at=1_800_000_000.0, seed=1)
    functions, progress = InMemory(world, settings.domain()), Progress()
    began = perf_counter()
    for minute in range(_WARM_UP_MINUTES + _MINUTES):
        if minute == _WARM_UP_MINUTES:
            functions.metrics.published.clear()
            functions.logged.clear()
            functions.reports.clear()
            functions.history.events.clear()
            began = perf_counter()
        _submit(world, minute, agents, pools)
        world.move_to(world.timeline.now + 60.0)
        tick_once(functions, progress)
    spent = perf_counter() - began
    events = functions.history.events
    said = [len(report.plan.steps) + len(report.plan.held) + 1 for report in functions.reports]
    return Hour(
        metrics=len({(datum.name, datum.dimensions) for _, datum in functions.metrics.published}) + _SCALING_METRICS,
        lines=(len(functions.logged) + sum(said)) / _MINUTES + 1,
        events=len(events) / _MINUTES,
        history_bytes=len(zlib.compress(json.dumps([asdict(event) for event in events]).encode())) / max(1, len(events)),
        state_bytes=_packed(functions),
        look_seconds=spent / _MINUTES,
    )


# Heartbeats of three functions, and of what passes do: Launches, Terminations.
_SCALING_METRICS = 5


def _submit(world: World, minute: int, agents: int, pools: int) -> None:
    """As many jobs as keep the share of the executors busy, once agents are there."""
    [controller] = world.controllers.values()
    if minute < 10:
        return
    count = agents * _EXECUTORS * _BUSY * 60.0 / _JOB_SECONDS
    for number in range(int(count * (minute + 1)) - int(count * minute)):
        controller.submit(f"folder/job-{(minute * 7 + number) % (agents * 2)}", f"pool-{number % pools}", _JOB_SECONDS)


def _packed(functions: InMemory) -> dict[str, int]:
    stored = functions.state.read()
    parts: dict[str, Any] = {
        "records": [asdict(record) for record in stored.records],
        "memory": asdict(stored.memory),
        "learned": {name: asdict(learned) for name, learned in stored.learned.items()},
    }
    # Records are items of their own, not packed.
    sizes = {name: len(json.dumps(part, default=list).encode()) for name, part in parts.items() if name == "records"}
    return sizes | {name: len(zlib.compress(json.dumps(part, default=list).encode())) for name, part in parts.items() if name != "records"}


def _fleet(agents: int, pools: int) -> FleetSettings:
    pool = {"executors": _EXECUTORS, "launch_template": "t", "instance_types": ["c5.4xlarge"], "platform": "linux"}
    each = agents // pools
    raw = {
        "fleet": "f",
        "limits": {"max_agents": 2 * agents, "max_launches_per_hour": 10 * agents, "max_usd_per_hour": 1e5, "max_usd_per_month": 1e7},
        "controllers": {"main": {"url": "http://main/"}},
        "pools": {f"pool-{n}": pool | {"min_agents": each, "max_agents": 2 * each} for n in range(pools)},
    }
    return check(raw, "monthly")
