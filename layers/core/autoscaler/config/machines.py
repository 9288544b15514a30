"""What instance types are: the carried table of shapes, which ``make prices`` made."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from autoscaler.config.job_weights import JobWeightsKey
from autoscaler.config.run_orders import RunSettings
from autoscaler.domain.facts.fleet import Machine, Pool
from autoscaler.domain.facts.job_settings import Source


def machines_for(pools: Mapping[str, Pool], runs: RunSettings | None, weights: JobWeightsKey) -> dict[str, Machine]:
    """Return what the instance types of these pools are, as far as the table knows; nothing unless runs or learned weights ask for it."""
    if runs is None and Source.LEARNED not in weights.values():
        return {}
    wanted = {offering.instance_type for pool in pools.values() for offering in pool.offerings}
    return {name: Machine(**shapes()[name]) for name in sorted(wanted & shapes().keys())}


@cache
def shapes() -> dict[str, dict[str, Any]]:
    """Return the facts of each instance type, named as those of a `Machine` (``make prices`` made the table)."""
    text = files("autoscaler").joinpath("instance_types.json").read_text(encoding="utf-8")
    known: dict[str, dict[str, Any]] = json.loads(text)["shapes"]
    return known
