"""Time-lines of agents that were launched for what was to come: if nobody uses them, nothing is foreseen there for a while."""

from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

FACTS = {"queue_maturity_seconds": 0.0, "boot_seconds": 300.0, "wait_usd_per_hour": 100.0}
ROUND = 20


def a_day():
    pools = a_pool("cpu", idle_seconds=7200.0, **FACTS), a_pool("gpu", idle_seconds=60.0, **FACTS)
    return Day(in_memory(*pools, max_launches_per_hour=1000)).minutes(3)


def rounds(day, count, *, follows):
    """A build each round; on the other pool its test follows, unless people have switched that off. Return the tests."""
    tests = []
    for _ in range(count):
        day.jenkins.submit("build", "cpu", 240.0)
        day.minutes(6)
        tests += [day.jenkins.submit("test", "gpu", 200.0)] if follows else []
        day.minutes(ROUND - 6)
    return tests


def foreseen(day):
    return len([step for step in day.done(Launch) if step.reason is Reason.FORESEEN])


def test_after_seven_vain_guesses_one_is_tried_each_half_hour():
    """Of a test that had been switched off one agent was launched in each round, for as long as anybody looked."""
    day = a_day()
    rounds(day, 10, follows=True)
    used = foreseen(day)
    rounds(day, 9, follows=False)
    assert (used, foreseen(day)) == (4, 12)
    [told] = [line for line in day.why("gpu") if "foreseen" in line]
    assert told.startswith("nothing is foreseen there until 14:43 UTC: of the last 8 agents launched for what was to come 0 took a build")
    before = foreseen(day)
    rounds(day, 12, follows=False)
    assert foreseen(day) - before <= 7
    assert not [line for line in day.why("cpu") if "foreseen" in line]


def test_a_pool_whose_guesses_were_vain_guesses_again_and_is_right():
    day = a_day()
    rounds(day, 10, follows=True)
    rounds(day, 14, follows=False)
    before = foreseen(day)
    tests = rounds(day, 2, follows=True)
    assert foreseen(day) - before == 2
    assert max(test.started_at - test.queued_at for test in tests) <= 120.0
    assert not [line for line in day.why("gpu") if "foreseen" in line]
