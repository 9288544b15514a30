"""What people ask about jobs: through the real handlers, and on the command line."""

import pytest

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.fakes.state import InMemoryJobs
from autoscaler_workbench.fakes.world.jenkins.builds import Kind, Started
from support.asked import command, served, told
from support.deployed import EXAMPLE, deployed_in_memory, event

CPU = "mxnetlinux-cpu"


@pytest.fixture
def here():
    with deployed_in_memory() as stood, served(stood, "operate"):
        stood.pass_minutes(1)
        yield stood


def submit(here, job, seconds, *, stage="", **facts):
    build = here.world.controllers["main"].submit(job, CPU, seconds, **facts)
    build.stage = stage
    return build


def ran(here, job="folder/job", seconds=300.0, times=1, **facts):
    """Let builds of a job run, one after another, each seen from its queueing to its end."""
    for _ in range(times):
        build = submit(here, job, seconds, **facts)
        while build.ended_at is None:
            here.pass_minutes(1)
        here.pass_minutes(1)


def jobs(here, **asked):
    return here.call("operate", event("jobs") | asked)


def eta(here, subject="folder/job"):
    return here.call("operate", event("eta") | {"subject": subject})["builds"]


def test_what_is_known_of_a_job_is_told_with_what_is_predicted_for_the_next_build(here):
    ran(here, times=3)
    [one] = [job for job in jobs(here)["jobs"] if job["job"] == "folder/job"]
    assert (one["controller"], one["pool"], one["runs"], one["succeeded"]) == ("main", CPU, 3, 1.0)
    assert one["durations"]["p50"] == pytest.approx(300, rel=0.03)
    assert one["waits"]["p95"] > 100, "the first one waited for an agent"
    assert one["next"]["low"] <= 300 <= one["next"]["high"]
    assert one["held"] is not None


def test_a_build_that_begins_at_once_after_a_quiet_while_counts(here):
    here.call("operate", {"action": "set", "pool": CPU, "min_agents": 1, "minutes": 600})
    ran(here)
    here.pass_minutes(10)  # nothing waits or runs, and such looks are not saved; its agent is still there
    build = submit(here, "folder/job", 300.0)
    here.pass_minutes(1)
    assert build.started_at == build.queued_at
    here.pass_minutes(7)
    [one] = [job for job in jobs(here)["jobs"] if job["job"] == "folder/job"]
    assert one["runs"] == 2


def test_steps_of_a_pipeline_are_told_apart_by_their_stage(here):
    for number in range(2):
        for stage, seconds in (("Lint", 100.0), ("GPU: tests", 900.0)):
            ran(here, "app/PR-1", seconds, kind=Kind.PIPELINE, number=number, stage=stage)
    entries = jobs(here, pattern="app/PR-1")["jobs"]
    assert [(one["signature"], one["runs"]) for one in entries] == [("", 4), ("GPU: tests", 2), ("Lint", 2)]
    lint, tests = (next(one for one in entries if one["signature"] == stage) for stage in ("Lint", "GPU: tests"))
    assert lint["durations"]["p95"] < 200
    assert tests["durations"]["p50"] > 800
    assert {one["signature"] for one in jobs(here, pattern="app/[*]")["jobs"]} == {"", "GPU: tests", "Lint"}, "of its branches together"


