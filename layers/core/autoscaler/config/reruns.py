"""The keys that say which lost builds are run again."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag

from autoscaler.config.basics import Section
from autoscaler.domain.facts.started_builds import RerunPolicy

PARAMETER_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"

RerunParameter = Annotated[
    str,
    StringConstraints(pattern=PARAMETER_NAME),
    Field(
        description="Parameter by which a build that was started again is found. Jobs that declare it are started with it, once even where "
        "an answer of Jenkins is lost; for others what is in doubt is left to a person."
    ),
]
JobPattern = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class LostSettings(Section):
    """How often a lost build is run again."""

    times: Annotated[int, Field(ge=1, le=10)] = Field(1, description="How often a build is run again that was lost with its agent.")
    second: Literal["on-demand", "off"] = Field(
        "off",
        description="What follows when a build is lost once more after that. on-demand: it is run again one last time, and an on-demand "
        "agent is launched for it. off: it is left to a person. Whatever is lost after that is left to a person.",
    )


class RerunSettings(Section):
    """Builds that are lost with their agent, and are started again with the same parameters."""

    jobs: Annotated[list[JobPattern], Field(min_length=1, max_length=100)] = Field(
        ["*"],
        description="Full names of the jobs whose lost builds are run again; * stands for any letters, slashes, too: [nightly/*].",
    )
    lost: LostSettings = Field(LostSettings(), description="How often.")


def _way_of_rerun(given: object) -> str:
    return "{off}" if given in ("off", False) else "{keys}"


# As of a warm pool: words of this form stand in pydantic's places, and in no fleet file.
RerunKey = Annotated[
    Annotated[RerunSettings, Tag("{keys}")] | Annotated[Literal["off", False], Tag("{off}")],
    Discriminator(_way_of_rerun),
    AfterValidator(lambda given: False if given == "off" else given),
]


def rerun_policy(settings: RerunSettings | Literal[False] | None, *, only_spot: bool) -> RerunPolicy | None:
    """Translate to the domain's value; None: nothing is run again. ``only_spot``: the pool buys no on-demand agent."""
    if not settings:
        return None
    on_demand = settings.lost.second == "on-demand" and not only_spot
    return RerunPolicy(times=settings.lost.times, then_on_demand=on_demand, jobs=tuple(settings.jobs))
