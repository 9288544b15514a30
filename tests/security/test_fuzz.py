"""Anything at all as an event: refused in one line, or understood; never a stack trace, never a step."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.entry.events import SCALE_DOWN, SCALE_UP, TICK, read_trigger
from autoscaler.entry.function_url import read_caller
from autoscaler.entry.instance_events import read_instance_event
from autoscaler.entry.operations import read_operation
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.identity import function_url_event
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_fleet, a_pool
from support.deployed import deployed, event

FLEET = a_fleet(a_pool("cpu"), a_pool("gpu", controllers=("main", "other")))
TEXT = st.text(max_size=40) | st.sampled_from(["", "cpu", "<script>alert(1)</script>", "x\"'; --", "a\nb\x00\x1b[31m", "ü" * 300, "main"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KEYS = ["pool", "count", "controller", "reason", "keep_minutes", "nodes", "dry_run", "request_id", "detail-type", "time", "detail"]
KEYS += ["action", "label", "minutes", "freeze", "by", "min_agents", "max_agents", "warm_executors"]
ACTIONS = st.sampled_from(["hold", "resume", "set", "drain", "purge", "plan"])
EVENTS = JSON | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5)
ORDERS = st.builds(lambda action, event: {**event, "action": action}, ACTIONS, st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4))
READERS = {
    "tick": lambda given: read_trigger(TICK, given, FLEET),
    "scale_up": lambda given: read_trigger(SCALE_UP, given, FLEET),
    "scale_down": lambda given: read_trigger(SCALE_DOWN, given, FLEET),
    "operation": lambda given: read_operation(given).order(FLEET, 0.0),
    "event": read_instance_event,
    "caller": read_caller,
}


@pytest.mark.parametrize("reader", READERS)
@given(anything=EVENTS | ORDERS)
def test_any_event_is_read_or_refused_in_one_line(reader, anything):
    try:
        READERS[reader](anything)
    except ConfigError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("event refused: ")


@given(
    iam=st.dictionaries(st.sampled_from(["accountId", "userArn", "userId", "callerId"]), JSON, max_size=4),
    body=JSON,
)
def test_whatever_is_in_a_signed_request_only_what_aws_says_counts(iam, body):
    given_event = function_url_event("i-0123456789abcdef0", **iam) | {"body": body, "headers": {"x-forwarded-for": "i-0123456789abcdef0"}}
    try:
        caller = read_caller(given_event)
    except ConfigError:
        return
    assert (caller.account, caller.role_id) == (iam.get("accountId", "123456789012"), caller.role_id)
    assert caller.session == given_event["requestContext"]["authorizer"]["iam"]["userId"].partition(":")[2]


@pytest.fixture(scope="module")
def here():
    with deployed() as stood:
        yield stood


@given(anything=JSON)
def test_the_function_url_answers_anything_with_a_status_and_one_line(here, anything):
    answer = here.call("register_agent", anything)
    assert answer["statusCode"] == 403
    assert list(json.loads(answer["body"])) == ["message"]


@pytest.mark.parametrize("reason", ["a\nb", "x\x00", "\x1b[31mred", "tab\there", "\u2028", "x" * 501, ""], ids=repr)
def test_a_reason_with_control_characters_or_without_end_is_refused(reason):
    with pytest.raises(ConfigError, match=r"event refused: reason"):
        read_trigger(SCALE_UP, {"pool": "cpu", "count": 1, "reason": reason}, FLEET)


@pytest.mark.parametrize("name", ["<b>cpu</b>", 'cpu"', "cpu\ncpu", "c" * 300], ids=["html", "quote", "newline", "long"])
def test_a_hostile_node_name_is_refused_or_named_as_it_is_and_nothing_is_done(here, name):
    try:
        plan = here.call("scale_down", {"nodes": [name], "reason": "a test"})
    except ConfigError as error:
        assert "\n" not in str(error)
        return
    assert plan["steps"] == []
    assert [held["reason"] for held in plan["held"] if name in held["detail"]] == ["not-found"]


def test_credentials_that_are_refused_are_a_reason_to_ask_again(here):
    here.world.ec2.on_running = lambda _instance: None
    here.call("scale_up", event("tick"))
    [instance] = here.world.ec2.instances.values()
    here.server.jenkins["main"].faults.plan(Fault("jenkins doCreateItem", status=401, times=2))
    answer = here.call("register_agent", function_url_event(instance.id))
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "15")
    assert "\n" not in json.loads(answer["body"])["message"]
