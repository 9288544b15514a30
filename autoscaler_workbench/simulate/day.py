"""A recorded day: all that a run was like at any of its minutes, in one compact file that the live page shows."""

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.world import NODE_TAG
from autoscaler_workbench.simulate.recording import AgentState, HeldSpan, StepTaken
from autoscaler_workbench.simulate.result import pool_of, rate_of
from autoscaler_workbench.simulate.run import Run

DAY_FILE = "day.json.gz"
Span = tuple[float, float | None]  # from when until when; None: beyond the end


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DayLimits(_Fact):
    """The limits of the fleet."""

    max_agents: int
    max_launches_per_hour: int
    max_usd_per_hour: float
    max_usd_per_month: float


class DayPool(_Fact):
    """One pool of the fleet."""

    pool: str
    max_agents: int


class DayAgent(_Fact):
    """One agent, with each of its states from when on. ``spells``: when it was a machine that costs money, stops left out."""

    instance_id: str
    instance_type: str
    controller: str
    pool: str
    node: str
    executors: int
    usd_per_hour: float
    launched_at: float
    ended_at: float | None
    spells: tuple[Span, ...]
    states: tuple[tuple[float, AgentState], ...]


class DayBuild(_Fact):
    """One build, from the queue to its end. ``pool``: the first that serves it, or ""."""

    controller: str
    job: str
    label: str
    pool: str
    node: str
    buildable_at: float
    started_at: float | None
    ended_at: float | None


class DayAlarm(_Fact):
    """One alarm, and when it rang."""

    alarm: str
    says: str
    runbook: str
    rang: tuple[Span, ...]


class Day(_Fact):
    """One run. ``alarms`` None: its metrics were not measured, so nobody knows."""

    format: Literal["autoscaler-day-1"] = "autoscaler-day-1"
    fleet: str
    trace: str
    began_at: float
    ended_at: float
    limits: DayLimits
    pools: tuple[DayPool, ...]
    agents: tuple[DayAgent, ...]
    builds: tuple[DayBuild, ...]
    steps: tuple[StepTaken, ...]
    held: tuple[HeldSpan, ...]
    alarms: tuple[DayAlarm, ...] | None


def day_of(run: Run, alarms: Iterable[DayAlarm] | None) -> Day:
    """Put together what a run recorded, and what its world counted."""
    fleet, recording = run.world.fleet, run.recording
    return Day(
        fleet=fleet.name,
        trace=run.trace.name,
        began_at=recording.samples[0].at,
        ended_at=recording.samples[-1].at,
        limits=DayLimits(**{name: getattr(fleet.limits, name) for name in DayLimits.model_fields}),
        pools=tuple(DayPool(pool=pool.name, max_agents=pool.max_agents) for pool in fleet.pools.values()),
        agents=tuple(_agent(run, instance) for instance in run.world.ec2.instances.values()),
        builds=tuple(_build(run, build) for build in run.replay.builds if build.buildable_at <= recording.samples[-1].at),
        steps=tuple(taken for taken in recording.taken if taken.step != "forget"),
        held=tuple(recording.held),
        alarms=None if alarms is None else tuple(alarms),
    )


def write_day(day: Day, directory: Path) -> Path:
    """Write it into a directory that is there; return its path. The same run gives the same bytes."""
    file = directory / DAY_FILE
    file.write_bytes(gzip.compress(day.model_dump_json().encode(), mtime=0))
    return file


def read_day(path: Path) -> Day:
    """Read the file of a day, or the one in a directory. `ConfigError` for what is none."""
    file = path / DAY_FILE if path.is_dir() else path
    try:
        return Day.model_validate_json(gzip.decompress(file.read_bytes()))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(f"--day ({file}): is not a recorded day, which simulate and demo write as {DAY_FILE} ({error})") from error
    except OSError as error:
        raise ConfigError(f"--day ({file}): cannot be read ({error.strerror}); simulate and demo write it into --out") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "its content"
        raise ConfigError(f"--day ({file}): is not a day that this version reads: {where}: {first['msg']}") from error


def _agent(run: Run, instance: Instance) -> DayAgent:
    pool = pool_of(run.world, instance)
    return DayAgent(
        instance_id=instance.id,
        instance_type=instance.instance_type,
        controller=instance.tags.get("autoscaler:controller", ""),
        pool=pool.name,
        node=instance.tags.get(NODE_TAG, ""),
        executors=pool.executors,
        usd_per_hour=rate_of(run.world, instance),
        launched_at=instance.launched_at,
        ended_at=instance.ended_at,
        spells=tuple((spell.began_at, spell.ended_at) for spell in instance.spells),
        states=tuple(run.recording.states.get(instance.id, ())),
    )


def _build(run: Run, build: Build) -> DayBuild:
    home = run.world.home_of(build)
    return DayBuild(
        controller=build.controller,
        job=build.job,
        label=build.asks_for,
        pool=home.name if home else "",
        node=build.node or "",
        buildable_at=build.buildable_at,
        started_at=build.started_at,
        ended_at=build.ended_at,
    )
