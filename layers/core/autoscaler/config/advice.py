"""Warns of what a fleet file may say, and hardly means to; a person reads it before anything is deployed."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from autoscaler.config.hosts import without_hosts
from autoscaler.config.hours import average
from autoscaler.config.load import load_settings
from autoscaler.config.prices import cheapest
from autoscaler.config.problems import FleetFileError, Problem
from autoscaler.config.settings import FleetSettings
from autoscaler.config.team_money import dear_agents
from autoscaler.config.template_advice import template_warnings
from autoscaler.config.warm_pool_advice import warm_pool_warnings
from autoscaler.config.yaml_file import located
from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.pools import HOURS_A_MONTH
from autoscaler.domain.report.status import WAY_OUT, price_ages

SECRET_PREFIX = "jenkins/"  # the template's ControllerSecretPrefix, where samconfig.toml says nothing else
_SUBNET = re.compile(r"^subnet-([0-9a-f]{8}|[0-9a-f]{17})$")
_ARN = re.compile(r"^arn:[^:]*:secretsmanager:[^:]*:[^:]*:secret:(?P<name>.*)$")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def warnings_in(path: Path, prefix: str = SECRET_PREFIX, now: float | None = None) -> list[str]:
    """Return the warnings for a fleet file that is right, a line each.

    ``prefix``: of the secrets that the functions may read; ``now``: that tells how old the prices are, which is left out without it.
    """
    settings = load_settings(path)
    fleet = settings.domain()
    problems = located([*warnings_of(settings, prefix, fleet), *_old_prices(fleet, now)], path.read_bytes())
    return list(FleetFileError(str(path), problems).lines)


def warnings_of(settings: FleetSettings, prefix: str = SECRET_PREFIX, fleet: Fleet | None = None) -> list[Problem]:
    """Return the warnings for settings, and for the ``fleet`` that they make."""
    fleet = fleet or settings.domain()
    of_controllers = (*_secrets(settings, prefix), *_addresses(settings))
    of_pools = (*_without_hosts(settings), *_subnets(settings), *_twins(fleet), *_money(fleet), *template_warnings(settings))
    return [*of_controllers, *of_pools, *warm_pool_warnings(settings)]


def _old_prices(fleet: Fleet, now: float | None) -> Iterator[Problem]:
    for one in price_ages(fleet, now) if now is not None else ():
        if one.old:
            yield Problem(place=("pools", one.pools[0]), text=f"{one.told}; {WAY_OUT}")


def readable(secret: str, prefix: str) -> bool:
    """Tell whether the functions' role may read a secret, given by name or ARN."""
    found = _ARN.match(secret)
    return (found["name"] if found else secret).startswith(prefix)


def always_there(pool: Pool) -> int:
    """Return how many agents of a pool its minima keep, whatever is needed."""
    return max(pool.min_agents, -(-pool.warm_executors // pool.executors))


def _secrets(settings: FleetSettings, prefix: str) -> Iterator[Problem]:
    for name, controller in settings.controllers.items():
        if controller.secret is not None and not readable(controller.secret, prefix):
            rule = f"the functions may read only secrets whose names begin with {prefix} (the stack's ControllerSecretPrefix)"
            yield Problem(place=("controllers", name, "secret"), text=f"controllers.{name}.secret ({controller.secret}): {rule}")


def _addresses(settings: FleetSettings) -> Iterator[Problem]:
    for name, controller in settings.controllers.items():
        at = urlsplit(controller.url)
        if at.scheme == "http" and at.hostname not in _LOOPBACK and controller.secret is not None:
            text = f"controllers.{name}.url ({controller.url}): over http the token is sent in the clear, use https"
            yield Problem(place=("controllers", name, "url"), text=text)


def _without_hosts(settings: FleetSettings) -> Iterator[Problem]:
    for name in without_hosts(settings):
        text = f"pools.{name}: it has no host and no launch_template, so nothing serves its jobs; what it had is drained"
        yield Problem(place=("pools", name), text=text)


def _subnets(settings: FleetSettings) -> Iterator[Problem]:
    for name, pool in settings.pools.items():
        for number, subnet in enumerate(pool.subnets):
            if not _SUBNET.match(subnet):
                text = f"pools.{name}.subnets ({subnet}): ids of EC2 have 8 or 17 hexadecimal digits"
                yield Problem(place=("pools", name, "subnets", number), text=text)


def _twins(fleet: Fleet) -> Iterator[Problem]:
    """Warn of pools that the same jobs ask for as an earlier one in the file."""
    first: dict[tuple[frozenset[str], str], str] = {}  # the first pool with these labels, by controller
    for pool in fleet.pools.values():
        shared: dict[str, list[str]] = {}
        for controller in pool.controllers:
            if (other := first.setdefault((pool.labels, controller), pool.name)) != pool.name:
                shared.setdefault(other, []).append(controller)
        for other, controllers in shared.items():
            slots = sorted(fleet.slot_controllers & set(controllers))
            what = (
                f"on {slots[0]} every static node counts as {min(other, pool.name)}'s" if slots else "the one that suits better gets a job"
            )
            labels = ", ".join(sorted(pool.labels))
            text = f"pools.{pool.name}.labels ({labels}): pool {other} has the same labels for {', '.join(controllers)}; {what}"
            yield Problem(place=("pools", pool.name, "labels"), text=text)


def _money(fleet: Fleet) -> Iterator[Problem]:
    for pool in fleet.pools.values():
        if (usd := cheapest(pool.offerings)) > fleet.limits.max_usd_per_hour:
            limit = f"limits.max_usd_per_hour (${fleet.limits.max_usd_per_hour:,.2f})"
            yield Problem(place=("pools", pool.name), text=f"pools.{pool.name}: one agent costs ${usd:,.2f} an hour, more than {limit}")
    yield from dear_agents(fleet)
    usd = HOURS_A_MONTH * sum(average(pool, always_there) * cheapest(pool.offerings) for pool in fleet.pools.values())
    if usd > fleet.limits.max_usd_per_month:
        text = f"limits.max_usd_per_month (${fleet.limits.max_usd_per_month:,.0f}): min_agents and warm_executors alone cost"
        yield Problem(place=("limits", "max_usd_per_month"), text=f"{text} ${usd:,.0f} in a whole month")
