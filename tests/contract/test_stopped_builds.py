"""Builds are stopped and queue items cancelled, and run where a parameter says: in memory, over HTTP, and on a live controller.

What Jenkins answers is in its source: Executor.doStopBuild, WorkflowRun.doStop and Queue.doCancelItem (docs/fidelity.md).
"""

import pytest

from autoscaler.adapters.jenkins.builds import JenkinsBuilds
from autoscaler.domain.facts.runs import Interruption, ItemState, Parameter
from autoscaler.errors import ConfigError, RefusedBuildError, TransientError, UnansweredError
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.rig import begun, ended, world_rig
from support.worlds import stand

RUN_ID = "AUTOSCALER_RUN_ID"


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_a_build_that_is_stopped_is_aborted_and_its_executor_is_free(here, kind):
    cpu, agent = here.name("cpu"), here.name("agent-1")
    here.add_agent(agent, cpu)
    job = here.define("job", cpu, 600.0, kind=kind)
    run = begun(here, job, here.builds.start(job, None))
    here.until(lambda: not here.controller.node(agent).idle, "it runs")
    here.builds.stop(run)
    assert (ended(here, run).result, set(ended(here, run).interruptions)) == ("ABORTED", {Interruption.PERSON})
    here.until(lambda: here.controller.node(agent).idle, "its executor is free")
    here.builds.stop(run)
    assert here.builds.run(run).result == "ABORTED"


def test_a_pipeline_that_waits_for_its_node_has_begun_and_is_stopped_with_what_waits_of_it(here):
    job = here.define("pipe", here.name("nothing"), 600.0, kind=Kind.PIPELINE)
    item = here.builds.start(job, None)
    run = begun(here, job, item)
    here.until(lambda: any(one.run == run for one in here.controller.look().items), "it asks for its node")
    assert (here.builds.run(run).building, here.builds.run(run).item) == (True, item)
    here.builds.stop(run)
    assert ended(here, run).result == "ABORTED"
    assert not [one for one in here.controller.look().items if one.run == run]


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_stopping_what_has_ended_or_is_not_there_does_nothing(here, kind):
    cpu = here.name("cpu")
    here.add_agent(here.name("agent-1"), cpu)
    job = here.define("job", cpu, 1.0, kind=kind)
    run = begun(here, job, here.builds.start(job, None))
    before = ended(here, run)
    for path in (run, f"{job}/99", f"{job}-none/1"):
        here.builds.stop(path)
    assert here.builds.run(run) == before
    assert before.result == "SUCCESS"


def test_an_item_is_cancelled_once_and_what_has_left_is_not(here):
    cpu = here.name("cpu")
    job = here.define("job", here.name("nothing"))
    item = here.builds.start(job, None)
    assert here.builds.cancel(item)
    assert here.builds.cancel(item), "it is out of the queue, and never begins"
    assert here.builds.item(item).state is ItemState.CANCELLED
    here.add_agent(here.name("agent-1"), cpu)
    other = here.define("other", cpu, 600.0)
    item = here.builds.start(other, None)
    run = begun(here, other, item)
    assert not here.builds.cancel(item)
    assert here.builds.run(run).building
    assert not here.builds.cancel(999_999_999)


def test_a_pipeline_runs_where_its_parameter_says(here):
    cpu, agents = here.name("cpu"), (here.name("agent-1"), here.name("agent-2"))
    for agent in agents:
        here.add_agent(agent, cpu)
    job = here.define("where", "params.AGENT_LABEL", 600.0, kind=Kind.PIPELINE, declares=("AGENT_LABEL", RUN_ID))
    given = [{"AGENT_LABEL": f"{cpu} && {agent}", RUN_ID: f"r-1.{number}.1"} for number, agent in enumerate(agents, 1)]
    items = [here.builds.start(job, one) for one in given]
    runs = [begun(here, job, item) for item in items]
    for run, agent, one in zip(runs, agents, given, strict=True):
        here.until(lambda agent=agent: not here.controller.node(agent).idle, f"{agent} is busy")
        assert {build.run for build in here.controller.node(agent).builds} == {run}
        assert {parameter.name: parameter.value for parameter in here.builds.run(run).parameters} == one
    known = here.builds.job(job, 0.0)
    assert {entry.run: entry.item for entry in known.entries} == dict(zip(runs, items, strict=True))


# What only the world can show.


