"""Whatever Jenkins answers, wherever in an answer: each function ends its pass or says in one line why not; no build is killed."""

import json
import math
from dataclasses import replace
from random import Random
from unittest import mock

import pytest
from hypothesis import settings

from autoscaler.adapters.dynamodb import _ENTRY, _Entry
from autoscaler.adapters.jenkins.session import Answer
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler_workbench.fakes.identity import function_url_event
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.deployed import deployed_in_memory, event
from support.local_apis import Session
from support.malformed import DEEP, WRONG, places, replaced

HTML = b"<html><title>Sign in</title>"
RAW = [b"", b"null", b"[]", b"{}", b"1", b"NaN", b"\xff\xfe\x00", HTML, b"[" * 100_000, b'{"a":' * 100_000, b"[" + b"1" * 5000 + b"]"]
OTHER = [[[]], [{}], float("inf"), {"name": None}, 0, "0", DEEP, {"_class": []}, 2**53 + 1, "\u202e"]
HEADERS = ["", "x" * 5000, "-1", "Thu, 99 Foo 0000", "9" * 400, "\x80", "a\tb"]
GPU = "mxnetlinux-gpu"
MOST_CHARACTERS = 1200


@pytest.fixture(scope="module")
def here():
    with deployed_in_memory() as stood:
        for number in range(4):
            stood.world.controllers["main"].submit(f"unix/PR-{number}", GPU if number % 2 else "mxnetlinux-cpu", 1e6)
        stood.pass_minutes(10)
        yield stood


class Spoilt:
    """Jenkins, one of whose answers is spoilt. By chance, not by draws: what there is to be drawn from depends on the world."""

    def __init__(self, seed):
        self.chance, self.answer = Random(seed), Session._call
        self.left = self.chance.randint(1, 4)

    def call(self, session, *request):
        answer = self.answer(session, *request)
        self.left -= 1
        return answer if self.left else self._spoilt(answer)

    def _spoilt(self, answer):
        how = self.chance.choice(["place", "place", "place", "raw", "cut", "headers", "no headers"])
        match how:
            case "raw":
                return Answer(answer.status, answer.headers, self.chance.choice(RAW))
            case "cut":
                return replace(answer, body=answer.body[: self.chance.randint(0, len(answer.body))])
            case "headers":
                return replace(answer, headers={name: self.chance.choice(HEADERS) for name in answer.headers})
            case "no headers":
                return replace(answer, headers={})
        try:
            body = json.loads(answer.body)
            place = self.chance.choice(list(places(body)))
            return replace(answer, body=json.dumps(replaced(body, place, self.chance.choice(WRONG + OTHER))).encode())
        except (ValueError, RecursionError):
            return replace(answer, body=HTML)


CALLS = [("publish_metrics", {}), ("scale_up", {}), ("scale_down", {})]
CALLS += [("operate", {"action": action}) for action in ("status", "queue", "agents", "doctor", "plan")]
CALLS += [("operate", {"action": "why", "subject": subject}) for subject in ("unix/PR-1", GPU)]


def test_any_answer_is_understood_or_set_aside_in_one_line(here):
    calls = [*CALLS, ("register_agent", None)]
    for seed in range(4 * settings().max_examples):
        ask(here, *calls[seed % len(calls)], Spoilt(seed))


def ask(here, function, asked, spoilt):
    """Call a function while Jenkins is spoilt."""
    asked = function_url_event(next(iter(here.world.alive())).id) if asked is None else asked
    here.world.move_to(here.world.timeline.now + 20)
    here.logged.clear()
    metrics = len(here.metrics)
    with mock.patch.object(Session, "_call", lambda *request: spoilt.call(*request)):  # noqa: PLW0108 - a method gets its session
        try:
            json.dumps(here.call(function, asked), allow_nan=False, ensure_ascii=False).encode()
        except AutoscalerError as error:
            assert_line(str(error))
    for _, facts in here.logged:
        assert_line(str(facts.get("problem", "")))
    assert all(math.isfinite(value) for _, datum in here.metrics[metrics:] for value in datum.values)
    stored = here.state.read()
    for entry in (_Entry(memory=stored.memory), _Entry(told=stored.told), *(_Entry(record=record) for record in stored.records)):
        _ENTRY.load(_ENTRY.body(entry)[0].encode())
    builds = here.world.controllers["main"].builds_of
    assert [build for job in builds.values() for build in job if build.ended is Ended.KILLED] == []


def assert_line(text):
    assert text.isprintable()
    assert len(text) <= MOST_CHARACTERS, text[:300]


@pytest.mark.parametrize("secret", ["[" * 100_000, json.dumps({"token": "\ud800" * 30}), "null", "NaN", "1" * 5000, "\x00", "{}", ""])
def test_a_webhooks_secret_that_is_none_is_refused_in_one_line(here, secret):
    before = here.server.secrets["demo/webhook"]
    here.server.secrets["demo/webhook"] = secret
    here.start_cold()
    try:
        here.call("webhook", event("webhook"))
    except ConfigError as error:
        assert_line(str(error))
    finally:
        here.server.secrets["demo/webhook"] = before
        here.start_cold()
