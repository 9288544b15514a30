"""The webhook: whoever knows the secret has one look taken, once what is queued counts as demand, and at most two in 5 s."""

import json

import pytest

from autoscaler_workbench.cli.demo import WEBHOOK_SECRET
from autoscaler_workbench.fakes.slots import sqs_event
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import NOON, deployed_in_memory, event

TOKEN = "a-token-of-twenty-four-characters"


@pytest.fixture
def here():
    with deployed_in_memory(environment={"LOOKS_QUEUE": "https://sqs.example.org/looks"}) as stood:
        yield stood


def keep_secret(here, value):
    here.server.secrets[WEBHOOK_SECRET] = value if isinstance(value, str) else json.dumps(value)


def messages(here):
    """The bodies of the messages that were sent to the queue."""
    return [json.dumps({"slot": slot, "at": at}) for slot, at, _ in here.stored.slots.announced]


def with_token(token):
    return event("webhook") | {"queryStringParameters": {"token": token}}


def test_a_notification_has_one_look_taken_once_the_job_counts_as_demand(here):
    here.call("scale_up", event("tick"))
    here.world.move_to(NOON + 3)
    for number in range(60):
        here.world.controllers["main"].submit(f"job-{number}", "utility", 60.0)
    before = len(messages(here))
    assert here.call("webhook", event("webhook")) == {"statusCode": 202, "body": ""}
    [message] = messages(here)[before:]
    maturity = min(pool.queue_maturity_seconds for pool in here.fleet.pools.values())
    said = json.loads(message)
    assert said["at"] == NOON + 3 + maturity + 1
    here.world.move_to(said["at"])
    plan = here.call("scale_up", sqs_event(message))
    assert [(step["step"], step["pool"]) for step in plan["steps"]] == [("launch", "utility")]
    assert here.call("scale_up", sqs_event(message)) == {"skipped": "slot-taken"}


def looks_asked_for(here):
    return sorted(json.loads(message)["at"] for message in messages(here))


def test_a_job_that_is_told_of_soon_after_another_is_seen_by_a_look_that_comes_after_it(here):
    maturity = min(pool.queue_maturity_seconds for pool in here.fleet.pools.values())
    here.world.move_to(NOON + 1)
    here.call("webhook", event("webhook"))
    here.world.move_to(NOON + 4)
    here.call("webhook", event("webhook"))
    assert looks_asked_for(here) == [NOON + 1 + maturity + 1, NOON + 5 + maturity + 1]
    for message in messages(here):
        here.world.move_to(json.loads(message)["at"])
        assert "skipped" not in here.call("scale_up", sqs_event(message))


def test_many_notifications_within_five_seconds_are_two_looks_and_later_ones_others(here):
    for _ in range(20):
        assert here.call("webhook", event("webhook"))["statusCode"] == 202
    assert len(messages(here)) == 2
    here.world.move_to(NOON + 5)
    here.call("webhook", event("webhook"))
    assert len(messages(here)) == 3


def test_the_secret_may_come_as_a_bearer_token(here):
    asked = event("webhook") | {"queryStringParameters": None, "headers": {"Authorization": f"Bearer {TOKEN}"}}
    assert here.call("webhook", asked)["statusCode"] == 202


@pytest.mark.parametrize(
    "asked",
    [with_token("another"), with_token(""), with_token("ü"), {}, None, "text", {"headers": 7}, {"queryStringParameters": ["token"]}],
    ids=repr,
)
def test_whoever_does_not_know_it_is_sent_away_and_nothing_is_asked_for(here, asked):
    assert here.call("webhook", asked) == {"statusCode": 403, "body": ""}
    assert messages(here) == []


def test_a_secret_that_was_replaced_is_read_again_but_strangers_do_not_make_it_ask_each_time(here):
    assert here.call("webhook", event("webhook"))["statusCode"] == 202
    keep_secret(here, {"token": TOKEN[::-1]})
    assert here.call("webhook", with_token(TOKEN[::-1]))["statusCode"] == 403
    here.world.move_to(NOON + 301)
    assert here.call("webhook", with_token(TOKEN[::-1]))["statusCode"] == 202
    assert here.call("webhook", event("webhook"))["statusCode"] == 403


