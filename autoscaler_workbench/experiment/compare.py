"""Compare policies: traces x policies x settings x seeds, in parallel, on this machine or wherever joblib's backend runs them.

What is done stands in ``DIR/results.csv`` at once, so a comparison that was stopped goes on where it was. ``DIR/pools.csv`` has the same
measures by pool, ``DIR/timelines.jsonl`` each run of the first seed over time.
"""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import FleetSettings, load_settings
from autoscaler.domain.facts.pools import pool_at_its_widest
from autoscaler.errors import ConfigError
from autoscaler_workbench.experiment.ablation import PARTS
from autoscaler_workbench.experiment.experiment import (
    AS_SHIPPED,
    EVERY_POLICY,
    OURS,
    POLICIES,
    STARTS,
    Experiment,
    homes,
    play,
    play_as_shipped,
    setting_text,
)
from autoscaler_workbench.experiment.lower_bounds import lower_bounds
from autoscaler_workbench.experiment.policy.perfect_forecast import forecast_trace
from autoscaler_workbench.experiment.rivals import EVERY_RIVAL
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from autoscaler_workbench.simulate.new_fleet import as_shipped
from autoscaler_workbench.simulate.traces import MXNET, Trace, judged_part, load_trace

# Beside what a new user gets, one setting of ours for every trace, and the knob that is turned for the frontier.
SHIPPED: Mapping[str, float] = {AS_SHIPPED: 0.6}
FIXED: Mapping[str, float] = {"looks_every_seconds": 5.0, "queue_maturity_seconds": 0.0, "max_idle_seconds": 28_800.0}
OUR_KNOB = ("wait_usd_per_hour", (3.0, 7.0, 60.0, 200.0))
# Of each part of the learning: the same setting without it.
WITHOUT = "without"
COLUMNS = (
    *("trace", "policy", "setting", "seed", "jobs", "finished", "killed", "usd", "wait_hours", "total_usd", "wait_mean_s", "wait_p50_s"),
    *("wait_p95_s", "wait_p99_s", "agent_hours", "utilisation", "launches", "took_s"),
)
_KEY = ("trace", "policy", "setting", "seed")
_TEXTS = {"trace", "policy", "setting", "pool"}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A trace, the fleet that it is played on (None: guessed from its labels), and which hours of it are measured."""

    file: Path
    fleet: Path | None = None
    hours: float
    skip_hours: float = 0.0
    lead_in_hours: float = 0.0
    physics: Physics = CALM

    @property
    def part(self) -> str:
        """Which hours of the file are played, for people."""
        begin, end = self.skip_hours, self.skip_hours + self.lead_in_hours + self.hours
        hours = f"hours {begin:g} to {end:g}" if begin else f"the first {end:g} h"
        return f"{hours}, of which the first {self.lead_in_hours:g} h are not measured" if self.lead_in_hours else hours


def carried_workloads(like: Workload) -> list[Workload]:
    """The bundled traces, in hours and physics like this one; the shortest is always played whole."""
    months = [replace(like, file=MXNET.parent / name, fleet=None) for name in ("linkerd_gha.csv.gz", "mxnet_jenkins.csv.gz")]
    return [replace(like, file=MXNET, fleet=EXAMPLE_FLEET, hours=min(like.hours, 113.0), skip_hours=0.0, lead_in_hours=0.0), *months]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run to do."""

    workload: Workload
    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        """Its name among the results."""
        return self.workload.file.name, self.policy, setting_text(self.settings), str(self.seed)


def entries(workloads: Iterable[Workload], policies: Sequence[str], seeds: int, *, sweep: bool) -> list[Entry]:
    """Every run of a comparison; no ``policies``: those of its fleet; ``sweep``: each at all values of its knob, else at its default."""
    for policy in policies:
        if policy not in EVERY_POLICY:
            raise ConfigError(f"--policy ({policy}): must be one of {', '.join(EVERY_POLICY)}")
    return [
        Entry(workload=workload, policy=policy, settings=settings, seed=seed)
        for workload in workloads
        for seed in range(1, seeds + 1)
        for policy in policies or _policies_of(workload)
        for settings in _settings_of(policy, sweep=sweep)
    ]


def _policies_of(workload: Workload) -> Sequence[str]:
    """All policies, those that stop instances only where the fleet may."""
    fleet = loaded(workload)[1]
    pools = (as_shipped(fleet) if _is_new(workload) else fleet).domain().pools.values()
    return EVERY_POLICY if any(pool_at_its_widest(pool).warm_pool for pool in pools) else POLICIES


def _is_new(workload: Workload) -> bool:
    """Whether no operator wrote the fleet's file."""
    return workload.fleet in {None, EXAMPLE_FLEET}