def test_a_pipelines_own_item_carries_its_parameters_and_that_of_its_node_block_none():
    with world_rig("memory") as here:
        job = here.define("where", "params.AGENT_LABEL", kind=Kind.PIPELINE, declares=("AGENT_LABEL",))
        item = here.builds.start(job, {"AGENT_LABEL": "no && where"})
        assert here.controller.look().items == (), "its script is compiled first"
        run = here.builds.item(item).run
        here.until(lambda: bool(here.controller.look().items), "it asks for its node")
        [waiting] = here.controller.look().items
        assert (waiting.run, waiting.wait.label, waiting.id != item) == (run, None, True)
        here.add_node("other", "other")
        [waiting] = here.controller.look().items
        assert waiting.wait.label == "no&&where"
        assert [entry.run for entry in here.builds.job(job, 0.0).entries] == [run], "only its run is found by the parameter"


def test_a_pipeline_whose_node_block_is_cancelled_is_aborted_and_no_person_has_stopped_it():
    with world_rig("memory") as here:
        job = here.define("pipe", "nothing", kind=Kind.PIPELINE)
        run = here.builds.item(here.builds.start(job, None)).run
        here.until(lambda: bool(here.controller.look().items), "it asks for its node")
        assert here.builds.cancel(here.controller.look().items[0].id)
        assert (here.builds.run(run).result, here.builds.run(run).interruptions) == ("ABORTED", (Interruption.BLOCK_CANCELLED,))


@pytest.mark.parametrize("seconds", [0.5, 1.5, 4.0])
def test_a_pipeline_that_is_stopped_while_it_begins_never_asks_for_a_node(seconds):
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("pipe", "cpu", kind=Kind.PIPELINE)
        run = here.builds.item(here.builds.start(job, None)).run
        here.stand.world.timeline.sleep(seconds)
        here.builds.stop(run)
        here.stand.world.timeline.sleep(10.0)
        assert here.builds.run(run).result == "ABORTED"
        assert (here.controller.look().items, here.controller.node("agent-1").idle) == ((), True)


def test_a_pipeline_asks_for_its_node_though_jenkins_restarts_while_it_begins():
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("pipe", "cpu", 5.0, kind=Kind.PIPELINE)
        run = here.builds.item(here.builds.start(job, None)).run
        here.stand.jenkins.restart()
        here.stand.world.timeline.sleep(60.0)
        assert here.builds.run(run).result == "SUCCESS"


def test_a_freestyle_job_runs_where_its_parameter_says_which_is_no_label_of_its_job():
    """The plugin NodeLabel: LabelParameterValue exports its label as ``value`` since 2015; the job's labelExpression stays null."""
    with world_rig("memory") as here:
        here.add_node("other", "other")
        job = here.define("where", "params.AGENT_LABEL", declares=("AGENT_LABEL", "REF"))
        first, again, elsewhere = (here.builds.start(job, {"AGENT_LABEL": label}) for label in ("cpu", "cpu", "gpu"))
        assert (first == again, first == elsewhere) == (True, False)
        assert {item.id: (item.label, item.wait.label) for item in here.controller.look().items} == {
            first: (None, "cpu"),
            elsewhere: (None, "gpu"),
        }
        here.add_agent("agent-1", "gpu")
        run = here.builds.run(begun(here, job, elsewhere))
        assert (run.node, set(run.parameters)) == (
            "agent-1",
            {Parameter(name="AGENT_LABEL", value="gpu"), Parameter(name="REF", value="")},
        )


def test_a_build_may_come_to_its_own_end_while_it_is_stopped():
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("job", "cpu", 10.0)
        run = begun(here, job, here.builds.start(job, None))
        here.stand.world.timeline.sleep(8.5)
        here.builds.stop(run)
        assert here.builds.run(run).building
        here.stand.world.timeline.sleep(10.0)
        assert here.builds.run(run).result == "SUCCESS"


def test_a_matrix_that_is_stopped_takes_its_configurations_with_it_that_run_or_wait():
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        here.stand.api.jobs.jobs["m"] = Job(Kind.FREESTYLE, "cpu", 600.0, configurations=("os=a", "os=b", "os=c"))
        here.builds.start("job/m", None)
        here.until(lambda: not here.controller.node("agent-1").idle, "a configuration runs")
        assert len(here.controller.look().items) == 2
        here.builds.stop("job/m/1")
        here.stand.world.timeline.sleep(10.0)
        assert [here.builds.run(f"job/m/{part}1").result for part in ("", "os=a/")] == ["ABORTED", "ABORTED"]
        assert (here.controller.look().items, here.controller.node("agent-1").idle) == ((), True)


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_a_stop_that_jenkins_goes_down_with_is_lost_and_may_be_asked_for_again(kind):
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("job", "cpu", 600.0, kind=kind)
        run = begun(here, job, here.builds.start(job, None))
        here.until(lambda: not here.controller.node("agent-1").idle, "it runs")
        here.builds.stop(run)
        here.stand.jenkins.restart()
        here.stand.world.timeline.sleep(60.0)
        lost = here.builds.run(run)
        assert (lost.building, lost.result) == ((True, "") if kind is Kind.PIPELINE else (False, "FAILURE"))
        here.builds.stop(run)
        here.stand.world.timeline.sleep(10.0)
        assert here.builds.run(run).result == ("ABORTED" if kind is Kind.PIPELINE else "FAILURE")


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("after", [False, True])
def test_a_stop_or_cancel_that_is_not_answered_is_safe_to_repeat(kind, after):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu")
        job, other = here.define("job", "cpu", 600.0), here.define("other", "nothing")
        run = begun(here, job, here.builds.start(job, None))
        item = here.builds.start(other, None)
        here.stand.faults.plan(Fault("jenkins stop", after=after))
        here.stand.faults.plan(Fault("jenkins cancelItem", after=after))
        with pytest.raises(UnansweredError):
            here.builds.stop(run)
        with pytest.raises(UnansweredError):
            here.builds.cancel(item)
        here.stand.world.timeline.sleep(10.0)
        assert here.builds.run(run).building is not after
        here.builds.stop(run)
        here.stand.world.timeline.sleep(10.0)
        assert here.builds.run(run).result == "ABORTED"
        assert here.builds.cancel(item)


