"""Teams: pools that share limits and a share of the fleet's, and the limits that a pool or a team may have of its own."""

from collections.abc import Collection
from math import inf
from typing import Annotated

from pydantic import Field

from autoscaler.config.basics import Section, Usd
from autoscaler.domain.facts.fleet import Ceilings, Team

Most = Annotated[int, Field(ge=1, le=100_000)]
# Limits that a pool and a team may have, beside those of the whole fleet.
LaunchesPerHour = Annotated[
    Most | None, Field(description="Most of its agents launched within any 60 minutes. Default: the wider limits alone.")
]
UsdPerHour = Annotated[
    Usd | None,
    Field(
        description="Most that all of its agents together may cost an hour, in US dollars, counted as limits.max_usd_per_hour is. Default: "
        "the wider limits alone."
    ),
]
UsdPerMonth = Annotated[
    Usd | None,
    Field(
        description="Most that its agents may cost in a calendar month (UTC), in US dollars; limits.at_month_limit says what happens to "
        "them once it is spent. Default: the wider limits alone."
    ),
]
HoursPerDay = Annotated[
    Annotated[float, Field(ge=1, le=2_400_000, allow_inf_nan=False)] | None,
    Field(
        description="Most hours that the pool's agents may run in a calendar day (UTC), all together. Once they are used, nothing is "
        "launched until midnight, and no agent takes another build; running builds are not killed, so what they take comes on top. "
        "Default: any number."
    ),
]


class TeamSettings(Section):
    """Pools of one team: they share its limits, and a share of what the fleet may have. A pool is in one team at most."""

    pools: Annotated[list[str], Field(min_length=1)] = Field(description="Names of the team's pools.")
    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = Field(
        1.0,
        description="If a limit keeps several teams waiting, the team goes first that spent the fewest dollars for its weight in the "
        "last four hours. 2: twice the share of a team of weight 1.",
    )
    max_agents: Most | None = Field(
        None, description="Most agents at once, of all pools of the team together. Default: the wider limits alone."
    )
    max_launches_per_hour: LaunchesPerHour = None
    max_usd_per_hour: UsdPerHour = None
    max_usd_per_month: UsdPerMonth = None


def ceilings(agents: int | None, launches: int | None, usd_per_hour: float | None, usd_per_month: float | None) -> Ceilings:
    """Translate limits; infinite where none is written."""
    return Ceilings(
        max_agents=inf if agents is None else agents,
        max_launches_per_hour=inf if launches is None else launches,
        max_usd_per_hour=inf if usd_per_hour is None else usd_per_hour,
        max_usd_per_month=inf if usd_per_month is None else usd_per_month,
    )


def team(name: str, settings: TeamSettings, pools: Collection[str]) -> Team:
    """Translate a team. ``pools``: of the fleet file."""
    mine = frozenset(pool for pool in settings.pools if pool in pools)
    limits = settings.max_agents, settings.max_launches_per_hour, settings.max_usd_per_hour, settings.max_usd_per_month
    return Team(name=name, pools=mine, weight=settings.weight, ceilings=ceilings(*limits))
