"""Names in URLs: percent-encoded as Jenkins does it, decoded where a person reads them, and sent back as they came."""

import pytest

from autoscaler.adapters.jenkins.parse import job_of, run_of
from autoscaler.domain.facts.runs import BuildResult
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.jenkins.urls import raw_encode
from support.worlds import a_world_node, stand

# Jenkins refuses some of these signs in names that people choose, none in names that plugins make: feature%2Fx is a multibranch
# pipeline's name for the branch feature/x.
NAMES = ["a b", "größe", "日本", "folder x/job y", "app/feature%2Fx", "c++", "100%", "#1?", "tilde~", "team/12", "job", "{x}^[y]|`z`"]


@pytest.fixture(params=["memory", "http"])
def here(request):
    with stand(request.param) as stood:
        yield stood


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("plain-Name_1.x", "plain-Name_1.x"),
        ("!$&'()*+,-.=@_", "!$&'()*+,-.=@_"),  # what stays, by the comment on Util.rawEncode
        ("a b", "a%20b"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("日", "%E6%97%A5"),
        ('"#%/:;<>?[\\]^`{|}~', "%22%23%25%2F%3A%3B%3C%3E%3F%5B%5C%5D%5E%60%7B%7C%7D%7E"),
        ("😀", "%F0%9F%98%80"),
        ("feature%2Fx", "feature%252Fx"),
    ],
)
def test_a_name_is_encoded_as_jenkins_does_it(name, encoded):
    assert raw_encode(name) == encoded


@pytest.mark.parametrize(
    ("url", "job", "run"),
    [
        ("http://j/job/a%20b/7/", "a b", "job/a%20b/7"),
        ("job/gr%C3%B6%C3%9Fe/job/%E6%97%A5%E6%9C%AC/12/", "größe/日本", "job/gr%C3%B6%C3%9Fe/job/%E6%97%A5%E6%9C%AC/12"),
        ("http://j/ci/job/app/job/feature%252Fx/1/", "app/feature%2Fx", "job/app/job/feature%252Fx/1"),
        ("http://j/job/tests/hosts=linux,os=a%20b/3/", "tests/hosts=linux,os=a b", "job/tests/hosts=linux,os=a%20b/3"),
        ("http://j/job/team/job/12/", "team/12", "job/team/job/12"),  # a job that is named by a number is no run
        ("job/team/job/12/3/", "team/12", "job/team/job/12/3"),
        ("job/job/5/", "job", "job/job/5"),
        ("http://j/job/c++/", "c++", "job/c++"),
        ("http://j/job/100%/", "100%", "job/100%"),  # not Jenkins' own spelling: read as it is
        ("", "", ""),
    ],
)
def test_a_job_is_named_as_people_read_it_and_a_run_stays_its_path(url, job, run):
    assert (job_of(url), run_of(url)) == (job, run)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_a_job_of_any_name_is_followed_from_the_queue_to_its_result(here, name, kind):
    here.jenkins.submit(name, "cpu", 30.0, kind=kind)
    [item] = here.controller.look().items
    assert item.job == name
    here.jenkins.add_node(a_world_node("n-1", "cpu"))
    here.jenkins.schedule()
    [build] = here.controller.node("n-1").builds
    assert build.job == name
    assert item.run in {"", build.run}
    assert here.controller.result(build.run) is None
    here.world.move_to(here.world.timeline.now + 31)
    assert here.controller.result(build.run).result is BuildResult.SUCCEEDED


@pytest.mark.parametrize("name", ["a b-ü(1)", "日本-1", "c++", "100%", "a#b?c", "x;y=z", "tilde~1"])
def test_a_node_of_any_name_is_reached(here, name):
    here.jenkins.add_node(a_world_node(name, "cpu"))
    here.controller.set_offline(name, "größe & 日本")
    seen = here.controller.node(name)
    assert (seen.name, seen.reason) == (name, "größe & 日本")
    assert len(here.controller.agent_secret(name)) == 64
    here.controller.toggle_offline(name, "")
    assert not here.controller.node(name).offline
    here.controller.delete_node(name)
    assert here.jenkins.nodes == {}


def test_what_came_encoded_is_sent_back_as_it_came():
    with stand("http") as here:
        here.jenkins.submit("app/feature%2Fgröße x", "cpu", 30.0, kind=Kind.PIPELINE)
        [item] = here.controller.look().items
        here.controller.result(item.run)
        path = here.server.requests[-1][0].partition("?")[0]
        assert path == "/jenkins/main/job/app/job/feature%252Fgr%C3%B6%C3%9Fe%20x/1/api/json"


def test_a_redirect_after_a_post_is_one_that_a_header_can_carry():
    with stand("http") as here:
        here.jenkins.add_node(a_world_node("größe 1", "cpu"))
        answer = here.controller.connection.ask(lambda session: session.post("computer/gr%C3%B6%C3%9Fe%201/toggleOffline"))
        assert (answer.status, answer.headers["Location"]) == (302, "/computer/gr%C3%B6%C3%9Fe%201/")
