"""Lambda's Invoke API: queues an invocation until the thread that runs the handlers takes it, and returns its answer."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any

from autoscaler_workbench.fakes.http_fakes.messages import Response

_ANSWERED_WITHIN_SECONDS = 120.0


@dataclass(slots=True)
class LambdaApi:
    """Functions by name. A request waits until `serve` was called for it in the thread that the world lives in.

    ``denied``: those that IAM lets the caller not invoke; ``asked``: each that somebody tried to invoke.
    """

    names: frozenset[str]
    denied: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    _queue: Queue[tuple[str, Any, Future[bytes]]] = field(default_factory=Queue)

    def handle(self, path: str, body: bytes) -> Response:
        """Answer ``POST /2015-03-31/functions/NAME/invocations``."""
        parts = path.strip("/").split("/")
        if len(parts) != 4 or parts[1] != "functions" or parts[3] != "invocations":
            return Response(404, {}, b"{}")
        if parts[2] not in self.names:
            told = {"Type": "User", "message": f"Function not found: {parts[2]}"}
            return Response(404, {"x-amzn-ErrorType": "ResourceNotFoundException"}, json.dumps(told).encode())
        self.asked.append(parts[2])
        if parts[2] in self.denied:
            told = {"Message": f"User: ben is not authorized to perform: lambda:InvokeFunction on resource: {parts[2]}"}
            return Response(403, {"x-amzn-ErrorType": "AccessDeniedException"}, json.dumps(told).encode())
        future: Future[bytes] = Future()
        self._queue.put((parts[2], json.loads(body or b"{}"), future))
        try:
            answer = future.result(_ANSWERED_WITHIN_SECONDS)
        except Exception as error:  # noqa: BLE001 - as Lambda does it: whatever a handler raises is told to the caller
            late = future.cancel()  # its caller is told that it failed: it must not be carried out later
            return _failed(TimeoutError(f"{parts[2]} was not served within {_ANSWERED_WITHIN_SECONDS:.0f} s") if late else error)
        return Response(200, {"Content-Type": "application/json"}, answer)

    def serve(self, call: Callable[[str, Any], dict[str, Any]], wait_seconds: float) -> bool:
        """Serve one invocation if one comes in time; tell whether one did."""
        try:
            name, event, future = self._queue.get(timeout=wait_seconds)
        except Empty:
            return False
        if not future.set_running_or_notify_cancel():
            return True
        try:
            future.set_result(json.dumps(call(name, event)).encode())
        except Exception as error:  # noqa: BLE001 - it goes to the caller
            future.set_exception(error)
        return True

    def serve_waiting(self, call: Callable[[str, Any], dict[str, Any]]) -> None:
        """Serve the invocations that wait now; those that come meanwhile wait for the next time."""
        for _ in range(self._queue.qsize()):
            self.serve(call, 0.0)


def _failed(error: Exception) -> Response:
    failed = {"errorMessage": str(error), "errorType": type(error).__name__}
    return Response(200, {"X-Amz-Function-Error": "Unhandled"}, json.dumps(failed).encode())
