"""Every minute, or when a person asks: bring back and launch what the queue needs."""

from typing import Any

from autoscaler.control import passes
from autoscaler.entry import scheduled
from autoscaler.entry.context import Context
from autoscaler.events import read_scale_up
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Context) -> dict[str, Any]:
    """Return the plan, and what became of each step (design 6.5)."""
    if isinstance(event, dict) and "action" in event:
        from autoscaler.entry.examining import try_launches  # noqa: PLC0415 - the schedule needs none of it

        return try_launches(event)
    return scheduled.scale("scale_up", event, context, read_scale_up, passes.scale_up)
