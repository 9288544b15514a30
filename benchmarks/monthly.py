"""What the autoscaler itself costs a month at each `MetricsLevel`, by the size of the fleet: counted in half an hour, at list prices."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, field
from functools import cache
from math import ceil
from pathlib import Path
from time import process_time
from typing import Any

from autoscaler.config import FleetSettings, check
from autoscaler.config.problems import read_thresholds
from autoscaler.control.outcomes import as_json
from autoscaler.domain.report.registration import POLL_SECONDS
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, made_by, read_template
from autoscaler_workbench.simulate.drive import InMemory, Progress, tick_once
from autoscaler_workbench.simulate.new_fleet import LOOK_EVERY_SECONDS
from benchmarks.figures import Figures
from benchmarks.often import looks_usd

SIZES = ((10, 2), (100, 6), (1000, 20))  # agents, pools
LEVELS = ("essential", "full")
_EXECUTORS, _JOB_SECONDS, _BUSY = 4, 1200.0, 0.7
_WARM_UP_MINUTES, _MINUTES, _MINUTES_A_MONTH = 25, 30, 60 * 730

# List prices of us-west-2, arm64, November 2026, without the free tier: https://aws.amazon.com/cloudwatch/pricing/, /lambda/pricing/,
# /dynamodb/pricing/on-demand/
_METRIC_USD, _PUT_USD, _ALARM_USD, _COMPOSITE_USD, _DASHBOARD_USD = 0.30, 0.01e-3, 0.10, 0.50, 3.00
_LOG_GB_USD, _GB_SECOND_USD, _REQUEST_USD = 0.50, 0.0000133334, 0.2e-6
_READ_USD, _WRITE_USD = 0.125e-6, 0.625e-6
_GB = 0.5
_LINE_BYTES, _INVOCATION_BYTES = 490, 420  # what the logger and CloudWatch add to a line; the three lines that Lambda writes itself
_CALLS_SECONDS, _SLOWER = 1.5, 4.0  # a look's calls; half a GB is a quarter of a core
_READS_A_MINUTE, _SAVES_A_MINUTE = 4, {"memory": 1, "learned": 1}
_SCHEDULED = 3
_POLL_SECONDS_BILLED = 0.06  # of an agent: one read by key and one write, and no call of EC2 or Jenkins
_REPORT_BYTES = 600  # of what an agent tells of itself, which publish_metrics reads once a minute, at half the price
_TEMPLATE = Path(__file__).parents[1] / "template.yaml"


@dataclass(slots=True)
class Hour:
    """What was counted, a minute."""

    metrics: int
    log_bytes: float
    lines: float
    events: float
    history_bytes: float  # of each event
    state_bytes: dict[str, int] = field(default_factory=dict)
    look_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Dollars a month."""

    metrics: float
    alarms: float
    put_metric_data: float
    logs: float
    functions: float
    state: float
    polls: float
    looks: float


def measure() -> Iterator[Figures]:
    """Count half an hour of each size at each level, and price a month of it."""
    rows = [(level, agents, pools, _count(level, agents, pools)) for level in LEVELS for agents, pools in SIZES]
    yield Figures(
        "What the autoscaler itself costs a month",
        f"Dollars at list price; without the free tier, which takes most of what the smallest fleet costs. Counted in a "
        f"simulated half hour of so many agents with {_EXECUTORS} executors each, {_BUSY:.0%} of them busy with jobs of "
        f"{_JOB_SECONDS / 60:.0f} minutes, all pools in use: metrics that were sent, lines that were logged, the state's size, and the "
        f"passes' time. A look is assumed to last {_CALLS_SECONDS:g} s for its calls, and {_SLOWER:g} times as long as the passes here. "
        f"Polls: each agent asks each {POLL_SECONDS / 60:.0f} minutes, {_POLL_SECONDS_BILLED * 1000:.0f} ms of a function, one read, "
        "one write, the lines that Lambda logs of an invocation, and the reading of its report once a "
        f"minute. Looks: those of scale_up between the minutes, every {LOOK_EVERY_SECONDS:g} s, each a third of the passes' time. Alarms: "
        "those that need no parameter.",
        (
            *("level", "agents", "pools", "metrics", "alarms", "PutMetricData", "logs", "Lambda", "DynamoDB", "polls", "looks", "together"),
            "with a dashboard",
        ),
        tuple(_row(*row) for row in rows),
    )
    yield _what_was_counted(rows)


def _what_was_counted(rows: list[tuple[str, int, int, Hour]]) -> Figures:
    return Figures(
        "What was counted",
        "A metric is a name with its dimensions; state is the packed size in DynamoDB.",
        (
            *("level", "agents", "metrics", "log lines a minute", "log KB a minute", "state, KB", "learned, KB"),
            *("history events a minute", "three passes, s"),
        ),
        tuple(
            (
                level,
                str(agents),
                str(hour.metrics),
                f"{hour.lines:.0f}",
                f"{hour.log_bytes / 1000:.1f}",
                f"{sum(hour.state_bytes.values()) / 1000:.0f}",
                f"{hour.state_bytes['learned'] / 1000:.0f}",
                f"{hour.events:.1f}",
                f"{hour.look_seconds:.2f}",
            )
            for level, agents, _, hour in rows
        ),
    )


def _row(level: str, agents: int, pools: int, hour: Hour) -> tuple[str, ...]:
    parts = astuple(bill_of(level, agents, hour))
    dollars = (*parts, sum(parts), sum(parts) + _DASHBOARD_USD)
    return level, str(agents), str(pools), *(f"${usd:.2f}" for usd in dollars)


