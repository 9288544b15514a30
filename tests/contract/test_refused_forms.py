"""Forms that Jenkins refuses, in every container and behind every proxy: whether a node is there is asked, and read in no page."""

import json
from pathlib import Path

import pytest

from autoscaler.adapters.jenkins.session import RefusedRequestError
from autoscaler.domain.facts.fleet import NodeSpec
from autoscaler.errors import ConflictError, NoAnswerError
from autoscaler_workbench.fakes.http_fakes.messages import Request, Response
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.worlds import a_world_node, stand

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "answers_2.504.3_tomcat.json").read_text())["answers"]
JENKINS = {"X-Jenkins": "2.504.3", "Content-Type": "text/html;charset=UTF-8"}
# What answers a form that is refused.
CONTAINERS = {
    "Jetty": None,
    "Tomcat": None,
    "another language": Response(400, JENKINS | {"X-Error": "Agent  cpu-1  existe"}, b"<h1>Erreur</h1><p>Agent cpu-1 existe</p>"),
    "a header without words": Response(400, JENKINS | {"X-Error": ""}, b""),
    "a proxy's page": Response(400, {"Server": "nginx", "Content-Type": "text/html"}, b"<title>400 Bad Request</title>"),
    "nothing": Response(400, {}, b""),
    "conflict": Response(409, {}, b""),
}


@pytest.fixture(params=["memory", "http"])
def here(request):
    with stand(request.param) as stood:
        yield stood


def create(here, name="cpu-1"):
    here.controller.create_node(NodeSpec(name=name, labels=("cpu",), executors=1, exclusive=True, remote_dir="/x", description=""))


def in_container(here, container):
    here.api.on_tomcat = container == "Tomcat"
    if CONTAINERS[container]:
        here.api.in_front["POST"] = CONTAINERS[container]


def test_a_node_that_is_there_is_refused_as_recorded():
    with stand("memory") as here:
        here.api.on_tomcat = True
        recorded = RECORDED["create a node that is there"]
        for status in (RECORDED["create node"]["status"], recorded["status"]):
            form = {"json": '{"numExecutors": 1}'}
            answer = here.api.handle(Request("POST", "/computer/doCreateItem", {"name": "rec-agent"}, form))
            assert answer.status == status
        assert {"X-Error", "Server"}.isdisjoint({**answer.headers, **recorded["headers"]})
        assert answer.headers["Content-Type"].lower() == recorded["headers"]["Content-Type"].lower()


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_node_that_is_there_is_a_conflict(here, container):
    here.jenkins.add_node(a_world_node("cpu-1"))
    in_container(here, container)
    with pytest.raises(ConflictError, match="node cpu-1 exists already"):
        create(here)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_form_that_is_refused_though_no_such_node_is_there_is_no_conflict(here, container):
    in_container(here, container)
    with pytest.raises(RefusedRequestError) as refused:
        create(here, "cpu/1")
    words = {"Jetty": "/ is an unsafe character", "Tomcat": "‘/’ is an unsafe character", "another language": "Agent cpu-1 existe"}
    assert words.get(container, "no reason given") in str(refused.value)


def test_what_is_left_of_a_deleted_node_is_no_node(here):
    """Jenkins lists it while a pipeline is on it, and makes another node of its name."""
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    here.jenkins.submit("job", "cpu", 600.0, kind=Kind.PIPELINE)
    here.world.move_to(here.world.timeline.now + 1.0)
    here.controller.delete_node("cpu-1")
    assert here.controller.node("cpu-1").is_deleted
    in_container(here, "nothing")
    with pytest.raises(RefusedRequestError, match="no reason given"):
        create(here)


def test_where_nobody_can_say_whether_a_node_is_there_nothing_is_said_of_it(here):
    here.jenkins.add_node(a_world_node("cpu-1"))
    here.faults.plan(Fault("jenkins computer"))
    with pytest.raises(NoAnswerError):
        create(here)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (
            b"<html><h1>HTTP Status 400 \xe2\x80\x93 Bad Request</h1><hr/><p><b>Message</b> job is not parameterized</p>",
            "job is not parameter",
        ),
        (
            b"<h2>HTTP ERROR 400 x</h2><table><tr><th>MESSAGE:</th><td>job is not parameterized</td></tr></table>",
            "job is not parameterized",
        ),
        (b"<h1>Error</h1>\n <pre>line 1\nline &lt;2&gt;</pre>", "line 1 line <2>"),
        (b"<h1>Error</h1><p>" + b"x" * 5000 + b"</p>", "x" * 100),
        (b"<h1>Error</h1><p></p>", "no reason given"),
        (b"\xff\xfe", "no reason given"),
    ],
    ids=["Tomcat", "Jetty", "lines", "long", "empty", "bytes"],
)
def test_a_refusal_says_what_its_page_says(here, page, reason):
    here.api.in_front["POST"] = Response(400, JENKINS, b" " * 70_000 + page)
    with pytest.raises(RefusedRequestError, match="answered 400: ") as refused:
        create(here)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 300