@pytest.mark.parametrize("status", [500, 502, 503])
@pytest.mark.parametrize("after", [False, True])
def test_a_cancel_for_which_jenkins_fails_is_judged_by_what_became_of_the_item_and_a_proxys_error_page_not_at_all(status, after):
    with world_rig("http") as here:
        item = here.builds.start(here.define("job", "nothing"), None)
        here.stand.faults.plan(Fault("jenkins cancelItem", after=after, status=status))
        if after and status == 500:
            assert here.builds.cancel(item)
        else:
            with pytest.raises(TransientError):
                here.builds.cancel(item)
        assert here.builds.cancel(item)


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_an_item_that_is_being_handed_to_an_executor_cannot_be_cancelled_and_says_so_until_it_has_begun(kind):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu")
        here.stand.jenkins.handing_seconds = 5.0
        item = here.builds.start(here.define("job", "cpu", 600.0), None)
        here.stand.world.timeline.sleep(2.0)
        with pytest.raises(TransientError):
            here.builds.cancel(item)
        here.stand.world.timeline.sleep(5.0)
        assert not here.builds.cancel(item)
        assert here.builds.item(item).state is ItemState.STARTED


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_an_account_without_job_cancel_is_told_so_for_whatever_it_may_not_do(kind):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu")
        job, waits = here.define("job", "cpu", 600.0), here.define("waits", "nothing")
        pipe = here.define("pipe", "nothing", kind=Kind.PIPELINE)
        item, began = here.builds.start(waits, None), here.builds.start(job, None)
        runs = [begun(here, job, began), begun(here, pipe, here.builds.start(pipe, None))]
        here.stand.api.lacks.add("hudson.model.Item.Cancel")
        for run in runs:
            with pytest.raises(RefusedBuildError, match=r"hudson\.model\.Item\.Cancel"):
                here.builds.stop(run)
        for one in (item, began):
            with pytest.raises(RefusedBuildError, match="Job/Cancel"):
                here.builds.cancel(one)
        here.stand.world.timeline.sleep(10.0)
        assert all(here.builds.run(run).building for run in runs)
        here.builds.stop(f"{job}/99")
        assert not here.builds.cancel(999_999_999)


def test_an_account_without_job_read_finds_nothing_to_stop():
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("job", "cpu", 600.0)
        item = here.builds.start(job, None)
        run = begun(here, job, item)
        here.stand.api.lacks.add("hudson.model.Item.Read")
        here.builds.stop(run)
        assert not here.builds.cancel(item)
        here.stand.world.timeline.sleep(10.0)
        here.stand.api.lacks.clear()
        assert here.builds.run(run).building


@pytest.mark.parametrize("at", ["https://login/", "/login?from=%2Fjob%2Fjob%2F1%2Fstop"])
@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_login_page_that_answers_a_stop_has_stopped_nothing(kind, at):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("größe 1", "cpu", 600.0)
        run = begun(here, job, here.builds.start(job, None))
        here.stand.api.login_at = at
        with pytest.raises(TransientError, match="login page"):
            here.builds.stop(run)
        here.stand.api.login_at = ""
        here.builds.stop(run)
        assert ended(here, run).result == "ABORTED"


def test_refused_credentials_are_no_refusal_of_a_build():
    with stand("http", read_token=lambda: "wrong", accounts={"u": "t"}) as here:
        builds = JenkinsBuilds(here.controller.connection)
        for ask in (lambda: builds.stop("job/a/1"), lambda: builds.cancel(1)):
            with pytest.raises(ConfigError, match="credentials"):
                ask()
