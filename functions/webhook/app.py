"""When a controller's notification plugin says that something is queued: have one look taken soon."""

from typing import Any

from autoscaler.entry import webhook
from autoscaler.entry.events import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, _context: Context) -> dict[str, Any]:
    """Return the answer of a function URL."""
    return webhook.ring(event)
