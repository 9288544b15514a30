"""Streaks of failures: which of them point to the machine, and which to the code."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.run_answers import BuildResult
from autoscaler.domain.facts.streaks import FailedRun, PoolResults, Streak
from autoscaler.domain.scale_in.build_results import Ended, chance_of_streak, note_pool_results, note_streaks
from support.builders import NOW, a_view, an_agent

GOOD, BAD = BuildResult.SUCCEEDED, BuildResult.FAILED


def block(node, run, result, pool="cpu", **facts):
    job = run.rpartition("/")[0]
    return Ended(node=node, pool=pool, job=job, run=run, since_at=NOW, result=result, **({"is_block": True} | facts))


def streak(*looks):
    """The streak of cpu-1 after these looks."""
    view = a_view(*(an_agent(number)[1] for number in (1, 2, 3)))
    learned = Learned()
    for ended in looks:
        streaks, succeeded_at = note_streaks(learned, ended, view, NOW)
        learned = replace(learned, streaks=streaks, succeeded_at=succeeded_at)
    return learned.streaks["cpu-1"]


def test_builds_of_other_kinds_have_a_cause_each_and_are_no_proof_before_the_fifth():
    failed = streak([block("cpu-1", f"job/{n}", BAD, is_block=False) for n in range(4)])
    assert (failed.failures, failed.causes, failed.independent) == (4, 4, 0)


def test_blocks_of_one_run_have_one_cause_unless_others_of_it_succeed_elsewhere_in_the_pool():
    three = [block("cpu-1", "pr/1", BAD)] * 3
    assert (streak(three).causes, streak(three).independent) == (1, 1)
    assert streak(three, [block("cpu-2", "pr/1", GOOD)] * 3).independent == 3
    assert streak(three, [block("cpu-2", "pr/1", GOOD)]).independent == 1
    assert streak(three, [block("cpu-2", "pr/1", GOOD, pool="gpu")] * 3).independent == 1


def test_a_run_that_fails_elsewhere_too_counts_once():
    three, elsewhere = [block("cpu-1", "pr/1", BAD)] * 3, [block("cpu-2", "pr/1", GOOD)] * 3
    assert streak(three, elsewhere, [block("cpu-3", "pr/1", BAD)]).independent == 1


def test_runs_of_one_job_have_one_cause_unless_something_of_it_succeeds_elsewhere():
    three = [block("cpu-1", f"pr/{n}", BAD) for n in range(3)]
    assert (streak(three).causes, streak(three).independent) == (3, 1)
    assert streak(three, [block("cpu-2", "pr/9", GOOD)]).independent == 3


def test_jobs_have_a_cause_each():
    assert streak([block("cpu-1", f"pr-{n}/1", BAD) for n in range(3)]).independent == 3


@pytest.mark.parametrize(("failed", "is_rare"), [(0, True), (2, True), (12, False), (30, False)])
def test_three_failures_are_rare_only_where_few_builds_fail(failed, is_rare):
    runs = tuple(FailedRun(run=f"pr-{n}/1", job=f"pr-{n}", pool="cpu", failures=1) for n in range(3))
    three = Streak(failures=3, since_at=NOW, jobs=("pr-0", "pr-1", "pr-2"), runs=runs)
    assert (chance_of_streak(three, PoolResults(succeeded=60.0, failed=3.0 + failed)) <= 0.001) is is_rare


def test_old_results_of_a_pool_fade():
    counted = {}
    for _ in range(100):
        counted = note_pool_results(counted, [block("cpu-1", "pr/1", BAD)] * 10)
    for _ in range(50):
        counted = note_pool_results(counted, [block("cpu-1", "pr/1", GOOD)] * 10)
    assert counted["cpu"].failed < 20 < counted["cpu"].succeeded < 300
