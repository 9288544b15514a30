"""A pool for short jobs whose free executors Jenkins gives to long ones: people are told once, with what to do in Jenkins."""

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.deployed import event
from support.scene import BOTH, scene

UTILITY = "utility: {$pool, executors: 10, min_agents: 1, max_agents: 2, labels: [linux, utility], %s}"
CPU = "cpu: {launch_template: t, instance_types: [c5.9xlarge], executors: 1, max_agents: 4, labels: [linux, cpu]}"
LIMIT = "max_job_seconds: 600"
RUNS_THERE = "long jobs run on utility"


def pools(limit=LIMIT):
    return f"pools: {{{UTILITY % limit}, {CPU}}}"


def text_of(fleet, subject):
    [text] = [text for told, text in fleet.here.told() if told.endswith(subject)]
    return text


def doctor(fleet):
    found = fleet.here.call("operate", event("doctor"))["findings"]
    return {one["what"]: (one["fine"], one["detail"]) for one in found if one["about"] == "utility" and "max_job_seconds" in one["what"]}


SHORT_ONLY = "runs short jobs alone (max_job_seconds)"


@pytest.mark.parametrize("label", ["linux", "utility"])
def test_six_long_builds_on_a_free_agent_are_told_once_with_what_to_do_in_jenkins(label):
    with scene(pools()) as fleet:
        fleet.minutes(5)
        builds = [fleet.submit("long", label, 25) for _ in range(6)]
        fleet.until(lambda: all(build.ended for build in builds), 40)
        fleet.minutes(60)
        for _ in range(3):
            again = fleet.submit("long", label, 25)
            fleet.until(lambda again=again: again.ended, 40)
        assert {build.node for build in builds} == {builds[0].node}
        assert fleet.subjects() == [RUNS_THERE]
        text = text_of(fleet, RUNS_THERE)
        for part in (
            "up to 10 min (max_job_seconds)",
            "runs long for 16 min so far",
            "In Jenkins, give the jobs that may run there a label",
        ):
            assert part in text, text


def test_the_next_build_of_a_job_that_is_known_to_be_long_is_told_as_soon_as_it_runs_there():
    with scene(pools("max_job_seconds: 1200")) as fleet:
        fleet.minutes(5)
        first = fleet.submit("long", "utility", 25)
        fleet.until(lambda: first.ended, 40)
        assert fleet.subjects() == []  # nobody knew; and 5 min more are no news
        fleet.submit("long", "utility", 25)
        fleet.minutes(2)
        assert fleet.subjects() == [RUNS_THERE]


def test_one_message_names_all_that_run_there_parts_of_pipelines_too():
    with scene(pools()) as fleet:
        fleet.minutes(5)
        for number in range(3):
            fleet.submit(f"build/branch-{number}", "utility", 40, kind=Kind.PIPELINE)
        fleet.submit("nightly", "utility", 40)
        fleet.minutes(60)
        assert fleet.subjects() == [RUNS_THERE]
        text = text_of(fleet, RUNS_THERE)
        assert all(f"{job} for 16 min so far" in text for job in ("build/branch-0", "build/branch-1", "build/branch-2", "nightly"))


def test_it_is_over_when_no_long_job_has_run_there_for_three_days():
    with scene(pools()) as fleet:
        fleet.minutes(5)
        fleet.submit("long", "utility", 25)
        fleet.minutes(30)
        for _ in range(2 * 24):
            fleet.world.move_to(fleet.now + 3600.0)
            fleet.minutes(1)
        assert fleet.subjects() == [RUNS_THERE]
        for _ in range(26):
            fleet.world.move_to(fleet.now + 3600.0)
            fleet.minutes(1)
        assert fleet.subjects() == [RUNS_THERE, f"over: {RUNS_THERE}"]


def test_status_names_the_pool_and_doctor_and_why_the_jobs_that_ran_there():
    with scene(pools()) as fleet:
        fleet.minutes(5)
        assert doctor(fleet)[SHORT_ONLY] == (True, "")
        build = fleet.submit("long", "utility", 25)
        fleet.until(lambda: build.ended, 40)
        fleet.minutes(5)
        fine, detail = doctor(fleet)[SHORT_ONLY]
        assert (fine, detail.startswith("long ran there, and takes longer: give the jobs")) == (None, True)
        assert any("max_job_seconds): long" in line for line in fleet.order("why", subject="utility")["facts"])
        assert any(line.startswith(RUNS_THERE) for line in fleet.order("status")["status"]["told"])


@pytest.mark.parametrize("limit", ["priority: 0", "max_job_seconds: 3600"], ids=["without the key", "shorter than the limit"])
def test_nothing_is_told_of_builds_that_may_be_there(limit):
    with scene(pools(limit)) as fleet:
        fleet.minutes(5)
        for _ in range(2):
            builds = [fleet.submit("long", "utility", 25) for _ in range(6)]
            fleet.until(lambda builds=builds: all(build.ended for build in builds), 40)
        assert (fleet.subjects(), doctor(fleet).get(SHORT_ONLY, (True, ""))) == ([], (True, ""))


def test_each_controller_of_a_pool_is_told_of():
    shared = f"pools: {{{UTILITY.replace('max_agents: 2', 'max_agents: 4') % f'{LIMIT}, controllers: [main, other]'}}}"
    with scene(BOTH + shared) as fleet:
        fleet.minutes(5)
        fleet.submit("long", "utility", 25, "main")
        fleet.submit("long", "utility", 25, "other")
        fleet.minutes(40)
        assert fleet.subjects() == [RUNS_THERE] * 2