@pytest.mark.parametrize("value", ["hush", "{}", '{"token": "short"}', '{"token": 7}', "[]"])
def test_a_secret_of_another_form_lets_nobody_in_and_is_named_without_telling_it(here, value):
    keep_secret(here, value)
    assert here.call("webhook", event("webhook")) == {"statusCode": 503, "body": ""}
    [line] = [facts["error"] for name, facts in here.logged if name == "webhook_secret_not_read"]
    assert line.startswith("ConfigError: secret demo/webhook: must be JSON of the form")
    assert "hush" not in line
    assert "short" not in line


def test_while_a_secret_cannot_be_read_nobody_is_told_that_it_is_wrong_and_strangers_make_it_ask_every_half_minute(here):
    keep_secret(here, "hush")
    statuses = [here.call("webhook", with_token(f"forged-{number}"))["statusCode"] for number in range(20)]
    assert statuses == [503] * 20
    assert [name for name, _ in here.logged].count("webhook_secret_not_read") == 1
    keep_secret(here, {"token": TOKEN})
    here.world.move_to(NOON + 29)
    assert here.call("webhook", event("webhook"))["statusCode"] == 503
    here.world.move_to(NOON + 31)
    assert here.call("webhook", event("webhook"))["statusCode"] == 202


@pytest.mark.parametrize("every", [1, 20, 299, 301])
def test_a_secret_that_was_replaced_is_refused_after_five_minutes_though_callers_go_on_using_it(here, every):
    assert here.call("webhook", event("webhook"))["statusCode"] == 202
    keep_secret(here, {"token": TOKEN[::-1]})
    for at in range(every, 700, every):
        here.world.move_to(NOON + at)
        assert here.call("webhook", event("webhook"))["statusCode"] == (202 if at < 300 else 403), at
    assert here.call("webhook", with_token(TOKEN[::-1]))["statusCode"] == 202


@pytest.mark.parametrize("value", [None, "hush"], ids=["deleted", "of another form"])
def test_a_secret_that_was_taken_away_lets_nobody_in_after_five_minutes(here, value):
    assert here.call("webhook", event("webhook"))["statusCode"] == 202
    here.server.secrets.pop(WEBHOOK_SECRET) if value is None else keep_secret(here, value)
    here.world.move_to(NOON + 299)
    assert here.call("webhook", event("webhook"))["statusCode"] == 202
    for at in (300, 301, 330, 3600):
        here.world.move_to(NOON + at)
        assert {here.call("webhook", asked)["statusCode"] for asked in (event("webhook"), with_token("another"))} == {503}
    keep_secret(here, {"token": TOKEN})
    here.world.move_to(NOON + 3630)
    assert here.call("webhook", event("webhook"))["statusCode"] == 202


def test_while_secrets_manager_is_away_the_token_counts_for_ten_minutes_more(here):
    assert here.call("webhook", event("webhook"))["statusCode"] == 202
    here.server.secrets_fail = "InternalServiceError"
    for at, status in ((299, 202), (300, 202), (301, 202), (600, 202), (899, 202), (900, 503), (3600, 503)):
        here.world.move_to(NOON + at)
        assert here.call("webhook", event("webhook"))["statusCode"] == status, at
        assert here.call("webhook", with_token("another"))["statusCode"] == (403 if at < 300 else 503), at
    assert [name for name, _ in here.logged].count("webhook_secret_not_read") == 4
    here.server.secrets_fail = ""
    here.world.move_to(NOON + 3630)
    assert here.call("webhook", event("webhook"))["statusCode"] == 202
    assert here.call("webhook", with_token("another"))["statusCode"] == 403


def test_secrets_manager_is_asked_once_in_five_minutes_whoever_asks(here):
    for at in range(0, 900, 10):
        here.world.move_to(NOON + at)
        for asked in (event("webhook"), with_token("another")):
            here.call("webhook", asked)
    assert here.server.secrets_read.count(WEBHOOK_SECRET) == 3


def test_a_queue_that_is_gone_is_told_the_caller(here):
    here.stored.slots.faults.plan(Fault("slots announce", status=400, code="QueueDoesNotExist"))
    assert here.call("webhook", event("webhook"))["statusCode"] == 503


def test_no_log_line_holds_the_secret(here, caplog):
    here.call("webhook", event("webhook"))
    here.call("webhook", with_token(f"{TOKEN}?"))
    assert "webhook_refused" in caplog.text
    assert TOKEN not in caplog.text
    assert all(TOKEN not in json.dumps(vars(record), default=str) for record in caplog.records)
