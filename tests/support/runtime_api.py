"""Lambda's Runtime API, for AWS' own runtime client: hands out one event after the other, and keeps what is answered.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

_DEADLINE_SECONDS = 55.0
_ARN = "arn:aws:lambda:us-west-2:123456789012:function:{}"
# As Lambda's bootstrap does: the function's folder comes first, then the layers.
_START = "import sys; sys.path[:0] = sys.argv[1:3]; from awslambdaric.__main__ import main; main(['bootstrap', 'app.handler'])"


@dataclass(slots=True)
class RuntimeApi:
    """The side that Lambda has. ``answers``: the last part of the path that each came by (``response``, ``error``), and the body."""

    function: str
    events: Queue[bytes] = field(default_factory=Queue)
    answers: Queue[tuple[str, bytes]] = field(default_factory=Queue)

    def invoke(self, event: Any) -> Any:
        """Hand out an event; return what the function answers, read as Lambda reads it. An error of the function is an `AssertionError`."""
        self.events.put(json.dumps(event).encode())
        kind, body = self.answers.get(timeout=120)
        assert kind == "response", f"{kind}: {body.decode()[:2000]}"
        return json.loads(body)


@contextmanager
def running(function: Path, core: Path, python: Path, environment: Mapping[str, str]) -> Iterator[RuntimeApi]:
    """Run a built function in the runtime client until the block ends."""
    api = RuntimeApi(function.name)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(api))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    given = {
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}",
        "AWS_LAMBDA_FUNCTION_NAME": api.function,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_GROUP_NAME": "logs",
        "AWS_LAMBDA_LOG_STREAM_NAME": "stream",
        "_HANDLER": "app.handler",
        "LAMBDA_TASK_ROOT": str(function),
    }
    command = [python, "-IB", "-c", _START, function, core]  # -B: in Lambda the folders are read-only
    client = subprocess.Popen(command, env={**environment, **given}, stdout=subprocess.DEVNULL)
    try:
        yield api
    finally:
        client.kill()
        client.wait()
        server.shutdown()
        server.server_close()


def _handler_of(api: RuntimeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = api.events.get()
            self.send_response(200)
            for name, value in _headers(api.function).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            api.answers.put((self.path.rpartition("/")[2], self._body()))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


def _headers(function: str) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Lambda-Runtime-Aws-Request-Id": f"request-{time.time_ns()}",
        "Lambda-Runtime-Deadline-Ms": str(int((time.time() + _DEADLINE_SECONDS) * 1000)),
        "Lambda-Runtime-Invoked-Function-Arn": _ARN.format(function),
        "Lambda-Runtime-Trace-Id": "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0",
    }
