"""A Jenkins' build history as a trace: read from the stand-in, politely, within bounds."""

import json
import math

import pytest
from typer.testing import CliRunner

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.experiment.history import ReadLimits, read_history
from autoscaler_workbench.fakes.http_fakes.clients import LocalSession
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.jenkins.tree import TreeSyntaxError, parse_tree, prune
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.traces import load_trace
from support.builders import NOW, a_fleet, a_pool

FREESTYLE = b"<project><assignedNode>%s</assignedNode><builders><hudson.tasks.Shell><command>sleep 60</command></hudson.tasks.Shell>"
FREESTYLE += b"</builders></project>"
PIPELINE = b"<flow-definition><definition><script>node('cpu') { sh 'sleep 60' }</script></definition></flow-definition>"
FOLDER = b"<com.cloudbees.hudson.plugins.folder.Folder/>"
HOUR = 3600.0


class AJenkins:
    """A controller with one node of two labels, a folder with two jobs, and a pipeline."""

    def __init__(self):
        world = build_world(a_fleet(a_pool("cpu")), start_at=NOW, seed=1)
        self.controller = world.controllers["main"]
        self.controller.add_node(Node(name="one", labels=("cpu", "linux"), executors=4, exclusive=False, description="", remote_dir="/"))
        self.controller.connect("one")
        self.api = JenkinsApi(self.controller, "http://main/", Faults())
        self.asked = []
        self.slept = []
        jobs = self.api.jobs
        jobs.create("", "team", FOLDER)
        jobs.create("team", "unit", FREESTYLE % b"cpu")
        jobs.create("team", "anywhere", FREESTYLE % b"")
        jobs.create("", "release", PIPELINE)

    def build(self, name, times=1, every=HOUR):
        for _ in range(times):
            self.api.jobs.build(name)
            self.controller.timeline.sleep(every)

    def read(self, **bounds):
        session = LocalSession(self.api)

        def get(path, tree):
            self.asked.append(f"{path}?{tree}")
            return session.get(path, tree).json()

        return read_history(get, ReadLimits(**{"since": NOW} | bounds), self.slept.append)


def test_builds_become_rows_with_the_label_that_their_job_asks_for():
    jenkins = AJenkins()
    jenkins.build("team/unit", times=2)
    history = jenkins.read()
    assert [(row.job, row.label, row.duration_s, row.started_at, row.result) for row in history.rows] == [
        ("team/unit", "cpu", 60.0, NOW + HOUR, "SUCCESS"),
        ("team/unit", "cpu", 60.0, NOW, "SUCCESS"),
    ]


def test_a_build_of_a_job_without_a_label_asks_for_what_its_node_has():
    jenkins = AJenkins()
    jenkins.build("team/anywhere")
    [row] = jenkins.read().rows
    assert (row.job, row.label) == ("team/anywhere", "cpu && linux")


def test_what_the_api_does_not_tell_is_counted_and_left_out():
    jenkins = AJenkins()
    jenkins.build("release")
    jenkins.build("team/anywhere")
    jenkins.controller.delete_node("one")
    jenkins.api.jobs.build("team/unit")
    history = jenkins.read()
    assert (history.rows, history.pipelines, history.left_out) == ([], 1, 1)


def test_a_job_with_many_builds_is_read_a_hundred_at_a_time_and_no_further_back_than_asked():
    jenkins = AJenkins()
    jenkins.build("team/unit", times=230, every=100.0)
    history = jenkins.read(since=NOW + 100.0 * 25)
    assert len(history.rows) == 205
    assert [asked.rpartition("]")[2] for asked in jenkins.asked if "allBuilds" in asked] == ["{0,100}", "{100,200}", "{200,300}"]
    assert jenkins.slept == [0.25] * (history.requests - 1)


def test_a_job_that_has_not_run_lately_is_not_asked_about():
    jenkins = AJenkins()
    jenkins.build("team/unit", times=1)
    assert jenkins.read(since=NOW + 10.0).jobs == 0
    assert not any("allBuilds" in asked for asked in jenkins.asked)


def test_bounds_are_kept_and_told():
    jenkins = AJenkins()
    jenkins.build("team/unit")
    history = jenkins.read(requests=3)
    assert (history.requests, history.cut_short, history.rows) == (3, True, [])


def test_the_wait_that_the_metrics_plugin_tells_comes_before_the_start():
    build = {"timestamp": 5_000_000, "duration": 60_000, "builtOn": "one", "actions": [{}, {"buildableDurationMillis": 30_000}]}
    answers = {
        "computer/api/json": {"computer": []},
        "api/json": {"jobs": [{"name": "a b", "labelExpression": "cpu", "lastBuild": {"timestamp": 5_000_000}}]},
        "job/a%20b/api/json": {"allBuilds": [build]},
    }
    [row] = read_history(lambda path, _tree: answers[path], ReadLimits(since=0.0), lambda _seconds: None).rows
    assert (row.job, row.queued_at, row.started_at) == ("a b", 4970.0, 5000.0)


def test_an_answer_of_something_else_is_refused_in_one_line():
    with pytest.raises(TransientError, match=r"Jenkins' answer is not understood"):
        read_history(lambda _path, _tree: {"jobs": [{"label": 1}]}, ReadLimits(since=0.0), lambda _seconds: None)


def test_the_command_writes_a_trace_that_can_be_played(tmp_path):
    jenkins = AJenkins()
    jenkins.build("team/unit", times=3)
    file = tmp_path / "trace.csv"
    with ApiServer() as server:
        server.jenkins["main"] = jenkins.api
        ran = CliRunner().invoke(
            app, ["history", f"{server.url}/jenkins/main/", "--days", "366", "--pause", "0", "--out", str(file), "--json"]
        )
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["builds"] == 3
    trace = load_trace(file, hours=24)
    assert [(row.label, row.duration_seconds) for row in trace.rows] == [("cpu", 60.0)] * 3


def test_a_jenkins_that_refuses_is_said_in_one_line(tmp_path):
    jenkins = AJenkins()
    jenkins.api.accounts = {"reader": "secret"}
    with ApiServer() as server, pytest.raises(ConfigError, match=r"Jenkins answered 403"):
        server.jenkins["main"] = jenkins.api
        CliRunner().invoke(app, ["history", f"{server.url}/jenkins/main/", "--out", str(tmp_path / "t.csv")], catch_exceptions=False)
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("tree", "kept"), [("a{1,3}", [1, 2]), ("a{1,}", [1, 2, 3]), ("a{,2}", [0, 1]), ("a{2}", [2]), ("a[x]{1,2}", [1]), ("a", [0, 1, 2, 3])]
)
def test_the_stand_in_cuts_lists_as_jenkins_does(tree, kept):
    assert prune({"a": [0, 1, 2, 3], "b": math.pi}, parse_tree(tree)) == {"a": kept}


def test_a_range_that_does_not_end_is_no_tree():
    with pytest.raises(TreeSyntaxError):
        parse_tree("a{1,2")
