"""Alarms that reach nobody: doctor and status say so, and what to do."""

import pytest

from autoscaler.domain.report.problems import Subscription
from autoscaler_workbench.cli.answers import print_status
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import deployed_in_memory, event

CHECK = ("aws", "alarms reach somebody")
ADA = Subscription(address="ada@example.org", confirmed=False)
BOT = Subscription(address="https://chat.example.org/alarms", confirmed=True)


def doctor(here):
    return {(one["about"], one["what"]): (one["fine"], one["detail"]) for one in here.call("operate", event("doctor"))["findings"]}


def status(here):
    return here.call("operate", event("status"))["status"]["nobody_told"]


@pytest.mark.parametrize(
    ("subscribed", "said"),
    [
        ((), "set AlarmEmail and deploy, or subscribe to the stack's output Alarms"),
        ((ADA,), "open the link in the mail that AWS sent to ada@example.org"),
        ((ADA, ADA), "open the link in the mail that AWS sent to ada@example.org"),
    ],
)
def test_without_a_confirmed_subscription_doctor_and_status_say_that_nobody_is_told(here, subscribed, said):
    here.stored.notifier.subscribed = subscribed
    fine, detail = doctor(here)[CHECK]
    assert fine is False
    assert detail == status(here)
    assert detail.startswith("nobody receives the alarms: ")
    assert said in detail


def test_one_confirmed_subscription_is_enough(here):
    here.stored.notifier.subscribed = (ADA, BOT)
    assert doctor(here)[CHECK] == (True, "")
    assert status(here) == ""


def test_without_a_topic_nobody_is_told():
    with deployed_in_memory(environment={"ALARM_TOPIC": ""}) as here:
        here.call("scale_up", event("tick"))
        assert doctor(here)[CHECK][0] is False
        assert status(here).startswith("nobody receives the alarms")


def test_where_sns_does_not_answer_the_doctor_says_so_and_the_status_comes_all_the_same(here):
    here.stored.notifier.faults.plan(Fault("sns ListSubscriptionsByTopic", times=9, status=403, code="AuthorizationError"))
    assert doctor(here)["aws", "sns:ListSubscriptionsByTopic"] == (False, "ListSubscriptionsByTopic failed")
    assert status(here) == ""


def test_the_status_says_so_before_the_pools(here, capsys):
    here.stored.notifier.subscribed = ()
    print_status(here.call("operate", event("status")))
    lines = capsys.readouterr().out.splitlines()
    told = next(place for place, line in enumerate(lines) if line.startswith("nobody receives the alarms: set AlarmEmail"))
    assert told < next(place for place, line in enumerate(lines) if line.startswith("pool\t"))
