"""Warns of what a fleet file may say, and hardly means to; a person reads it before anything is deployed."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from autoscaler.config.hosts import hosts_of, is_of_hosts
from autoscaler.config.load import architecture, load_settings
from autoscaler.config.prices import PriceList, average, carried_prices, cheapest, dear_agents, price_list_of, types_of
from autoscaler.config.problems import FleetFileError, Place, Problem, problem
from autoscaler.config.sections import WarmPoolSettings
from autoscaler.config.settings import FleetSettings, PoolSettings
from autoscaler.config.yaml_file import located
from autoscaler.domain.facts.fleet import Fleet, Platform, Pool
from autoscaler.domain.facts.pools import HOURS_A_MONTH
from autoscaler.domain.grouping import grouped
from autoscaler.domain.report.status import WAY_OUT, price_ages

# Warns of pools whose image AWS bills otherwise than the pool is priced: RHEL, SUSE and SQL Server cost more than plain Linux or Windows.
#
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/billing-info-fields.html


# By the usage operation of the image; what is in neither table has no carried price.
_SYSTEMS = {
    "RunInstances": "linux",
    "RunInstances:00g0": "linux",  # Red Hat, with a subscription of your own
    "RunInstances:0010": "rhel",
    "RunInstances:000g": "suse",
    "RunInstances:0002": "windows",
    "RunInstances:0800": "linux",  # Windows, with a licence of your own: AWS bills the machine alone
}
_BY_DETAILS = {
    "linux/unix": "linux",
    "red hat byol linux": "linux",
    "red hat enterprise linux": "rhel",
    "suse linux": "suse",
    "windows": "windows",
    "windows byol": "linux",
}


def billing_warnings(settings: FleetSettings, images: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield a warning for each pool whose image is billed otherwise. ``images``: as EC2 describes them, by pool."""
    for name, image in images.items():
        pool, listed = settings.pools[name], price_list_of(settings, name)
        details, operation = str(image.get("PlatformDetails") or ""), str(image.get("UsageOperation") or "")
        if pool.usd_per_hour is not None or not (details or operation):
            continue
        billed = _SYSTEMS.get(operation, "") if operation else _BY_DETAILS.get(details.lower(), "")
        if billed != listed.system:
            known_as = f"{details} ({operation})" if details and operation else details or operation
            said = f"the image {image.get('ImageId', '')} is billed as {known_as}, and the pool is priced as {listed.system}"
            key, place = "platform", ["platform" if "platform" in pool.model_fields_set else "launch_template"]
            if pool.prices and pool.prices.system:
                key, place = "prices.system", ["prices", "system"]
            yield Problem(
                place=("pools", name, *place), text=f"pools.{name}.{key} ({listed.system}): {said}; {_cure(pool, listed, billed)}"
            )


def _cure(pool: PoolSettings, listed: PriceList, billed: str) -> str:
    """Say what to write: a platform, a price list, or what is really paid where no list is carried."""
    platform = str(pool.platform)
    if billed == "windows" and platform != "windows":
        return "write platform: windows"
    prices = [carried_prices(listed.region).get(kind, {}) for kind in types_of(pool)]
    may_be_named = billed in {"rhel", "suse"}
    if billed == platform or (may_be_named and all(by_system.get(billed) for by_system in prices)):
        return f"write prices: {{system: {billed}}}"
    if not may_be_named:
        other = f"; if it is of Linux, write platform: {billed}" if billed else ""
        return f"set usd_per_hour{other}"
    return f"set usd_per_hour, or run make prices REGIONS={listed.region} and write prices: {{system: {billed}}}"


# Warns of pools whose launch template, platform, instance types and prices do not go together: they would be priced wrong, or never boot.
#
# Only the names of the stack's own launch templates say what they launch. For others ``validate --live`` asks AWS.


_OWN = re.compile(r"^autoscaler-(?P<kind>linux|windows|arm64)-(?P<fleet>[a-z0-9][a-z0-9-]*)$")
_MAC = re.compile(r"^mac[0-9-]")


def template_warnings(settings: FleetSettings) -> Iterator[Problem]:
    """Yield what does not go together, in the order of the pools."""
    for name, pool in settings.pools.items():
        for keys, text in (*_of_template(settings, name, pool), *_of_prices(settings, name, pool), *_of_types(pool)):
            yield Problem(place=("pools", name, *keys), text=f"pools.{name}.{text}")


def _of_template(settings: FleetSettings, name: str, pool: PoolSettings) -> Iterator[tuple[Place, str]]:
    own = _OWN.match(pool.launch_template or "")
    if own is None:
        return
    if own["fleet"] != settings.fleet:
        rule = f"it belongs to the fleet {own['fleet']}, this fleet's is autoscaler-{own['kind']}-{settings.fleet}"
        yield ("launch_template",), f"launch_template ({own[0]}): {rule}; its agents would ask the functions of {own['fleet']}"
    launched = Platform.WINDOWS if own["kind"] == "windows" else Platform.LINUX
    if pool.platform is not launched:
        key = "platform" if "platform" in pool.model_fields_set else "launch_template"
        prices = "" if pool.usd_per_hour is not None else f", and the pool is priced as {price_list_of(settings, name).system}"
        yield (key,), f"platform ({pool.platform}): {own[0]} launches {launched}{prices}; write platform: {launched}"
    wanted = "arm64" if own["kind"] == "arm64" else "x86_64"
    if other := next((kind for kind in types_of(pool) if architecture(kind) != wanted), None):
        key = "instance_types" if pool.instance_types else "instance_requirements"
        yield (key,), f"{key} ({other}): its processor is {architecture(other)}, the image of {own[0]} is for {wanted}"


