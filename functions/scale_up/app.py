"""Every minute, or when a person asks: bring back and launch what the queue needs."""

from typing import Any

from autoscaler.entry import scheduled
from autoscaler.entry.events import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Context) -> dict[str, Any]:
    """Return the plan, and what became of each step."""
    return scheduled.scale_up(event, context)
