"""Flow graphs of pipelines: our parser reads those of a real Jenkins, and the stand-in answers as it does."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoscaler.adapters.jenkins.flow_graph import read_graph
from autoscaler.adapters.jenkins.parse import read_node
from autoscaler.domain.facts.runs import BuildResult, RunEnd
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.messages import Request
from autoscaler_workbench.fakes.world.jenkins.script import Parallel, Sh, node, stage, submit_script
from support.worlds import START, a_world, a_world_node

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "pipeline_stage_results_2.504.3.json").read_text(encoding="utf-8"))
TREE = "building,result,actions[nodes[id,displayName,iconColor,parents,running]{0,600}]"
MANY = 600
GPU = Parallel({"gpu tests": (node("bi", Sh(5.0, fails=True)),), "cpu tests": (node("bi", Sh(9.0)),)})
SCRIPTS = {
    "one": (stage("Build", node("bi", Sh(4.0))), stage("Test", GPU)),
    "two": (
        stage("Build", node("bi", Sh(4.0))),
        node("bi", stage("Unit", Sh(4.0)), stage("Lint", Sh(4.0, fails=True))),
    ),
}


def blocks(run):
    return {(*sorted(block.names), block.end and str(block.end)) for block in read_graph(run, 0, MANY).blocks}


def looks(name):
    return RECORDED[name]["looks"]


def test_each_block_of_a_real_run_tells_its_names_and_how_it_ended():
    assert blocks(looks("one")[2]["run"]) == {("Build", "succeeded"), ("gpu tests", None), ("cpu tests", None)}
    assert blocks(looks("one")[5]["run"]) == {("Build", "succeeded"), ("gpu tests", "failed"), ("cpu tests", None)}
    assert blocks(looks("one")[7]["run"]) == {("Build", "succeeded"), ("gpu tests", "failed"), ("cpu tests", "succeeded")}
    assert blocks(looks("two")[6]["run"]) == {("Build", "succeeded"), ("Lint", "Unit", "failed")}


def test_how_the_run_itself_ended_stands_there_too():
    assert [read_graph(look["run"], 0, MANY).end for look in looks("one")[:-1]] == [None] * 7
    assert read_graph(looks("one")[-1]["run"], 0, MANY).end == RunEnd(result=BuildResult.FAILED, seconds=15.32)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_names_that_real_executors_show_are_those_of_a_block_in_the_graph(name):
    shown = []
    for look in looks(name):
        names = {one for block in read_graph(look["run"], 0, MANY).blocks for one in block.names}
        for raw in look["computer"]["computer"]:
            known = {"offline": False, "idle": False, "numExecutors": 3} | raw
            builds = read_node(known, at(look)).builds
            shown += [build.signature for build in builds if build.is_block]
            assert {build.signature for build in builds if build.is_block} <= names
            assert not any(build.is_block for build in builds if build.is_one_off)
    assert set(shown) == {"one": {"Build", "gpu tests", "cpu tests"}, "two": {"Build", "Unit", "Lint"}}[name]


def at(look):
    return datetime.fromtimestamp(look["at"], UTC)


def steps_of(run):
    """Each step of a graph with all that is before it, whatever the numbers."""
    nodes = {one["id"]: one for action in run["actions"] for one in action.get("nodes", ())}

    def written(one):
        parents = tuple(written(nodes[parent]) for parent in one["parents"])
        return one["_class"], one["displayName"], one["iconColor"], one["running"], parents

    return sorted(map(written, nodes.values()), key=repr), sorted(map(int, nodes))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_stand_in_writes_the_graphs_of_the_real_runs(name):
    world = a_world()
    jenkins = world.controllers["main"]
    for number in range(3):
        jenkins.add_node(a_world_node(f"n{number}", "bi"))
    submit_script(jenkins, "job", *SCRIPTS[name])
    api, answers = JenkinsApi(jenkins, "http://jenkins/"), []
    for half in range(50):
        world.move_to(START + half / 2.0 + 0.25)
        answers.append(steps_of(asked(api)))
    real = [steps_of(look["run"]) for look in looks(name)]
    assert [number for number, graph in enumerate(real) if graph not in answers] == []
    assert asked(api)["result"] == "FAILURE"


def asked(api):
    return json.loads(api.handle(Request("GET", "/job/job/1/api/json", {"tree": TREE})).body)


def test_a_graph_with_more_steps_than_were_asked_for_is_not_read():
    run = looks("one")[-1]["run"]
    assert read_graph(run, 1, 31).cut
    assert not read_graph(run, 1, 32).cut


@pytest.mark.parametrize(
    "nodes",
    [
        [{"id": "7", "parents": ["6"], "displayName": "x", "_class": "StepAtomNode"}],
        [{"id": "x", "parents": []}],
        [{"id": "2", "parents": ["3"], "displayName": "a"}, {"id": "3", "parents": ["2"], "displayName": "b"}],
        ["x"],
    ],
)
def test_a_graph_that_is_not_understood_is_no_graph(nodes):
    with pytest.raises(TransientError):
        read_graph({"building": True, "actions": [{"nodes": nodes}]}, 0, MANY)


@pytest.mark.parametrize("actions", [None, [], [None], [{}], "x", [{"nodes": None}]])
def test_a_run_without_a_graph_says_so(actions):
    assert not read_graph({"building": False, "result": "SUCCESS", "actions": actions}, 0, MANY).shows_steps
