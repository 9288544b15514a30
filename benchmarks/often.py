"""Looking more often than once a minute: what it brings on a real day, and what it costs."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import ceil
from random import Random
from statistics import mean
from typing import Any

from autoscaler.config import check
from autoscaler.control.slots import ask_for_look
from autoscaler.domain.facts.fleet import Fleet
from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.fakes.slots import InMemorySlots
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.drive import MINUTE, InMemory
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, load_trace
from benchmarks.figures import Figures, seconds

INTERVALS = (60, 30, 15, 10, 5)
_SEEDS = (1, 2)
_MATURITIES = (120, 30)
_HOURS = 24.0

# List prices of us-west-2, arm64, November 2026: https://aws.amazon.com/lambda/pricing/, /sqs/pricing/, /dynamodb/pricing/on-demand/,
# /cloudwatch/pricing/
_GB_SECOND_USD, _REQUEST_USD, _READ_USD, _WRITE_USD = 0.0000133334, 0.2e-6, 0.125e-6, 0.625e-6
_SQS_USD, _LOG_GB_USD = 0.40e-6, 0.50
_GB, _MINUTES_A_MONTH = 0.5, 60 * 730
_LOOK_SECONDS = 2.0  # what one look is taken to last, network included; a launch is asked for at its end
_STATE_READ_UNITS = 25  # 100 KB of state, read consistently
_POLLS_A_MINUTE = 15  # of Lambda at an idle queue: five at once, of 20 s each
_LOG_BYTES = 1200  # of a look: the pass, and the lines that Lambda writes itself
_MESSAGES_A_CALL = 10
_JOBS = 80


def measure() -> Iterator[Figures]:
    """Run the day at each interval, and price it."""
    with ProcessPoolExecutor() as pool:
        asked = [(every, maturity, seed) for maturity in _MATURITIES for every in INTERVALS for seed in _SEEDS]
        results = dict(zip(asked, pool.map(_day, *zip(*asked, strict=True)), strict=True))
    yield Figures(
        "Looking several times a minute: what it brings",
        f"2018-09-04 of the MXNet CI on the example fleet, in memory; means of {len(_SEEDS)} seeds. The example counts a job as demand "
        "once it has waited 120 s; in the second half of the table once it has waited 30 s.",
        ("seconds between looks", "maturity", "wait mean", "wait p95", "bill", "bill and waiting together"),
        tuple(
            _row(every, maturity, [results[every, maturity, seed] for seed in _SEEDS]) for maturity in _MATURITIES for every in INTERVALS
        ),
    )
    yield Figures(
        "Looking several times a minute: how soon an agent is asked for",
        f"{_JOBS} jobs that come at any second, each for a new agent, on pools that count a job as demand at once: from when the job is in "
        f"the queue until EC2 is asked. Messages come up to a second late, and one in fifty twice; a look lasts {_LOOK_SECONDS:g} s.",
        ("seconds between looks", "half of them", "95 of 100", "the slowest"),
        (*(_soon(str(every), _waits(every)) for every in INTERVALS), _soon("60, and a webhook", _waits(60, webhook=True))),
    )
    yield Figures(
        "Looking several times a minute: what it costs",
        f"Dollars a month at list price beside what a look a minute costs, for scale_up of {_GB:g} GB (arm64), a look of "
        f"{_LOOK_SECONDS:g} s, 100 KB of state, MetricsLevel essential; the free tier not counted.",
        ("seconds between looks", "Lambda", "SQS", "DynamoDB", "logs", "together", "requests to each Jenkins a minute"),
        tuple(_price(every) for every in INTERVALS),
    )


def _day(every: int, maturity: int, seed: int) -> dict[str, Any]:
    fleet = load_with(EXAMPLE_FLEET, [f"queue_maturity_seconds={maturity}"]).domain()
    run = prepare(load_trace(MXNET, hours=_HOURS, start_at=MXNET_DAY), fleet, hours=_HOURS, seed=seed)
    return run.result(list(in_memory(run, every=every))[-1])


def _row(every: int, maturity: int, results: list[dict[str, Any]]) -> tuple[str, ...]:
    means = {key: mean(result[key] for result in results) for key in ("wait_mean_s", "wait_p95_s", "usd", "total_usd")}
    waits = seconds(means["wait_mean_s"]), seconds(means["wait_p95_s"])
    return str(every), f"{maturity} s", *waits, f"${means['usd']:,.0f}", f"${means['total_usd']:,.0f}"


def _soon(name: str, found: Iterator[float]) -> tuple[str, ...]:
    waits = sorted(wait + _LOOK_SECONDS for wait in found)
    return name, *(f"{waits[int(share * (len(waits) - 1))]:.1f} s" for share in (0.5, 0.95, 1.0))


def _waits(every: int, *, webhook: bool = False) -> Iterator[float]:
    """Seconds from when each job is in the queue until the next launch of the real passes, woken by a queue as kind as SQS is.

    ``webhook``: the controller says so when a job is queued.
    """
    chance = Random(7)  # noqa: S311 - a simulation's chance
    fleet = _fleet()
    world = build_world(fleet, start_at=1_800_000_000.0, seed=1)
    slots = InMemorySlots(after=world.timeline.after, chance=chance, twice_share=0.02) if every < MINUTE or webhook else None
    functions = InMemory(world, fleet, look_every_seconds=every, slots=slots)
    if slots:
        slots.wake = functions.wake_scale_up
    [controller] = world.controllers.values()
    came: list[float] = []
    functions.scale_up()  # which asks for the looks of the first minute
    for number in range(_JOBS):
        at = world.timeline.now + chance.uniform(0.0, MINUTE)
        came.append(at)
        world.timeline.at(at, partial(_submit, functions if webhook else None, controller, number))
        world.move_to(world.timeline.now + MINUTE)
        functions.publish_metrics()
        functions.scale_up()
    launched = {record.pool: record.launched_at for record in functions.state.records.values()}
    yield from (launched[f"pool-{number}"] - at for number, at in enumerate(came) if f"pool-{number}" in launched)


def _submit(told: InMemory | None, controller: Controller, number: int) -> None:
    controller.submit(f"job-{number}", f"pool-{number}", 1e6)
    if told:
        ask_for_look(told.ports, told.fleet)


def _fleet() -> Fleet:
    pool = {"executors": 1, "launch_template": "t", "instance_types": ["c5.4xlarge"], "platform": "linux", "max_agents": 1}
    raw = {
        "fleet": "f",
        "limits": {"max_agents": 1000, "max_launches_per_hour": 1000, "max_usd_per_hour": 1e5, "max_usd_per_month": 1e7},
        "controllers": {"main": {"url": "http://main/"}},
        "defaults": {"queue_maturity_seconds": 0},
        "pools": {f"pool-{number}": pool for number in range(_JOBS)},
    }
    return check(raw, "often").domain()


def _price(every: int) -> tuple[str, ...]:
    parts = looks_usd(every, _LOOK_SECONDS, _STATE_READ_UNITS)
    return str(every), *(f"${value:.2f}" for value in (*parts, sum(parts))), str(9 + 3 * (60 // every - 1))


def looks_usd(every: int, look_seconds: float, state_read_units: float) -> tuple[float, float, float, float]:
    """Dollars a month beside a look a minute: Lambda, SQS, DynamoDB, logs. ``state_read_units``: 4 KB of state each."""
    more = 60 // every - 1
    looks = more * _MINUTES_A_MONTH
    computing = looks * (look_seconds * _GB * _GB_SECOND_USD + _REQUEST_USD)
    calls = (ceil(more / _MESSAGES_A_CALL) + _POLLS_A_MINUTE + more) * _MINUTES_A_MONTH if more else 0
    state = looks * ((state_read_units + 1) * _READ_USD + _WRITE_USD)  # the state, the notes of passes; the slot
    return computing, calls * _SQS_USD, state, looks * _LOG_BYTES / 1e9 * _LOG_GB_USD
