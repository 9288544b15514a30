"""Every minute: look, publish what was seen, learn from what changed. Decides nothing."""

from typing import Any

from autoscaler.entry import scheduled
from autoscaler.entry.events import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Context) -> dict[str, Any]:
    """Return how many metrics were published."""
    return scheduled.publish_metrics(event, context)
