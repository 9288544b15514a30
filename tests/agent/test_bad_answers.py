"""Whatever answers the Linux agent: it says so in a line and asks again. Its builds go on, since they would end with its service."""

import json
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

from agent.conftest import SCRIPT, SECRET
from support.malformed import variants

CONNECTION = {"controller": "main", "url": "http://127.0.0.1:9/", "name": "main-1", "secret": SECRET, "web_socket": True, "life": 0}
ANSWER = {"connections": [CONNECTION], "poll_seconds": 30, "people": [{"person": "ada", "until": 1.0}], "message": "refused"}
KEYS = {"Code": "Success", "AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T"}
RAW = [
    b"",
    b"null",
    b"[]",
    b"1",
    b"NaN",
    b"\xff\xfe",
    b"<html>Sign in</html>",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"message": "\\ud800"}',
]


@pytest.fixture
def agent(tmp_path, monkeypatch, capfd):
    """An agent of which nothing leaves the process; it is connected already, and a build runs."""
    settings = {"REGISTER_URL": "http://127.0.0.1:9/register", "REGION": "us-west-2", "RUN_DIRECTORY": str(tmp_path / "run")}
    settings |= {"WORK_DIRECTORY": str(tmp_path / "work"), "BLOCK_INSTANCE_METADATA": "no", "GPU_LEASE": "/nowhere", "POWER_OFF": "true"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", [str(SCRIPT.parent), *sys.path])
    loader = SourceFileLoader("linux_agent", str(SCRIPT))
    module = module_from_spec(spec_from_loader("linux_agent", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module.Connection, "begin", lambda *_: True)
    made = module.Agent()
    made.module = module
    made.connect(ANSWER)
    return made


def answers(agent, monkeypatch, content, keys=KEYS, status=200):
    """Let it ask once, and obey."""
    served = iter([b"token", b"role", keys if isinstance(keys, bytes) else json.dumps(keys).encode()])

    def fetch(url, **_how):
        return (status, {"X-Autoscaler": "registration"}, content) if "register" in url else (200, {}, next(served))

    monkeypatch.setattr(agent.module, "fetch", fetch)
    status, ours, answer = agent.ask()
    agent.heed(status, answer, 2, ours=ours)


def malformed(whole):
    for changed in variants(whole):
        try:
            yield json.dumps(changed).encode()
        except (ValueError, RecursionError):  # nobody can send it either
            continue


def said(capfd):
    lines = capfd.readouterr().out.splitlines()
    assert all(line.startswith("autoscaler-agent: ") and line.isprintable() and len(line) < 1200 for line in lines), lines
    return lines


@pytest.mark.parametrize("status", [200, 503])
def test_no_answer_ends_it_and_its_pauses_have_bounds(agent, monkeypatch, capfd, status):
    for content in [*RAW, *malformed(ANSWER)]:
        answers(agent, monkeypatch, content, status=status)
        assert agent.poll_seconds == 0 or 1 <= agent.poll_seconds <= 86_400
        assert agent.module.pause_of(json.loads(content) if content.startswith(b'{"conn') else {}) <= 86_400
    said(capfd)


def test_no_metadata_and_no_keys_end_it(agent, monkeypatch, capfd):
    for keys in [*RAW, *malformed(KEYS)]:
        answers(agent, monkeypatch, json.dumps(ANSWER).encode(), keys=keys)
    said(capfd)
    assert agent.connections


def test_what_is_no_answer_ends_no_build(around):
    around.builds_run("sleep 60")
    good = {"controller": "main", "url": f"{around.url}/jenkins/", "name": "main-1", "secret": SECRET, "web_socket": True}
    good = 200, {"node": "cpu-1", "connections": [good], "poll_seconds": 1}
    bad = [(200, b"[" * 100_000), (200, {"connections": 5}), (200, good[1] | {"people": [{"person": []}]})]
    around.answers = [good, *bad, good]
    text = around.run(seconds=5.5)
    assert len(around.asked) >= 5
    assert len(around.java_calls()) == 1
    assert "Traceback" not in text
    assert (around.directory / "ended").read_text(encoding="utf-8") == ""
