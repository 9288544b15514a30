"""Commands that look at a fleet file: whether it is valid, and which pools serve a label."""

import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from autoscaler.config import load_fleet, load_settings
from autoscaler.config.problems import FleetFileError
from autoscaler.config.yaml_file import located
from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.labels import LabelSyntaxError, parse
from autoscaler.domain.report.status import price_ages
from autoscaler.domain.situation.wants import explain_match
from autoscaler.domain.wording import counted, end_command
from autoscaler.errors import AutoscalerError, ConfigError, TransientError
from autoscaler_workbench.advice import billing_warnings, warnings_in
from autoscaler_workbench.cli.options import AsJson, FleetFile
from autoscaler_workbench.cli.tables import for_people
from autoscaler_workbench.cli.terminal import print_table, say, show
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (validate, match):
        app.command()(command)


def validate(
    file: Annotated[Path | None, typer.Argument(help="The fleet file; same as --fleet.")] = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    live: Annotated[bool, typer.Option("--live", help="Also check the launch templates in AWS.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a fleet file. Each error is one line: where, the key, the value, the rule. Warnings do not fail."""
    checked = load_fleet(file or fleet)
    warnings = warnings_in(file or fleet, now=time.time())
    for line in warnings:
        say(f"warning: {line}", stderr=True)
    if live:
        _validate_live(checked.launched, file or fleet, as_json=as_json)
        return
    pools = {pool.name: _pool_json(pool) for pool in checked.pools.values()}
    answer = {"fleet": checked.name, "controllers": list(checked.controllers), "pools": pools, "warnings": warnings}
    show(answer, lambda: _print_fleet(checked), as_json=as_json)


def _pool_json(pool: Pool) -> dict[str, Any]:
    prices = {offering.instance_type: offering.usd_per_hour for offering in reversed(pool.offerings)}
    first = pool.offerings[0].usd_per_hour
    return {"usd_per_hour": first, "max_agents": pool.max_agents, "instance_types": dict(reversed(prices.items()))}


def _print_fleet(fleet: Fleet) -> None:
    rows: list[tuple[Any, ...]]
    title = f"fleet {fleet.name}: valid"
    if for_people():
        rows = [(pool.name + _labels(pool, "\n  "), *_limits_of(pool, "\n")) for pool in fleet.pools.values()]
        print_table(("pool", "executors", "instance types", "$/h", "max"), rows, title=title, figures=True)
    else:
        rows = [(pool.name, " ".join(sorted(pool.labels)), *_limits_of(pool, " ")) for pool in fleet.pools.values()]
        print_table(("pool", "labels", "executors", "instance_types", "usd_per_hour", "max_agents"), rows, title=title)
    for one in price_ages(fleet, time.time()):
        say(one.told, stderr=not for_people())


def _labels(pool: Pool, gap: str) -> str:
    return "" if pool.labels == {pool.name} else f"{gap}{' '.join(sorted(pool.labels))}"


def _limits_of(pool: Pool, gap: str) -> tuple[int, str, str, int]:
    """Return a pool's executors, its instance types, the price of each, and its limit."""
    prices = _pool_json(pool)["instance_types"]
    # Reserved machines cost nothing more, and their month is paid for.
    usd = "reserved" if pool.capacity else gap.join(f"{usd:.3f}" for usd in prices.values())
    return pool.executors, gap.join(prices), usd, pool.max_agents


def _validate_live(fleet: Fleet, path: Path, *, as_json: bool) -> None:
    """Name what is unsafe about the launch templates: then the exit code is 1. An image that is billed otherwise is a warning."""
    import boto3  # noqa: PLC0415 - takes longer to import than all that needs no AWS
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    from autoscaler.adapters.account import findings_of, read_templates  # noqa: PLC0415

    try:
        client, stacks, parameters = boto3.client("ec2"), boto3.client("cloudformation"), boto3.client("ssm")
    except BotoCoreError as error:
        raise ConfigError(f"AWS cannot be asked: {error}") from error
    launched, denied = _images_by_parameter(fleet, parameters)
    read = read_templates(fleet, client, launched)
    ids = {name: data.get("ImageId", "") for name, data in read.data.items() if data}
    images = {name: read.images[image] for name, image in ids.items() if image in read.images}
    findings, warnings = findings_of(fleet, read), [*denied, *_billed_otherwise(path, images)]
    warnings += _subnets_of_one_zone(fleet, client)
    others = _of_no_stack(fleet, client, stacks)
    templates = {name: f"{fleet.pools[name].launch_template} {fleet.pools[name].launch_template_version}" for name in findings}
    rows = [(name, templates[name], "\n".join(found) or "safe") for name, found in findings.items()]
    title = f"fleet {fleet.name}: launch templates"
    printed = partial(print_table, ("pool", "launch template", "finding"), rows, title=title)
    show({"fleet": fleet.name, "findings": findings, "others": others, "warnings": warnings}, printed, as_json=as_json)
    for line in (*warnings, *others):
        say(f"warning: {line}", stderr=True)
    if any(findings.values()):
        sys.exit(1)


def _images_by_parameter(fleet: Fleet, parameters: Any) -> tuple[dict[str, str], list[str]]:
    """Return the image of each pool that a parameter names. A question that is denied stops nothing: the launch template's is checked."""
    from autoscaler.adapters.account import SsmImages  # noqa: PLC0415 - needs AWS

    named = {pool.name: pool.image_parameter for pool in fleet.pools.values() if pool.image_parameter}
    try:
        images = SsmImages(lambda: parameters).current(named.values())
    except AutoscalerError as error:
        return {}, [f"which images the parameters name is not known: {error}"]
    return {name: images[parameter] for name, parameter in named.items() if parameter in images}, []


def _billed_otherwise(path: Path, images: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Warn of images that AWS bills otherwise than their pools are priced, each with its place in the file."""
    problems = list(billing_warnings(load_settings(path), images))
    return list(FleetFileError(str(path), located(problems, path.read_bytes())).lines) if problems else []


def _subnets_of_one_zone(fleet: Fleet, client: Any) -> list[str]:
    """Say which subnets of a pool are in the zone of another one of it, and when they are asked for."""
    from autoscaler.adapters.aws import zones  # noqa: PLC0415 - needs AWS
    from autoscaler.control.steps.launching import told_later  # noqa: PLC0415 - with all that launches need

    subnets = sorted({offering.subnet for pool in fleet.pools.values() for offering in pool.offerings} - {""})
    zone_of = zones(client, subnets)
    later = {pool.name: told_later(pool.offerings, zone_of) for pool in fleet.pools.values()}
    return [f"pools.{name}.subnets: {told}" for name, told in later.items() if told]


def _of_no_stack(fleet: Fleet, ec2: Any, stacks: Any) -> list[str]:
    """Name instances of fleets that have no stack here, and the command that ends them. A question that is denied stops nothing."""
    from autoscaler.adapters.ec2 import instances_of_no_stack  # noqa: PLC0415 - needs AWS

    try:
        found = instances_of_no_stack(ec2, stacks, fleet.name)
    except TransientError as error:
        return [f"whether fleets without a stack have instances here is not known: {error}"]
    return [
        f"fleet {name} has no stack here, and nobody ends {counted(len(ids), 'instance')} of it; once nothing runs: {end_command(ids)}"
        for name, ids in found.items()
    ]


def match(
    expression: Annotated[str, typer.Argument(help="A Jenkins label expression, such as 'linux && !gpu'.")],
    fleet: FleetFile = EXAMPLE_FLEET,
    as_json: AsJson = False,
) -> None:
    """Show which pools serve a label expression, and why the others do not."""
    checked = load_fleet(fleet)
    try:
        parsed = parse(expression)
    except LabelSyntaxError as error:
        raise ConfigError(f"expression ({expression}): {error}") from error
    reasons = {pool.name: explain_match(pool, checked, parsed) for pool in checked.pools.values()}
    serving = [name for name, reason in reasons.items() if reason is None]
    others = {name: reason for name, reason in reasons.items() if reason is not None}
    rows = [(name, "no" if reason else "yes", reason or "") for name, reason in reasons.items()]
    printed = partial(print_table, ("pool", "serves it", "because"), rows, title=parsed.name)
    show({"expression": parsed.name, "pools": serving, "others": others}, printed, as_json=as_json)
