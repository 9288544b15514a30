"""Each sample event, malformed in each place and each way, through the handlers that are given it."""

import json
from base64 import b64encode

import pytest

from autoscaler import bootstrap
from autoscaler.errors import AutoscalerError, EventRefusedError
from support.deployed import deployed_in_memory, event
from support.malformed import LONG, variants
from support.samples import SAMPLES, function_of

MOST_CHARACTERS = 800
CALLS = [(function_of(name), name) for name in SAMPLES if name != "tick"]
CALLS += [(function, "tick") for function in ("scale_up", "scale_down", "publish_metrics", "operate", "instance_events", "webhook")]
WOKEN = {"Records": [{"body": '{"slot": "slot#1800000030", "at": 1800000030.0}'}]}


@pytest.fixture(scope="module")
def here():
    with deployed_in_memory() as stood:
        yield stood


def kept(here):
    """Everything that an order could have changed."""
    state = bootstrap.runtime().ports.state.read()
    return state, dict(here.world.ec2.instances), [path for path, method in here.server.requests if method == "POST"]


def lines_of_refusals(here, function, malformed):
    """Call with each; yield the line of each refusal, which has changed nothing. What a person sends is refused by an answer."""
    for given in malformed:
        before = kept(here)
        try:
            line = here.invoke(function, given).get("refused")
        except EventRefusedError as error:
            line = str(error)
            assert function == "instance_events" or {"detail-type", "Records"} & given.keys()
        except AutoscalerError as error:
            line = str(error)
        if line is not None:
            assert kept(here) == before
            yield line


@pytest.mark.parametrize(("function", "sample"), CALLS, ids=lambda value: value)
def test_a_malformed_event_is_one_short_line_and_changes_nothing(here, function, sample):
    for line in lines_of_refusals(here, function, variants(event(sample))):
        assert line.isprintable()
        assert len(line) <= MOST_CHARACTERS, line[:2000]


def test_so_is_a_malformed_message_of_the_queue(here):
    body = json.loads(WOKEN["Records"][0]["body"])
    bodies = [text for changed in variants(body) if (text := _json(changed))]
    malformed = [*variants(WOKEN), *({"Records": [{"body": body}]} for body in bodies)]
    for line in lines_of_refusals(here, "scale_up", malformed):
        assert line.isprintable()
        assert len(line) <= MOST_CHARACTERS, line[:2000]


@pytest.mark.parametrize("sample", ["register_agent_host", "register_agent_controller"])
def test_an_agent_that_says_what_makes_no_sense_is_answered(here, sample):
    asked = event(sample)
    for said in variants(json.loads(asked["body"])):
        if text := _json(said):
            encoded = b64encode(text.encode(errors="replace")).decode()
            for body in ({"body": text}, {"body": encoded, "isBase64Encoded": True}):
                answer = here.call("register_agent", asked | body)
                assert answer["statusCode"] in {200, 403, 404}
                assert len(answer["body"]) < MOST_CHARACTERS


def test_what_the_budget_says_holds_launches_whatever_its_subject_is():
    for subject in (LONG, "a\n\x00\x1b[31m\u2028b", "", None):
        with deployed_in_memory() as here:
            message = event("budget")
            message["Records"][0]["Sns"]["Subject"] = subject
            [held] = here.call("operate", message)["holds"]
            assert held["reason"].isprintable()
            assert 0 < len(held["reason"]) < 400


def test_a_tick_of_a_day_to_come_asks_for_no_look_then():
    with deployed_in_memory(
        environment={"LOOK_EVERY_SECONDS": "20", "LOOKS_QUEUE": "https://sqs.us-west-2.amazonaws.com/123456789012/looks"}
    ) as here:
        here.call("scale_up", event("tick") | {"time": "9999-12-31T23:59:59Z"})
        assert [at for _, at, _ in here.stored.slots.announced if at > here.world.timeline.now + 60] == []


def _json(value):
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):  # a client cannot write it either
        return ""
