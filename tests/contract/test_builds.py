"""The Builds port: in memory, over HTTP, and on a live controller (`make live`; without one, the stand-in in its place)."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoscaler.adapters.jenkins.builds import read_item, read_job, read_run
from autoscaler.adapters.jenkins.parse import read_node
from autoscaler.domain.facts.runs import Interruption, ItemState, Parameter, job_path_of, matrix_of
from autoscaler.errors import AutoscalerError, RefusedBuildError, TransientError
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.live_jobs import BEGUN
from support.rig import begun, ended

RUN_ID = "AUTOSCALER_RUN_ID"
NOW = datetime.now(UTC)


def test_a_build_is_started_with_parameters_and_keeps_them(here):
    cpu, agent = here.name("cpu"), here.name("agent-1")
    here.add_agent(agent, cpu)
    job = here.define("größe 1", cpu, 2.0, declares=("REF", RUN_ID))
    item = here.builds.start(job, {"REF": "main & 'so' 日本", RUN_ID: "r-1"})
    run = ended(here, begun(here, job, item))
    assert (run.result, run.node, run.item, run.interruptions, run.is_pipeline) == ("SUCCESS", agent, item, (), False)
    assert set(run.parameters) == {Parameter(name="REF", value="main & 'so' 日本"), Parameter(name=RUN_ID, value="r-1")}
    assert run.started_at < run.ended_at < run.started_at + 600.0


def test_a_job_without_parameters_is_started_without_any(here):
    job = here.define("plain", here.name("nothing"))
    item = here.builds.start(job, None)
    assert here.builds.item(item).state is ItemState.WAITING
    with pytest.raises(AutoscalerError):
        here.builds.start(job, {"REF": "main"})


def test_equal_items_are_merged_and_unequal_ones_are_not(here):
    plain, asked = here.define("plain", here.name("nothing")), here.define("asked", here.name("nothing"), declares=("REF", RUN_ID))
    assert here.builds.start(plain, None) == here.builds.start(plain, None)
    first, second = (here.builds.start(asked, {"REF": "main", RUN_ID: run_id}) for run_id in ("r-1", "r-2"))
    assert first != second
    assert here.builds.start(asked, {"REF": "main", RUN_ID: "r-1"}) == first


def test_what_was_started_is_found_by_its_parameter_in_the_queue_and_as_a_build(here):
    cpu, agent, since = here.name("cpu"), here.name("agent-1"), time.time() - 600.0
    job = here.define("job", cpu, 600.0, declares=("REF", RUN_ID))
    item = here.builds.start(job, {"REF": "main", RUN_ID: "r-1"})
    [entry] = here.builds.job(job, since).entries
    assert (entry.item, entry.run, entry.is_ours, entry.has(RUN_ID, "r-1"), entry.has(RUN_ID, "r-2")) == (item, "", True, True, False)
    here.add_agent(agent, cpu)
    run = begun(here, job, item)
    known = here.builds.job(job, since)
    [entry] = known.entries
    assert (entry.item, entry.run, entry.is_ours, entry.has(RUN_ID, "r-1")) == (item, run, True, True)
    assert (known.buildable, known.declares, known.is_whole) == (True, {"REF", RUN_ID}, True)


def test_a_freestyle_build_whose_agent_goes_has_failed_and_nobody_has_stopped_it(here):
    cpu, agent = here.name("cpu"), here.name("agent-1")
    here.add_agent(agent, cpu)
    job = here.define("job", cpu, 600.0)
    run = begun(here, job, here.builds.start(job, None))
    assert here.builds.run(run).building
    here.kill_agent(agent)
    lost = ended(here, run)
    assert (lost.result, lost.node, lost.interruptions) == ("FAILURE", agent, ())
    node = here.controller.node(agent)
    assert lost.ended_at >= node.lost_at - 1.0, "it ended when the connection was lost, not before"


def test_a_pipeline_whose_agent_goes_waits_for_it(here):
    cpu, agent = here.name("cpu"), here.name("agent-1")
    here.add_agent(agent, cpu)
    job = here.define("pipe", cpu, 600.0, kind=Kind.PIPELINE)
    run = begun(here, job, here.builds.start(job, None))
    here.until(lambda: BEGUN in here.console(run), "sh has begun")
    here.kill_agent(agent)
    lost = here.builds.run(run)
    assert (lost.building, lost.result, lost.is_pipeline, lost.node) == (True, "", True, "")


def test_a_build_that_a_person_stops_says_so(here):
    cpu, agent = here.name("cpu"), here.name("agent-1")
    here.add_agent(agent, cpu)
    job = here.define("job", cpu, 600.0)
    run = begun(here, job, here.builds.start(job, None))
    here.until(lambda: not here.controller.node(agent).idle, "it runs")
    here.stop(run)
    assert (ended(here, run).result, ended(here, run).interruptions) == ("ABORTED", (Interruption.PERSON,))


def test_a_password_is_a_parameter_without_a_value(here):
    cpu = here.name("cpu")
    here.add_agent(here.name("agent-1"), cpu)
    job = here.define("job", cpu, 1.0, declares=("REF", "PASSWORD"))
    run = here.builds.run(begun(here, job, here.builds.start(job, {"REF": "main", "PASSWORD": "s3cret"})))
    assert set(run.parameters) == {Parameter(name="REF", value="main"), Parameter(name="PASSWORD", value=None)}


def test_what_is_not_there_is_not_there(here):
    job = here.define("job", here.name("cpu"))
    assert here.builds.run(f"{job}/99") is None
    assert here.builds.job(f"{job}-none", 0.0) is None
    assert here.builds.item(999_999_999).state is ItemState.UNKNOWN
    with pytest.raises(RefusedBuildError):
        here.builds.start(f"{job}-none", None)


def test_a_cancelled_item_never_becomes_a_build(here):
    job = here.define("job", here.name("nothing"))
    item = here.builds.start(job, None)
    here.controller.cancel_item(item)
    assert here.builds.item(item).state is ItemState.CANCELLED


@pytest.mark.parametrize("body", [None, [], {"building": "perhaps"}, {"building": False, "timestamp": "noon"}])
def test_an_answer_that_is_not_understood_is_an_error(body):
    with pytest.raises(TransientError, match="not understood"):
        read_run(body, "job/a/1")
    with pytest.raises(TransientError, match="not understood"):
        read_job({"builds": "none"}, {"items": []}, "job/a", 0.0, "me")


# What a real Jenkins answers.


def recorded(name):
    return json.loads((Path(__file__).parents[1] / "recordings" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "result", "node", "is_pipeline"),
    [
        ("c10_build_agent_killed_busy", "FAILURE", "n-cpu-1", False),
        ("c20_pipeline_build_after_node_deleted", "ABORTED", "", True),
        ("d06_build_running_freestyle", "", "n-cpu-2", False),
        ("d07_build_aborted", "ABORTED", "n-gpu-1", False),
        ("d07_build_completed_freestyle", "SUCCESS", "n-cpu-1", False),
    ],
)
def test_builds_of_a_real_jenkins(name, result, node, is_pipeline):
    run = read_run(recorded(name)["body"], "job/a/1")
    assert (run.result, run.node, run.is_pipeline, run.building) == (result, node, is_pipeline, result == "")
    assert run.item > 0


def test_a_build_whose_agent_was_killed_ended_when_its_connection_did():
    """3 ms apart, by the controller's own clock: this tells such a build from one whose tests failed before."""
    node = recorded("c10_computer_agent_killed_busy")["body"]
    run = read_run(recorded("c10_build_agent_killed_busy")["body"], "job/long-cpu/1")
    assert 0 <= run.ended_at - read_node(node, NOW).lost_at < 0.01


