"""Parameters as part of what tells builds of a job apart: which are named, how they are read, and that nothing hidden is told."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.parse import (
    ACTIONS,
    COMPUTER_TREE,
    COMPUTER_TREE_WITH_PARAMETERS,
    QUEUE_TREE,
    QUEUE_TREE_WITH_PARAMETERS,
    parameters_of,
    read_node,
    read_queue,
)
from autoscaler.domain.facts.job_settings import SIGNATURE_CHARACTERS, JobParameters
from autoscaler_workbench.fakes.http_fakes.clients import LocalSession
from autoscaler_workbench.fakes.in_process import InProcessController
from autoscaler_workbench.fakes.world.jenkins.builds import Kind, Started
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_fleet
from support.worlds import a_world, a_world_node

DATE = datetime(2026, 1, 1, tzinfo=UTC)
TELL_APART = JobParameters(by_pattern=(("nightly/*", ("ARCH", "SUITE")), ("*/linux", ("DEBUG",))))


def shown(**values):
    """Actions as Jenkins shows them, with causes beside the parameters."""
    named = [{"_class": "hudson.model.StringParameterValue", "name": name, "value": value} for name, value in values.items()]
    return [{"_class": "hudson.model.ParametersAction", "parameters": named}, {}, {"_class": "hudson.model.CauseAction"}]


def test_only_named_parameters_of_jobs_that_match_tell_builds_apart_in_the_order_of_the_file():
    given = {"SUITE": "full", "ARCH": "arm64", "AUTOSCALER_RUN_ID": "r-1", "AGENT_LABEL": "gpu"}
    assert TELL_APART.signature("nightly/all", given) == "ARCH=arm64, SUITE=full"
    assert TELL_APART.signature("nightly/linux", {**given, "DEBUG": "true"}) == "ARCH=arm64, SUITE=full, DEBUG=true"
    assert TELL_APART.signature("weekly", given) == ""
    assert TELL_APART.signature("nightly/all", {"OTHER": "x"}) == ""


def test_a_build_without_a_named_parameter_is_told_from_one_that_has_it_empty():
    assert TELL_APART.signature("nightly/all", {"SUITE": ""}) == "SUITE="
    assert TELL_APART.signature("nightly/all", {}) == ""


def test_long_values_are_cut_and_so_is_all_of_them_together():
    told = TELL_APART.signature("nightly/linux", {"ARCH": "a" * 10_000, "SUITE": "s" * 10_000, "DEBUG": "d" * 10_000})
    assert told.startswith(f"ARCH={'a' * 39}…, SUITE=sss")
    assert len(told) == SIGNATURE_CHARACTERS


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (7, "7"), (1.5, "1.5"), ("", ""), ("größe 日本", "größe 日本")]
)
def test_plain_values_are_read_as_texts(value, text):
    assert parameters_of(shown(P=value)) == {"P": text}


@pytest.mark.parametrize("kind", ["hudson.model.PasswordParameterValue", "com.example.NonStoredPasswordParameterValue", "x.SecretValue"])
def test_a_hidden_value_is_never_read_even_where_a_plugin_shows_it(kind):
    hidden = [{"parameters": [{"_class": kind, "name": "TOKEN", "value": "s3cr3t"}, {"_class": kind, "name": "ARCH"}]}]
    assert parameters_of(hidden) == {}


@pytest.mark.parametrize(
    "odd",
    [None, "x", 3, {}, [None], [{"parameters": "x"}], [{"parameters": [None, 3, {"name": 3}, {"name": "F", "value": {"file": "x"}}]}]],
)
def test_what_is_not_understood_of_actions_is_left_out_and_sets_no_item_or_node_aside(odd):
    assert parameters_of(odd) == {}
    task = {"_class": "hudson.model.FreeStyleProject", "url": "http://j/job/nightly/job/all/", "labelExpression": "cpu"}
    item = {"id": 1, "why": "", "buildable": True, "inQueueSince": 1, "actions": odd, "task": task}
    items, aside = read_queue({"items": [item]}, DATE, (), TELL_APART)
    assert (items[0].job, items[0].signature, [line for line in aside if "not understood" in line]) == ("nightly/all", "", [])
    build = {"url": "http://j/job/nightly/job/all/7/", "actions": odd}
    node = {"displayName": "n", "offline": False, "idle": False, "executors": [{"idle": False, "number": 0, "currentExecutable": build}]}
    assert read_node(node, DATE, TELL_APART).builds[0].signature == ""


def test_jenkins_is_asked_for_parameters_only_where_the_file_names_any():
    assert ACTIONS not in QUEUE_TREE + COMPUTER_TREE
    assert QUEUE_TREE_WITH_PARAMETERS.replace(f"{ACTIONS},", "") == QUEUE_TREE
    assert COMPUTER_TREE_WITH_PARAMETERS.replace(f"{ACTIONS},", "") == COMPUTER_TREE
    for tell_apart, asked in ((JobParameters(), [False, False, False]), (TELL_APART, [True, True, False])):
        heard = Heard(a_standing(tell_apart).apis["main"])
        JenkinsController("main", heard.base, lambda heard=heard: LocalSession(heard), lambda: 0.0, tell_apart).look()
        assert [ACTIONS in tree for tree in heard.trees] == asked


def a_standing(tell_apart):
    """A Jenkins that runs one build of a job, and has another one in its queue; passwords beside."""
    fleet = replace(a_fleet(), job_parameters=tell_apart)
    here = InMemory(a_world(fleet), fleet)
    jenkins = here.world.controllers["main"]
    jenkins.add_node(a_world_node("n-1", "cpu"))
    for arch in ("arm64", "amd64"):
        given = (("ARCH", arch), ("SUITE", None), ("AUTOSCALER_RUN_ID", f"r-{arch}"))
        jenkins.submit("nightly/all", "cpu", 600.0, started_with=Started(parameters=given))
    jenkins.submit("nightly/pipeline", "cpu", 600.0, kind=Kind.PIPELINE, started_with=Started(parameters=(("ARCH", "arm64"),)))
    here.world.move_to(here.world.timeline.now + 60.0)
    return here


class Heard:
    """The API of a Jenkins, and which trees it is asked for."""

    def __init__(self, api):
        self.api, self.base, self.controller, self.trees = api, api.base, api.controller, []

    def handle(self, request):
        self.trees.append(request.query["tree"])
        return self.api.handle(request)


def test_items_and_builds_of_a_jenkins_carry_what_tells_them_apart_and_a_hidden_value_does_not():
    here = a_standing(TELL_APART)
    for controller in (here.ports.controllers[0], InProcessController(here.apis["main"], TELL_APART)):
        view = controller.look()
        assert [item.signature for item in view.items] == ["ARCH=amd64", ""], "a step of a pipeline has its stage, if any"
        assert [build.signature for node in view.nodes for build in node.builds if not build.is_one_off] == ["ARCH=arm64"]


def test_without_the_key_nothing_tells_builds_of_a_freestyle_job_apart():
    view = a_standing(JobParameters()).ports.controllers[0].look()
    assert {item.signature for item in view.items} == {""}
    assert {build.signature for node in view.nodes for build in node.builds} == {""}


def test_the_recorded_parameters_of_a_real_jenkins_are_read(request):
    recorded = json.loads((request.config.rootpath / "tests/recordings/b04_queue_busy_and_pipeline.json").read_text(encoding="utf-8"))
    given = [parameters_of(item["actions"]) for item in recorded["body"]["items"]]
    assert {"BRANCH": "v1.x", "SHA": "def"} in given
    assert {"BRANCH": "master", "SHA": "abc 123"} in given
    assert {} in given, "a step of a pipeline carries none"