def _of_prices(settings: FleetSettings, name: str, pool: PoolSettings) -> Iterator[tuple[Place, str]]:
    system = price_list_of(settings, name).system
    if pool.usd_per_hour is None and pool.launch_template and (system == "windows") != (pool.platform is Platform.WINDOWS):
        place = ("prices", "system") if pool.prices and pool.prices.system else ()
        yield place, f"prices.system ({system}): the pool's platform is {pool.platform}, which AWS bills otherwise"


def _of_types(pool: PoolSettings) -> Iterator[tuple[Place, str]]:
    rule = "Mac machines run on dedicated hosts only, which are billed for 24 h at least; the autoscaler launches none"
    macs = ((number, kind) for number, kind in enumerate(pool.instance_types or ()) if _MAC.match(kind))
    yield from ((("instance_types", number), f"instance_types ({kind}): {rule}") for number, kind in macs)


# Warns of keys of a warm pool that have no effect beside its others.


def warm_pool_warnings(settings: FleetSettings) -> Iterator[Problem]:
    """Yield each `max_age_hours` that was written and is above `max_disk_age_hours`: the agent is terminated for its disk before."""
    for place, warm in _written(settings):
        if "max_age_hours" in warm.model_fields_set and warm.max_age_hours > warm.max_disk_age_hours:
            default = "" if "max_disk_age_hours" in warm.model_fields_set else "by default "
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
            text = (
                f"{where}.max_age_hours ({warm.max_age_hours:g}): has no effect, since max_disk_age_hours ({default}"
                f"{warm.max_disk_age_hours:g}) ends the agent sooner; raise that or lower this"
            )
            yield Problem(place=(*place, "max_age_hours"), text=text)


def _written(settings: FleetSettings) -> Iterator[tuple[Place, WarmPoolSettings]]:
    """List every warm pool that the file has: in the defaults, in a pool, in hours of the week."""
    places: list[tuple[Place, object]] = [(("defaults", "warm_pool"), settings.defaults.warm_pool)]
    for name, pool in settings.pools.items():
        places.append((("pools", name, "warm_pool"), pool.warm_pool))
        places += [(("pools", name, "schedules", number, "warm_pool"), hours.warm_pool) for number, hours in enumerate(pool.schedules)]
    yield from ((place, warm) for place, warm in places if isinstance(warm, WarmPoolSettings))


# Warns of everything else, and puts all warnings together.


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
    ages = price_ages(fleet, now) if now is not None else ()
    of_prices = [Problem(place=("pools", one.pools[0]), text=f"{one.told}; {WAY_OUT}") for one in ages if one.old]
    problems = located([*warnings_of(settings, prefix, fleet), *of_prices], path.read_bytes())
    return list(FleetFileError(str(path), problems).lines)


def warnings_of(settings: FleetSettings, prefix: str = SECRET_PREFIX, fleet: Fleet | None = None) -> list[Problem]:
    """Return the warnings for settings, and for the ``fleet`` that they make."""
    fleet = fleet or settings.domain()
    rule = ": it has no host and no launch_template, so nothing serves its jobs; what it had is drained"
    unserved = [problem(("pools", name), rule) for name in settings.pools if is_of_hosts(settings, name) and not hosts_of(settings, name)]
    of_pools = (*unserved, *_subnets(settings), *_twins(fleet), *_money(fleet), *template_warnings(settings))
    return [*_secrets(settings, prefix), *of_pools, *warm_pool_warnings(settings)]


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
            yield problem(("controllers", name, "secret"), f" ({controller.secret}): {rule}")
        at = urlsplit(controller.url)
        if at.scheme == "http" and at.hostname not in _LOOPBACK and controller.secret is not None:
            yield problem(("controllers", name, "url"), f" ({controller.url}): over http the token is sent in the clear, use https")


def _subnets(settings: FleetSettings) -> Iterator[Problem]:
    for name, pool in settings.pools.items():
        for number, subnet in enumerate(pool.subnets):
            if not _SUBNET.match(subnet):
                rule = "ids of EC2 have 8 or 17 hexadecimal digits"
                yield Problem(place=("pools", name, "subnets", number), text=f"pools.{name}.subnets ({subnet}): {rule}")


def _twins(fleet: Fleet) -> Iterator[Problem]:
    """Warn of pools that the same jobs ask for as an earlier one in the file."""
    first: dict[tuple[frozenset[str], str], str] = {}  # the first pool with these labels, by controller
    for pool in fleet.pools.values():
        shared = grouped((first.setdefault((pool.labels, controller), pool.name), controller) for controller in pool.controllers)
        shared.pop(pool.name, None)
        for other, controllers in shared.items():
            slots = sorted(fleet.slot_controllers & set(controllers))
            what = (
                f"on {slots[0]} every static node counts as {min(other, pool.name)}'s" if slots else "the one that suits better gets a job"
            )
            rule = f"pool {other} has the same labels for {', '.join(controllers)}; {what}"
            yield problem(("pools", pool.name, "labels"), f" ({', '.join(sorted(pool.labels))}): {rule}")


def _money(fleet: Fleet) -> Iterator[Problem]:
    yield from dear_agents(fleet)
    usd = HOURS_A_MONTH * sum(average(pool, always_there) * cheapest(pool.offerings) for pool in fleet.pools.values())
    if usd > fleet.limits.max_usd_per_month:
        limit = f" (${fleet.limits.max_usd_per_month:,.0f})"
        yield problem(("limits", "max_usd_per_month"), f"{limit}: min_agents and warm_executors alone cost ${usd:,.0f} in a whole month")
