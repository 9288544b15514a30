"""The fakes over HTTP: one small threaded server for every controller and for AWS."""

import base64
import gzip
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, Self
from urllib.parse import SplitResult, parse_qsl, urlsplit

from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.http_fakes.aws import services
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.aws.ec2_query import error_xml
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.messages import Request, Response
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, StatusError

_GZIP_FROM_BYTES = 1000
_LINE_BYTES = 65536


class _Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


class ApiServer:
    """Serves ``/jenkins/<controller>/...``, ``/ec2/``, ``/lambda/`` and the services that the doctor asks, on loopback.

    Use as a context manager.
    """

    def __init__(self, port: int = 0) -> None:
        """Bind to a port, 0 for any free one; serve once entered. `ConfigError` where the port is taken."""
        self.jenkins: dict[str, JenkinsApi] = {}
        self.ec2: Ec2Api | None = None
        self.functions: LambdaApi | None = None
        self.published: Callable[[], bytes] | None = None  # what the local CloudWatch was sent
        self.requests: list[tuple[str, int]] = []  # path, bytes sent
        self.before_answer: Callable[[], None] = lambda: None  # such as letting the world's time catch up with the wall clock
        self.lock = threading.RLock()
        try:
            self._server = _Server(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise ConfigError(f"--port ({port}): {error.strerror}; does another demo run? choose another port") from error
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> Response:
        """Answer one request, one at a time: the world is not made for threads."""
        url = urlsplit(target)
        if url.path.startswith("/lambda/") and self.functions is not None:  # not under the lock: handlers ask the other APIs
            return self.functions.handle(url.path.removeprefix("/lambda"), body)
        if url.path == "/cloudwatch/published" and self.published is not None:
            return Response(200, {"Content-Type": "application/json"}, self.published())
        with self.lock:
            self.before_answer()
            return self._answer_in_world(method, url, headers, body)

    def _answer_in_world(self, method: str, url: SplitResult, headers: Any, body: bytes) -> Response:
        is_form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        form = dict(parse_qsl(body.decode(), keep_blank_values=True)) if is_form else {}
        _, service, controller, path = (*url.path.split("/", 3), "", "")[:4]
        if service == "ec2" and self.ec2 is not None:
            status, xml = self.ec2.query(form)
            return Response(status, {"Content-Type": "text/xml;charset=UTF-8"}, xml)
        if service in services.SERVICES and self.ec2 is not None:
            return services.answer(service, self.ec2.ec2, self.ec2.faults, body)
        api = self.jenkins.get(controller)
        if api is None:
            return Response(404, {}, b"")
        if api.controller.up == "down":
            raise ConnectionLostError(controller)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        user, password = _basic(headers.get("authorization"))
        return api.handle(Request(method, path, query, form, user, password, headers.get("jenkins-crumb"), body))

    def _handler(self) -> type[StreamRequestHandler]:
        owner = self

        class Handler(StreamRequestHandler):
            """One connection: plain HTTP/1.1 with keep-alive. http.server's own parsing would be half of a request's time."""

            disable_nagle_algorithm = True
            wbufsize = -1

            def handle(self) -> None:
                with suppress(ConnectionError):
                    while self._serve_one():
                        self.wfile.flush()

            def _serve_one(self) -> bool:
                start = self.rfile.readline(_LINE_BYTES).decode("latin-1").split()
                if len(start) != 3:
                    return False
                headers: dict[str, str] = {}
                while line := self.rfile.readline(_LINE_BYTES).decode("latin-1").strip():
                    name, _, value = line.partition(":")
                    headers[name.strip().lower()] = value.strip()
                body = self.rfile.read(int(headers.get("content-length", "0")))
                try:
                    response = owner.answer(start[0], start[1], headers, body)
                except ConnectionLostError:
                    return False
                except StatusError as error:
                    response = Response(error.fault.status, {}, error_xml(error.fault.code or "InternalError", "planned"))
                self._send(start[1], headers, response)
                return headers.get("connection", "").lower() != "close"

            def _send(self, target: str, asked: dict[str, str], response: Response) -> None:
                content, headers = response.body, dict(response.headers)
                if len(content) >= _GZIP_FROM_BYTES and "gzip" in asked.get("accept-encoding", ""):
                    content = gzip.compress(content, 1)
                    headers["Content-Encoding"] = "gzip"
                headers["Content-Length"] = str(len(content))
                lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
                self.wfile.write("\r\n".join([*lines, "", ""]).encode("utf-8") + content)
                owner.requests.append((target, len(content)))

        return Handler


def _basic(header: str | None) -> tuple[str | None, str | None]:
    if not header or not header.startswith("Basic "):
        return None, None
    user, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    return user, password
