"""Warns of keys of a warm pool that have no effect beside its others."""

from collections.abc import Iterator

from autoscaler.config.problems import Problem
from autoscaler.config.settings import FleetSettings
from autoscaler.config.warm_pools import WarmPoolSettings

_Place = tuple[str | int, ...]


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


def _written(settings: FleetSettings) -> Iterator[tuple[_Place, WarmPoolSettings]]:
    """List every warm pool that the file has: in the defaults, in a pool, in hours of the week."""
    places: list[tuple[_Place, object]] = [(("defaults", "warm_pool"), settings.defaults.warm_pool)]
    for name, pool in settings.pools.items():
        places.append((("pools", name, "warm_pool"), pool.warm_pool))
        places += [(("pools", name, "schedules", number, "warm_pool"), hours.warm_pool) for number, hours in enumerate(pool.schedules)]
    yield from ((place, warm) for place, warm in places if isinstance(warm, WarmPoolSettings))
