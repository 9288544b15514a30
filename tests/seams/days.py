"""Fleets in memory for scenes."""

from dataclasses import replace

from autoscaler.domain.facts.fleet import WarmPool
from support.timeline import Day
from support.worlds import in_memory

QUICK = {"boot_seconds": 60.0, "queue_maturity_seconds": 0.0, "idle_seconds": 300.0}
WARM = WarmPool(min_agents=0, max_agents=2, max_age_seconds=900.0)


def a_day_with(*pools, hosts=(), thresholds=None, limits=None, **settings) -> Day:
    fleet = in_memory(*pools, hosts=hosts, thresholds=thresholds, **(limits or {}))
    fleet.fleet = replace(fleet.fleet, **settings)
    return Day(fleet)
