"""When a person asks: hold, resume, set other numbers for a while, drain, or say what would be done now."""

from typing import Any

from autoscaler.entry import operating
from autoscaler.entry.context import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Context) -> dict[str, Any]:
    """Return what was done, and what stands (design 6.5)."""
    return operating.obey("operate", event, context)
