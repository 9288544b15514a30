"""The simulated Jenkins under pipelines that lose their node or their agent, as seen on 2.504.3; in the world and over its API."""

import json
from dataclasses import replace

import pytest

from autoscaler.control.nodes import may_delete
from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler.domain.facts.plan import DeleteNode
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import run_json
from autoscaler_workbench.fakes.http_fakes.messages import Request
from autoscaler_workbench.fakes.in_process import InProcessController
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Stopper
from autoscaler_workbench.fakes.world.jenkins.script import Sh, node, submit_script
from autoscaler_workbench.fakes.world.world import build_world
from support.builders import NOW, a_fleet, a_pool
from support.worlds import a_world_node

CAUSES = "org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$"


class Here:
    """A controller with a pipeline on its only node."""

    def __init__(self) -> None:
        self.world = build_world(a_fleet(a_pool("cpu")), start_at=NOW, seed=1)
        self.jenkins = self.world.controllers["main"]
        self.jenkins.add_node(a_world_node("one", "cpu"))
        self.pipeline = self.jenkins.submit("job", "cpu", 1200.0, kind=Kind.PIPELINE)
        self.api = JenkinsApi(self.jenkins, "http://jenkins/")
        self.later(60)

    def later(self, seconds: float) -> "Here":
        self.world.move_to(self.world.timeline.now + seconds)
        return self

    def ask(self, method: str, what: str):
        return self.api.handle(Request(method, f"/computer/one/{what}", {}, {}, b""))

    def causes(self):
        actions = run_json(self.jenkins.runs[self.pipeline.run_path])["actions"]
        return [cause["_class"].removeprefix(CAUSES) for action in actions for cause in action.get("causes", ())]


@pytest.fixture
def here():
    return Here()


def test_the_computer_of_a_deleted_node_stays_listed_until_the_pipeline_has_ended(here):
    assert here.ask("POST", "doDelete").status == 302
    shown = here.ask("GET", "api/json")
    told = json.loads(shown.body)
    assert (told["numExecutors"], told["offline"], told["idle"], told["temporarilyOffline"]) == (0, True, False, False)
    assert (told["assignedLabels"], told["description"]) == ([], "")
    assert here.ask("GET", "config.xml").status == 404
    assert here.ask("POST", "config.xml").status == 404
    here.api.lacks = {"hudson.model.Computer.ExtendedRead"}
    assert here.ask("GET", "config.xml").status == 403
    here.later(299)
    assert (here.pipeline.ended, here.ask("GET", "api/json").status) == (None, 200)
    here.later(5)
    assert (here.pipeline.ended, here.causes()) == (Ended.KILLED, ["RemovedNodeCause"])
    assert here.ask("GET", "api/json").status == 404


@pytest.mark.parametrize("cancels", [False, True])
def test_a_second_deletion_strands_the_pipeline(here, cancels):
    here.jenkins.gone.are_cancelled = cancels
    assert [here.ask("POST", "doDelete").status for _ in range(3)] == [302, 302, 404]
    here.later(500)
    assert (here.pipeline.ended, here.jenkins.gone.stranded) == (None, [here.pipeline])
    here.later(24 * 3600)
    assert here.causes() == (["QueueTaskCancelled"] if cancels else [])
    assert run_json(here.jenkins.runs[here.pipeline.run_path])["result"] == ("ABORTED" if cancels else None)


def test_a_restart_loads_a_stranded_pipeline_again_and_then_gives_it_up(here):
    here.jenkins.delete_node("one")
    here.jenkins.delete_node("one")
    here.jenkins.restart()
    here.later(400)
    assert here.pipeline.stopped_by is Stopper.REMOVED_NODE


def test_a_pipeline_that_ends_while_a_restart_loads_it_again_takes_no_executor_any_more(here):
    """It had one for ever, and the agent stayed."""
    here.jenkins.restart()
    here.jenkins.end_by_restart(here.pipeline)
    here.later(400)
    assert (here.jenkins.queue, here.jenkins.nodes["one"].builds) == ([], {})


@pytest.mark.parametrize(("connects", "ended"), [(True, Ended.FINISHED), (False, Ended.KILLED)])
def test_a_node_of_the_same_name_gets_the_computer_and_the_pipeline_goes_on_if_its_agent_is_back(here, connects, ended):
    here.jenkins.delete_node("one")
    here.later(30)
    here.jenkins.add_node(a_world_node("one", "cpu", connected=False))
    if connects:
        here.jenkins.connect("one")
    here.later(1200)
    assert (here.pipeline.ended, here.jenkins.gone.computers) == (ended, {})
    assert not here.jenkins.nodes["one"].builds


@pytest.mark.parametrize(("seconds", "ended"), [(290, None), (310, Ended.KILLED)])
def test_a_step_whose_agent_is_away_for_five_minutes_is_given_up(here, seconds, ended):
    here.jenkins.disconnect("one")
    here.later(seconds)
    here.jenkins.connect("one")
    here.later(100)
    assert here.pipeline.ended is ended
    assert here.causes() == (["RemovedNodeTimeoutCause"] if ended else [])


@pytest.mark.parametrize(("seconds", "ended"), [(1, Ended.KILLED), (3, None)])
def test_a_pipeline_whose_agent_dies_while_sh_is_just_starting_ends_at_once(here, seconds, ended):
    here.jenkins.add_node(a_world_node("two", "other"))
    here.pipeline = here.jenkins.submit("young", "other", 1200.0, kind=Kind.PIPELINE)
    here.later(seconds).jenkins.disconnect("two")
    assert (here.pipeline.ended, here.causes()) == (ended, [])
    assert run_json([here.pipeline])["result"] == ("FAILURE" if ended else None)


@pytest.mark.parametrize(("seconds", "result"), [(61, "FAILURE"), (63, None)])
def test_each_sh_of_a_script_has_a_start_of_its_own(here, seconds, result):
    here.jenkins.add_node(a_world_node("two", "other"))
    flow = submit_script(here.jenkins, "script", node("other", Sh(60.0), Sh(60.0)))
    here.later(seconds).jenkins.disconnect("two")
    assert flow.result == result


def test_what_waits_for_a_person_waits_for_its_agent_too(here):
    here.pipeline.waits_for_input = True
    here.jenkins.disconnect("one")
    assert here.later(3600).pipeline.ended is None


def test_a_mark_is_kept_by_the_node_and_goes_with_it(here):
    here.jenkins.set_offline("one", "a mark", "anna")
    here.jenkins.delete_node("one")
    assert here.ask("POST", "changeOfflineCause").status == 302
    assert not here.jenkins.gone.computers["one"].temporarily_offline


def test_what_somebody_has_deleted_since_the_look_is_not_deleted_again(here):
    """Unless all that its executors show has ended: then nothing waits, and Jenkins would list it for ever."""
    controller = InProcessController(here.api, JobParameters())
    here.jenkins.disconnect("one")
    step = DeleteNode(
        controller="main",
        pool="cpu",
        node="one",
        instance_id="i-1",
        fate=InstanceState.TERMINATED,
        though_busy=True,
        reason=Reason.INSTANCE_GONE,
        detail="",
    )
    assert may_delete(controller, step) is None
    here.jenkins.delete_node("one")
    assert may_delete(controller, step) == "Jenkins has deleted it, and lists it until it has ended what is on it"
    assert may_delete(controller, replace(step, ended=(controller.node("one").builds[0].key,))) is None
