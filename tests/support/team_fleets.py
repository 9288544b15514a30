"""Fleets with teams, what they show, and what is launched of them."""

from dataclasses import replace

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import Ceilings, Team
from autoscaler.domain.facts.memory import Spending
from support.builders import NOW, a_fleet, a_memory, a_pool, a_snapshot, a_view, an_item, an_offering
from support.decisions import launches


def team(name, *pools, weight=1.0, **limits):
    return Team(name=name, pools=frozenset(pools), weight=weight, ceilings=Ceilings(**limits))


def fleet_of(*teams, pools=(), **limits):
    """A pool of $3 and one of $1 an hour, and these teams."""
    pools = pools or (a_pool("cpu"), a_pool("gpu"), a_pool("web", offerings=(an_offering(usd_per_hour=1.0),)))
    return replace(a_fleet(*pools, **limits), teams={one.name: one for one in teams})


def jobs(*labels):
    return tuple(an_item(number, label=label, waiting_seconds=4000.0 - number) for number, label in enumerate(labels))


def seen(*agents, items=(), records=(), **memory):
    shown = a_view(*(node for _, node in agents), items=items)
    return a_snapshot(shown, records=(*(record for record, _ in agents), *records), memory=a_memory(**memory))


def up(fleet, *agents, **facts):
    return decide.scale_up(seen(*agents, **facts), fleet)


def by_pool(plan):
    return {pool: count for pool, count, _ in launches(plan)}


GRAPHICS = team("graphics", "cpu", "gpu")
WEB = team("web", "web")


def spending(**by_pool):
    return {"lately": (Spending(since_at=NOW - 600, by_pool=by_pool),)}
