"""Time-lines of labels that a person holds: jobs that ask for them wait, whatever is free; others run; and the labels come back."""

from functools import partial

import pytest

from autoscaler.control import operate
from autoscaler.domain.facts.fleet import HELD_LABEL
from autoscaler.domain.facts.orders import Hold, Resume, Scope, hold, resume
from autoscaler.domain.facts.plan import Launch, Relabel
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

LABELS = frozenset({"gpu", "linux"})


def a_day(fleet=None, **facts):
    """A pool whose one agent is there in any case."""
    given = {"labels": LABELS, "executors": 1, "min_agents": 1, "max_agents": 1} | facts
    return Day(fleet or in_memory(a_pool("cpu", **given))).minutes(10)


def change(day, what):
    operate.change(day.fleet.ports_of("operate"), day.fleet.invocation(), what)


def held(day, label="gpu", minutes=None, *, at_once=True):
    """Hold a label by a person's order; not ``at_once``: the schedule alone takes the label."""
    now = day.world.timeline.now
    until = None if minutes is None else now + 60.0 * minutes
    what = Hold(scope=Scope.LABEL, name=label, since_at=now, until_at=until, by="ada", reason="driver update")
    if at_once:
        operate.hold_for_a_person(day.fleet.ports_of("operate"), day.fleet.fleet, day.fleet.invocation(), what)
    else:
        change(day, partial(hold, new=what))
    return day


def released(day, label="gpu", *, at_once=True):
    """Resume a label by a person's order."""
    if at_once:
        order = Resume(scope=Scope.LABEL, name=label, nodes=(), reason="done")
        day.lift(order)
    else:
        change(day, partial(resume, scope=Scope.LABEL, name=label))
    return day


def agent_nodes(day, controller="main"):
    nodes = day.world.controllers[controller].nodes.values()
    return [node for node in nodes if not node.name.startswith("autoscaler-beacon")]


def labels(day):
    [node] = agent_nodes(day)
    return frozenset(node.labels)


def reasons(day):
    return [step.reason for step in day.done(Relabel)]


def told(day, subject):
    return "\n".join(day.why(subject))


@pytest.mark.parametrize("at_once", [True, False])
def test_a_job_of_a_held_label_waits_beside_a_free_executor_and_begins_once_nobody_holds_it(at_once):
    day = held(a_day(), at_once=at_once)
    day.minutes(0 if at_once else 1)
    [job] = day.queue(1, label="gpu")
    day.minutes(20)
    assert (job.started_at, labels(day) & LABELS, HELD_LABEL in labels(day)) == (None, {"linux"}, True)
    released(day, at_once=at_once).minutes(2)
    assert (job.started_at is not None, labels(day) & {*LABELS, HELD_LABEL}, day.failed) == (True, LABELS, 0)
    assert len(day.done(Launch)) == 1


def test_a_hold_that_ends_by_itself_gives_the_label_back_and_launches_nothing():
    day = held(a_day(max_agents=3), minutes=15, at_once=False).minutes(1)
    [job] = day.queue(1, label="gpu")
    day.minutes(13)
    assert job.started_at is None
    day.minutes(3)
    assert (job.started_at is not None, labels(day) & LABELS, len(day.done(Launch))) == (True, LABELS, 1)
    assert reasons(day) == [Reason.LABELS_HELD, Reason.LABELS_RELEASED]


def test_a_job_that_waits_when_a_build_ends_waits_on():
    day = a_day()
    [running, waiting] = [*day.queue(1, label="gpu", seconds=600.0), *day.queue(1, label="gpu")]
    day.minutes(2)
    held(day).minutes(20)
    assert (running.ended, waiting.started_at) == (Ended.FINISHED, None)


@pytest.mark.parametrize("label", ["linux", "linux || gpu", "linux && !arm"])
def test_jobs_that_can_do_without_the_held_label_run(label):
    day = held(a_day()).minutes(1)
    [job] = day.queue(1, label=label)
    day.minutes(2)
    assert (job.started_at is not None, len(day.done(Launch))) == (True, 1)


@pytest.mark.parametrize("label", ["gpu && linux", "gpu && !arm", "(gpu && linux) || arm"])
def test_an_expression_that_needs_the_held_label_waits_and_nothing_is_launched_for_it(label):
    day = held(a_day(max_agents=4)).minutes(1)
    [job] = day.queue(1, label=label)
    day.minutes(30)
    assert (job.started_at, len(day.done(Launch))) == (None, 1)
    assert "held by ada" in [entry.brief for entry in operate.queue(day.fleet.ports, day.fleet.fleet, day.fleet.invocation())]


def test_why_names_the_hold_its_author_and_its_end():
    day = held(a_day(), minutes=60).minutes(1)
    [job] = day.queue(1, label="gpu")
    day.minutes(1)
    answer = told(day, job.job)
    assert "label gpu is on hold" in answer
    assert "by ada: driver update" in answer
    assert "the hold of label gpu ends at 09:10 UTC, or with: autoscaler resume --label gpu" in answer
    [node] = agent_nodes(day)
    assert "without gpu" in told(day, node.name)