def test_a_build_whose_agent_was_killed_has_failed_before_and_after_a_restart_which_its_node_tells_nothing_of():
    answers = recorded("answers_2.504.3_tomcat")["answers"]
    for name in ("eight seconds later", "after a restart by SIGTERM"):
        run = read_run(json.loads(answers[name]["body"]), "job/rec-lost/1")
        assert (run.result, run.node, run.interruptions, 5.0 < run.ended_at - run.started_at < 10.0) == ("FAILURE", "rec-agent", (), True)
    node = read_node({"displayName": "rec-agent", **json.loads(answers["after the restart, its node"]["body"])}, NOW)
    assert (node.offline, node.idle, node.lost_at) == (True, True, None)


def test_items_of_a_real_jenkins():
    left, cancelled, waiting = (
        read_item(recorded(name)["body"]) for name in ("d05_queue_item_left", "b10_queue_item_cancelled", "b02_queue_item_label_no_nodes")
    )
    assert (left.state, left.run) == (ItemState.STARTED, "job/run-cpu/1")
    assert (cancelled.state, waiting.state) == (ItemState.CANCELLED, ItemState.WAITING)


def test_a_job_of_a_real_jenkins_that_was_never_built():
    job = read_job(recorded("b02_job_api")["body"], recorded("b04_queue_tree_task_all")["body"], "job/proof", 0.0, "admin")
    assert (job.buildable, job.declares, job.entries, job.is_whole) == (True, frozenset(), (), True)


def test_parameters_of_all_kinds_as_others_have_recorded_them():
    """Of nine kinds, those that are sent again as they are; a file and a password show no value."""
    parameters = [
        {"_class": "hudson.model.StringParameterValue", "name": "text", "value": ""},
        {"_class": "hudson.model.BooleanParameterValue", "name": "yes", "value": True},
        {"_class": "hudson.model.FileParameterValue", "name": "file"},
        {"_class": "hudson.model.RunParameterValue", "name": "run", "jobName": "a", "number": "7"},
        {"_class": "org.example.TreeParameterValue", "name": "tree", "value": {"a": 1}},
    ]
    body = {"building": False, "timestamp": 1, "actions": [{}, {"_class": "hudson.model.ParametersAction", "parameters": parameters}]}
    values = {parameter.name: parameter.value for parameter in read_run(body, "job/a/1").parameters}
    assert values == {"text": "", "yes": "true", "file": None, "run": None, "tree": None}


@pytest.mark.parametrize(
    ("kind", "interruption"),
    [
        ("jenkins.model.CauseOfInterruption$UserInterruption", Interruption.PERSON),
        ("org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$RemovedNodeCause", Interruption.AGENT_GONE),
        ("org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$RemovedNodeTimeoutCause", Interruption.AGENT_GONE),
        ("org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$QueueTaskCancelled", Interruption.BLOCK_CANCELLED),
        ("org.jenkinsci.plugins.workflow.steps.TimeoutStepExecution$ExceededTimeout", Interruption.OTHER),
    ],
)
def test_what_stopped_a_build_is_told_by_its_class_and_not_by_its_words(kind, interruption):
    action = {"_class": "jenkins.model.InterruptedBuildAction", "causes": [{"_class": kind}]}
    run = read_run({"building": False, "timestamp": 1, "result": "ABORTED", "actions": [action]}, "job/a/1")
    assert (run.interruptions, run.upstream) == ((interruption,), ())


def test_paths_of_runs():
    assert job_path_of("job/a/job/b/7") == "job/a/job/b"
    assert matrix_of("job/a/job/m/os=linux,gpu=yes/7") == "job/a/job/m/7"
    assert matrix_of("job/job/7") is matrix_of("job/a/job/m=1/7") is None
