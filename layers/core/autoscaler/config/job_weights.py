"""The key that says which jobs take more of an agent than one executor."""

from typing import Annotated

from pydantic import Field

from autoscaler.config.reruns import JobPattern
from autoscaler.domain.facts.job_settings import JobWeights, Source

JobWeightsKey = Annotated[
    dict[JobPattern, Annotated[int, Field(ge=1, le=1000)] | Annotated[Source, Field(strict=False)]],
    Field(
        max_length=200,
        description="How many executors' worth of an agent a build takes, by the full name of its job; * stands for any letters, slashes, "
        "too; the first pattern that matches counts: {nightly/smoke: 1, nightly/*: 4, '*': learned}. learned: by what its "
        "builds were seen to need (autoscaler needs), 1 until then. heavy-job: as the Heavy Job plugin has it, which Jenkins "
        "itself heeds. What none matches weighs 1. An agent whose builds weigh as much as it has executors takes no further "
        "ones: it loses its labels until there is room again.",
    ),
]


def job_weights(settings: JobWeightsKey) -> JobWeights:
    """Translate to the domain's value."""
    return JobWeights(by_pattern=tuple(settings.items()))
