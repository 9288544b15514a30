"""The AWS budget's hold: nothing is launched, and what is idle ends. Beside it holds of people, each of which ends by itself."""

import copy
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from autoscaler.errors import ConfigError
from support.deployed import NOON, event
from support.scene import BOTH, scene

FEBRUARY = datetime(2027, 2, 1, tzinfo=UTC).timestamp()
MESSAGE = event("budget")
FOR_MINUTES = {"action": "hold", "minutes": 5, "by": "ada", "reason": "incident 42"}


def message(number, sent):
    another = copy.deepcopy(MESSAGE)
    another["Records"][0]["Sns"] |= {"MessageId": f"m-{number}", "Timestamp": f"{datetime.fromtimestamp(sent, UTC):%Y-%m-%dT%H:%M:%S}.000Z"}
    return another


def standing(here):
    return [(hold["by"], hold["freeze"], hold["until_at"]) for hold in here.call("operate", event("status"))["holds"]]


def a_job(here):
    here.world.controllers["main"].submit("job", "mxnetlinux-gpu", 600.0)


def agents(here):
    return sum(instance.tags["autoscaler:pool"] == "mxnetlinux-gpu" for instance in here.world.alive())


@pytest.mark.parametrize("order", [("budget", "ada"), ("ada", "budget")])
def test_a_persons_hold_of_minutes_ends_and_the_budgets_stands(here, order):
    for by in order:
        here.call("operate", MESSAGE if by == "budget" else FOR_MINUTES)
    assert sorted(standing(here)) == [("ada", False, NOON + 300.0), ("aws-budget", False, FEBRUARY)]
    a_job(here)
    here.pass_minutes(12)
    assert (standing(here), agents(here)) == ([("aws-budget", False, FEBRUARY)], 0)


def test_a_message_of_the_budget_leaves_a_persons_freeze_a_freeze(here):
    here.call("operate", event("freeze"))
    freeze = standing(here)
    here.call("operate", MESSAGE)
    assert standing(here) == [*freeze, ("aws-budget", False, FEBRUARY)]


def test_resume_ends_holds_of_people_and_the_budgets_ends_by_its_own_resume(here):
    for order in (MESSAGE, FOR_MINUTES, FOR_MINUTES | {"by": "bob", "until_resumed": True}, event("freeze")):
        here.call("operate", order)
    a_job(here)
    assert [hold["by"] for hold in here.call("operate", {"action": "resume", "by": "eve"})["holds"]] == ["aws-budget"]
    here.pass_minutes(5)
    assert agents(here) == 0
    assert here.call("operate", event("resume_budget"))["holds"] == []
    here.pass_minutes(3)
    assert agents(here) == 1


def test_resuming_the_budget_leaves_holds_and_cordons_of_people(here):
    here.pass_minutes(6)
    [node] = [name for name in here.world.controllers["main"].nodes if name.startswith("utility")]
    here.call("operate", {"action": "drain", "nodes": [node], "by": "ada"})
    here.call("operate", FOR_MINUTES | {"until_resumed": True})
    here.call("operate", MESSAGE)
    assert here.call("operate", event("resume_budget"))["holds"] == [
        hold for hold in here.call("operate", event("status"))["holds"] if hold["by"] == "ada"
    ]
    assert here.world.controllers["main"].nodes[node].reason.startswith("autoscaler:mxnet-ci:operator:")


def test_the_budgets_hold_ends_with_its_month_and_the_next_months_message_holds_again(here):
    here.call("operate", MESSAGE)
    here.world.move_to(FEBRUARY - 60.0)
    assert standing(here) == [("aws-budget", False, FEBRUARY)]
    here.world.move_to(FEBRUARY + 60.0)
    assert standing(here) == []
    here.call("operate", message(2, sent=FEBRUARY - 30.0))  # it is about the month that has ended
    assert standing(here) == []
    here.call("operate", message(3, sent=FEBRUARY + 30.0))
    assert [by for by, _, _ in standing(here)] == ["aws-budget"]


def test_a_sample_message_that_somebody_sends_by_hand_holds_from_now_on(here):
    here.call("operate", message(2, sent=NOON - 90 * 86_400.0))
    here.call("operate", message(3, sent=NOON + 90 * 86_400.0))
    assert standing(here) == [("aws-budget", False, FEBRUARY)]


def test_nobody_orders_under_the_budgets_name(here):
    for action in ("hold", "resume"):
        with pytest.raises(ConfigError, match=r"by \(aws-budget\): only the AWS budget"):
            here.call("operate", {"action": action, "by": "aws-budget"})


