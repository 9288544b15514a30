"""Why something is as it is, in facts that a person can check."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.memory import Breaker, CapacityDelay, Window
from autoscaler.domain.facts.overrides import Hold, Overrides, Scope
from autoscaler.domain.facts.snapshot import OfflineCause, RecordState, Wait
from autoscaler.domain.learn import assess
from autoscaler.domain.report.explain import explain
from autoscaler.domain.wording import duration
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
        "build waits for cpu on main, for 90 s so far; cpu may serve it",
        "it would start in 3 min on an executor of cpu; a new agent takes 3 min to boot",
    ]
    assert facts[2].startswith("now to be done: Launch, nobody-can-serve")


def test_a_job_that_is_young_does_not_count_yet():
    facts = asked("build", items=[an_item(1, job="build", label="cpu", waiting_seconds=10.0)])
    assert "it counts once it has waited 30 s (queue_maturity_seconds)" in facts


def test_a_job_that_no_pool_can_serve_says_so():
    [fact] = asked("odd", items=[an_item(1, job="odd", label="sparc", waiting_seconds=90.0)])
    assert fact == "odd waits for sparc on main, for 90 s so far; unservable: no pool of main serves sparc"


def test_a_job_that_is_held_by_its_label_says_by_whom():
    hold = Hold(scope=Scope.LABEL, name="cpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="licence")
    [fact] = asked("build", items=[an_item(1, job="build", label="cpu")], overrides=Overrides(holds=(hold,)))
    assert fact.endswith("label cpu is on hold for another 10 min by ada: licence")


def test_a_job_that_waits_for_something_else_or_runs():
    waiting = an_item(1, job="build", label="cpu", wait=Wait(for_executor=False))
    assert asked("build", items=[waiting]) == ["build waits for cpu on main, for 2 min so far; what it waits for is no executor"]
    running = an_agent(builds=(a_build(job="build", elapsed_seconds=750.0),))
    assert asked("build", running) == [
        "build (for 12 min so far) runs on cpu-1 of cpu",
        "cpu-1 was launched 27 h 47 min ago, registered 60 s after that, and has connected",
    ]


def idle_for(seconds, *agents, window=None, **memory):
    since = {record.instance_id: NOW - seconds for record, _ in agents}
    return a_memory(windows=window or an_empty_window(), idle_since=since, **memory)


def test_an_agent_says_what_is_to_be_done_with_it_and_nothing_of_keeping_it():
    facts = asked("cpu-1", an_agent(), memory=idle_for(600, an_agent()))
    assert any(fact.startswith("now to be done: Cordon, surplus") for fact in facts)
    assert not any(fact.startswith("kept") for fact in facts)
    assert asked("i-1", an_agent())[0] == asked("cpu-1", an_agent())[0]


def kept(*agents, pool=None, since=600.0, window=None, items=(), overrides=None):
    """What is said of keeping the first of these agents."""
    fleet = a_fleet(pool or a_pool("cpu"))
    window = window or {"main/cpu": Window(opened_at=NOW - 7200, seen_at=NOW, peaks=((NOW - 60, 2), (NOW, 0)))}
    snapshot = a_snapshot(
        a_view(*(node for _, node in agents), items=tuple(items)),
        records=tuple(record for record, _ in agents),
        memory=idle_for(since, *agents, window=window),
        overrides=overrides or Overrides(),
    )
    [fact] = [fact for fact in explain(snapshot, fleet, agents[0][0].instance_id) if fact.startswith("kept")]
    return fact


def test_an_idle_agent_is_kept_for_what_it_is_worth_by_the_values_of_the_rule():
    """$3 an hour are $0.75 a quarter of an hour; a boot of 180 s is $0.15, and a job would wait for 30 + 30 + 180 s at $20 an hour."""
    price = "worth $0.75 a quarter of an hour against a boot of $1.48 ($1.33 of it waiting)"
    keep = situated(a_fleet(a_pool("cpu")), an_agent()).pools["main", "cpu"].keep
    assert keep.costs.wait_usd == pytest.approx(1.33, abs=0.01)
    assert kept(an_agent()) == (
        f"kept: idle for 10 min, {price}; agent 1 of cpu is kept for {duration(keep.seconds(1))} after it was last needed"
    )
    second = an_agent(1), an_agent(2)
    assert "agent 2 of cpu is kept for" in kept(*second)


def situated(fleet, *agents):
    return assess(a_snapshot(a_view(*(node for _, node in agents)), records=tuple(record for record, _ in agents)), fleet)


def test_an_idle_agent_that_is_kept_in_any_case_says_why():
    assert kept(an_agent(), pool=a_pool("cpu", min_agents=1)).endswith("and the pool keeps 1 agent in any case (min_agents)")
    assert kept(an_agent(), pool=a_pool("cpu", idle_seconds=1200.0)).endswith("kept for 20 min after it was last needed (idle_seconds)")
    record, node = an_agent()
    assert kept((replace(record, keep_until=NOW + 3300), node)).endswith("and a person wants it kept for another 55 min")
    hold = Hold(scope=Scope.POOL, name="cpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="driver")
    assert kept(an_agent(), overrides=Overrides(holds=(hold,))).endswith("and pool cpu is on hold for another 10 min by ada: driver")
    needed = {"main/cpu": Window(opened_at=NOW - 7200, seen_at=NOW, peaks=((NOW, 1),))}
    assert kept(an_agent(), window=needed).endswith("and needed now")
    pinned = an_item(1, label=None, wait=Wait(for_executor=True, nodes=("cpu-1",)))
    assert "and a build may be bound to it: a queue item waits for it by name" in kept(an_agent(), items=[pinned])


def test_an_agent_says_how_it_booted():
    record, node = an_agent()
    booted = replace(record, launched_at=NOW - 3600, registered_at=NOW - 3449)
    said = "launched 1 h ago, registered 2 min 31 s after that, and has"
    assert f"{said} connected" in asked("cpu-1", (booted, node))
    assert f"{said} not connected yet" in asked("cpu-1", (booted, replace(node, offline=True, cause=OfflineCause.OTHER)))
    young = replace(
        record.bound(node=None), state=RecordState.REQUESTED, launched_at=NOW - 100, registered_at=None, trouble="Jenkins answered 403"
    )
    facts = asked("i-1", (young, node), memory=a_memory(windows=an_empty_window(), boots={"cpu": (100.0, 140.0) * 6}))
    assert facts[1:5] == [
        "launched 100 s ago, and has not registered yet",
        "what keeps it from becoming an agent: Jenkins answered 403",
        "a boot of cpu takes 2 min (half of the last 12)",
        "its boot may take another 13 min (boot_timeout_seconds)",
    ]


OPEN = Breaker(failures=4, until_at=NOW + 272, opened_at=NOW - 1380, failed=("i-7", "i-8"), said="dracut: FATAL: no root device found")


def broken(**facts):
    return a_memory(windows=an_empty_window(), breakers={"cpu": replace(OPEN, **facts)})


def test_a_broken_pool_says_so_first_and_once():
    facts = asked("cpu", items=[an_item(1, label="cpu")], memory=broken())
    assert facts[:3] == [
        "cpu is broken, for 23 min by now: its last 4 boots failed",
        "the last was i-8; its console ended: dracut: FATAL: no root device found",
        "next: one agent is tried in 4 min 32 s, if jobs wait for it then",
    ]
    assert [fact for fact in facts if "breaker" in fact or "boots in a row" in fact] == []


def test_a_broken_pool_says_what_is_tried():
    assert "next: one agent is tried as soon as jobs wait for it" in asked("cpu", memory=broken(until_at=NOW - 1))
    record, node = an_agent()
    tried = replace(record.bound(node=None), state=RecordState.REQUESTED, launched_at=NOW - 100, registered_at=None)
    facts = asked("cpu", (tried, node), memory=broken(until_at=NOW - 1, why="Jenkins answered 403"))
    assert facts[1:3] == [
        "the last was i-8; Jenkins answered 403",
        "next: i-1 boots, launched 100 s ago; others follow once one connects",
    ]


def test_a_job_of_a_broken_pool_says_so():
    facts = asked("build", items=[an_item(1, job="build", label="cpu")], memory=broken())
    assert facts[1] == "it starts once an agent of cpu boots"
    assert "cpu is broken, for 23 min by now: its last 4 boots failed" in facts
    assert [fact for fact in facts if fact.startswith("not done: breaker-open")] == []


def test_an_instance_that_is_gone_is_known_for_as_long_as_the_memory_knows_it():
    memory = replace(broken(), gone={"i-8": NOW - 1800})
    assert asked("i-8", memory=memory) == [
        "i-8 is gone; it was launched 30 min ago",
        "i-8 was an instance of cpu whose boot failed; its console ended: dracut: FATAL: no root device found",
    ]
    assert asked("i-7", memory=memory) == ["i-7 was an instance of cpu whose boot failed"]


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
    assert "cpu on main: 1 job waiting for it; 1 ready; at most 10, at least 0" in facts
    assert facts.count(facts[0]) == 1
    assert facts[0] == ("nothing is launched there: pool cpu is on hold for another 10 min by ada: driver")
    assert not any(fact.startswith("not done: held: pool cpu is on hold") for fact in facts)


def test_a_pool_says_that_its_machines_were_short():
    memory = a_memory(capacity_delays={"cpu": CapacityDelay(asks=1.0, seconds=300.0, squares=90_000.0)})
    assert "machines were short: agents are kept as if one more took 2 min 22 s longer to be had" in asked("cpu", memory=memory)


def test_a_controller_that_cannot_be_read_is_told_first():
    facts = asked("cpu", problem="no answer")
    assert facts[0] == "main could not be read completely: no answer; nothing is terminated or launched there"


@pytest.mark.parametrize("subject", ["", "nobody", "cpu-9"])
def test_of_what_is_not_there_nothing_is_said(subject):
    assert asked(subject, an_agent()) == []
