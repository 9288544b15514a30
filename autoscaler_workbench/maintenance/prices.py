"""Extracts the bundled tables of prices and shapes from a larger one: ``python -m autoscaler_workbench.maintenance.prices SOURCE``."""

import json
import sys
from pathlib import Path
from typing import Any

_LAYER = Path(__file__).parents[2] / "layers/core/autoscaler"
TARGET, SHAPES = _LAYER / "prices.json", _LAYER / "instance_types.json"
_WINDOWS = "usd_windows_us_east_1_2023_08_30"


def main() -> int:
    """Keep what a fleet needs of each type: on-demand dollars per hour by platform, and what the machine is."""
    source = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    note = source.pop("_meta")
    table = {name: _prices(facts) for name, facts in sorted(source.items()) if facts.get("usd_per_hour")}
    about = {
        "region": "us-east-1; us-west-2 has the same prices wherever both were found",
        "linux": note["on_demand_us_east_1"],
        "windows": note["spot_windows"],
        "made_by": "make prices SOURCE=...",
    }
    _write(TARGET, about, "usd_per_hour", table)
    shapes = {name: _shape(facts) for name, facts in sorted(source.items()) if facts.get("vcpu") and facts.get("arch")}
    _write(SHAPES, {"types": note["shape_new"], "older": note["shape_old"], "made_by": about["made_by"]}, "shapes", shapes)
    return 0


def _write(target: Path, about: dict[str, str], what: str, table: dict[str, Any]) -> None:
    """Write a table with one instance type a line, so that a change of it can be read."""
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items()]
    target.write_text(f'{{"about": {json.dumps(about, indent=1)},\n"{what}": {{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


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
