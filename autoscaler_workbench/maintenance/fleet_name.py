"""Checks, before ``make build``, the fleet file, and that it fits what the stack is deployed with; the first time writes that.

The functions may launch and terminate only what carries the stack's ``FleetName``, and read only secrets whose names begin with its
``ControllerSecretPrefix``; with others they could do nothing.
"""

import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shlex import split
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from autoscaler.adapters.account import read_ways
from autoscaler.config import FleetFileError, load_fleet, load_settings
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler_workbench.advice import SECRET_PREFIX, readable, warnings_in

ROOT = Path(__file__).parents[2]
_PARAMETER, _PREFIX, _PUBLIC_IP = "FleetName", "ControllerSecretPrefix", "AgentPublicIp"
# A machine without a network or credentials builds, too: AWS is asked once, and not for long.
_QUICK = Config(connect_timeout=3, read_timeout=5, retries={"total_max_attempts": 1})
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
# {fleet} is the fleet file's name: make build refuses another one. Add AlarmEmail=you@example.org, to which alarms are sent.
parameter_overrides = "{parameter}={fleet} {public_ip}={public}"
"""


def write_first(root: Path, file: Path, connect: Callable[[], Any]) -> Iterator[str]:
    """Write samconfig.toml if there is none; say what it answers for agents' addresses, and by what."""
    written = root / "samconfig.toml"
    if written.exists():
        return
    fleet = load_fleet(file)
    subnets = {offering.subnet for pool in fleet.pools.values() for offering in pool.offerings} - {""}
    public, reason = _public_addresses(subnets, connect)
    yield f"samconfig.toml: {_PUBLIC_IP}={public}: {reason}"
    text = _FIRST.format(parameter=_PARAMETER, fleet=fleet.name, public_ip=_PUBLIC_IP, public=public)
    written.write_text(text, encoding="utf-8")


def _public_addresses(subnets: set[str], connect: Callable[[], Any]) -> tuple[str, str]:
    """Find whether agents in these subnets need public addresses; true if nobody can tell, since without they might reach nothing."""
    if not subnets:
        return "true", "the pools name no subnets, and an account's default ones lead out through an internet gateway"
    try:
        ways = read_ways(connect(), subnets)
    except (AutoscalerError, BotoCoreError) as error:
        return "true", f"AWS could not be asked ({error}); if the pools' subnets lead out through a NAT, write false"
    public = sorted(subnet for subnet, way in ways.items() if way.needs_address)
    if public:
        return "true", f"{', '.join(public)} {'lead' if len(public) > 1 else 'leads'} out through an internet gateway"
    if subnets <= ways.keys():
        return "false", f"{', '.join(sorted(ways))}: no way out through an internet gateway"
    return "true", f"EC2 knows no {', '.join(sorted(subnets - ways.keys()))}; if the pools' subnets lead out through a NAT, write false"


def check_fleet_name(root: Path, file: Path) -> None:
    """Raise `ConfigError` where samconfig.toml deploys another fleet than the file's."""
    fleet = load_fleet(file).name
    written = root / "samconfig.toml"
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
        for answer in write_first(ROOT, Path(sys.argv[1]), partial(boto3.client, "ec2", config=_QUICK)):
            print(answer, file=sys.stderr)  # noqa: T201
        check_fleet_name(ROOT, Path(sys.argv[1]))
        check_images(ROOT)
        for warning in check_secrets(ROOT, Path(sys.argv[1]), time.time()):  # noqa: TID251 - a tool of a build
            print(f"warning: {warning}", file=sys.stderr)  # noqa: T201
    except ConfigError as error:
        print("\n".join(error.lines if isinstance(error, FleetFileError) else [str(error)]), file=sys.stderr)  # noqa: T201
        sys.exit(1)
