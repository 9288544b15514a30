"""Helps every adapter of AWS: pages of answers, codes of errors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session, get_session
from botocore.utils import parse_timestamp

from autoscaler.errors import TransientError

_VALUES_A_FILTER = 200


def pages(client: Any, method: str, request: dict[str, Any]) -> Iterator[Any]:
    """Ask page by page; ``method``: boto3's name of the operation. `TransientError`."""
    with translated("".join(word.capitalize() for word in method.split("_"))):
        yield from client.get_paginator(method).paginate(**request)


@contextmanager
def translated(
    action: str,
    refusal: Callable[[ClientError, str], TransientError] | None = None,
    unanswered: Callable[[str], TransientError] = TransientError,
) -> Iterator[None]:
    """Translate boto3's errors; by default those of a call that may be repeated. `TransientError`."""
    try:
        yield
    except ClientError as error:
        raise (refusal(error, action) if refusal else TransientError(f"{action}: {code_of(error)}")) from error
    except BotoCoreError as error:
        raise unanswered(f"{action} was not answered ({type(error).__name__})") from error


@contextmanager
def unless(code: str) -> Iterator[None]:
    """Go on after an error of AWS whose code begins so; what follows the block is then the answer."""
    try:
        yield
    except ClientError as error:
        if not code_of(error).startswith(code):
            raise


def named_template(template: str) -> dict[str, str]:
    """Name a launch template to EC2, by its id or its name."""
    return {"LaunchTemplateId" if template.startswith("lt-") else "LaunchTemplateName": template}


def template_data(client: Any, template: str, version: str) -> dict[str, Any] | None:
    """Return a launch template's data; None where there is no such template or version. Errors are boto3's."""
    with unless("InvalidLaunchTemplate"):
        answer = client.describe_launch_template_versions(**named_template(template), Versions=[version])
        return next((known["LaunchTemplateData"] for known in answer["LaunchTemplateVersions"]), None)
    return None


def filtered(client: Any, method: str, name: str, values: Sequence[str], **more: Any) -> Iterator[Any]:
    """Ask by a filter, page by page: unknown values fail nothing, and without values nothing is asked."""
    for start in range(0, len(values), _VALUES_A_FILTER):
        filters = [{"Name": name, "Values": list(values[start : start + _VALUES_A_FILTER])}]
        yield from pages(client, method, {"Filters": filters, **more})


def zones(client: Any, subnets: Sequence[str]) -> dict[str, str]:
    """Return the zones of subnets, without those that EC2 does not know; `TransientError`."""
    found = filtered(client, "describe_subnets", "subnet-id", subnets)
    return {raw["SubnetId"]: raw["AvailabilityZone"] for page in found for raw in page["Subnets"]}


def code_of(error: ClientError) -> str:
    """Return AWS' code of the error."""
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


# Times in AWS' answers, read by the standard library: botocore's way takes a sixth of a pass over thousands of instances.


def session_with_quick_times() -> Session:
    """Return a session whose clients read times as `read_time` does."""
    session = get_session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=read_time)
    return session


def read_time(value: Any) -> datetime:
    """Read a time. EC2's look as 2026-11-24T02:00:00.000Z; botocore reads all others. `ValueError`."""
    if isinstance(value, str) and value[10:11] == "T" and value.endswith("Z"):
        with suppress(ValueError):  # it is for botocore to say what is wrong with it
            return datetime.fromisoformat(value)
    read: datetime = parse_timestamp(value)
    return read
