"""The recordings of a real Jenkins: our parser reads them, and the stand-in answers as they do."""

import json
from pathlib import Path

import pytest

from autoscaler.adapters.jenkins.flow_graph import read_health, read_result
from autoscaler.adapters.jenkins.parse import read_computers, read_date, read_node, read_queue
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.runs import BuildResult, RunEnd
from autoscaler.domain.facts.snapshot import OfflineCause
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.messages import Request
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.worlds import a_world, a_world_node

HERE = Path(__file__).parents[1] / "recordings"


def recording(name):
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def queue_of(name):
    recorded = recording(name)
    return read_queue(recorded["body"], read_date(recorded["headers"]["Date"]), ())


def node_of(name):
    recorded = recording(name)
    return read_node(recorded["body"], read_date(recorded["headers"]["Date"]))


# What we read.


def test_the_node_monitors_of_a_real_jenkins():
    health = read_health(recording("c14_computer_monitorData")["body"])
    assert health["n-cpu-1"] == Health(disk_bytes=78101819392.0, memory_bytes=23669993472.0, response_seconds=0.179)
    assert health[""] == Health(disk_bytes=78101954560.0, memory_bytes=23674208256.0, response_seconds=0.0)
    assert health["n-off-1"] == Health()


@pytest.mark.parametrize("name", ["c02_computer_online_idle_depth0", "c02_computer_online_idle_one", "e03_reader_computer"])
def test_what_no_monitor_has_told_yet_or_the_account_may_not_see_is_not_known(name):
    body = recording(name)["body"]
    assert read_health(body if "computer" in body else {"computer": [body]})["n-cpu-1"] == Health()


def test_what_a_monitor_cannot_know_is_not_known():
    """Jenkins says -1 for memory that it cannot read on this platform: no agent short of memory."""
    told = {"hudson.node_monitors.SwapSpaceMonitor": {"availablePhysicalMemory": -1, "availableSwapSpace": -1}}
    assert read_health({"computer": [{"displayName": "n", "monitorData": told}]})["n"] == Health()


def test_after_a_restart_not_even_the_controllers_own_monitors_tell_anything():
    health = read_health(recording("e31_restart_computers_first")["body"])
    assert health["s-1"] == health[""] == Health()


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("d06_build_running_freestyle", None),
        ("d07_build_completed_freestyle", RunEnd(result=BuildResult.SUCCEEDED, seconds=1.522, item=42)),
        ("d07_build_aborted", RunEnd(result=None, seconds=1456.099, item=53)),
    ],
)
def test_how_builds_of_a_real_jenkins_ended(name, result):
    assert read_result(recording(name)["body"]) == result


def test_every_kind_of_label_is_read_from_a_queue_of_freestyle_jobs():
    items, aside = queue_of("b03_queue_labels_tree")
    assert aside == []
    assert [item.id for item in items] == sorted(item.id for item in items)
    labels = {item.job: item.label for item in items}
    assert labels["q-implies"] == "a -> b"
    assert next(item for item in items if item.job == "q-any").labelless
    assert all(item.starved for item in items)


def test_pipelines_and_folders():
    items, aside = queue_of("b13_queue_folder_jobs_tree")
    assert aside == []
    assert {(item.job, item.run, item.label) for item in items} >= {
        ("mxnet/unix-cpu", "job/mxnet/job/unix-cpu/1", None),
        ("mxnet/free-xl", "", "mxnetlinux-cpu-xl"),
    }


def test_matrix_configurations_and_branches_of_any_name():
    def entry(number, kind, url, why, **task):
        task = {"_class": kind, "name": "x", "url": url, **task}
        return {"id": number, "why": why, "buildable": True, "pending": False, "task": task}

    body = {
        "items": [
            entry(
                2,
                "hudson.matrix.MatrixConfiguration",
                "http://j/job/tests/hosts=linux,os=a%20b/",
                "Waiting for next available executor on ‘linux’",
            ),
            entry(1, "org…$PlaceholderTask", "job/app/job/feature%252Fgr%C3%B6%C3%9Fe/12/", "There are no nodes with the label ‘gpu&&!p3’"),
        ]
    }
    items, aside = read_queue(body, read_date("Fri, 20 Nov 2026 21:28:40 GMT"), ())
    assert aside == []
    assert [(item.job, item.run, item.wait.label or item.wait.named) for item in items] == [
        ("app/feature%2Fgröße", "job/app/job/feature%252Fgr%C3%B6%C3%9Fe/12", "gpu&&!p3"),
        ("tests/hosts=linux,os=a b", "", "linux"),
    ]


