"""Items that wait for something that nobody here understands: named when they have waited too long, demand where an executor may help."""

import pytest

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Wait
from autoscaler.domain.learn import assess
from autoscaler.domain.report.listing import list_queue
from autoscaler.domain.report.metrics import measure
from support.builders import a_build, a_fleet, a_node, a_pool, a_snapshot, a_view, an_agent, an_item
from support.decisions import decide_up, launches, seen
from support.told import explain, status

WORDS = "Already running 1 builds across all nodes"


def unclear(item_id=1, label="cpu", seconds=2000.0, **facts):
    return an_item(item_id, label=label, why=Wait(for_executor=False, unclear=WORDS), waiting_seconds=seconds, **facts)


def told(plan):
    return [held.detail for held in plan.held if held.reason is Reason.UNCLEAR]


def test_beyond_the_longest_wait_it_is_named_and_an_agent_is_tried():
    plan = decide_up(items=(unclear(),))
    assert launches(plan) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]
    assert told(plan) == [f"1 item for cpu, job-1 for 33 min: {WORDS}"]


def test_until_then_it_is_neither():
    plan = decide_up(items=(unclear(seconds=1799.0),))
    assert (launches(plan), told(plan)) == ([], [])


def test_many_alike_are_one_line_and_one_agent():
    plan = decide_up(items=tuple(unclear(number, seconds=2000.0 + number) for number in range(1, 21)))
    assert launches(plan) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]
    assert told(plan) == [f"20 items for cpu, job-20 for 34 min: {WORDS}"]


@pytest.mark.parametrize(
    "facts",
    [{"buildable": False}, {"label": None}, {"label": "sparc"}],
    ids=["blocked, quiet or pending", "its label is not told", "no pool has its label"],
)
def test_where_no_executor_of_ours_would_help_none_is_launched(facts):
    plan = decide_up(items=(unclear(**facts),))
    assert launches(plan) == []
    assert len(told(plan)) == 1


def test_what_is_blocked_for_something_unknown_is_named_with_jenkins_words_and_nothing_is_launched():
    plan = decide_up(
        items=(unclear(buildable=False), unclear(2, buildable=False, seconds=2100.0), unclear(3, buildable=False, seconds=60.0))
    )
    assert (launches(plan), told(plan)) == ([], [f"2 items for cpu, job-2 for 35 min: {WORDS}"])
    situation = assess(a_snapshot(a_view(items=(unclear(buildable=False),))), a_fleet())
    [entry] = list_queue(situation)
    assert entry.detail == f"what it waits for is no executor; Jenkins says: {WORDS}"
    assert {datum.values for datum in measure(situation, {}, {}) if datum.name == "QueueUnclear"} == {(1,)}


def test_no_time_is_promised_for_what_waits_for_words_of_a_plugin_though_an_agent_would_be_there():
    [entry] = list_queue(assess(seen(an_agent(builds=(a_build(),)), items=(unclear(seconds=2100.0),)), a_fleet()))
    assert (entry.state, entry.starts_in_seconds) == ("unclear", None)
    assert entry.detail == f"Jenkins holds it back: {WORDS}"


def test_beside_a_free_executor_it_is_only_named():
    plan = decide_up(an_agent(), items=(unclear(),))
    assert (launches(plan), len(told(plan))) == ([], 1)
    plan = decide_up(view={"nodes": (a_node("static", "cpu", "linux"),)}, items=(unclear(),))
    assert (launches(plan), len(told(plan))) == ([], 1)


def test_one_agent_is_on_its_way_and_no_second_is_launched():
    plan = decide_up(an_agent(builds=(a_build(),)), items=(unclear(seconds=700.0),), fleet=a_fleet(a_pool("cpu", max_wait_seconds=600.0)))
    assert launches(plan) == [("cpu", 1, Reason.MAX_WAIT)]


def test_status_and_why_say_it():
    snapshot = a_snapshot(a_view(items=(unclear(),)))
    assert status(snapshot, a_fleet()).unclear == 1
    assert any(WORDS in fact for fact in explain(snapshot, a_fleet(), "job-1"))


def test_the_queue_names_the_label_that_jenkins_tells_of_a_stage_that_waits_for_busy_executors():
    stage = an_item(label=None, wait=Wait(for_executor=True, named="gpu"))
    [entry] = list_queue(assess(seen(an_agent(builds=(a_build(),)), items=(stage,)), a_fleet()))
    assert entry.label == "gpu"
