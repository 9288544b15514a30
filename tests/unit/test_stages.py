"""What a pipeline's stage announces of the next one, learned from its project's earlier runs."""

from collections import Counter
from dataclasses import replace

import pytest

from autoscaler.domain.facts.memory import RunSeen, StageSeen
from autoscaler.domain.facts.plan import Cordon, CreateBeacon, Launch, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.job_patterns import Present, due, is_worth_keeping, learn_stages, project_of
from autoscaler.domain.learn import assess
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_learned,
    a_memory,
    a_pool,
    a_snapshot,
    a_view,
    an_agent,
    an_empty_window,
    an_item,
    cordoned,
)
from support.decisions import scale_down, scale_up

CPU, GPU = a_pool("cpu", executors=4), a_pool("gpu")
RUN = "job/m/job/PR-1/4"


def has(items=None, builds=None):
    return Present(job="m/PR-1", items=items or {}, builds=builds or {})


def follow(*looks):
    """Looks a minute apart, each what the run has then (None: nothing)."""
    learned = a_learned()
    for number, look in enumerate(looks):
        present = {} if look is None else {RUN: look}
        runs, stages = learn_stages(learned, present, NOW + 60.0 * number)
        learned = replace(learned, runs=runs, stages=stages, seen_at=NOW + 60.0 * number)
    return learned


def test_a_stage_is_over_when_nothing_of_it_is_left_and_more_comes():
    learned = follow(has({1: "cpu"}), has(builds={"a": "cpu"}), has({2: "gpu", 3: "gpu"}))
    assert learned.stages == {"m\ncpu*1": StageSeen(followed=((120.0, {"gpu": 2}),))}
    assert (learned.runs[RUN].stage, learned.runs[RUN].since_at) == ("gpu*2", NOW + 120.0)


def test_an_item_that_becomes_a_build_is_no_new_stage():
    assert follow(has({1: "cpu", 2: "cpu"}), has({2: "cpu"}, {"a": "cpu"}), has(builds={"a": "cpu", "b": "cpu"})).stages == {}


def test_parallel_branches_that_end_one_by_one_are_one_stage():
    assert follow(has(builds={"a": "cpu", "b": "gpu"}), has(builds={"b": "gpu"})).stages == {}


def test_what_the_next_stage_runs_on_the_same_executor_does_not_hide_it():
    """Jenkins names both builds by the run and the executor."""
    learned = follow(has(builds={"a": "cpu"}), has(dict.fromkeys(range(5), "gpu"), {"a": "cpu"}))
    assert learned.stages["m\ncpu*1"].followed == ((60.0, {"gpu": 5, "cpu": 1}),)


def test_a_stage_that_nothing_followed_was_the_last_one():
    learned = follow(has({1: "cpu"}), has(builds={"a": "cpu"}), None, None, None, None, None)
    assert learned.stages == {"m\ncpu*1": StageSeen(ended=(60.0,))}
    assert learned.runs == {}


@pytest.mark.parametrize(("job", "project"), [("m/PR-1", "m"), ("org/repo/main", "org/repo"), ("lonely", "lonely")])
def test_branches_of_one_project_teach_each_other(job, project):
    assert project_of(job) == project


def learned(elapsed, *, followed=5, ended=0, seconds=600.0, counts=None, own=None):
    """A run so far into a stage that so many runs took so long with, and those that ended there."""
    history = StageSeen(followed=((seconds, counts or {"gpu": 3}),) * followed, ended=(seconds,) * ended)
    run = RunSeen(project="m", stage="cpu*1", since_at=NOW - elapsed, builds=own or {"a": "cpu"})
    return a_learned(runs={RUN: run}, stages={"m\ncpu*1": history})


def due_now(known):
    snapshot = a_snapshot(a_view(), learned={"main": known})
    return executors_foreseen(snapshot, a_fleet(CPU, GPU))


def executors_foreseen(snapshot, fleet):
    return {pool: foreseen.executors for pool, foreseen in assess(snapshot, fleet).forecasts("main").items()}


def test_a_stage_is_due_when_a_boot_and_a_look_are_left_before_it():
    assert due_now(learned(600.0 - 180.0 - 61.0)) == Counter()
    assert due_now(learned(600.0 - 180.0 - 59.0)) == Counter(gpu=3)


def test_two_runs_are_not_enough_to_go_by():
    assert due_now(learned(500.0, followed=2)) == Counter()


def test_what_is_later_than_it_ever_was_is_not_expected_any_more():
    assert due_now(learned(601.0)) == Counter()


def test_what_seldom_comes_is_not_worth_an_idle_machine():
    assert due_now(learned(500.0, followed=5, ended=5)) == Counter(gpu=3)
    dear = a_fleet(CPU, replace(GPU, offerings=(replace(GPU.offerings[0], usd_per_hour=90.0),)))
    snapshot = a_snapshot(a_view(), learned={"main": learned(500.0, followed=5, ended=5)})
    assert executors_foreseen(snapshot, dear) == {}


def test_executors_that_the_run_has_now_will_be_free_by_then():
    assert due_now(learned(500.0, counts={"gpu": 3}, own={"a": "gpu", "b": "gpu"})) == Counter(gpu=1)


def test_agents_are_launched_for_a_stage_that_is_due():
    plan = scale_up(
        a_snapshot(a_view(), learned={"main": learned(500.0, counts={"cpu": 6, "gpu": 1}, own={"x": "other"})}), a_fleet(CPU, GPU)
    )
    assert {(s.pool, s.count, s.reason) for s in plan.steps if isinstance(s, Launch)} == {
        ("cpu", 2, Reason.FORESEEN),
        ("gpu", 1, Reason.FORESEEN),
    }


def test_executors_that_are_there_are_taken_first():
    record, node = an_agent(pool="gpu")
    snapshot = a_snapshot(a_view(node), records=(record,), learned={"main": learned(500.0, counts={"gpu": 1})})
    assert [step for step in scale_up(snapshot, a_fleet(CPU, GPU)).steps if isinstance(step, Launch)] == []


def test_an_agent_that_retires_comes_back_before_one_is_launched():
    record, node = an_agent(pool="gpu")
    snapshot = a_snapshot(a_view(cordoned(node)), records=(record,), learned={"main": learned(500.0, counts={"gpu": 1})})
    assert [type(step) for step in scale_up(snapshot, a_fleet(CPU, GPU)).steps if not isinstance(step, CreateBeacon)] == [Uncordon]


def test_an_agent_that_a_stage_will_need_is_not_retired():
    record, node = an_agent(pool="gpu")
    memory = a_memory(windows=an_empty_window(pool="gpu"))
    for known, goes in ((a_learned(), True), (learned(500.0), False)):
        snapshot = a_snapshot(a_view(node), records=(record,), memory=memory, learned={"main": known})
        assert any(isinstance(step, Cordon) for step in scale_down(snapshot, a_fleet(CPU, GPU)).steps) == goes


def test_limits_hold_for_what_is_foreseen():
    few = a_fleet(CPU, replace(GPU, max_agents=2))
    plan = scale_up(a_snapshot(a_view(), learned={"main": learned(500.0)}), few)
    assert [step.count for step in plan.steps if isinstance(step, Launch)] == [2]
    assert Reason.MAX_AGENTS in {held.reason for held in plan.held}


def test_nothing_is_due_where_nothing_was_learned():
    item, busy = an_item(1, label="cpu", run=RUN), an_agent(builds=(a_build(run=RUN),))[1]
    assert due(a_snapshot(a_view(busy, items=(item,))).learned["main"], {}, LONG_AGO, is_worth_keeping) == Counter()
