"""Rules between teams and their pools."""

from collections.abc import Iterator

from autoscaler.config.problems import Problem, listed
from autoscaler.config.settings import FleetSettings


def between_teams(settings: FleetSettings) -> Iterator[Problem]:
    """Yield what is wrong with the pools of teams, and with their minima."""
    teams: dict[str, str] = {}  # by pool
    for name, team in settings.teams.items():
        for number, pool in enumerate(team.pools):
            if rule := _wrong(settings, teams, name, pool):
                yield Problem(place=("teams", name, "pools", number), text=f"teams.{name}.pools ({pool}) {rule}")
            teams.setdefault(pool, name)
        least = sum(settings.pools[pool].min_agents for pool in {*team.pools} & settings.pools.keys())
        if team.max_agents is not None and least > team.max_agents:
            text = f"teams.{name}.max_agents ({team.max_agents}): the min_agents of its pools ({least}) exceed it"
            yield Problem(place=("teams", name, "max_agents"), text=text)


def _wrong(settings: FleetSettings, teams: dict[str, str], name: str, pool: str) -> str:
    if pool not in settings.pools:
        from autoscaler.config.words import meant  # noqa: PLC0415 - for an error only

        return f"is not one of the pools ({listed(settings.pools)}){meant(pool, settings.pools)}"
    if pool in teams:
        return "is named twice" if teams[pool] == name else f"is in team {teams[pool]}, too: a pool is in one team at most"
    return ""
