"""Spot prices of the simulated EC2: they differ by type, zone and platform, and move from hour to hour where the physics says so.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-instances-history.html; they change gradually, by supply and demand in the
long term: https://aws.amazon.com/blogs/compute/new-amazon-ec2-spot-pricing/. Nobody is told of a change: whoever asks sees the last one.
"""

from math import pi, sin
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.ec2.instance import Instance
    from autoscaler_workbench.fakes.world.ec2.region import Ec2

LINUX, WINDOWS = "Linux/UNIX", "Windows"
ZONE = "us-west-2a"  # of subnets of which nothing else is said
STEP_SECONDS = 3600.0  # for so long a price stands
_PERIODS = ((23.0, 0.6), (7.3, 0.4))  # hours, and the share of the whole swing
_FORECAST_STEPS = 14 * 24


def key_of(instance_type: str, subnet: str, platform: str = "") -> str:
    """The name under which `Ec2.spot_usd_per_hour` has a price; with a platform, of that one alone."""
    return f"{instance_type}/{subnet}/spot" + (f"/{platform}" if platform else "")


def price_at(ec2: "Ec2", kind: str, subnet: str, platform: str, at: float) -> float | None:
    """The price of a machine an hour at an instant; None where spot is not to be had."""
    prices = ec2.spot_usd_per_hour
    usual = prices.get(key_of(kind, subnet, platform), prices.get(key_of(kind, subnet)))
    return None if usual is None else usual * moved(ec2, f"{kind}/{ec2.zones.get(subnet, ZONE)}/{platform}", at)


def told_prices(ec2: "Ec2", kinds: list[str], platforms: list[str]) -> list[tuple[str, str, str, float, float]]:
    """The last change of each price: instance type, zone, platform, dollars an hour, and since when."""
    now = ec2.timeline.now
    since = now - now % STEP_SECONDS if ec2.physics.spot_swing else now
    offered = dict.fromkeys(tuple(key.split("/")[:2]) for key in ec2.spot_usd_per_hour)
    found = [
        (kind, ec2.zones.get(subnet, ZONE), platform, price_at(ec2, kind, subnet, platform, now), since)
        for kind, subnet in offered
        if kind in kinds
        for platform in (LINUX, WINDOWS)
        if platform in platforms
    ]
    return [(kind, zone, platform, usd, at) for kind, zone, platform, usd, at in found if usd is not None]


def moved(ec2: "Ec2", what: str, at: float) -> float:
    """How far a price is from the usual one at an instant, as a factor; the same for everybody in worlds of one seed."""
    swing = ec2.physics.spot_swing
    if not swing:
        return 1.0
    chance, hours = Random(f"{ec2.seed}/spot price/{what}"), at // STEP_SECONDS  # noqa: S311 - a simulation's chance
    return 1.0 + swing * sum(share * sin(2 * pi * (hours / period + chance.random())) for period, share in _PERIODS)


def mean_move(ec2: "Ec2", instance: "Instance", begin: float, end: float) -> float:
    """The mean of that factor while an instance ran: what its bill differs by."""
    if instance.market != "spot" or not ec2.physics.spot_swing or end <= begin:
        return 1.0
    what, at, total = f"{instance.instance_type}/{instance.zone}/{instance.platform}", begin, 0.0
    while at < end:
        until = min(end, (at // STEP_SECONDS + 1) * STEP_SECONDS)
        total += moved(ec2, what, at) * (until - at)
        at = until
    return total / (end - begin)


def too_dear_at(ec2: "Ec2", instance: "Instance", most: float) -> float | None:
    """When a running instance becomes dearer than its request allows, and EC2 takes it back; None: not within weeks."""
    now = ec2.timeline.now
    steps = (now - now % STEP_SECONDS + step * STEP_SECONDS for step in range(1, _FORECAST_STEPS))
    if not ec2.physics.spot_swing:
        return None
    prices = ((at, price_at(ec2, instance.instance_type, instance.subnet, instance.platform, at)) for at in steps)
    return next((at for at, usd in prices if usd is not None and usd > most), None)
