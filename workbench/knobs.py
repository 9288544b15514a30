"""``--set KEY=VALUE``: a fleet file with some settings changed, checked as if they stood there."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from autoscaler.config import FleetSettings, check, load_settings
from autoscaler.errors import ConfigError


def load_with(path: Path, assignments: Iterable[str]) -> FleetSettings:
    """Read a fleet file; ``KEY=VALUE`` changes ``defaults.KEY``, ``POOL.KEY=VALUE`` that pool's. `ConfigError` names what is wrong."""
    settings = load_settings(path)
    raw: dict[str, Any] = settings.model_dump(mode="json", exclude_unset=True)
    for assignment in assignments:
        name, sign, text = assignment.partition("=")
        if not sign:
            raise ConfigError(f"--set {assignment}: must be KEY=VALUE or POOL.KEY=VALUE")
        pool, _, key = name.rpartition(".")
        if pool and pool not in settings.pools:
            raise ConfigError(f"--set {assignment}: {pool} is not one of the pools ({', '.join(settings.pools)})")
        place = raw["pools"][pool] if pool else raw.setdefault("defaults", {})
        place[key] = _value(f"--set {assignment}", text)
    return check(raw, "--set" if assignments else str(path))


def read_assignments(assignments: Iterable[str], option: str) -> dict[str, Any]:
    """Read ``KEY=VALUE`` as given to an option. `ConfigError` names what is wrong."""
    settings: dict[str, Any] = {}
    for assignment in assignments:
        key, sign, text = assignment.partition("=")
        if not sign:
            raise ConfigError(f"{option} {assignment}: must be KEY=VALUE")
        settings[key] = _value(f"{option} {assignment}", text)
    return settings


def _value(where: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: {' '.join(str(error).split())}") from error
