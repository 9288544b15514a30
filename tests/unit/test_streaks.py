"""Streaks of failures: which of them point to the machine, and which to the code."""

import pytest

from autoscaler.domain.facts.runs import BuildResult, PoolResults, Streak
from autoscaler.domain.scale_in.replace import Ended, causes, chance_of_streak, note_pool_results, note_streaks
from support.builders import NOW, a_learned, a_view, an_agent

GOOD, BAD = BuildResult.SUCCEEDED, BuildResult.FAILED


def an_end(node, job, result, pool="cpu"):
    run = f"job/{'/job/'.join(job.split('/'))}/1".replace("/job/os=", "/os=")
    return Ended(node=node, pool=pool, run=run, since_at=NOW, result=result)


def streaks(*ended):
    """The streaks after these ends, a look each."""
    view, learned = a_view(*(an_agent(number)[1] for number in (1, 2, 3))), a_learned()
    for end in ended:
        learned = note_streaks(learned, [end], view, NOW)
    return learned.streaks


def blamed(*ended, node="cpu-1"):
    """How many builds failed in a row on a node, and how many causes they have."""
    streak = streaks(*ended)[node]
    return streak.failures, causes(streak)


def test_a_job_is_one_cause_however_often_it_fails():
    assert blamed(*[an_end("cpu-1", "broken", BAD)] * 9) == (9, 1)


def test_jobs_have_a_cause_each():
    assert blamed(*[an_end("cpu-1", f"job-{n}", BAD) for n in range(4)]) == (4, 4)


@pytest.mark.parametrize("before", [True, False])
def test_a_job_that_fails_on_two_nodes_is_no_cause_on_either(before):
    here, elsewhere = [an_end("cpu-1", name, BAD) for name in "abcb"], an_end("cpu-2", "b", BAD)
    ends = [elsewhere, *here] if before else [*here, elsewhere]
    assert (blamed(*ends), blamed(*ends, node="cpu-2")) == ((4, 2), (1, 0))


def test_a_job_that_succeeded_since_is_a_cause_again():
    between = [an_end("cpu-2", "a", BAD), an_end("cpu-3", "a", GOOD)]
    assert blamed(*between, an_end("cpu-1", "a", BAD)) == (1, 1)


def test_the_configurations_of_a_matrix_are_one_job():
    three = [an_end("cpu-1", f"team/app/os={name},gpu=yes", BAD) for name in "abc"]
    assert blamed(*three, an_end("cpu-2", "team/other", GOOD)) == (3, 1)
    assert blamed(*three, an_end("cpu-2", "team/app/os=d,gpu=yes", GOOD)) == (3, 1)


def test_branches_of_one_project_are_one_cause_until_another_of_them_succeeds_elsewhere_in_the_pool():
    three = [an_end("cpu-1", f"org/app/PR-{n}", BAD) for n in range(3)]
    assert blamed(*three) == (3, 1)
    assert blamed(*three, an_end("cpu-2", "org/app/main", GOOD)) == (3, 3)
    assert blamed(*three, an_end("cpu-2", "org/app/main", GOOD, pool="gpu")) == (3, 1)
    assert blamed(*three, an_end("cpu-2", "org/lib/main", GOOD)) == (3, 1)


@pytest.mark.parametrize(("failed", "is_rare"), [(0, True), (2, True), (12, False), (30, False)])
def test_three_failures_are_rare_only_where_few_builds_fail(failed, is_rare):
    three = Streak(failures=3, since_at=NOW, jobs=("pr-0", "pr-1", "pr-2"))
    assert (chance_of_streak(three, PoolResults(succeeded=60.0, failed=3.0 + failed)) <= 0.001) is is_rare


def test_old_results_of_a_pool_fade():
    counted = {}
    for _ in range(100):
        counted = note_pool_results(counted, [an_end("cpu-1", "pr", BAD)] * 10)
    for _ in range(50):
        counted = note_pool_results(counted, [an_end("cpu-1", "pr", GOOD)] * 10)
    assert counted["cpu"].failed < 20 < counted["cpu"].succeeded < 300
