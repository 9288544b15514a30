"""A limit is told if it keeps jobs waiting, and idle agents by what they cost an hour: through the handlers, at both levels of metrics."""

import pytest

from support.deployed import essential_environment
from support.ringing import ringing_in
from support.scene import one_pool, scene

LEVELS = pytest.mark.parametrize("environment", [None, essential_environment()], ids=["full", "essential"])
PRICES = "usd_per_hour: 0.1, min_agents: 1", "usd_per_hour: 2, min_agents: 8"
IDLE = f"pools: {{utility: {{$pool, executors: 30, max_agents: 2, {PRICES[0]}}}, gpu: {{$pool, executors: 1, max_agents: 9, {PRICES[1]}}}}}"


def told(here, words):
    return [subject for subject in here.subjects() if words in subject]


@LEVELS
def test_a_pool_that_is_always_full_and_keeps_nothing_waiting_is_no_trouble(environment):
    with scene(one_pool("min_agents: 4"), environment) as here:
        here.minutes(8)
        for _ in range(3):
            here.submit("sign", "cpu", 2)
            here.minutes(15)
        assert here.metric("AgentsLimitUsedPercent")[-1:] in ([], [99.0])
        assert told(here, "limit") == []
        if environment is None:
            assert "AgentsLimit" not in ringing_in(here.here)


@LEVELS
def test_a_limit_that_keeps_jobs_waiting_is_told_with_its_pool(environment):
    with scene(one_pool("max_wait_seconds: 90000"), environment) as here:
        for number in range(6):
            here.submit(f"app-{number}", "cpu", 600)
        here.minutes(25)
        if environment is None:
            assert "AgentsLimit" in ringing_in(here.here)
        else:
            assert told(here, "agents limit") == ["agents limit: pool cpu (max_agents 4)"]


def test_idle_agents_are_told_by_their_dollars_and_the_dearest_pool_first():
    with scene(IDLE, essential_environment()) as here:
        here.minutes(130)
        assert told(here, "executors free") == []
        assert told(here, "idle agents") == ["idle agents: pool gpu ($16.09 an hour), pool utility ($0.11 an hour)"]
        [text] = [text for subject, text in here.here.told() if "idle agents" in subject]
        assert (
            "IdleUsdPerHour of pool gpu ($16.09 an hour), pool utility ($0.11 an hour): $16.20, which is over $10.00 (IdleUsdAlarm)."
            in text
        )


def test_many_free_executors_of_a_cheap_agent_are_told_nobody():
    with scene(
        "pools: {utility: {$pool, executors: 60, max_agents: 2, usd_per_hour: 0.1, min_agents: 1}}", essential_environment()
    ) as here:
        here.minutes(130)
        assert told(here, "idle agents") == told(here, "executors free") == []


def test_agents_that_work_cost_nothing_idle():
    with scene(IDLE, essential_environment()) as here:
        here.minutes(6)
        for number in range(8):
            here.submit(f"train-{number}", "gpu", 200)
        here.minutes(130)
        assert told(here, "idle agents") == []
