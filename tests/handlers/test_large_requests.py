"""What anybody sends in more than 64 KB is not read: it costs a request, and no more."""

import json
import sys
import tracemalloc
from base64 import b64encode
from contextlib import contextmanager

import pytest

from autoscaler import bootstrap
from autoscaler.entry.function_url import MOST_BYTES
from autoscaler_workbench.fakes.identity import function_url_event
from support.deployed import deployed_in_memory, event

MEGABYTES = 5_800_000


@pytest.fixture
def here():
    with deployed_in_memory(environment={"LOOKS_QUEUE": "https://sqs.example.org/looks"}) as stood:
        yield stood


@pytest.fixture
def instance(here):
    here.world.ec2.on_running = lambda _instance: None
    here.call("scale_up", event("tick"))
    [only] = here.world.ec2.instances.values()
    return only


@contextmanager
def at_most(calls, megabytes):
    """Hold what is done to so many calls and so much memory; seconds would tell how busy this machine is."""
    made = 0

    def count(_frame, what, _function):
        nonlocal made
        made += what in ("call", "c_call")

    tracemalloc.start()
    sys.setprofile(count)
    yield
    sys.setprofile(None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (made < calls, peak < megabytes * 1_000_000) == (True, True), f"{made} calls, {peak / 1e6:.0f} MB"


def filled(start, part, end, size):
    return start + part * ((size - len(start) - len(end)) // len(part) - 1) + part.rstrip(",") + end


SHAPES = {
    "cards": ('{"telemetry":{"gpus":[', '{"id":"x"},', "]}}"),
    "nested": ('{"problem":[', "[" * 100 + "]" * 100 + ",", "]}"),
    "devices": ('{"devices":[', "{},", "]}"),
    "keys of its own": ('{"a":{', '"b":0,', "}}"),
    "connected": ('{"connected":[', "7,", "]}"),
    "a number": ('{"waiting":', "9", "}"),
    "a number in words": ('{"problem":', "9", "}"),
    "a text": ('{"problem":"', "\\u0000", '"}'),
    "letters of three bytes": ('{"problem":"', "\u4e2d", '"}'),
    "no JSON": ("", "x", ""),
    "open": ("", "[", ""),
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def asked(here, instance, body, **more):
    here.logged.clear()
    answer = here.call("register_agent", function_url_event(instance.id) | {"body": body} | more)
    return answer["statusCode"], json.loads(answer["body"]), [facts for name, facts in here.logged if name == "report_too_large"]


@shapes
@pytest.mark.parametrize("is_encoded", [False, True])
def test_an_agent_whose_report_is_too_large_is_told_who_it_is_and_the_log_names_it(here, instance, shape, is_encoded):
    body = filled(*shape, MEGABYTES)
    body = b64encode(body.encode()).decode() if is_encoded else body
    with at_most(10_000, megabytes=2):
        status, told, [line] = asked(here, instance, body, isBase64Encoded=is_encoded)
    assert (status, told["node"]) == (200, f"utility-{instance.id.removeprefix('i-')}")
    assert line == {"machine": instance.id, "characters": len(body), "most_bytes": MOST_BYTES}
    assert bootstrap.runtime().ports.telemetry.latest() == {}


@shapes
@pytest.mark.parametrize("is_encoded", [False, True])
def test_a_report_that_is_almost_too_large_costs_little_whatever_is_in_it(here, instance, shape, is_encoded):
    body = filled(*shape, MOST_BYTES if shape[1].isascii() else MOST_BYTES // 3)
    body = b64encode(body.encode()).decode() if is_encoded else body
    with at_most(100_000, megabytes=15):
        status, _, lines = asked(here, instance, body, isBase64Encoded=is_encoded)
    assert (status, lines) == (200, [])


@pytest.mark.parametrize("letter", ["x", "\u4e2d", "\U0001f600"])
def test_the_bound_is_one_of_bytes(here, instance, letter):
    said = {"problem": "", "pad": ""}
    said["pad"] = letter * ((MOST_BYTES - len(json.dumps(said))) // len(letter.encode()))
    body = json.dumps(said, ensure_ascii=False)
    assert asked(here, instance, body)[2] == []
    assert len(asked(here, instance, body + " " * 4)[2]) == 1


@pytest.mark.parametrize("body", [None, 7, ["x"] * 100_000, {"x": "y" * 100_000}, b"x" * 100_000, ""], ids=type)
def test_a_body_that_is_no_text_says_nothing(here, instance, body):
    assert asked(here, instance, body)[0] == 200
    assert asked(here, instance, body, isBase64Encoded=True)[0] == 200


def test_what_is_too_large_counts_as_a_request(here, instance):
    answers = [asked(here, instance, "x" * MEGABYTES)[0] for _ in range(61)]
    assert answers == [200] * 60 + [429]


LARGE = "x" * MEGABYTES
WEBHOOKS = {
    "a body": ({"body": LARGE}, 202),
    "a token": ({"queryStringParameters": {"token": LARGE}}, 403),
    "a header": ({"queryStringParameters": None, "headers": {"authorization": f"Bearer {LARGE}"}}, 403),
    "many words": ({"queryStringParameters": {str(number): "x" for number in range(100_000)}}, 403),
}


@pytest.mark.parametrize(("large", "status"), WEBHOOKS.values(), ids=WEBHOOKS.keys())
def test_a_large_request_to_the_webhook_costs_little(here, large, status):
    with at_most(60_000, megabytes=30):
        assert here.call("webhook", event("webhook") | large)["statusCode"] == status
