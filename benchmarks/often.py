"""Looking more often than once a minute: what it brings on a real day, and what it costs."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from statistics import mean
from typing import Any

from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, load_trace
from benchmarks.figures import Figures, seconds

INTERVALS = (60, 30, 15, 5)
_SEEDS = (1, 2)
_MATURITIES = (120, 30)
_HOURS = 24.0

# List prices of us-west-2, arm64, November 2026: https://aws.amazon.com/lambda/pricing/, /cloudwatch/pricing/, /dynamodb/pricing/on-demand/
_GB_SECOND_USD, _REQUEST_USD, _PUT_METRICS_USD, _READ_UNIT_USD = 0.0000133334, 0.2e-6, 0.01e-3, 0.125e-6
_GB, _MINUTES_A_MONTH, _FUNCTIONS = 0.5, 60 * 730, 3
_LOOK_SECONDS = 2.0  # what one look is taken to last, network included
_STATE_READ_UNITS = 25  # 100 KB of state, read consistently


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
        "Looking several times a minute: what it costs",
        f"Dollars a month at list price for {_FUNCTIONS} functions of {_GB:g} GB (arm64), a look of {_LOOK_SECONDS:g} s, 100 KB of state; "
        "the free tier not counted. Waiting inside the minute is billed like working.",
        ("seconds between looks", "Lambda", "PutMetricData", "DynamoDB reads", "together", "requests to each Jenkins a minute"),
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


def _price(every: int) -> tuple[str, ...]:
    looks = 60 // every
    billed = (looks - 1) * every + _LOOK_SECONDS
    computing = _FUNCTIONS * _MINUTES_A_MONTH * (billed * _GB * _GB_SECOND_USD + _REQUEST_USD)
    metrics = _FUNCTIONS * looks * _MINUTES_A_MONTH * _PUT_METRICS_USD
    reads = _FUNCTIONS * looks * _MINUTES_A_MONTH * _STATE_READ_UNITS * _READ_UNIT_USD
    dollars = [f"${value:.2f}" for value in (computing, metrics, reads, computing + metrics + reads)]
    return str(every), *dollars, str(3 * _FUNCTIONS * looks)
