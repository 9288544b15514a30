"""The key that says which parameters tell the builds of a job apart."""

from typing import Annotated

from pydantic import Field, StringConstraints

from autoscaler.config.reruns import PARAMETER_NAME, JobPattern
from autoscaler.domain.facts.job_settings import JobParameters

_Names = Annotated[list[Annotated[str, StringConstraints(pattern=PARAMETER_NAME)]], Field(min_length=1, max_length=10)]
JobParametersKey = Annotated[
    dict[JobPattern, _Names],
    Field(
        max_length=100,
        description="Parameters that tell builds of a job apart in autoscaler jobs and eta, by the full name of the job; * stands for any "
        "letters, slashes, too: {nightly/*: [ARCH, SUITE]}. Name those with few values, on which durations depend. If set, "
        "each look also reads the parameters of waiting and running builds.",
    ),
]


def job_parameters(settings: JobParametersKey) -> JobParameters:
    """Translate to the domain's value."""
    return JobParameters(by_pattern=tuple((pattern, tuple(names)) for pattern, names in settings.items()))
