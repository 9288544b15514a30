"""The faces over HTTP: one small threaded server for every controller and for EC2."""

import base64
import gzip
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from workbench.faces.ec2_face import Ec2Face, error_xml
from workbench.faces.jenkins_face import JenkinsFace, Request, Response
from workbench.world.faults import ConnectionLostError, StatusError

_GZIP_FROM_BYTES = 1000


class FaceServer:
    """Serves ``/jenkins/<controller>/...`` and ``/ec2/`` on loopback. Use as a context manager."""

    def __init__(self) -> None:
        """Bind to a free port; serve once entered."""
        self.jenkins: dict[str, JenkinsFace] = {}
        self.ec2: Ec2Face | None = None
        self.requests: list[tuple[str, int]] = []  # path, bytes sent
        self.lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

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
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        form = dict(parse_qsl(body.decode(), keep_blank_values=True)) if body else {}
        with self.lock:
            if url.path.startswith("/ec2") and self.ec2 is not None:
                status, xml = self.ec2.query(form)
                return Response(status, {"Content-Type": "text/xml;charset=UTF-8"}, xml)
            _, _, controller, path = (*url.path.split("/", 3), "", "")[:4]
            face = self.jenkins.get(controller)
            if face is None:
                return Response(404, {}, b"")
            user, password = _basic(headers.get("Authorization"))
            return face.handle(Request(method, path, query, form, user, password, headers.get("Jenkins-Crumb")))

    def _handler(self) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - a class, whose methods are counted together
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_GET(self) -> None:
                self._serve()

            def do_POST(self) -> None:
                self._serve()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                """Say nothing: the demo's screen is not a server log."""

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    response = owner.answer(self.command, self.path, self.headers, body)
                except ConnectionLostError:
                    self.close_connection = True
                    with suppress(OSError):
                        self.connection.shutdown(2)
                    return
                except StatusError as error:
                    response = Response(error.fault.status, {}, error_xml(error.fault.code or "InternalError", "planned"))
                self._send(response)

            def _send(self, response: Response) -> None:
                content, headers = response.body, dict(response.headers)
                if len(content) >= _GZIP_FROM_BYTES and "gzip" in self.headers.get("Accept-Encoding", ""):
                    content = gzip.compress(content, 1)
                    headers["Content-Encoding"] = "gzip"
                self.send_response_only(response.status)
                for name, value in headers.items():
                    self.send_header(name, value.encode("utf-8").decode("latin-1"))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                owner.requests.append((self.path, len(content)))

        return Handler


def _basic(header: str | None) -> tuple[str | None, str | None]:
    if not header or not header.startswith("Basic "):
        return None, None
    user, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    return user, password