def compare(todo: Sequence[Entry], out: Path, *, jobs: int) -> Iterator[tuple[int, int]]:
    """Play the runs that are missing; yield how many of how many are done. `ConfigError` where ``out`` holds another comparison."""
    _claim(out, todo)
    _write_bounds(out, {entry.workload for entry in todo})
    done = {tuple(str(row[name]) for name in _KEY) for row in read_rows(out / "results.csv")}
    left = [entry for entry in todo if entry.key not in done]
    count = len(todo) - len(left)
    yield count, len(todo)
    for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(play_entry)(entry) for entry in left):
        append_row(out, row)
        count += 1
        yield count, len(todo)


def play_entry(entry: Entry) -> Row:
    """Play one run, anywhere."""
    trace, fleet = loaded(entry.workload)
    experiment = Experiment(trace=trace, fleet=fleet, hours=entry.workload.hours, physics=entry.workload.physics)
    experiment = replace(experiment, policy=entry.policy, settings=entry.settings, seed=entry.seed)
    if AS_SHIPPED in entry.settings:
        return play_as_shipped(experiment, entry.settings[AS_SHIPPED], new_fleet=_is_new(entry.workload))
    return play(experiment)


def read_rows(file: Path) -> list[Row]:
    """Read rows that were written; numbers are numbers again."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return [{name: value if name in _TEXTS else _number(value) for name, value in row.items()} for row in csv.DictReader(lines)]


@lru_cache(maxsize=4)
def loaded(workload: Workload) -> tuple[Trace, FleetSettings]:
    """Read the part of a trace that is played, and its fleet."""
    trace = load_trace(workload.file, hours=workload.hours, skip_hours=workload.skip_hours, lead_in_hours=workload.lead_in_hours)
    return trace, _played(workload.fleet) if workload.fleet else fleet_for(trace)


def _played(file: Path) -> FleetSettings:
    """Read a fleet file; `ConfigError` where it has what nobody can play whom we compare with."""
    settings = load_settings(file)
    if settings.hosts:
        raise ConfigError(
            f"{file}: hosts ({', '.join(settings.hosts)}): only what is launched can be compared, take them and their pools out"
        )
    return settings


def _settings_of(policy: str, *, sweep: bool) -> list[dict[str, Any]]:
    if policy == OURS:
        shipped = [{AS_SHIPPED: start} for start in STARTS]
        turned = [dict(FIXED) | {OUR_KNOB[0]: value} for value in OUR_KNOB[1]] if sweep else []
        ablated = [dict(FIXED) | {WITHOUT: part} for part in PARTS] if sweep else []
        return [*shipped, dict(FIXED), *turned, *ablated]
    knob, values = EVERY_RIVAL[policy].KNOB
    default = getattr(EVERY_RIVAL[policy].of({}, 1), knob)
    return [{}, *({knob: value} for value in values if sweep and value != default)]


def _claim(out: Path, todo: Sequence[Entry]) -> None:
    """A directory holds one comparison: the same traces and fleets, hour for hour."""
    workloads = {entry.workload for entry in todo}
    mine = {w.file.name: _identity(w) for w in workloads}
    file = out / "comparison.json"
    if file.exists():
        theirs = json.loads(file.read_text(encoding="utf-8"))
        different = [name for name in mine if name in theirs and theirs[name] != mine[name]]
        if different:
            raise ConfigError(
                f"--out ({out}): holds results of another {different[0]} (other content, fleet, hours or physics); choose another directory"
            )
        mine = theirs | mine
    file.write_text(json.dumps(mine, indent=1), encoding="utf-8")


def _identity(workload: Workload) -> list[Any]:
    fleet = _print_of(workload.fleet) if workload.fleet else "guessed"
    return [_print_of(workload.file), fleet, workload.hours, workload.skip_hours, workload.lead_in_hours, workload.physics.told()]


def _write_bounds(out: Path, workloads: Iterable[Workload]) -> None:
    """Write the lower bounds of each trace."""
    file = out / "bounds.csv"
    known = {row["trace"] for row in read_rows(file)}
    for workload in sorted(workloads, key=lambda workload: workload.file.name):
        if workload.file.name not in known:
            trace, settings = loaded(workload)
            fleet = settings.domain()
            _write(file, {"trace": trace.name} | lower_bounds(forecast_trace(judged_part(trace), homes(trace, fleet)), fleet))


def _print_of(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error


def append_row(out: Path, row: Row) -> None:
    """Add a run to the results of a directory."""
    row = dict(row)
    pools, line = row.pop("pools"), row.pop("timeline")
    key = {name: row[name] for name in _KEY}
    for pool, measures in pools.items():
        _write(out / "pools.csv", key | {"pool": pool} | measures)
    if row["seed"] == 1:
        with (out / "timelines.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(key | {"points": line}) + "\n")
    # Last: what stands in the results is done.
    _write(out / "results.csv", {name: row[name] for name in COLUMNS} | row)


def _write(file: Path, row: Row) -> None:
    fresh = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(row))
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def _number(text: str) -> float | int:
    return float(text) if "." in text or "e" in text else int(text)