def test_plan_and_why_name_every_hold_and_until_when(here):
    here.call("operate", MESSAGE)
    here.call("operate", FOR_MINUTES)
    a_job(here)
    here.pass_minutes(2)
    for lines in (
        [held["detail"] for held in here.call("operate", event("plan"))["plan"]["held"]],
        here.call("operate", {"action": "why", "subject": "mxnetlinux-gpu"})["facts"],
    ):
        told = next(line for line in lines if "aws-budget" in line)
        assert "until the month ends, for another 16 d 15 h, by aws-budget" in told
        assert "for another 3 min" in told
        assert "by ada: incident 42" in told


GPU = "pools: {gpu: {$pool, executors: 1, max_agents: 4, labels: [gpu]%s}}"
BY_ADA = {"by": "ada", "reason": "incident 42", "until_resumed": True}


@contextmanager
def four_idle(keys="", sections=""):
    """Four agents whose builds have just ended."""
    with scene(sections + GPU % keys) as fleet:
        fleet.minutes(3)
        builds = [fleet.submit(f"job-{number}", "gpu", 10) for number in range(4)]
        fleet.until(lambda: all(build.ended_at for build in builds), 30)
        assert len(fleet.ready("gpu")) == 4
        yield fleet


@pytest.mark.parametrize(
    "keys",
    ["", ", min_agents: 2", ", warm_executors: 3", ", warm_pool: {min_agents: 2, max_agents: 4}"],
    ids=["idle", "min_agents", "warm_executors", "warm_pool"],
)
def test_idle_agents_end_while_the_budgets_hold_lasts_whatever_the_pool_keeps_otherwise(keys):
    with four_idle(keys) as fleet:
        fleet.here.call("operate", MESSAGE)
        assert fleet.until(lambda: not fleet.machines(), 180) <= 120
        fleet.minutes(60)
        assert fleet.machines() == []  # nor is any launched, to run or to be stopped


def test_agents_that_are_stopped_already_end_too(here):
    with four_idle(", warm_pool: {max_agents: 4}") as fleet:
        fleet.until(lambda: fleet.machines(state="stopped"), 180)
        fleet.here.call("operate", MESSAGE)
        fleet.until(lambda: not fleet.machines(), 60)


@pytest.mark.parametrize("place", [{}, {"pool": "gpu"}, {"controller": "main"}, {"freeze": True}], ids=str)
def test_a_persons_hold_beside_it_goes_on_to_keep_idle_agents(place):
    with four_idle() as fleet:
        for order in (MESSAGE, {"action": "hold", **BY_ADA, **place}):
            fleet.here.call("operate", order)
        fleet.minutes(180)
        assert len(fleet.ready("gpu")) == 4
        fleet.order("resume", **{name: value for name, value in place.items() if name != "freeze"})
        fleet.until(lambda: not fleet.machines(), 60)


def test_a_persons_hold_of_one_controller_keeps_that_ones_agents_alone():
    pools = "pools: {gpu: {$pool, executors: 1, max_agents: 4, labels: [gpu], controllers: [main, other]}}"
    with scene(BOTH + pools) as fleet:
        fleet.minutes(3)
        builds = [fleet.submit("job", "gpu", 10, controller) for controller in ("main", "other")]
        fleet.until(lambda: all(build.ended_at for build in builds), 30)
        for order in (MESSAGE, {"action": "hold", **BY_ADA, "controller": "other"}):
            fleet.here.call("operate", order)
        fleet.minutes(180)
        assert [machine.tags["autoscaler:controller"] for machine in fleet.machines()] == ["other"]


def test_builds_that_run_end_and_jobs_begin_on_agents_that_are_there():
    with four_idle() as fleet:
        fleet.here.call("operate", MESSAGE)
        long = fleet.submit("long", "gpu", 240)
        fleet.until(lambda: len(fleet.machines()) == 1, 180)
        fleet.until(lambda: long.ended_at, 240)
        assert (long.killed_by, len(fleet.ever())) == ("", 4)
        late = fleet.submit("late", "gpu", 5)
        fleet.until(lambda: late.ended_at, 20)
        fleet.until(lambda: not fleet.machines(), 180)
        assert len(fleet.ever()) == 4


def test_resuming_the_budget_gives_the_pool_its_minimum_back():
    with four_idle(", min_agents: 2") as fleet:
        fleet.here.call("operate", MESSAGE)
        fleet.until(lambda: not fleet.machines(), 180)
        fleet.here.call("operate", event("resume_budget"))
        fleet.until(lambda: len(fleet.ready("gpu")) == 2, 5)


def test_why_and_status_say_what_the_hold_does():
    with four_idle() as fleet:
        fleet.here.call("operate", MESSAGE)
        fleet.minutes(1)
        pool = fleet.order("status")["status"]["pools"][0]["paused"]
        for text in (pool, *(line for line in fleet.order("why", subject="gpu")["facts"] if "aws-budget" in line)):
            assert "nothing is launched, and idle agents end" in text
