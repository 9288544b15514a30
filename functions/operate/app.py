"""When a person orders or asks: hold, resume, override a pool, drain, purge; plan, status, why, doctor."""

from typing import Any

from autoscaler.entry import operate
from autoscaler.entry.events import Context
from autoscaler.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Context) -> dict[str, Any]:
    """Return what was done, and the overrides in force."""
    return operate.handle(event, context)
