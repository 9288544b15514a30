"""STS and ECR as an agent asks them for the keys of its fleet's caches; and the agent's scripts, run against them."""

import base64
import json
import os
import pwd
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from botocore.credentials import Credentials

from autoscaler_workbench.maintenance.user_data import installer
from packaging_root import ROOT
from support.signatures import KEYS, REGION, wrong_with

SCRIPTS = ROOT / "agent" / "linux-caches"
ROLE = "arn:aws:iam::123456789012:role/ci-CacheRole-1ABC"
INSTANCE = "i-0123456789abcdef0"
REGISTRY = "123456789012.dkr.ecr.us-west-2.amazonaws.com"
CACHE_KEYS = Credentials("ASIACACHE", "cache/secret+with=signs", "cache-token/with+signs==")
LOGIN = "a-login-of-the-registry"
ASSUMED = f"""<AssumeRoleResponse><AssumeRoleResult><Credentials>
  <AccessKeyId>{CACHE_KEYS.access_key}</AccessKeyId>
  <SecretAccessKey>{CACHE_KEYS.secret_key}</SecretAccessKey>
  <SessionToken>{CACHE_KEYS.token}</SessionToken>
  <Expiration>2099-01-01T00:00:00Z</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>"""
# Whom every distribution has; the home is one that the test makes.
BUILDS = "nobody"


@dataclass(slots=True)
class Cloud:
    """STS and ECR, and the metadata service. ``refuses``: how often STS answers an error first."""

    directory: Path
    refuses: int = 0
    url: str = ""
    asked: list[str] = field(default_factory=list)  # what was wrong with each request; "" where nothing was
    assumed: list[dict[str, list[str]]] = field(default_factory=list)

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        if request.path == "/sts/":
            self.asked.append(wrong_with(request, body, "sts"))
            self.assumed.append(parse_qs(body.decode()))
            if self.asked[-1] or len(self.assumed) <= self.refuses:
                return 403, b"<Error>no</Error>"
            return 200, ASSUMED.encode()
        self.asked.append(wrong_with(request, body, "ecr", CACHE_KEYS))
        target = request.headers.get("X-Amz-Target")
        if self.asked[-1] or target != "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken" or body != b"{}":
            return 400, b"{}"
        token = base64.b64encode(f"AWS:{LOGIN}".encode()).decode()
        return 200, json.dumps({"authorizationData": [{"authorizationToken": token, "expiresAt": 1.0}]}).encode()

    def run(self, until, *, seconds: float = 20, **settings: str) -> str:
        """Run the script until something is so; return what it said."""
        environment = {
            "PATH": f"{self.directory}:{os.environ['PATH']}",
            "CACHE_ROLE": ROLE,
            "REGION": REGION,
            "STS_URL": f"{self.url}/sts/",
            "ECR_URL": f"{self.url}/ecr/",
            "IMDS": self.url,
            "IMAGE_CACHE": f"{REGISTRY}/mxnet-ci",
            "AGENT_USER": BUILDS,
            "RUN_DIRECTORY": str(self.keys),
            "RETRY_SECONDS": "0.2",
        }
        together = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
        with subprocess.Popen([SCRIPTS / "autoscaler-caches"], env=environment | settings, **together) as script:
            end = time.monotonic() + seconds
            while not until() and time.monotonic() < end and script.poll() is None:
                time.sleep(0.05)
            enough = until()
            os.killpg(script.pid, signal.SIGKILL)
            said = script.communicate()[0]
        assert enough, said
        return said

    @property
    def keys(self) -> Path:
        return self.directory / "keys"

    @property
    def home(self) -> Path:
        return self.directory / "home"

    def has_all(self) -> bool:
        return (self.keys / "login").exists() and (self.keys / "credentials").exists()


def clouded(directory: Path) -> Iterator[Cloud]:
    """Serve it."""
    there = Cloud(directory)
    there.home.mkdir(mode=0o755)
    os.chown(there.home, pwd.getpwnam(BUILDS).pw_uid, -1)
    directory.chmod(0o755)  # the build user has to get in
    (directory / "getent").write_text(f"#!/bin/sh\necho '{BUILDS}:x:65534:65534::{there.home}:/bin/sh'\n", encoding="utf-8")
    (directory / "getent").chmod(0o755)

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self):
            self.send(200, b"imds-token")

        def do_GET(self):
            place = "/latest/meta-data/"
            keys = {"AccessKeyId": KEYS.access_key, "SecretAccessKey": KEYS.secret_key, "Token": KEYS.token}
            known = {
                f"{place}instance-id": INSTANCE,
                f"{place}iam/security-credentials/": "agents",
                f"{place}iam/security-credentials/agents": json.dumps(keys, indent=1),
            }
            with_token = self.headers.get("X-aws-ec2-metadata-token") == "imds-token"
            self.send(200 if with_token and self.path in known else 401, known.get(self.path, "").encode())

        def do_POST(self):
            self.send(*there.answer(self, self.rfile.read(int(self.headers.get("Content-Length", "0")))))

        def send(self, status, content):
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    yield there
    server.shutdown()
    server.server_close()
    thread.join()


def configured(cloud, *, python3=True, systemctl="", **settings):
    """Run the part of the user data that says where caches are; returns the root it wrote into."""
    root = cloud.directory / "root"
    commands = cloud.directory / "commands"
    commands.mkdir(exist_ok=True)
    (commands / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{cloud.directory}/systemctl.log\n{systemctl}\n', encoding="utf-8")
    (commands / "python3").write_text('#!/bin/sh\nexec /usr/bin/python3 "$@"\n' if python3 else "#!/bin/sh\nexit 1\n", encoding="utf-8")
    for command in commands.iterdir():
        command.chmod(0o755)
    given = {"REGION": REGION, "STS_URL": "https://sts/", "ECR_URL": "https://ecr/", "DOCKER_HUB": "no", "ROOT": str(root)}
    given |= dict.fromkeys(("CACHE_ROLE", "IMAGE_CACHE", "BUILD_CACHE", "DOCKER_MIRROR"), "")
    script = f"#!/bin/sh\n{installer('linux-caches')}\necho the agent is installed\n"
    environment = {"PATH": f"{commands}:/usr/bin:/bin", **given, **settings}
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert "the agent is installed" in done.stdout
    (cloud.directory / "said").write_text(done.stderr, encoding="utf-8")
    return root