def test_builds_are_told_apart_by_the_parameters_that_the_fleet_file_names(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(f"{EXAMPLE.read_text(encoding='utf-8')}\njob_parameters: {{nightly/*: [ARCH]}}\n", encoding="utf-8")
    with deployed_in_memory(file) as here:
        here.pass_minutes(1)
        for arch, seconds in (("amd64", 100.0), ("arm64", 900.0), ("amd64", 100.0), ("arm64", 900.0)):
            given = Started(parameters=(("ARCH", arch), ("AUTOSCALER_RUN_ID", f"r-{seconds}"), ("TOKEN", None)))
            ran(here, "nightly/all", seconds, started_with=given)
            ran(here, "weekly/all", seconds, started_with=given)
        told_apart = {one["signature"]: one for one in jobs(here, pattern="nightly/all")["jobs"]}
        assert {name: one["runs"] for name, one in told_apart.items()} == {"": 4, "ARCH=amd64": 2, "ARCH=arm64": 2}
        assert told_apart["ARCH=amd64"]["next"]["mid"] == pytest.approx(100, abs=30)
        assert told_apart["ARCH=arm64"]["next"]["mid"] == pytest.approx(900, rel=0.05)
        assert {one["signature"] for one in jobs(here, pattern="weekly/all")["jobs"]} == {""}
        given = Started(parameters=(("ARCH", "arm64"),))
        submit(here, "nightly/all", 900.0, started_with=given)
        here.pass_minutes(1)
        [one] = [build for build in eta(here, "nightly/all") if build["state"] != "not queued"]
        assert one["signature"] == "ARCH=arm64"


def test_jobs_are_found_by_a_part_of_their_name_and_by_a_pattern_and_the_rest_is_counted(here):
    ran(here, "release/linux")
    ran(here, "nightly")
    assert {one["job"] for one in jobs(here, pattern="RELEASE")["jobs"]} == {"release/linux", "release/*"}
    assert {one["job"] for one in jobs(here, pattern="n*ly")["jobs"]} == {"nightly"}
    cut = jobs(here, most=1)
    assert (len(cut["jobs"]), cut["left_out"]) == (1, 2)


def test_what_waits_and_what_runs_is_told_when_it_starts_and_ends(here):
    ran(here, times=2)
    here.pass_minutes(40)  # its agent goes
    build = submit(here, "folder/job", 300.0)
    here.pass_minutes(3)
    [waits] = eta(here)
    assert (waits["state"], waits["item"], waits["pool"]) == ("waits", build.id, CPU)
    assert waits["starts"]["low"] <= waits["starts"]["mid"] <= waits["starts"]["high"]
    assert waits["ends"]["mid"] == pytest.approx(waits["starts"]["mid"] + 300, abs=20)
    assert eta(here, str(build.id)) == [waits]
    while build.started_at is None:
        here.pass_minutes(1)
    here.pass_minutes(2)
    [runs] = eta(here)
    assert (runs["state"], runs["starts"]) == ("runs", None)
    assert build.started_at + 300 - here.world.timeline.now == pytest.approx(runs["ends"]["mid"], abs=60)


def test_a_job_that_is_not_queued_is_told_as_if_it_were_and_an_unknown_one_not_at_all(here):
    ran(here)
    [one] = eta(here)
    assert (one["state"], one["item"], one["pool"]) == ("not queued", None, CPU)
    assert one["ends"]["mid"] > one["starts"]["mid"] + 250
    assert eta(here, "never/seen") == []
    assert eta(here, "123456") == []


def test_of_a_job_that_never_ended_it_is_said_that_nobody_knows_how_long_it_takes(here):
    submit(here, "new", 5000.0)
    here.pass_minutes(2)
    [waits] = eta(here, "new")
    assert waits["starts"]
    assert waits["ends"] is None
    assert "nobody knows how long it takes" in waits["detail"]


def test_why_says_when_a_job_is_to_start_and_end(here):
    ran(here, times=2)
    here.pass_minutes(40)
    submit(here, "folder/job", 300.0)
    here.pass_minutes(3)
    facts = here.call("operate", {"action": "why", "subject": "folder/job"})["facts"]
    assert any(fact.startswith("folder/job waits, and would start in ") and "and would end in " in fact for fact in facts)


def test_statistics_that_cannot_be_kept_or_read_stop_no_metric_and_no_why(here, monkeypatch):
    def fails(*_arguments, **_named):
        raise TransientError("DynamoDB: InternalServerError")

    submit(here, "folder/job", 300.0)
    for name in ("tracker", "rows", "save_tracker", "save_rows"):
        monkeypatch.setattr(InMemoryJobs, name, fails)
    here.pass_minutes(1)
    assert here.call("publish_metrics", {})["metrics"] > 10
    assert here.call("operate", {"action": "why", "subject": "folder/job"})["facts"]


def test_a_pattern_or_a_subject_that_makes_no_sense_is_refused(here):
    with pytest.raises(ConfigError, match="most"):
        jobs(here, most=0)
    with pytest.raises(ConfigError, match="subject"):
        here.call("operate", {"action": "eta"})


def test_the_commands_print_jobs_and_etas(here):
    ran(here, times=2)
    told_jobs = told(here, "jobs", "folder")
    assert told_jobs["jobs"][0]["job"] == "folder/job"
    drawn = command(here, "jobs", columns=160).stdout
    assert all(word in drawn for word in ("folder/job", CPU, "the next takes", "100%"))
    assert "folder/job" in command(here, "jobs", "folder/job").stdout, "piped"
    assert "if it were queued now" in command(here, "eta", "folder/job").stdout
    refused = command(here, "eta", "nobody/knows")
    assert refused.exit_code == 1
    assert "no build of it was seen" in str(refused.exception)
    assert "no build of such a job" in command(here, "jobs", "nobody/knows", columns=160).stdout
