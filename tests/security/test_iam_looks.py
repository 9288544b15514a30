"""Looks between the ticks, by the policy evaluator: `scale_up` alone may wake itself, by its own queue, and take slots of its own fleet."""

import pytest

from support.iam import asked, decided
from support.translated import ACCOUNT, given, stack

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
    assert decisions("ScaleUp", [*CALLS, SLOT], LookEverySeconds="10") == {"Allowed"}
    assert decisions("ScaleUp", NOBODY_S, LookEverySeconds="10") == {"ImplicitlyDenied"}


def test_once_a_minute_there_is_no_queue_and_no_right_to_any():
    assert decisions("ScaleUp", [*CALLS, SLOT]) == {"ImplicitlyDenied"}
    assert not {"LooksQueue", "LooksWakeScaleUp"} & stack().keys()


@pytest.mark.parametrize("function", OTHERS)
def test_nobody_else_may(function):
    assert decisions(function, [*CALLS, SLOT], LookEverySeconds="10") == {"ImplicitlyDenied"}