@pytest.mark.parametrize("name", ["b01_queue_quiet_period", "b08_queue_blocked_by_running", "b11_queue_quietdown", "e17_noread_queue"])
def test_what_waits_for_something_else_is_not_starved(name):
    assert not any(item.starved for item in queue_of(name)[0])


def test_after_a_restart_pipelines_wait_for_what_the_queue_tells():
    items, _ = queue_of("e30_restart_queue_12_200")
    assert [item.starved for item in items] == [True, False] or [item.starved for item in items] == [False, True]


def test_busy_executors_of_each_kind():
    recorded = recording("c03_computer_tree")
    nodes, aside = read_computers(recorded["body"], read_date(recorded["headers"]["Date"]))
    assert aside == {}
    builds = {node.name: [(b.job, b.run, b.elapsed_seconds) for b in node.builds] for node in nodes if node.builds}
    assert builds["n-cpu-1"] == [("pipe-cpu", "job/pipe-cpu/1", None)]
    assert builds["Built-In Node"] == [("pipe-cpu", "job/pipe-cpu/1", None)]
    assert [node.name for node in nodes if not node.agent] == ["Built-In Node"]


def test_busy_without_the_right_to_know_with_what():
    recorded = recording("e17_noread_computer")
    nodes, _ = read_computers(recorded["body"], read_date(recorded["headers"]["Date"]))
    assert any(not node.idle for node in nodes)


@pytest.mark.parametrize(
    ("name", "cause", "temporarily", "idle"),
    [
        ("c01_computer_one_never_connected", OfflineCause.NONE, False, True),
        ("c04_computer_tempoffline_idle_depth1", OfflineCause.PERSON, True, True),
        ("c06_computer_tempoffline_busy_depth1", OfflineCause.PERSON, True, False),
        ("c09_computer_agent_killed", OfflineCause.LOST, False, True),
        ("c15_computer_low_disk", OfflineCause.OTHER, True, True),
        ("c20_pipeline_agent_killed", OfflineCause.LOST, False, False),
    ],
)
def test_who_took_a_node_offline(name, cause, temporarily, idle):
    recorded = recording(name)
    body = recorded["body"] if "displayName" in recorded["body"] else recorded["body"]["computer"]
    node = read_node(body, read_date(recorded["headers"]["Date"]))
    assert (node.offline, node.cause, node.temporarily_offline, node.idle) == (True, cause, temporarily, idle)


def test_a_reason_is_read_as_it_was_written():
    assert "<" in node_of("c05_tempoffline_html_message").reason
    assert node_of("c05_tempoffline_no_message").reason == ""


@pytest.mark.parametrize("name", ["c04_computer_tempoffline_idle_depth1", "c06_computer_tempoffline_busy_depth1"])
def test_the_person_who_took_a_node_offline_is_read(name):
    assert node_of(name).offline_by == "admin"


def test_nobody_in_particular_took_a_node_offline_that_a_monitor_marked():
    assert node_of("c15_computer_low_disk").offline_by == ""


# What the stand-in answers.


def api():
    world = a_world()
    controller = world.controllers["main"]
    return JenkinsApi(controller, "http://127.0.0.1:8090/"), controller


def get(standing, path, **query):
    response = standing.handle(Request("GET", path, query))
    return response.status, json.loads(response.body) if response.body.startswith(b"{") else None, response.headers


def shape(body):
    """Keys and types, all the way down: what a client can rely on."""
    if isinstance(body, dict):
        return {key: shape(value) for key, value in body.items()}
    if isinstance(body, list):
        return [shape(body[0])] if body else []
    return type(body).__name__


def assert_shaped_alike(ours, recorded, *, without=()):
    missing = {key for key in ours if key not in recorded} - set(without)
    assert not missing, f"the stand-in answers what Jenkins does not: {missing}"
    for key in ours.keys() & recorded.keys():
        if isinstance(ours[key], dict) and isinstance(recorded[key], dict):
            assert_shaped_alike(ours[key], recorded[key])
        elif ours[key] is not None and recorded[key] is not None:
            assert isinstance(ours[key], type(recorded[key])) or isinstance(recorded[key], type(ours[key]))


