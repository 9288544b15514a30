"""What an instance talks to: the metadata service, the function URL, its controller; a java and an ip that note how they were called."""

import json
import os
import shlex
import subprocess
import tempfile
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from packaging_root import ROOT
from support import processes
from support.signatures import KEYS, REGION, wrong_with

SCRIPT = ROOT / "agent" / "linux" / "autoscaler-agent"
SECRET = "5ec7e7" * 10 + "abcd"


@dataclass(slots=True)
class Surroundings:
    """``answers``: what the function URL says, one after another, the last for ever; ``imds``: whether the metadata service answers.

    An answer with a ``Message`` is AWS' own, as of a request that IAM denies; the others carry our header.
    """

    directory: Path
    answers: list[tuple[int, dict]] = field(default_factory=list)
    jar_status: int = 200
    imds: bool = True
    service: str = "lambda"  # what a request must be signed for
    handler: Callable[[], tuple[int, dict]] | None = None  # asked for each answer instead, where it is there
    asked: list[str] = field(default_factory=list)  # what was wrong with each signed request; "" where nothing was
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""

    def registered(self, node: str = "cpu-1") -> tuple[int, dict]:
        connection = {"controller": "main", "url": f"{self.url}/jenkins/", "name": node, "secret": SECRET, "web_socket": True}
        return 200, {"node": node, "connections": [connection], "executors": 1, "labels": ["cpu"], "remote_dir": "/home/jenkins"}

    def next_answer(self) -> tuple[int, dict]:
        if self.handler is not None:
            return self.handler()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def run(self, *, seconds: float = 10, **settings: str) -> str:
        """Run the script until it powers off, or for so long; return what it said."""
        environment = {
            "PATH": f"{self.directory}:{os.environ['PATH']}",
            "REGISTER_URL": f"{self.url}/register",
            "REGION": REGION,
            "IMDS": self.url,
            "JAVA": str(self.directory / "java"),
            "POWER_OFF": f"touch {self.directory}/off",
            "RUN_DIRECTORY": str(self.directory / "run"),
            "WORK_DIRECTORY": str(self.directory / "work"),
            "FIRST_PAUSE_SECONDS": "1",
            "CLOUD_INIT": str(self.directory / "cloud-init"),
            "READY": str(self.directory / "ready"),
        }
        together = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
        with subprocess.Popen([SCRIPT], env=environment | settings, **together) as script:
            try:
                said, _ = script.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                script.kill()
                processes.kill(processes.naming(f"{self.directory}/"))  # with what it waits for
                said, _ = script.communicate()
        return said

    @property
    def powered_off(self) -> bool:
        return (self.directory / "off").exists()

    def builds_run(self, script: str) -> None:
        """Let the build user run this while its agent is connected."""
        (self.directory / "build").write_text(script, encoding="utf-8")

    def ip_calls(self) -> list[str]:
        path = self.directory / "ip.log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def java_calls(self) -> list[dict]:
        path = self.directory / "java.log"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


JAVA = """#!/bin/sh
for argument; do case $argument in @*) secret=${argument#@} ;; esac; done
printf '{"arguments": "%s", "secret": "%s", "mode": "%s", "environment": "%s"}\\n' \
  "$*" "$(cat "$secret")" "$(ls -l "$secret" | cut -c 1-10)" "$(env | cut -d= -f1 | sort | tr '\\n' ' ')" >> DIRECTORY/java.log
name=${*#*-name } name=${name%% *}
trap 'echo "$name" >> DIRECTORY/ended; kill "$build"; exit 143' TERM
sh DIRECTORY/build "$@" & build=$!
wait "$build"
"""
IP = """#!/bin/sh
echo "$*" >> DIRECTORY/ip.log
"""


@pytest.fixture
def around() -> Iterator[Surroundings]:
    # Not pytest's own directory: the build user may not enter that.
    with tempfile.TemporaryDirectory(prefix="autoscaler-agent-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        for program, script in {"java": JAVA, "ip": IP}.items():
            (directory / program).write_text(script.replace("DIRECTORY", shlex.quote(name)), encoding="utf-8")
            (directory / program).chmod(0o755)
        for log in ("build", "ended", "java.log", "seen"):
            (directory / log).touch()
            (directory / log).chmod(0o666)
        yield from served(Surroundings(directory))


def served(surroundings: Surroundings) -> Iterator[Surroundings]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(surroundings))
    surroundings.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    try:
        yield surroundings
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def handler_of(around: Surroundings) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - a class, whose methods are counted together
    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self):
            self.send(200 if around.imds and self.path == "/latest/api/token" else 403, b"imds-token")

        def do_GET(self):
            place = "/latest/meta-data/iam/security-credentials/"
            if self.path == "/jenkins/jnlpJars/agent.jar":
                self.send(around.jar_status, b"PK")
            elif self.headers.get("X-aws-ec2-metadata-token") != "imds-token":
                self.send(401, b"")
            elif self.path == place:
                self.send(200, b"autoscaler-agent")
            elif self.path == f"{place}autoscaler-agent":
                keys = {"Code": "Success", "AccessKeyId": KEYS.access_key, "SecretAccessKey": KEYS.secret_key, "Token": KEYS.token}
                self.send(200, json.dumps(keys, indent=2).encode())
            else:
                self.send(404, b"")

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            around.bodies.append(body)
            around.asked.append(wrong_with(self, body, around.service))
            status, answer = around.next_answer()
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            ours = {} if b'"Message"' in content else {"X-Autoscaler": "registration"}
            self.send(403 if around.asked[-1] else status, content, ours)

        def send(self, status, content, headers=types.MappingProxyType({})):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content) + (100 if b"CutShort" in content else 0)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Say nothing."""

    return Handler
