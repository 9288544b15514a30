"""The least that a function of this kind imports: boto3 and Powertools. It does nothing."""

from typing import Any

import boto3  # noqa: F401 - importing it is the point
from aws_lambda_powertools import Logger

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(_event: Any, _context: Any) -> dict[str, Any]:
    """Do nothing."""
    return {}
