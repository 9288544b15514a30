"""Reads an agent's report about its machine. Anybody may have written it: it is bounded and checked, and nonsense is dropped."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from autoscaler.domain.facts.telemetry import MOST_BUILDS, MOST_GPUS, BuildUse, GpuUse, Telemetry, out_of_bounds
from autoscaler.domain.wording import shortened
from autoscaler.errors import ConfigError

_Amount = Annotated[float, Field(allow_inf_nan=False, strict=True)]  # its bounds: telemetry_bounds.py
_Name = Annotated[str, StringConstraints(max_length=200)]
_Path = Annotated[str, StringConstraints(max_length=300, pattern=r"^job/")]
_Short = Annotated[str, StringConstraints(max_length=40)]


class _Model(BaseModel):
    """A newer agent may tell more."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Gpu(_Model):
    memory: _Amount
    used: _Amount
    use: _Amount = 0.0


class _Build(_Model):
    node: _Name
    executor: _Short
    run: _Path
    seconds: _Amount
    memory: _Amount
    cpu: _Amount
    gpu_memory: _Amount = 0.0
    gpu: bool = False
    alone: bool = False


class _Report(_Model):
    seconds: _Amount
    cores: _Amount
    memory_total: _Amount
    memory_available: _Amount
    memory_least: _Amount | None = None
    memory_ahead: _Amount | None = None
    swap_used: _Amount | None = None
    cpu_mean: _Amount | None = None
    sent: _Amount | None = None
    root_free: _Amount | None = None
    root_total: _Amount | None = None
    work_free: _Amount | None = None
    work_total: _Amount | None = None
    gpus: Annotated[tuple[_Gpu, ...], Field(max_length=MOST_GPUS, fail_fast=True)] = ()
    builds: Annotated[tuple[_Build, ...], Field(max_length=MOST_BUILDS, fail_fast=True)] = ()


def read_telemetry(said: Any) -> Telemetry:
    """Check one report; `ConfigError` in one line, which never holds what was sent."""
    try:
        report = _Report.model_validate(said)
    except ValidationError as error:
        [first, *_] = error.errors(include_input=False, include_url=False)
        place = shortened(".".join(str(part) for part in first["loc"]))
        raise ConfigError(f"telemetry {place}: {first['msg'][:200]}") from None
    figures = report.model_dump(exclude={"gpus", "builds"})
    gpus = tuple(GpuUse(**gpu.model_dump()) for gpu in report.gpus)
    telemetry = Telemetry(**figures, gpus=gpus, builds=tuple(BuildUse(**build.model_dump()) for build in report.builds))
    if problem := out_of_bounds(telemetry):
        raise ConfigError(f"telemetry {problem}")
    return telemetry
