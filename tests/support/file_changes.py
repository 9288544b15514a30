"""Changes of the fleet file while agents are at work: from now on the functions read another one."""

from dataclasses import replace
from typing import Any

from support.timeline import Day


def pool_is_now(day: Day, name: str, **facts: Any) -> None:
    """Give a pool other keys."""
    pools = day.fleet.fleet.pools
    day.fleet.fleet = replace(day.fleet.fleet, pools={**pools, name: replace(pools[name], **facts)})


def file_is_now(day: Day, **facts: Any) -> None:
    """Give the fleet other keys."""
    day.fleet.fleet = replace(day.fleet.fleet, **facts)
