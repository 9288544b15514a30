"""Checks, before ``make build``, the fleet file, and that it fits what the stack is deployed with.

The functions may launch and terminate only what carries the stack's ``FleetName``, and read only secrets whose names begin with its
``ControllerSecretPrefix``; with others they could do nothing.
"""

import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shlex import split
from typing import Any

from autoscaler.config import FleetFileError, load_fleet, load_settings
from autoscaler.config.advice import SECRET_PREFIX, readable, warnings_in
from autoscaler.errors import ConfigError

ROOT = Path(__file__).parents[2]
_PARAMETER, _PREFIX = "FleetName", "ControllerSecretPrefix"
# By parameter that asks for a launch template: the parameter of its image, whose default is an image of Linux on x86, and a name for it.
NEEDS_AN_IMAGE = {
    "Arm64Agents": ("Arm64ImageParameter", "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"),
    "MakeWindowsAgents": ("WindowsImageParameter", "/aws/service/ami-windows-latest/Windows_Server-2022-English-Full-Base"),
}
_FIRST = """# Written by the first `make build`; yours from then on. template.yaml describes each parameter.
version = 0.1

[default.deploy.parameters]
stack_name = "jenkins-autoscaler"
resolve_s3 = true
capabilities = "CAPABILITY_IAM"
confirm_changeset = true
parameter_overrides = "{parameter}={fleet}" # the fleet file's name; make build refuses another one
"""


def check_fleet_name(root: Path, file: Path) -> None:
    """Raise `ConfigError` where samconfig.toml deploys another fleet than the file's; write one where there is none."""
    fleet = load_fleet(file).name
    written = root / "samconfig.toml"
    if not written.exists():
        written.write_text(_FIRST.format(parameter=_PARAMETER, fleet=fleet), encoding="utf-8")
    deployed = dict(_values_of(_PARAMETER, tomllib.loads(written.read_text(encoding="utf-8")))) or {"samconfig.toml": "none"}
    for place, name in deployed.items():
        if name != fleet:
            rule = f'write parameter_overrides = "{_PARAMETER}={fleet} ..." under [default.deploy.parameters] of samconfig.toml'
            raise ConfigError(f"{_PARAMETER} ({name}) in {place} is not the fleet file's name ({fleet}): {rule}, or change the fleet file")


def check_images(root: Path) -> None:
    """Raise `ConfigError` where samconfig.toml asks for agents of another platform and does not name their image."""
    written = tomllib.loads((root / "samconfig.toml").read_text(encoding="utf-8"))
    for asks, (image, example) in NEEDS_AN_IMAGE.items():
        named = dict(_values_of(image, written))
        for place, answer in _values_of(asks, written):
            if answer == "yes" and place not in named:
                raise ConfigError(f"{image} in {place}: missing, and {asks} is yes: write {image}={example} beside it")


def check_secrets(root: Path, file: Path, now: float | None = None) -> list[str]:
    """Raise `ConfigError` for a secret that the deployed functions may not read; return the warnings for the file, of old prices, too."""
    written = tomllib.loads((root / "samconfig.toml").read_text(encoding="utf-8"))
    prefixes = dict(_values_of(_PREFIX, written)) or {"template.yaml (the default)": SECRET_PREFIX}
    for place, prefix in prefixes.items():
        for name, controller in load_settings(file).controllers.items():
            if controller.secret is not None and not readable(controller.secret, prefix):
                rule = f"the functions may not read it, {_PREFIX} is {prefix} in {place}: rename the secret, or set that"
                raise ConfigError(f"{file}: controllers.{name}.secret ({controller.secret}): {rule}")
    return warnings_in(file, next(iter(prefixes.values())), now)


def _values_of(parameter: str, written: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for environment, commands in written.items():
        for command, tables in commands.items() if isinstance(commands, dict) else ():
            overrides = tables.get("parameters", {}).get("parameter_overrides", "") if isinstance(tables, dict) else ""
            for word in split(overrides) if isinstance(overrides, str) else overrides:
                key, _, value = word.removeprefix("ParameterKey=").replace(",ParameterValue=", "=").partition("=")
                if key == parameter:
                    yield f"samconfig.toml ({environment}.{command})", value.strip('"')


if __name__ == "__main__":
    try:
        check_fleet_name(ROOT, Path(sys.argv[1]))
        check_images(ROOT)
        for warning in check_secrets(ROOT, Path(sys.argv[1]), time.time()):  # noqa: TID251 - a tool of a build
            print(f"warning: {warning}", file=sys.stderr)  # noqa: T201
    except ConfigError as error:
        print("\n".join(error.lines if isinstance(error, FleetFileError) else [str(error)]), file=sys.stderr)  # noqa: T201
        sys.exit(1)
