"""Warns of pools whose launch template, platform, instance types and prices do not go together: they would be priced wrong, or never boot.

Only the names of the stack's own launch templates say what they launch. For others ``validate --live`` asks AWS.
"""

import re
from collections.abc import Iterator

from autoscaler.config.price_list import price_list_of
from autoscaler.config.problems import Problem
from autoscaler.config.requirements import types_of
from autoscaler.config.rules import architecture
from autoscaler.config.settings import FleetSettings, PoolSettings
from autoscaler.domain.facts.fleet import Platform

_OWN = re.compile(r"^autoscaler-(?P<kind>linux|windows|arm64)-(?P<fleet>[a-z0-9][a-z0-9-]*)$")
_MAC = re.compile(r"^mac[0-9-]")


def template_warnings(settings: FleetSettings) -> Iterator[Problem]:
    """Yield what does not go together, in the order of the pools."""
    for name, pool in settings.pools.items():
        for keys, text in (*_of_template(settings, name, pool), *_of_prices(settings, name, pool), *_of_types(pool)):
            yield Problem(place=("pools", name, *keys), text=f"pools.{name}.{text}")


def _of_template(settings: FleetSettings, name: str, pool: PoolSettings) -> Iterator[tuple[tuple[str | int, ...], str]]:
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
    yield from _of_processor(pool, own)


def _of_processor(pool: PoolSettings, own: re.Match[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    wanted = "arm64" if own["kind"] == "arm64" else "x86_64"
    if other := next((kind for kind in types_of(pool) if architecture(kind) != wanted), None):
        key = "instance_types" if pool.instance_types else "instance_requirements"
        yield (key,), f"{key} ({other}): its processor is {architecture(other)}, the image of {own[0]} is for {wanted}"


def _of_prices(settings: FleetSettings, name: str, pool: PoolSettings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    system = price_list_of(settings, name).system
    if pool.usd_per_hour is None and pool.launch_template and (system == "windows") != (pool.platform is Platform.WINDOWS):
        place = ("prices", "system") if pool.prices and pool.prices.system else ()
        yield place, f"prices.system ({system}): the pool's platform is {pool.platform}, which AWS bills otherwise"


def _of_types(pool: PoolSettings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for number, kind in enumerate(pool.instance_types or ()):
        if _MAC.match(kind):
            rule = "Mac machines run on dedicated hosts only, which are billed for 24 h at least; the autoscaler launches none"
            yield ("instance_types", number), f"instance_types ({kind}): {rule}"
