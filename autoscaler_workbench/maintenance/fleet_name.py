"""Checks, before ``make build``, that the fleet file has the name that the stack is deployed with.

The functions may launch and terminate only what carries the stack's ``FleetName``; with another name they could do nothing.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shlex import split
from typing import Any

from autoscaler.config import load_settings
from autoscaler.errors import ConfigError
from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, read_template

ROOT = Path(__file__).parents[2]
_PARAMETER = "FleetName"


def check_fleet_name(root: Path) -> None:
    """Raise `ConfigError` where samconfig.toml, or the template's default, names another fleet than the fleet file."""
    fleet = load_settings(root / "layers" / "fleet" / "fleet.yaml").fleet
    written = tomllib.loads((root / "samconfig.toml").read_text(encoding="utf-8")) if (root / "samconfig.toml").exists() else {}
    deployed = dict(_names_in(written)) or {"template.yaml (the default)": defaults_of(read_template(root / "template.yaml"))[_PARAMETER]}
    for place, name in deployed.items():
        if name != fleet:
            rule = f'write parameter_overrides = "{_PARAMETER}={fleet} ..." under [default.deploy.parameters] of samconfig.toml'
            raise ConfigError(f"{_PARAMETER} ({name}) in {place} is not the fleet file's name ({fleet}): {rule}, or change the fleet file")


def _names_in(written: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for environment, commands in written.items():
        for command, tables in commands.items() if isinstance(commands, dict) else ():
            overrides = tables.get("parameters", {}).get("parameter_overrides", "") if isinstance(tables, dict) else ""
            for word in split(overrides) if isinstance(overrides, str) else overrides:
                key, _, value = word.removeprefix("ParameterKey=").replace(",ParameterValue=", "=").partition("=")
                if key == _PARAMETER:
                    yield f"samconfig.toml ({environment}.{command})", value.strip('"')


if __name__ == "__main__":
    try:
        check_fleet_name(ROOT)
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(1)
