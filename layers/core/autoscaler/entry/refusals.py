"""Answers who sent an event that is refused. It is no error of the function: errors ring an alarm, and a typo shall not."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from autoscaler.entry.context import Context
from autoscaler.errors import EventRefusedError
from autoscaler.telemetry import log

Handler = Callable[[Any, Context], dict[str, Any]]


def answers_refusals(handle: Handler) -> Handler:
    """Let a handler answer ``{"refused": line}`` to a person. What AWS itself sends and we cannot read stays an error."""

    @wraps(handle)
    def answered(event: Any, context: Context) -> dict[str, Any]:
        try:
            return handle(event, context)
        except EventRefusedError as refusal:
            # EventBridge, SQS and SNS: each of their events has one of these keys.
            if isinstance(event, Mapping) and ("detail-type" in event or "Records" in event):
                raise
            log("event_refused", error=str(refusal))
            return {"refused": str(refusal)}

    return answered
