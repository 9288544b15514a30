"""Answers a notification of a controller: whoever knows the shared secret has a look taken, at most two in five seconds.

What the notification says is not read: the look reads the queue.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter

from autoscaler import bootstrap
from autoscaler.control.slots import ask_for_look
from autoscaler.entry.events import checked
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler.telemetry import log

_BEARER = "Bearer "


class _Request(BaseModel):
    headers: dict[str, str] = Field(default_factory=dict)
    query: dict[str, str] = Field(default_factory=dict, alias="queryStringParameters")


def ring(event: Any) -> dict[str, Any]:
    """Answer 202 and have a look taken, 403 if the token is wrong, 503 if the secret cannot be read or no look be asked for.

    No log line and no answer holds the secret.
    """
    secret, token = bootstrap.webhook_secret(), _token(event)
    try:
        is_ours = secret.is_known(token)
    except AutoscalerError as error:
        log("webhook_secret_not_read", error=f"{type(error).__name__}: {error}")
        is_ours = secret.is_known(token)  # by the one that was read before
    if is_ours is None:
        return {"statusCode": 503, "body": ""}
    if not is_ours:
        log("webhook_refused")
        return {"statusCode": 403, "body": ""}
    wired = bootstrap.runtime()
    is_asked_for = wired.ports.is_done(partial(ask_for_look, wired.ports, wired.fleet), "look_not_asked_for")
    return {"statusCode": 202 if is_asked_for else 503, "body": ""}


def _token(event: Any) -> str:
    """The secret that a request carries: in its address, since the plugin knows no headers, or as a bearer token."""
    try:
        given = {key: value for key, value in event.items() if value is not None} if isinstance(event, Mapping) else event
        request = checked(TypeAdapter(_Request), given)
    except ConfigError:
        return ""
    named = {name.lower(): value for name, value in request.headers.items()}
    return request.query.get("token", "") or named.get("authorization", "").removeprefix(_BEARER)