def test_a_waiting_freestyle_item_looks_as_recorded():
    standing, controller = api()
    controller.submit("q-dash-dot", "c5.18xlarge-spot", 1.0)
    controller.add_node(a_world_node("n-off-1", connected=False))
    recorded = next(i for i in recording("b03_queue_labels_tree")["body"]["items"] if i["task"]["name"] == "q-dash-dot")
    tree = recording("b03_queue_labels_tree")["request"]["path"].split("tree=")[1]
    _, body, headers = get(standing, "/queue/api/json", tree=tree)
    [ours] = body["items"]
    assert shape(ours) == shape(recorded)
    assert ours["why"] == recorded["why"]
    assert headers.keys() >= {"Date", "X-Jenkins", "X-Jenkins-Session"}


def test_a_waiting_pipeline_step_looks_as_recorded():
    standing, controller = api()
    controller.submit("mxnet/unix-cpu", "mxnetlinux-cpu-xl", 1.0, kind=Kind.PIPELINE)
    controller.add_node(a_world_node("n-off-1", connected=False))
    recorded = recording("b13_queue_folder_jobs_tree")
    _, body, _ = get(standing, "/queue/api/json", tree=recorded["request"]["path"].split("tree=")[1])
    theirs = next(i for i in recorded["body"]["items"] if i["task"]["url"] == "job/mxnet/job/unix-cpu/1/")
    [ours] = body["items"]
    assert {**ours, "id": 0} == {**theirs, "id": 0}


def test_a_busy_node_looks_as_recorded():
    standing, controller = api()
    controller.add_node(a_world_node("n-cpu-1", "linux", "mxnetlinux-cpu"))
    controller.submit("pipe-cpu", "mxnetlinux-cpu", 100.0, kind=Kind.PIPELINE)
    controller.timeline.move_to(controller.timeline.now + 1)
    recorded = recording("c03_computer_tree")
    _, body, _ = get(standing, "/computer/api/json", tree=recorded["request"]["path"].split("tree=")[1])
    theirs = next(c for c in recorded["body"]["computer"] if c["displayName"] == "n-cpu-1")
    ours = next(c for c in body["computer"] if c["displayName"] == "n-cpu-1")
    assert shape(ours) == shape(theirs)
    assert ours["executors"][0]["currentExecutable"]["fullDisplayName"] == "part of pipe-cpu #1"
    assert body["busyExecutors"] == 1


@pytest.mark.parametrize(
    ("name", "prepare"),
    [
        ("c01_computer_one_never_connected", lambda c: None),
        ("c04_computer_tempoffline_idle_depth1", lambda c: c.set_offline("n", "scale-in by autoscaler", "admin")),
        ("c09_computer_agent_killed", lambda c: (c.connect("n"), c.disconnect("n"))),
    ],
)
def test_an_offline_node_looks_as_recorded(name, prepare):
    standing, controller = api()
    controller.add_node(a_world_node("n", connected=False))
    prepare(controller)
    _, ours, _ = get(standing, "/computer/n/api/json")
    recorded = recording(name)["body"]
    assert_shaped_alike(ours, recorded)
    for key in ("offline", "temporarilyOffline", "idle", "offlineCauseReason"):
        assert ours[key] == recorded[key], key
    assert (ours["offlineCause"] or {}).get("_class") == (recorded["offlineCause"] or {}).get("_class")


def monitors_of(standing, name):
    return get(standing, f"/computer/{name}/api/json")[1]["monitorData"]


def recorded_monitors(name, node="n-cpu-1"):
    body = recording(name)["body"]
    return next(c["monitorData"] for c in body.get("computer", [body]) if c["displayName"] == node)


def test_the_monitors_tell_one_by_one_as_recorded():
    standing, controller = api()
    controller.add_node(a_world_node("n", connected=False))
    assert monitors_of(standing, "n") == recorded_monitors("c01_computer_one_never_connected")
    controller.connect("n")
    assert monitors_of(standing, "n") == recorded_monitors("c02_computer_online_idle_depth0")
    controller.timeline.move_to(controller.timeline.now + 1)
    assert monitors_of(standing, "n") == recorded_monitors("c02_computer_online_idle_one")
    controller.timeline.move_to(controller.timeline.now + 9)
    told = monitors_of(standing, "n")
    assert_shaped_alike(told, recorded_monitors("c14_computer_monitorData"))
    assert None not in told.values()
    controller.disconnect("n")
    assert monitors_of(standing, "n") == told
    assert None not in recorded_monitors("c09_computer_agent_killed", "n-cpu-2").values()


