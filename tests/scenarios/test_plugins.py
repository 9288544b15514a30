"""Time-lines with a plugin that keeps jobs from nodes in words of its own."""

import pytest

from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


@pytest.fixture(params=["by the adapters", "straight"])
def day(request):
    fleet = in_memory(a_pool("cpu", idle_seconds=300.0, max_wait_seconds=600.0, boot_seconds=60.0))
    return Day(fleet, by_adapters=request.param == "by the adapters")


def launched(day):
    return sum(step.count for step in day.done(Launch))


def throttled(day):
    """throttle-concurrents: one build of a kind at a time."""

    def veto(build, _node):
        running = [b for b in day.jenkins.builds if b.started_at is not None and b.ended is None]
        return "Already running 1 builds across all nodes" if any(b.job == build.job for b in running) else None

    day.jenkins.veto = veto


def test_a_throttled_job_is_named_and_costs_one_agent_after_another_ever_more_rarely(day):
    throttled(day)
    day.minutes(2)
    first = day.jenkins.submit("nightly", "cpu", 3 * 3600.0)
    second = day.jenkins.submit("nightly", "cpu", 60.0)
    day.minutes(30)
    named = [h.detail for report in day.fleet.reports[-2:] for h in report.plan.held if h.reason is Reason.UNCLEAR]
    assert named
    assert "Already running 1 builds across all nodes" in named[0]
    assert launched(day) <= 7
    before = launched(day)
    day.minutes(120)
    assert launched(day) - before <= 6
    assert day.agents() <= 3
    day.minutes(40)
    assert (first.ended, second.ended) == (Ended.FINISHED, Ended.FINISHED)


def test_a_job_that_may_not_run_on_one_node_gets_another(day):
    """Its label is known, and nothing that could take it is free: the words alone would let it wait for ever."""
    day.minutes(2)
    day.jenkins.submit("long", "cpu", 4 * 3600.0)
    day.minutes(5)
    [node] = day.nodes()
    day.jenkins.veto = lambda build, at: f"‘{build.job}’ lacks permission to run on ‘{at.name}’" if at.name == node else None
    build = day.jenkins.submit("secret", "cpu", 60.0, kind=Kind.FREESTYLE)
    day.minutes(20)
    assert build.ended is Ended.FINISHED
