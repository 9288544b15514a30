"""Levels of limits: a pool, its team, the fleet. What is launched fits within each, and each stops its own pools only."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import Ceilings, Fleet, Team


class LevelKind(StrEnum):
    """How much a limit is about."""

    POOL = "pool"
    TEAM = "team"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Pools that share limits: one, those of a team, or all of the fleet."""

    kind: LevelKind
    name: str
    pools: frozenset[str]
    ceilings: Ceilings

    def has(self, pool: str) -> bool:
        """Tell whether a pool counts here; in the fleet those do, too, that left the fleet file."""
        return self.kind is LevelKind.FLEET or pool in self.pools

    @property
    def text(self) -> str:
        """Whose limits these are, for people."""
        return "the fleet" if self.kind is LevelKind.FLEET else f"{self.kind} {self.name}"


def levels(fleet: Fleet) -> Iterator[Level]:
    """Yield all levels, the narrow ones first."""
    for pool in fleet.pools.values():
        ceilings = replace(pool.ceilings, max_agents=pool.max_agents)
        yield Level(kind=LevelKind.POOL, name=pool.name, pools=frozenset({pool.name}), ceilings=ceilings)
    for team in fleet.teams.values():
        yield Level(kind=LevelKind.TEAM, name=team.name, pools=team.pools, ceilings=team.ceilings)
    limits = fleet.limits
    ceilings = Ceilings(
        max_agents=limits.max_agents,
        max_launches_per_hour=limits.max_launches_per_hour,
        max_usd_per_hour=limits.max_usd_per_hour,
        max_usd_per_month=limits.max_usd_per_month,
    )
    yield Level(kind=LevelKind.FLEET, name=fleet.name, pools=frozenset(fleet.pools), ceilings=ceilings)


def teams(fleet: Fleet) -> Iterator[Team]:
    """Yield all teams. The pools of none are together one more, without a name and without limits of its own."""
    yield from fleet.teams.values()
    yield Team(name="", pools=frozenset(fleet.pools).difference(*(team.pools for team in fleet.teams.values())))


def team_of_each(fleet: Fleet) -> dict[str, Team]:
    """Find the team of each pool."""
    return {pool: team for team in teams(fleet) for pool in team.pools}
