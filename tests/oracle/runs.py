"""The runs that the oracle plays: their loads, fleets and worlds. Fleets, prices and physics are the oracle's own, and stay as they are."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import yaml

from autoscaler.config import check
from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler_workbench.fakes.world.faults import Faults, failing
from autoscaler_workbench.fakes.world.physics import NodeChoice, Physics
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.drive import InProcess
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.traces import Trace, load_trace
from oracle.happenings import begin, happen
from oracle.hours import Hour, hour_of
from oracle.made_up import long_jobs, short_jobs
from oracle.play import Teller, play, totals

HERE = Path(__file__).parent
_DATA = HERE.parents[1] / "autoscaler_workbench" / "data"
_WEEK = 168.0
CALM = Physics(
    pending_from_seconds=4.0,
    pending_to_seconds=18.0,
    boot_from=0.75,
    boot_to=1.35,
    connect_from_seconds=3.0,
    connect_to_seconds=9.0,
    resume_from_seconds=1.0,
    resume_to_seconds=1.0,
    scheduling_seconds=0.0,
    node_choice=NodeChoice.HASH,
    no_capacity=0.0,
    interruptions_per_hour=0.0,
    failing_calls=0.0,
)
ROUGH = replace(CALM, no_capacity=0.05, interruptions_per_hour=0.02, failing_calls=0.01, resume_to_seconds=180.0)
_A_WINDOW = 10  # happenings that are summed up as an hour is elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of so many hours. ``kept``: whether its steps may be written down, or digests alone."""

    name: str
    hours: int
    play: Callable[[int], Iterator[Hour]]
    kept: bool = True


def runs(traces: Path | None) -> list[Run]:
    """All of them, the longest first; those of a trace that is not carried only where ``traces`` has it."""
    always = [
        Run(name="mxnet-1", hours=168, play=partial(_trace, "mxnet_stages", "mxnet", 1)),
        Run(name="mxnet-2", hours=168, play=partial(_trace, "mxnet_stages", "mxnet", 2)),
        Run(name="full", hours=168, play=partial(_made_up, long_jobs, "full", ROUGH)),
        Run(name="short", hours=168, play=partial(_made_up, short_jobs, "short", CALM)),
        Run(name="linkerd", hours=336, play=partial(_trace, "linkerd_gha", "linkerd", 1)),
        Run(name="jenkins", hours=336, play=partial(_trace, "mxnet_jenkins", "jenkins", 1)),
        Run(name="harder", hours=120, play=partial(_harder, slots=False)),
        Run(name="slots", hours=60, play=partial(_harder, slots=True)),
    ]
    vllm = traces and traces / "vllm_buildkite.csv.gz"
    if vllm is None or not vllm.exists():
        return always
    return [Run(name="vllm", hours=24, play=partial(_vllm, vllm), kept=False), *always]


def _trace(trace: str, fleet: str, seed: int, hours: int) -> Iterator[Hour]:
    loaded = load_trace(_DATA / f"{trace}.csv.gz", hours=2 * _WEEK)
    return _played(loaded, _fleet(fleet), CALM, seed, hours)


def _made_up(load: Callable[[float], Trace], fleet: str, physics: Physics, hours: int) -> Iterator[Hour]:
    return _played(load(_WEEK), _fleet(fleet), physics, 3, hours)


def _vllm(path: Path, hours: int) -> Iterator[Hour]:
    trace = load_trace(path, hours=24.0, skip_hours=8 * 24.0)
    return _played(trace, _priced(fleet_for(trace).domain()), CALM, 1, hours)


def _played(trace: Trace, fleet: Fleet, physics: Physics, seed: int, hours: int) -> Iterator[Hour]:
    world = build_world(fleet, start_at=trace.start_at, seed=seed, physics=physics)
    replay = Replay(trace, world.controllers[fleet.controllers[0]])
    functions = InProcess(world, fleet, Faults(dice=failing(physics.failing_calls, seed)))
    return play(functions, lambda: replay.builds, hours)


def _harder(hours: int, *, slots: bool) -> Iterator[Hour]:
    """Each world lives for ten hours; adapters and JSON are in between, as in production."""
    for window in range(hours):
        if window % 10 == 0:
            seed = 40 + window // 10
            machine, chance, teller = begin(seed, slots=slots), Random(seed), Teller()
        lines: list[str] = []
        for number in range(_A_WINDOW):
            happen(machine, chance)
            lines += [f"{number:02} {line}" for line in teller.tell(machine.fleet.reports)]
            machine.fleet.reports.clear()
        yield hour_of(lines, totals(machine.fleet, machine.jenkins.builds))


def _fleet(name: str) -> Fleet:
    path = HERE / "fleets" / f"{name}.yaml"
    return _priced(check(yaml.safe_load(path.read_text(encoding="utf-8")), path.name).domain())


def _priced(fleet: Fleet) -> Fleet:
    prices: dict[str, dict[str, float]] = json.loads((HERE / "prices.json").read_text(encoding="utf-8"))

    def priced(pool: Pool) -> Pool:
        offerings = (replace(o, usd_per_hour=prices[o.instance_type][f"{pool.platform} {o.market}"]) for o in pool.offerings)
        return replace(pool, offerings=tuple(offerings))

    return replace(fleet, pools={name: priced(pool) for name, pool in fleet.pools.items()})
