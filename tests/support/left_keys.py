"""Another fleet file from now on, for a fleet in memory: keys leave the file while something of theirs is there."""

from collections.abc import Mapping
from dataclasses import replace

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler_workbench.simulate.drive import InMemory


def deploy(fleet: InMemory, file: Fleet) -> None:
    """Deploy another fleet file: functions have no connection to controllers that are not in it."""
    fleet.deploy(file)


def without_pools(file: Fleet, *names: str) -> Fleet:
    """Return a fleet file without these pools."""
    return with_pools(file, {name: pool for name, pool in file.pools.items() if name not in names})


def without_controller(file: Fleet, name: str) -> Fleet:
    """Return a fleet file without a controller: pools that served it alone are out, and others serve the rest."""
    pools = {pool.name: left for pool in file.pools.values() if (left := _without(pool, name)).controllers}
    controllers = tuple(controller for controller in file.controllers if controller != name)
    return replace(with_pools(file, pools), controllers=controllers, slot_controllers=file.slot_controllers - {name})


def with_pools(file: Fleet, pools: Mapping[str, Pool]) -> Fleet:
    """Return a fleet file with these pools, and without teams and hosts of those that are not in it."""
    teams = {team.name: replace(team, pools=team.pools & pools.keys()) for team in file.teams.values()}
    hosts = {host.name: host for host in file.hosts.values() if host.pool in pools}
    return replace(file, pools=dict(pools), hosts=hosts, teams={name: team for name, team in teams.items() if team.pools})


def _without(pool: Pool, controller: str) -> Pool:
    return replace(pool, controllers=tuple(name for name in pool.controllers if name != controller))
