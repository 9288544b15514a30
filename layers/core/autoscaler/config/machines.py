"""What instance types are: the carried table of shapes, which ``make prices`` made."""

import json
from collections.abc import Mapping
from importlib.resources import files

from autoscaler.config.run_orders import RunSettings
from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.machines import Machine


def machines_for(runs: RunSettings | None, pools: Mapping[str, Pool]) -> dict[str, Machine]:
    """Return what the instance types of these pools are, as far as the table knows; nothing where nobody may order runs."""
    if runs is None:
        return {}
    wanted = {offering.instance_type for pool in pools.values() for offering in pool.offerings}
    shapes = json.loads(files("autoscaler").joinpath("instance_types.json").read_text(encoding="utf-8"))["shapes"]
    return {name: Machine(**shapes[name]) for name in sorted(wanted & shapes.keys())}
