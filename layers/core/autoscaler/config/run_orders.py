"""The keys for builds that people order on machines of their choice."""

from typing import Annotated

from pydantic import Field, StringConstraints

from autoscaler.config.basics import Section
from autoscaler.config.reruns import PARAMETER_NAME
from autoscaler.domain.facts.started_builds import RunPolicy


class RunSettings(Section):
    """Builds that people order: one job on several machines, or until one succeeds."""

    label_parameter: Annotated[str, StringConstraints(pattern=PARAMETER_NAME)] = Field(
        "AGENT_LABEL",
        description="Parameter by which a job is told where to run, as in agent { label params.AGENT_LABEL }. Jobs that are to be ordered "
        "declare it, and rerun_parameter beside it.",
    )
    max_open: Annotated[int, Field(ge=1, le=200)] = Field(20, description="How many orders may be open at the same time.")


def run_policy(settings: RunSettings | None) -> RunPolicy | None:
    """Translate to the domain's value; None: nobody may order runs."""
    return RunPolicy(label_parameter=settings.label_parameter, max_open=settings.max_open) if settings else None