def bill_of(level: str, agents: int, hour: Hour) -> Bill:
    """Price a month in which each minute is like those that were counted."""
    billed = _SCHEDULED * _CALLS_SECONDS + _SLOWER * hour.look_seconds
    calls = 1 if level == "essential" else _SCHEDULED
    return Bill(
        metrics=hour.metrics * _METRIC_USD,
        alarms=alarms_usd(level),
        put_metric_data=calls * _MINUTES_A_MONTH * _PUT_USD,
        logs=(hour.log_bytes + _SCHEDULED * _INVOCATION_BYTES) / 1e9 * _LOG_GB_USD * _MINUTES_A_MONTH,
        functions=(billed * _GB * _GB_SECOND_USD + _SCHEDULED * _REQUEST_USD) * _MINUTES_A_MONTH,
        state=_state_usd(level, hour) * _MINUTES_A_MONTH,
        polls=agents * _MINUTES_A_MONTH * (60.0 / POLL_SECONDS * _poll_usd() + _REPORT_BYTES / 4096 * _READ_USD / 2),
        looks=sum(looks_usd(int(LOOK_EVERY_SECONDS), billed / _SCHEDULED, sum(hour.state_bytes.values()) / 4096)),
    )


def _poll_usd() -> float:
    computing = _POLL_SECONDS_BILLED * _GB * _GB_SECOND_USD + _REQUEST_USD
    return computing + _READ_USD + _WRITE_USD + _INVOCATION_BYTES / 1e9 * _LOG_GB_USD


def _state_usd(level: str, hour: Hour) -> float:
    """Dollars a minute: the state is read by each pass, and some of it saved; at the essential level passes leave a note."""
    kept = sum(hour.state_bytes.values())
    reads = _READS_A_MINUTE * kept / 4096 * _READ_USD
    writes = sum(times * hour.state_bytes[name] / 1024 for name, times in _SAVES_A_MINUTE.items()) * _WRITE_USD
    notes = (_SCHEDULED - 1) * (_READ_USD + _WRITE_USD) if level == "essential" else 0.0
    return reads + writes + notes + _history_usd(hour)


def _history_usd(hour: Hour) -> float:
    """Dollars a minute: each event is an item of its own."""
    return hour.events * ceil(hour.history_bytes / 1024) * _WRITE_USD


def alarms_usd(level: str) -> float:
    """The template's alarms at the parameters' defaults, each metric of one with several counted."""
    usd = 0.0
    for resource in _made(level).values():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            metrics = [one for one in resource["Properties"].get("Metrics", [None]) if one is None or "MetricStat" in one]
            usd += _ALARM_USD * len(metrics)
        elif resource["Type"] == "AWS::CloudWatch::CompositeAlarm":
            usd += _COMPOSITE_USD
    return usd


@cache
def _made(level: str) -> dict[str, Any]:
    template = read_template(_TEMPLATE)
    return made_by(template, defaults_of(template) | {"FleetName": "ci", "MetricsLevel": level})


def _count(level: str, agents: int, pools: int, minutes: int = _MINUTES) -> Hour:
    settings = _fleet(agents, pools)
    world = build_world(settings.domain(), start_at=1_800_000_000.0, seed=1)
    thresholds = read_thresholds(_handed_on()) if level == "essential" else None
    functions, progress = InMemory(world, settings.domain(), thresholds=thresholds), Progress()
    began = process_time()
    for minute in range(_WARM_UP_MINUTES + minutes):
        if minute == _WARM_UP_MINUTES:
            functions.metrics.published.clear()
            functions.logged.clear()
            functions.reports.clear()
            functions.history.events.clear()
            began = process_time()
        _submit(world, minute, agents, pools)
        world.move_to(world.timeline.now + 60.0)
        tick_once(functions, progress)
    return _counted(functions, minutes, process_time() - began, of_passes=0 if thresholds else _SCALING_METRICS)


def _counted(functions: InMemory, minutes: int, spent: float, of_passes: int) -> Hour:
    events = functions.history.events
    lines = [*(facts for _, facts in functions.logged), *(line for report in functions.reports for line in _lines(as_json(report)))]
    return Hour(
        metrics=len({(datum.name, datum.dimensions) for _, datum in functions.metrics.published}) + of_passes,
        log_bytes=sum(len(json.dumps(line, default=str)) + _LINE_BYTES for line in lines) / minutes,
        lines=len(lines) / minutes,
        events=len(events) / minutes,
        history_bytes=len(json.dumps([asdict(event) for event in events])) / max(1, len(events)),
        state_bytes=_packed(functions),
        look_seconds=spent / minutes,
    )


# Heartbeats of three functions, and of what passes do: Launches, Terminations.
_SCALING_METRICS = 5


def _lines(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the log lines at the end of a pass: the pass itself, and what was held."""
    yield {"pass_id": plan["pass_id"], "function": "scale_down", "dry_run": False, "steps": 0, "held": 0}
    yield from plan["held"]


def _handed_on() -> dict[str, str]:
    """The environment of `publish_metrics` at the parameters' defaults."""
    variables = _made("essential")["PublishMetricsFunction"]["Properties"]["Environment"]["Variables"]
    return {name: str(value) for name, value in variables.items()}


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
        "passes": {name: asdict(notes) for name, notes in stored.passes.items()},
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
