"""When EC2 announces something of an instance: take its node from what takes builds, or clean up after it. Others' are left alone."""

from typing import Any

from autoscaler.entry import instance_events
from autoscaler.entry.events import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Context) -> dict[str, Any]:
    """Return the plan, and what became of each step."""
    return instance_events.handle("instance_events", event, context)
