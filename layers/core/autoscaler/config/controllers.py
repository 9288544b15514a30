"""One Jenkins controller, as an operator writes it; how its URL is judged, and how environment variables spell its name."""

import re
from typing import Annotated, Literal

from pydantic import AnyHttpUrl, Field, StringConstraints, ValidationError

from autoscaler.config.basics import ROLE_ID, Section
from autoscaler.domain.facts.fleet import RESUME_TIMEOUT_SECONDS
from autoscaler.domain.wording import shortened

_LONGEST_URL = 200


def url_problem(url: str) -> str | None:
    """Say what is wrong with a controller's URL, never a password in it; None: nothing is."""
    shown = shortened(re.sub(r"^([a-z]+://)?.*@", r"\1***@", url, flags=re.IGNORECASE | re.DOTALL), _LONGEST_URL)
    try:
        parsed = AnyHttpUrl(url)
    except ValidationError:
        return f"({shown}) must be an http or https URL"
    if parsed.username is not None or parsed.password is not None:
        return f"({shown}) must not hold credentials: agents and logs are told it; keep them in a secret (key secret)"
    if parsed.query is not None or parsed.fragment is not None:
        return f"({shown}) must not have a query or a fragment"
    return None


class ControllerSettings(Section):
    """One Jenkins controller."""

    url: str = Field(
        description="Address of the Jenkins controller, http or https, as agents reach it. No user, password, query or fragment in it."
    )
    secret: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        None,
        description='Name or ARN of a secret in AWS Secrets Manager: {"username": "...", "token": "..."}. The functions may read secrets '
        "whose names begin with the stack's parameter ControllerSecretPrefix (jenkins/). Without a secret, Jenkins is asked anonymously.",
    )
    nodes: Literal["dynamic", "slots"] = Field(
        "dynamic",
        description="Where the Jenkins nodes of agents come from. dynamic: each agent gets a node of its own, which is deleted with it. "
        "slots: agents take static nodes that you made beforehand.",
    )
    resume_timeout_seconds: float = Field(
        RESUME_TIMEOUT_SECONDS,
        ge=600,
        le=604_800,
        allow_inf_nan=False,
        description="After a restart of Jenkins, an agent is kept this long for a pipeline that ran on it and has not resumed yet.",
    )
    host_role_id: Annotated[str, StringConstraints(pattern=ROLE_ID)] | None = Field(
        None,
        description="Unique id of the IAM role that the machine of this controller alone has (AROA..., aws iam get-role). If set, the "
        "agents' service there may report memory, disk and processors. If not, only Jenkins' own figures are known.",
    )


def environment_name(controller: str) -> str:
    """Spell a controller as in environment variables: upper case, ``-`` as ``_``."""
    return re.sub(r"[^A-Z0-9]", "_", controller.upper())
