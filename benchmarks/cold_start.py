"""Run in a bare interpreter: import one handler, call it twice, and print how long each took, in seconds. Its event: argument.

The line before says how many modules of the layer the import loaded, and how many were loaded in the end.
"""

import json
import sys
from time import perf_counter

_BEGAN = perf_counter()

from app import handler  # noqa: E402 - the import is what is measured

_IMPORTED = perf_counter()


def _of_layer() -> int:
    return sum(name.partition(".")[0] == "autoscaler" for name in sys.modules)


_LOADED = _of_layer()


class _Context:
    function_name = "f"
    aws_request_id = "r"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-west-2:123456789012:function:f"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 55_000


def _call() -> float:
    began = perf_counter()
    handler(_EVENT, _Context())
    return perf_counter() - began


_EVENT = json.loads(sys.argv[1])
_TOOK = _IMPORTED - _BEGAN, _call(), _call()
print("loaded", _LOADED, _of_layer())  # noqa: T201
print("took", *_TOOK)  # noqa: T201
