"""Run in a bare interpreter: import one built handler with only its own folder and the built layers on the path, and call it.

``smoke.py FUNCTION_FOLDER CORE_LAYER TIMES`` prints the handler's answers, a line of JSON each; the environment is what Lambda gives.
"""

import json
import sys
from datetime import UTC, datetime
from types import SimpleNamespace

function, core, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.path[:0] = [function, core]

import app  # noqa: E402 - after the path is set, as in Lambda
import pydantic  # noqa: E402

import autoscaler  # noqa: E402

assert app.__file__.startswith(function), app.__file__
assert autoscaler.__file__.startswith(core), autoscaler.__file__
assert pydantic.__file__.startswith(core), pydantic.__file__

for number in range(times):
    context = SimpleNamespace(
        function_name="smoke",
        memory_limit_in_mb=512,
        invoked_function_arn="arn:aws:lambda:us-west-2:123456789012:function:smoke",
        aws_request_id=f"smoke-{number}",
        get_remaining_time_in_millis=lambda: 55_000,
    )
    tick = {"version": "0", "id": "1", "source": "aws.events", "account": "123456789012", "region": "us-west-2", "resources": []}
    tick |= {"detail-type": "Scheduled Event", "time": datetime.now(UTC).isoformat(), "detail": {}}
    sys.stdout.write(f"answer {json.dumps(app.handler(tick, context))}\n")
