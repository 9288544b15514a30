"""Looks between the ticks, by the policy evaluator: `scale_up` alone may wake itself, by its own queue, and take slots of its own fleet."""

import pytest

from support.iam import asked, decided
from support.translated import ACCOUNT, given, stack

pytestmark = pytest.mark.needs("node")

REGION = "us-west-2"
GIVEN = given()
TABLE, QUEUE = GIVEN["StateTable.Arn"], GIVEN["LooksQueue.Arn"]
CALLS = [asked(f"sqs:{action}", QUEUE) for action in ("SendMessage", "ReceiveMessage", "DeleteMessage", "GetQueueAttributes")]
SLOT = asked("dynamodb:PutItem", TABLE, **{"dynamodb:LeadingKeys": ["mxnet-ci#looks"]})
NOBODY_S = [
    asked("sqs:SendMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:another"),
    asked("sqs:PurgeQueue", QUEUE),
    asked("sqs:SetQueueAttributes", QUEUE),
    asked("dynamodb:PutItem", TABLE, **{"dynamodb:LeadingKeys": ["other#looks"]}),
    asked("dynamodb:DeleteItem", TABLE, **{"dynamodb:LeadingKeys": ["mxnet-ci#looks"]}),
]
OTHERS = ("PublishMetrics", "ScaleDown", "Operate", "RegisterAgent", "InstanceEvents")


def decisions(function, requests, **parameters):
    policies = stack(**parameters)[f"{function}FunctionRole"]["Properties"]["Policies"]
    return set(decided([policy["PolicyDocument"] for policy in policies], requests).values())


def test_who_looks_often_may_wake_itself_and_take_slots_and_no_more():
    assert decisions("ScaleUp", [*CALLS, SLOT]) == {"Allowed"}
    assert decisions("ScaleUp", NOBODY_S) == {"ImplicitlyDenied"}


def test_once_a_minute_there_is_no_queue_and_no_right_to_any():
    assert decisions("ScaleUp", [*CALLS, SLOT], LookEverySeconds="60") == {"ImplicitlyDenied"}
    assert not {"LooksQueue", "LooksWakeScaleUp"} & stack(LookEverySeconds="60").keys()


@pytest.mark.parametrize("function", OTHERS)
def test_nobody_else_may(function):
    assert decisions(function, [*CALLS, SLOT]) == {"ImplicitlyDenied"}


def test_the_webhook_reads_one_secret_asks_for_looks_and_does_nothing_else():
    arn = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret"
    mine = [asked("secretsmanager:GetSecretValue", f"{arn}:ci/webhook-AbCdEf"), CALLS[0], SLOT]
    others = [
        asked("secretsmanager:GetSecretValue", f"{arn}:ci/webhook-of-another-AbCdEf"),
        asked("secretsmanager:GetSecretValue", f"{arn}:jenkins/main-AbCdEf"),
        *CALLS[1:],
        *NOBODY_S,
        asked("dynamodb:Query", TABLE, **{"dynamodb:LeadingKeys": ["mxnet-ci"]}),
        asked("ec2:DescribeInstances", "*"),
    ]
    assert decisions("Webhook", mine, WebhookSecretName="ci/webhook") == {"Allowed"}
    assert decisions("Webhook", others, WebhookSecretName="ci/webhook") == {"ImplicitlyDenied"}
    assert decisions("ScaleUp", [*CALLS, SLOT], WebhookSecretName="ci/webhook", LookEverySeconds="60") == {"Allowed"}


def test_without_a_secret_there_is_no_webhook():
    assert not [name for name in stack() if name.startswith("Webhook")]
    assert not [name for name in stack(WebhookSecretName="x", RegistrationEndpoint="http-api") if name.startswith("Webhook")]
