"""``--set KEY=VALUE`` and ``--physics KEY=VALUE``: some settings changed, of a fleet file or of the world."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from autoscaler.config import FleetFileError, FleetSettings, check, load_settings
from autoscaler.config.yaml_file import parse
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.physics import Physics

PHYSICS = tuple(field.name for field in fields(Physics))


def load_with(path: Path, assignments: Iterable[str]) -> FleetSettings:
    """Read a fleet file; ``KEY=VALUE`` changes ``defaults.KEY``, ``POOL.KEY=VALUE`` that pool's. `ConfigError` names what is wrong."""
    settings = load_settings(path)
    raw: dict[str, Any] = settings.model_dump(mode="json", exclude_unset=True)
    for name, value in read_assignments(assignments, "--set", "KEY=VALUE or POOL.KEY=VALUE").items():
        pool, _, key = name.rpartition(".")
        if pool and pool not in settings.pools:
            raise ConfigError(f"--set {name}={value}: {pool} is not one of the pools ({', '.join(settings.pools)})")
        place = raw["pools"][pool] if pool else raw.setdefault("defaults", {})
        place[key] = value
    return check(raw, "--set" if assignments else str(path))


def read_assignments(assignments: Iterable[str], option: str, rule: str = "KEY=VALUE") -> dict[str, Any]:
    """Read ``KEY=VALUE`` as given to an option. `ConfigError` names what is wrong."""
    settings: dict[str, Any] = {}
    for assignment in assignments:
        key, sign, text = assignment.partition("=")
        if not sign:
            raise ConfigError(f"{option} {assignment}: must be {rule}")
        try:
            settings[key] = parse(text)
        except FleetFileError as error:
            raise ConfigError(f"{option} {assignment}: {error}") from error
    return settings


def physics_of(settings: dict[str, Any]) -> Physics:
    """Check changed physics. `ConfigError` names the key, the value and the rule."""
    unknown = next((key for key in settings if key not in PHYSICS), None)
    if unknown is not None:
        raise ConfigError(f"--physics {unknown}={settings[unknown]}: is none of {', '.join(PHYSICS)}")
    try:
        return TypeAdapter(Physics).validate_python(settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        where = f"{key}={settings[key]}" if key in settings else " ".join(f"{name}={value}" for name, value in settings.items())
        raise ConfigError(f"--physics {where}: {first['msg'].removeprefix('Value error, ')}") from error
