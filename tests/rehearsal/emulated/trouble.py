"""Trouble on demand. The file ``trouble.json`` is read anew at each call; what it does not name goes well.

``{"slow": {"TransactWriteItems": 15}}``: DynamoDB does what the action says, and answers so many seconds later.
``{"throttled": ["PutItem", "Query"]}``: DynamoDB refuses these actions.
"""

import asyncio
import json
import os
from functools import wraps
from pathlib import Path

from ministack.core.responses import error_response_json
from ministack.services import dynamodb

from rehearsal.emulated.ec2 import log


def install() -> None:
    dynamodb.handle_request = _troubled(dynamodb.handle_request)


def _wanted():
    file = Path(os.environ["REHEARSAL_FOLDER"]) / "trouble.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _troubled(handle):
    @wraps(handle)
    async def answer(method, path, headers, body, query):
        action, wanted = headers.get("x-amz-target", "").rpartition(".")[2], _wanted()
        if action in wanted.get("throttled", ()):
            log(f"{action} is throttled")
            text = "The level of configured provisioned throughput for the table was exceeded."
            return error_response_json("ProvisionedThroughputExceededException", text, 400)
        result = await handle(method, path, headers, body, query)
        if seconds := wanted.get("slow", {}).get(action):
            log(f"{action} is answered after {seconds} s")
            await asyncio.sleep(seconds)
        return result

    return answer
