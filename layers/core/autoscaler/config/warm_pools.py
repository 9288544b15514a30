"""The keys of a warm pool."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from autoscaler.config.basics import Count, Section
from autoscaler.domain.facts.fleet import WarmPool


class WarmPoolSettings(Section):
    """Agents that are stopped instead of terminated, and started again when they are needed."""

    min_agents: Count = Field(
        0,
        description="Stopped agents that are there while nothing is built. Where there are fewer, agents are launched in quiet times to be "
        "stopped; those that run, beyond the pool's min_agents, count: they will be stopped.",
    )
    max_agents: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Most stopped agents at once; they do not count in the pool's max_agents. Default: as many as those."
    )
    max_age_hours: Annotated[float, Field(gt=0, le=87_600)] = Field(
        168.0,
        description="An agent that has been stopped for longer than this is terminated. More than max_disk_age_hours has no effect.",
    )
    max_disk_age_hours: Annotated[float, Field(gt=0, le=87_600)] = Field(
        168.0,
        description="An agent that was launched longer ago than this is terminated instead of stopped, or while it is stopped: its disk "
        "keeps what builds left.",
    )
    max_disk_builds: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        200, description="An agent that has had so many builds in all its lives is terminated instead of stopped."
    )
    instance_stores: bool = Field(
        default=False,
        description="Stop agents of types with instance stores (m5d, g5, i4i), too. These disks are empty after each start: your image, or "
        "a service that runs at each boot, must format and mount them again. By default, agents of such types are terminated.",
    )


def _way_of_warm_pool(given: object) -> str:
    return "{off}" if given in ("off", False) else "{keys}"


# Words of this form stand in pydantic's places, and in no fleet file: a message leaves them out.
WarmPoolKey = Annotated[
    Annotated[WarmPoolSettings, Tag("{keys}")] | Annotated[Literal["off", False], Tag("{off}")],
    Discriminator(_way_of_warm_pool),
    AfterValidator(lambda given: False if given == "off" else given),
]


def warm_pool_of(settings: WarmPoolSettings, max_agents: int) -> WarmPool:
    """Translate to the domain's value, in a pool of so many agents at most."""
    most = max_agents if settings.max_agents is None else settings.max_agents
    return WarmPool(
        min_agents=settings.min_agents,
        max_agents=most,
        max_age_seconds=settings.max_age_hours * 3600.0,
        max_disk_seconds=settings.max_disk_age_hours * 3600.0,
        max_disk_builds=settings.max_disk_builds,
        instance_stores=settings.instance_stores,
    )
