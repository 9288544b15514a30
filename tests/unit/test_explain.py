"""Why something is as it is, in facts that a person can check."""

import pytest

from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.memory import CapacityDelay
from autoscaler.domain.facts.overrides import Hold, Overrides, Scope
from autoscaler.domain.facts.snapshot import OfflineCause, Wait
from autoscaler.domain.report.explain import explain
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_mark,
    a_memory,
    a_pool,
    a_snapshot,
    a_view,
    an_agent,
    an_empty_window,
    an_item,
    cordoned,
)

FLEET = a_fleet(a_pool("cpu", queue_maturity_seconds=30.0), a_pool("gpu"))


def asked(subject, *agents, items=(), overrides=None, memory=None, **view):
    nodes = [node for _, node in agents]
    snapshot = a_snapshot(
        a_view(*nodes, items=tuple(items), **view),
        records=tuple(record for record, _ in agents),
        memory=memory or a_memory(windows=an_empty_window()),
        overrides=overrides or Overrides(),
    )
    return explain(snapshot, FLEET, subject)


def test_a_job_that_no_executor_will_take_gets_an_agent():
    facts = asked("build", items=[an_item(1, job="build", label="cpu", waiting_seconds=90.0)])
    assert facts[:2] == [
        "build waits for cpu on main since 90 s; cpu may serve it",
        "it would start in 180 s on an executor of cpu; a new agent takes 180 s to boot",
    ]
    assert facts[2].startswith("now to be done: Launch, nobody-can-serve")


def test_a_job_that_is_young_does_not_count_yet():
    facts = asked("build", items=[an_item(1, job="build", label="cpu", waiting_seconds=10.0)])
    assert "it counts once it has waited 30 s (queue_maturity_seconds)" in facts


def test_a_job_that_no_pool_can_serve_says_so():
    [fact] = asked("odd", items=[an_item(1, job="odd", label="sparc", waiting_seconds=90.0)])
    assert fact == "odd waits for sparc on main since 90 s; unservable: no pool of main serves sparc"


def test_a_job_that_is_held_by_its_label_says_by_whom():
    hold = Hold(scope=Scope.LABEL, name="cpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="licence")
    [fact] = asked("build", items=[an_item(1, job="build", label="cpu")], overrides=Overrides(holds=(hold,)))
    assert fact.endswith("label cpu is on hold for 10 more min by ada: licence")


def test_a_job_that_waits_for_something_else_or_runs():
    waiting = an_item(1, job="build", label="cpu", wait=Wait(for_executor=False))
    assert asked("build", items=[waiting]) == ["build is in the queue of main, and waits for something else than an executor"]
    running = an_agent(builds=(a_build(job="build"),))
    assert asked("build", running) == ["build runs on cpu-1 of cpu"]


def test_an_agent_says_what_keeps_it():
    idle = an_agent()
    facts = asked("cpu-1", idle, memory=a_memory(windows=an_empty_window(), idle_since={"i-1": NOW - 600}))
    assert "it has been idle for 10 min" in facts
    assert any(fact.startswith("now to be done: Cordon, surplus") for fact in facts)
    assert asked("i-1", idle)[0] == asked("cpu-1", idle)[0]
    pinned = asked("cpu-1", idle, items=[an_item(1, label=None, wait=Wait(for_executor=True, nodes=("cpu-1",)))])
    assert "a build may be bound to it: a queue item waits for it by name, or it was busy before a restart" in pinned


def test_an_agent_that_is_marked_says_by_whom():
    record, node = an_agent()
    ours = asked("cpu-1", (record, cordoned(node, a_mark(MarkClass.OPERATOR))))
    assert any(fact.startswith("it was marked by pass ") and fact.endswith(": operator") for fact in ours)
    theirs = asked("cpu-1", (record, cordoned_by_a_person(node)))
    assert "it is offline, and not by us: my disk is full" in theirs


def cordoned_by_a_person(node):
    marked = cordoned(node)
    return type(marked)(
        **{name: getattr(marked, name) for name in marked.__slots__} | {"reason": "my disk is full", "cause": OfflineCause.PERSON}
    )


def test_a_pool_says_what_there_is_and_why_nothing_is_launched():
    hold = Hold(scope=Scope.POOL, name="cpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="driver")
    facts = asked("cpu", an_agent(), items=[an_item(1, label="cpu")], overrides=Overrides(holds=(hold,)))
    assert facts[0] == "cpu on main: 1 items wait for it; 1 ready; at most 10, at least 0"
    assert "nothing is launched there: pool cpu is on hold for 10 more min by ada: driver" in facts


def test_a_pool_says_that_its_machines_were_short():
    memory = a_memory(capacity_delays={"cpu": CapacityDelay(asks=1.0, seconds=300.0, squares=90_000.0)})
    assert "machines were short: agents are kept as if one more took 142 s longer to be had" in asked("cpu", memory=memory)


def test_a_controller_that_cannot_be_read_is_told_first():
    facts = asked("cpu", problem="no answer")
    assert facts[0] == "main could not be read completely: no answer; nothing is given up or launched there"


@pytest.mark.parametrize("subject", ["", "nobody", "cpu-9"])
def test_of_what_is_not_there_nothing_is_said(subject):
    assert asked(subject, an_agent()) == []
