"""Trouble on demand. The file ``trouble.json`` is read anew at each call; what it does not name goes well.

``{"cut_off": {"function": NAME, "writes": "intent#"}}``: a transaction that holds such a key is written, and the function ends before it
knows, as one does whose time is over. ``{"throttled": ["PutItem", "Query"]}``: DynamoDB refuses these actions.
"""

import json
import os
from functools import wraps
from pathlib import Path

from ministack.core import lambda_runtime
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
        cut_off = wanted.get("cut_off")
        if cut_off and action == "TransactWriteItems" and cut_off["writes"].encode() in body:
            _cut_off(cut_off["function"])
        return result

    return answer


def _cut_off(function):
    log(f"{function} is cut off")
    for worker in [worker for workers in lambda_runtime._workers.values() for worker in workers]:
        if worker.func_name == function and worker.in_use:
            worker._proc.kill()
