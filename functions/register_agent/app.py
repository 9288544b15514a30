"""When an instance asks who it is: make its node, and tell it how to connect. Everybody else is sent away."""

from typing import Any

from autoscaler.entry import function_url
from autoscaler.entry.events import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, _context: Context) -> dict[str, Any]:
    """Return the answer of a function URL, or of the HTTP API in its place."""
    return function_url.register(event)
