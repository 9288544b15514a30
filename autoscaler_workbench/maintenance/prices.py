"""Makes the carried tables of prices and shapes: from a wider file, or prices of regions from the AWS Price List API.

``python -m autoscaler_workbench.maintenance.prices SOURCE`` or ``... --regions us-east-1 eu-west-1``.
"""

import json
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import boto3

from autoscaler_workbench.maintenance.price_api import SYSTEMS, listed_prices

_LAYER = Path(__file__).parents[2] / "layers/core/autoscaler"
TARGET, SHAPES = _LAYER / "prices.json", _LAYER / "instance_types.json"
_WINDOWS = "usd_windows_us_east_1_2023_08_30"
_HOME = "us-east-1"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?=T)")

Table = dict[str, dict[str, float]]  # dollars an hour by instance type and operating system


def main() -> int:
    """Write the tables anew."""
    match sys.argv[1:]:
        case ["--regions", *regions] if regions:
            TARGET.write_text(
                with_regions(json.loads(TARGET.read_text(encoding="utf-8")), boto3.client("pricing", _HOME), regions), "utf-8"
            )
            return 0
        case [source] if source:
            return _from_file(Path(source))
        case _:
            print("make prices SOURCE=FILE, or make prices REGIONS='us-east-1 eu-west-1'", file=sys.stderr)  # noqa: T201
            return 1


def with_regions(carried: dict[str, Any], client: Any, regions: Collection[str]) -> str:
    """Return the table with the prices of these regions in place of those that it has of them."""
    prices, days = dict(carried["usd_per_hour"]), dict(carried["listed_on"])
    for region in regions:
        table: Table = {}
        listed_on: dict[str, str] = {}
        for system in SYSTEMS:
            for kind, usd, day in listed_prices(client, region, system):
                table.setdefault(kind, {})[system] = usd
                listed_on[system] = max(day, listed_on.get(system, ""))
        if not table:
            raise SystemExit(f"{region}: AWS lists no prices of it")
        prices[region], days[region] = table, listed_on
    return text_of(carried["about"] | {"regions from the Price List API": sorted({*regions})}, days, prices)


def text_of(about: dict[str, Any], days: dict[str, dict[str, str]], prices: dict[str, Table]) -> str:
    """Write the prices with one instance type a line, so that a change of it can be read."""
    regions = [f'"{region}": {{\n{_lines(table)}\n}}' for region, table in sorted(prices.items())]
    heads = f'"about": {json.dumps(about, indent=1)},\n"listed_on": {json.dumps(days, sort_keys=True)}'
    return f"{{{heads},\n" + '"usd_per_hour": {\n' + ",\n".join(regions) + "\n}}\n"


def _lines(table: dict[str, Any]) -> str:
    return ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(table.items()))


def _from_file(source: Path) -> int:
    """Keep what a fleet needs of each type: on-demand dollars per hour by operating system, and what the machine is."""
    wide = json.loads(source.read_text(encoding="utf-8"))
    note = wide.pop("_meta")
    table = {name: _prices(facts) for name, facts in wide.items() if facts.get("usd_per_hour")}
    about = {
        "region": "us-east-1; us-west-2 has the same prices wherever both were found",
        "linux": note["on_demand_us_east_1"],
        "windows": note["spot_windows"],
        "made_by": "make prices SOURCE=...",
    }
    linux = _DAY.findall(note["on_demand_us_east_1"])[-1]
    days = {_HOME: {"linux": linux, "windows": "-".join(_WINDOWS.split("_")[-3:])}}
    TARGET.write_text(text_of(about, days, {_HOME: table}), encoding="utf-8")
    shapes = {name: _shape(facts) for name, facts in wide.items() if facts.get("vcpu") and facts.get("arch")}
    told = {"types": note["shape_new"], "older": note["shape_old"], "made_by": about["made_by"]}
    SHAPES.write_text(f'{{"about": {json.dumps(told, indent=1)},\n"shapes": {{\n{_lines(shapes)}\n}}}}\n', encoding="utf-8")
    return 0


def _shape(facts: dict[str, Any]) -> dict[str, Any]:
    """Say what a machine is. Where several architectures are told, the 64 bit one is meant."""
    arch = next((one for one in facts["arch"] if one in {"x86_64", "arm64"}), facts["arch"][0])
    gpus = facts.get("gpus") or 0
    return {"arch": arch, "vcpu": facts["vcpu"], "memory_gib": facts["mem_gib"], "gpus": gpus, "gpu": facts.get("gpu_model") or ""}


def _prices(facts: dict[str, float]) -> dict[str, float]:
    prices = {"linux": facts["usd_per_hour"]}
    if facts.get(_WINDOWS):
        prices["windows"] = facts[_WINDOWS]
    return prices


if __name__ == "__main__":
    sys.exit(main())
