"""What agents cost against the limits of teams, and against those that pools have of their own."""

from collections.abc import Iterator

from autoscaler.config.prices import cheapest
from autoscaler.config.problems import Place, Problem
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.metering import Level, LevelKind, levels


def dear_minima(fleet: Fleet) -> Iterator[Problem]:
    """Yield the teams and pools whose minima alone cost more an hour than they may, each agent at its cheapest."""
    for level in levels(fleet):
        usd = sum(fleet.pools[name].min_agents * cheapest(fleet.pools[name].offerings) for name in level.pools)
        if level.kind is not LevelKind.FLEET and usd > level.ceilings.max_usd_per_hour:
            limit = f"{_key(level)}.max_usd_per_hour (${level.ceilings.max_usd_per_hour:,.2f})"
            yield Problem(place=(*_place(level), "max_usd_per_hour"), text=f"{limit}: min_agents alone cost ${usd:,.2f} an hour")


def dear_agents(fleet: Fleet) -> Iterator[Problem]:
    """Warn of limits of teams and pools that not one agent of a pool fits in."""
    for level in levels(fleet):
        for name in sorted(level.pools) if level.kind is not LevelKind.FLEET else ():
            if (usd := cheapest(fleet.pools[name].offerings)) > level.ceilings.max_usd_per_hour:
                limit = f"{_key(level)}.max_usd_per_hour (${level.ceilings.max_usd_per_hour:,.2f})"
                text = f"pools.{name}: one agent costs ${usd:,.2f} an hour, more than {limit}"
                yield Problem(place=("pools", name), text=text)


def _place(level: Level) -> Place:
    return ("teams" if level.kind is LevelKind.TEAM else "pools", level.name)


def _key(level: Level) -> str:
    return ".".join(map(str, _place(level)))
