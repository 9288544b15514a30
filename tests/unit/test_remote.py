"""Commands that reach no function: whatever the address, the region or the credentials are, one clear line is told."""

import os
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from autoscaler_workbench.cli.remote import Deployed
from support.cli import autoscaler


@pytest.fixture
def without_aws(monkeypatch, tmp_path):
    """A machine on which AWS is not configured."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AUTOSCALER_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


NOT_AN_ADDRESS = "is not an address such as http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--local", "foo"], f"--local (foo): {NOT_AN_ADDRESS}"),
        (["dashboard", "--local", "foo"], f"--local (foo): {NOT_AN_ADDRESS}"),
        (["alarms", "--local", "http:///x"], f"--local (http:///x): {NOT_AN_ADDRESS}"),
        (["status", "--local", "http://localhost:abc"], f"--local (http://localhost:abc): {NOT_AN_ADDRESS}"),
        (["status", "--local", "http://127.0.0.1:9"], "--local (http://127.0.0.1:9): nobody answers there; does the demo still run?"),
        (["alarms", "--local", "http://127.0.0.1:9"], "--local (http://127.0.0.1:9): nobody answers there; does the demo still run?"),
        (["status"], "no AWS region: give --region, or set AWS_DEFAULT_REGION or a region in the profile"),
        (["ui", "--day", "nowhere"], "--day (nowhere): cannot be read (No such file or directory); simulate and demo write it into --out"),
        (["alarms"], "no AWS region: give --region"),
        (["status", "--region", "us west"], "--region: Provided region_name 'us west'"),
        (["hold", "--fleet", "--region", "us-west-2"], "no AWS credentials (Unable to locate credentials): give --profile"),
        (["status", "--region", "us-west-2", "--profile", "nope"], "--profile: The config profile (nope) could not be found"),
    ],
    ids=str,
)
def test_a_command_that_reaches_nobody_says_so_in_one_line(without_aws, arguments, said):
    done = autoscaler(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(said)


def test_the_variable_that_is_named_where_there_is_no_region_is_one_that_is_read(without_aws):
    [variable] = re.findall(r"AWS_\w+", autoscaler("status").stderr)
    without_aws.setenv(variable, "us-west-2")
    assert "no AWS region" not in autoscaler("status").stderr


@pytest.fixture
def refusing():
    """An endpoint of AWS that refuses everybody."""

    class Refusal(BaseHTTPRequestHandler):
        def do_POST(self):
            body = b"<ErrorResponse><Error><Code>ExpiredToken</Code><Message>expired</Message></Error></ErrorResponse>"
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_an_expired_token_says_what_to_do(without_aws, refusing):
    for name, value in {
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
        "SESSION_TOKEN": "c",
        "ENDPOINT_URL_CLOUDFORMATION": refusing,
    }.items():
        without_aws.setenv(f"AWS_{name}", value)
    done = autoscaler("status", "--region", "us-west-2")
    assert (done.returncode, done.stderr) == (1, "AWS refuses the credentials (ExpiredToken): sign in again, or give another --profile\n")


def test_an_interrupted_command_leaves_one_line(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Deployed, "call", interrupted)
    done = autoscaler("status", "--local", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\rinterrupted\n")


def test_a_stack_without_a_dashboard_says_why_it_has_none(monkeypatch):
    monkeypatch.setattr(Deployed, "stack_parameters", lambda _: {"MakeDashboard": "no"})
    done = autoscaler("dashboard", "--stack", "ci")
    assert (done.returncode, done.stderr) == (1, "--stack (ci): has no dashboard; it was deployed with MakeDashboard=no\n")


def test_help_has_a_short_name():
    assert autoscaler("status", "-h").returncode == 0
    assert autoscaler("-h").returncode == 0
