"""Warns of pools whose image AWS bills otherwise than the pool is priced: RHEL, SUSE and SQL Server cost more than plain Linux or Windows.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/billing-info-fields.html
"""

from collections.abc import Iterator, Mapping
from typing import Any

from autoscaler.config.price_list import PriceList, carried_prices, price_list_of
from autoscaler.config.problems import Problem
from autoscaler.config.requirements import types_of
from autoscaler.config.settings import FleetSettings, PoolSettings

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
            text = f"pools.{name}.{_key(pool)} ({listed.system}): {said}; {_cure(pool, listed, billed)}"
            yield Problem(place=("pools", name, *_place(pool)), text=text)


def _key(pool: PoolSettings) -> str:
    return "prices.system" if pool.prices and pool.prices.system else "platform"


def _place(pool: PoolSettings) -> tuple[str, ...]:
    if pool.prices and pool.prices.system:
        return ("prices", "system")
    return ("platform",) if "platform" in pool.model_fields_set else ("launch_template",)


def _cure(pool: PoolSettings, listed: PriceList, billed: str) -> str:
    """Say what to write: a platform, a price list, or what is really paid where no list is carried."""
    platform = str(pool.platform)
    if billed == "windows" and platform != "windows":
        return "write platform: windows"
    if billed == platform:
        return f"write prices: {{system: {billed}}}"
    if billed not in {"rhel", "suse"}:
        other = f"; if it is of Linux, write platform: {billed}" if billed else ""
        return f"set usd_per_hour{other}"
    prices = carried_prices(listed.region)
    if all(prices.get(kind, {}).get(billed) for kind in types_of(pool)):
        return f"write prices: {{system: {billed}}}"
    return f"set usd_per_hour, or run make prices REGIONS={listed.region} and write prices: {{system: {billed}}}"