def test_a_restart_forgets_what_the_monitors_told():
    standing, controller = api()
    controller.add_node(a_world_node("n"))
    assert None not in monitors_of(standing, "n").values()
    controller.restart()
    controller.timeline.move_to(controller.timeline.now + 5.5)
    assert monitors_of(standing, "n") == monitors_of(standing, "(built-in)") == recorded_monitors("e31_restart_computers_first", "s-1")


def test_without_the_right_to_connect_agents_the_monitors_are_empty_as_recorded():
    standing, controller = api()
    controller.add_node(a_world_node("n"))
    standing.lacks = {"hudson.model.Computer.Connect"}
    assert monitors_of(standing, "n") == recorded_monitors("e03_reader_computer") == {}


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [
        ("e05_node_missing", "GET", "/computer/no-such/api/json"),
        ("f06_toggle_via_GET", "GET", "/computer/n/toggleOffline"),
        ("e07_delete_twice", "POST", "/computer/gone/doDelete"),
        ("e07_delete_builtin", "POST", "/computer/(built-in)/doDelete"),
        ("f01_toggle_offline_set", "POST", "/computer/n/toggleOffline"),
        ("f03_changeOfflineCause_on_online", "POST", "/computer/n/changeOfflineCause"),
        ("e07_delete_ok", "POST", "/computer/n/doDelete"),
    ],
)
def test_status_codes_are_those_recorded(name, method, path):
    standing, controller = api()
    controller.add_node(a_world_node("n"))
    assert standing.handle(Request(method, path)).status == recording(name)["status"]


def test_creating_a_node_answers_as_recorded():
    standing, _ = api()
    recorded = recording("e06_create_ok")
    form = recorded["request"]["data"]
    query = {"name": form["name"], "type": form["type"]}
    first = standing.handle(Request("POST", "/computer/doCreateItem", query, form))
    again = standing.handle(Request("POST", "/computer/doCreateItem", query, form))
    broken = standing.handle(Request("POST", "/computer/doCreateItem", query, {"json": "{"}))
    assert (first.status, first.headers["Location"]) == (recorded["status"], recorded["headers"]["Location"])
    refused = recording("e06_create_existing")
    assert (again.status, again.headers["X-Error"]) == (refused["status"], refused["headers"]["X-Error"].replace("e-dup", "e-new"))
    assert broken.status == recording("e06_create_bad_json")["status"]


def test_refusals_and_starting_answer_as_recorded():
    standing, controller = api()
    standing.accounts = {"admin": "token"}
    standing.passwords = {"admin": "password"}
    controller.add_node(a_world_node("n"))
    wrong = standing.handle(Request("GET", "/queue/api/json", user="admin", password="x"))
    nobody = standing.handle(Request("GET", "/queue/api/json"))
    crumbless = standing.handle(Request("POST", "/computer/n/toggleOffline", user="admin", password="password"))
    crumb = standing.handle(Request("GET", "/crumbIssuer/api/json", user="admin", password="password"))
    controller.up = "starting"
    starting = standing.handle(Request("GET", "/queue/api/json"))
    names = ["e01_bad_token_get", "e02_anonymous", "e04_crumb_missing", "e04_crumbIssuer", "e30_restart_queue_06_503"]
    assert [r.status for r in (wrong, nobody, crumbless, crumb, starting)] == [recording(name)["status"] for name in names]
    assert b"No valid crumb" in crumbless.body
    assert json.loads(crumb.body).keys() <= recording("e04_crumbIssuer")["body"].keys()
    assert "X-Jenkins" not in starting.headers
    assert "X-Jenkins" not in recording("e30_restart_queue_06_503")["headers"]


def test_a_malformed_tree_is_a_server_error():
    standing, _ = api()
    assert get(standing, "/queue/api/json", tree="items[id")[0] == recording("e11_bad_tree")["status"]


def test_toggling_a_node_that_is_offline_brings_it_online():
    standing, controller = api()
    controller.add_node(a_world_node("n"))
    for offline in (True, False, True):
        standing.handle(Request("POST", "/computer/n/toggleOffline", {"offlineMessage": "x"}))
        assert controller.nodes["n"].offline is offline
