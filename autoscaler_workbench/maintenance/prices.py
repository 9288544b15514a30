"""Extracts the bundled price table from a larger one: ``python -m autoscaler_workbench.maintenance.prices SOURCE``."""

import json
import sys
from pathlib import Path

TARGET = Path(__file__).parents[2] / "layers/core/autoscaler/prices.json"
_WINDOWS = "usd_windows_us_east_1_2023_08_30"


def main() -> int:
    """Keep what a fleet file needs of each type: on-demand dollars per hour by platform."""
    source = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    note = source.pop("_meta")
    table = {name: _prices(facts) for name, facts in sorted(source.items()) if facts.get("usd_per_hour")}
    about = {
        "region": "us-east-1; us-west-2 has the same prices wherever both were found",
        "linux": note["on_demand_us_east_1"],
        "windows": note["spot_windows"],
        "made_by": "make prices SOURCE=...",
    }
    lines = [f"  {json.dumps(name)}: {json.dumps(prices)}" for name, prices in table.items()]
    TARGET.write_text(f'{{"about": {json.dumps(about, indent=1)},\n"usd_per_hour": {{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    return 0


def _prices(facts: dict[str, float]) -> dict[str, float]:
    prices = {"linux": facts["usd_per_hour"]}
    if facts.get(_WINDOWS):
        prices["windows"] = facts[_WINDOWS]
    return prices


if __name__ == "__main__":
    sys.exit(main())
