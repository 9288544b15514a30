"""The instance metadata service of every emulated instance: a token, then keys of the instance's role in the instance's name."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rehearsal.aws import Account

_CREDENTIALS = "latest/meta-data/iam/security-credentials/"


@contextmanager
def metadata(account: Account) -> Iterator[None]:
    """Serve ``/INSTANCE-ID/latest/...`` on loopback."""
    profile = account.outputs()["AgentProfile"].split("/")[-1]
    [role] = account.client("iam").get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"]
    sts = account.client("sts")

    class Metadata(BaseHTTPRequestHandler):
        """Version 2: no answer without a token."""

        def log_message(self, *_: object) -> None:
            pass

        def do_PUT(self) -> None:
            self._answer(200, f"token of {self._instance}")

        def do_GET(self) -> None:
            place = self.path.split("/", 2)[2]
            if self.headers.get("X-aws-ec2-metadata-token") != f"token of {self._instance}":
                self._answer(401, "")
            elif place == _CREDENTIALS:
                self._answer(200, role["RoleName"])
            elif place == _CREDENTIALS + role["RoleName"]:
                keys = sts.assume_role(RoleArn=role["Arn"], RoleSessionName=self._instance)["Credentials"]
                shown = {"AccessKeyId": keys["AccessKeyId"], "SecretAccessKey": keys["SecretAccessKey"], "Token": keys["SessionToken"]}
                self._answer(200, json.dumps({"Code": "Success"} | shown))
            else:
                self._answer(404, "")

        @property
        def _instance(self) -> str:
            return self.path.split("/")[1]

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", account.plan.metadata_port), Metadata)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
