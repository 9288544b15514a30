"""The least that a function of this kind can do: one client, one read from DynamoDB."""

from typing import Any

import boto3
from aws_lambda_powertools import Logger

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(_event: Any, _context: Any) -> dict[str, Any]:
    """Read one item that is not there."""
    return boto3.client("dynamodb").get_item(TableName="autoscaler-demo", Key={"fleet": {"S": "f"}, "item": {"S": "i"}})  # type: ignore[return-value]
