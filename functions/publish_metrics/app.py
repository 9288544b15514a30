"""Every minute: look, publish what was seen, learn from what changed. Decides nothing."""

from typing import Any

from autoscaler import entry
from autoscaler.entry import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Context) -> dict[str, Any]:
    """Return how many metrics were published."""
    return entry.measure("publish_metrics", event, context)
