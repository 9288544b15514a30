"""Plays a workload on pools that are sized by what its jobs need: with weights, and with pools of their own for jobs of alike needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from autoscaler.config import FleetSettings, check
from autoscaler.domain.wording import counted, dollars, duration
from autoscaler.errors import ConfigError
from autoscaler_workbench.experiment.compare import Row
from autoscaler_workbench.experiment.sizing import JobNeed, size_pool, split_pool, without_gpu
from autoscaler_workbench.simulate.traces import Trace

Raw = dict[str, Any]
Play = Callable[[str, FleetSettings, Trace], Row]


class _Quantiles(BaseModel):
    p50: float
    p95: float


class _Entry(BaseModel):
    """One line of ``autoscaler needs --json``."""

    job: str
    signature: str
    pool: str
    hours: float
    memory: _Quantiles
    cores: _Quantiles
    gpu_used: float | None


class _Answer(BaseModel):
    needs: list[_Entry]


_NEEDS = TypeAdapter(list[JobNeed])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A fleet that is sized by needs, the label that each job has to ask for, where it is another, and what it costs."""

    name: str
    fleet: Raw
    what: tuple[str, ...]  # a line for each pool
    row: Row
    labels: Mapping[str, str] = field(default_factory=dict)


def read_needs(file: Path) -> list[JobNeed]:
    """Read what ``autoscaler needs --json`` printed, or a list in the form of `JobNeed`; `ConfigError`."""
    try:
        text = file.read_bytes()
        if text.lstrip().startswith(b"{"):
            return [_need(entry) for entry in _Answer.model_validate_json(text).needs if not entry.signature]
        return _NEEDS.validate_json(text)
    except OSError as error:
        raise ConfigError(f"--needs ({file}): cannot be read ({error.strerror})") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"--needs ({file}): {place}: {first['msg']}; it must be what autoscaler needs --json prints") from error


def _need(entry: _Entry) -> JobNeed:
    used = None if entry.gpu_used is None else entry.gpu_used > 0
    gib, cores = entry.memory.p95 / 2**30, entry.cores.p50
    return JobNeed(job=entry.job, pool=entry.pool, memory_gib=gib, cores=cores, hours=entry.hours, uses_gpu=used)


def size_by_needs(present: FleetSettings, trace: Trace, needs: Sequence[JobNeed], play: Play) -> list[Sized]:
    """Size each pool of which needs are known, in both ways, and play both; nothing where nothing would change."""
    raw: Raw = present.model_dump(mode="json", exclude_unset=True)
    found = (_by_weight(present, raw, needs), _by_pools(present, raw, needs))
    return [
        Sized(name=name, fleet=fleet, what=what, labels=labels, row=play(name, check(fleet, name), _relabelled(trace, labels)))
        for name, fleet, what, labels in found
        if what
    ]


def told_sized(sized: Sequence[Sized], before: Row) -> Iterator[str]:
    """Say what each costs against the fleet as it is, and what it takes."""
    for one in sized:
        usd, waits = dollars(one.row["usd"]), duration(one.row["wait_p95_s"])
        now, waited = dollars(before["usd"]), duration(before["wait_p95_s"])
        yield f"{one.name}.yaml: a bill of {usd} instead of {now}; 95 of 100 jobs wait at most {waits} instead of {waited}."
        yield from one.what


def told_gpus(fleet: FleetSettings, needs: Sequence[JobNeed]) -> Iterator[str]:
    """Name the jobs that keep a GPU from others and never use it."""
    for need, pool in without_gpu(fleet, needs):
        where = f"{pool} would hold it" if pool else "no pool without one would hold it"
        yield f"{need.job} never used the GPU of {need.pool}: {where}."


def _by_weight(present: FleetSettings, raw: Raw, needs: Sequence[JobNeed]) -> tuple[str, Raw, tuple[str, ...], dict[str, str]]:
    fleet, what, weights = deepcopy(raw), list[str](), dict[str, int]()
    for name, pool in present.pools.items():
        if sizing := size_pool(name, pool, needs):
            fleet["pools"][name] = _on(raw["pools"][name], sizing.instance_type, sizing.executors, raw["limits"]["max_agents"])
            weights |= {job: max(weight, weights.get(job, 1)) for job, weight in sizing.weights.items()}
            heavy = f"; {counted(len(sizing.weights), 'job')} of weight {_span(sizing.weights.values())}" if sizing.weights else ""
            what.append(f"{name}: {counted(sizing.executors, 'executor')} on {sizing.instance_type}{heavy}.")
    if what:
        fleet["weights"] = dict(sorted(weights.items())) | raw.get("weights", {})
    return "weights", fleet, tuple(what), {}


def _by_pools(present: FleetSettings, raw: Raw, needs: Sequence[JobNeed]) -> tuple[str, Raw, tuple[str, ...], dict[str, str]]:
    fleet, what, labels = deepcopy(raw), list[str](), dict[str, str]()
    for name, pool in present.pools.items():
        parts = split_pool(name, pool, needs)
        # The last is for what needs most: it keeps the pool's name and labels, so that jobs of which nothing is known are safe there.
        for number, part in enumerate(parts, 1):
            part_name = name if number == len(parts) else f"{name}-{number}"
            own = {} if part_name == name else {"labels": [part_name], "min_agents": 0, "warm_executors": 0}
            fleet["pools"][part_name] = _on(raw["pools"][name], part.instance_type, part.executors, raw["limits"]["max_agents"]) | own
            what.append(f"{part_name}: {counted(part.executors, 'executor')} on {part.instance_type}, for {_jobs(part.jobs)}.")
            labels |= {job: part_name for job in part.jobs if part_name != name}
    return "pools", fleet, tuple(what), labels


def _on(pool: Raw, instance_type: str, executors: int, at_most: int) -> Raw:
    """Put a pool on another machine; its agents may together have as many executors as before, as far as the fleet may have ``at_most``."""
    most = min(at_most, max(1, -(-pool["max_agents"] * pool["executors"] // executors)))
    kept = {key: value for key, value in pool.items() if key != "instance_requirements"}
    least = min(pool.get("min_agents", 0), most)
    return kept | {"instance_types": [instance_type], "executors": executors, "max_agents": most} | ({"min_agents": least} if least else {})


def _relabelled(trace: Trace, labels: Mapping[str, str]) -> Trace:
    return replace(trace, rows=tuple(replace(row, label=labels.get(row.job, row.label)) for row in trace.rows)) if labels else trace


def _span(weights: Sequence[int] | Any) -> str:
    least, most = min(weights), max(weights)
    return str(least) if least == most else f"{least} to {most}"


def _jobs(jobs: Sequence[str]) -> str:
    shown = ", ".join(jobs[:3])
    return shown if len(jobs) <= 3 else f"{shown} and {len(jobs) - 3} more"
