"""Starts that Jenkins answers with an item that waits already: 303, and where that item is (recorded)."""

import json
from pathlib import Path

import pytest

from autoscaler.adapters.jenkins.session import RedirectedError
from autoscaler.errors import RefusedBuildError
from autoscaler_workbench.fakes.http_fakes.messages import Request, Response
from support.rig import world_rig

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "answers_2.504.3_tomcat.json").read_text())["answers"]
FIRST, AGAIN = RECORDED["first buildWithParameters"], RECORDED["the same again while it waits in the queue"]
# Behind a proxy Jenkins may name another host, scheme or path than it is asked by.
PLACES = {
    "as recorded": AGAIN["headers"]["Location"],
    "its path": "/queue/item/3/",
    "without a slash at its end": "/queue/item/3",
    "from where it was asked": "../../queue/item/3/",
    "of no place": "queue/item/3/",
    "below a path": "/ci/jenkins/queue/item/3/",
    "another scheme and host": "https://ci.example.org:8443/queue/item/3/",
    "with a query": "http://j/queue/item/3/?from=job",
}
LOGINS = {
    "Jenkins' login": "/login?from=%2Fqueue%2Fitem%2F3%2F",
    "another service's": "https://sso.example.org/authorize?next=https://j/queue/item/3/",
    "a page of the queue": "/queue/",
    "an item without a number": "/queue/item/x/",
    "what follows the item": "/queue/item/3/login",
}


@pytest.fixture(params=["memory", "http"])
def here(request):
    with world_rig(request.param) as rig:
        yield rig


def starting(here, *declares, job="asked"):
    """A call that starts a build of a job, whose label no node has."""
    path = here.define(job, "nothing", declares=declares)
    return lambda: here.builds.start(path, dict.fromkeys(declares, "main") if declares else None)


def test_an_item_that_waits_already_is_answered_as_recorded_unless_it_has_no_parameters(here):
    starting(here, "REF", job="asked"), starting(here, job="plain")
    for path, form, status in (("asked/buildWithParameters", {"REF": "x"}, AGAIN["status"]), ("plain/build", {}, FIRST["status"])):
        request = Request("POST", f"/job/folder/job/{path}", {"delay": "0sec"}, form)
        first, again = here.stand.api.handle(request), here.stand.api.handle(request)
        assert (first.status, again.status) == (FIRST["status"], status)
        assert first.headers["Location"] == again.headers["Location"]


@pytest.mark.parametrize("status", [201, 302, 303])
@pytest.mark.parametrize("declares", [(), ("REF",)], ids=["without parameters", "with parameters"])
@pytest.mark.parametrize("place", PLACES)
def test_the_item_counts_wherever_jenkins_says_that_it_is(here, status, declares, place):
    start = starting(here, *declares)
    here.stand.api.in_front["POST"] = Response(status, {"Location": PLACES[place]}, b"")
    assert start() == 3


@pytest.mark.parametrize("folder", ["computer", "queue", "login"])
def test_the_name_of_a_folder_changes_nothing(here, folder):
    starting(here, "REF")
    here.stand.api.in_front["POST"] = Response(303, {"Location": "/queue/item/3/"}, b"")
    assert here.builds.start(f"job/{folder}/job/asked", {"REF": "main"}) == 3


@pytest.mark.parametrize("status", [302, 303])
@pytest.mark.parametrize("place", LOGINS)
def test_a_login_page_is_no_item(here, status, place):
    start = starting(here, "REF")
    here.stand.api.in_front["POST"] = Response(status, {"Location": LOGINS[place]}, b"")
    with pytest.raises(RedirectedError, match=r"a redirect to .*a login page or a proxy is in the way"):
        start()


@pytest.mark.parametrize("status", [302, 303])
def test_a_way_back_to_the_job_says_that_a_plugin_has_refused_the_build(here, status):
    start = starting(here, "REF")
    here.stand.api.in_front["POST"] = Response(status, {"Location": "."}, b"")
    with pytest.raises(RefusedBuildError, match="a plugin refused it"):
        start()


def test_two_builds_of_a_matrix_are_two(here):
    job = here.define("matrix", "nothing", declares=("REF",))
    name = "folder/matrix"
    jobs = here.stand.api.jobs.jobs
    jobs[name] = type(jobs[name])(jobs[name].kind, "nothing", 1.0, declares=jobs[name].declares, configurations=("os=a", "os=b"))
    assert here.builds.start(job, {"REF": "main"}) != here.builds.start(job, {"REF": "main"})
