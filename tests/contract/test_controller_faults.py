"""The Controller port when Jenkins is in trouble: what only a world of one's own can be made to do."""

import pytest

from autoscaler.adapters.jenkins.builds import JenkinsBuilds
from autoscaler.adapters.jenkins.session import InTheWayError, RedirectedError, RefusedCredentialsError, error_of
from autoscaler.domain.facts.fleet import NodeSpec
from autoscaler.errors import ConfigError, DoubtfulError, TransientError, UnansweredError
from autoscaler_workbench.fakes.http_fakes.jenkins.api import BALANCER_REFUSES, LOGIN_PAGE
from autoscaler_workbench.fakes.http_fakes.messages import Response
from autoscaler_workbench.fakes.world.faults import Fault
from contract.test_recordings import recording
from support.worlds import a_world_node, stand


@pytest.fixture(params=["memory", "http"])
def kind(request):
    return request.param


@pytest.fixture
def here(kind):
    with stand(kind) as stood:
        yield stood


def test_quieting_down_is_seen(here):
    here.jenkins.quiet_down("upgrade")
    here.jenkins.submit("job", "cpu", 1.0)
    view = here.controller.look()
    assert view.quieting_down
    assert not view.items[0].starved


def test_a_controller_that_is_starting_makes_an_incomplete_view(here):
    here.jenkins.up = "starting"
    assert "StartingError" in here.controller.look().problem
    with pytest.raises(TransientError):
        here.controller.node("cpu-1")


def test_a_restart_in_the_middle_of_a_look_is_noticed(here, monkeypatch):
    sessions = iter(["s1", "s1", "s2"])
    monkeypatch.setattr(type(here.jenkins), "session", property(lambda _: next(sessions)))
    view = here.controller.look()
    assert view.problem.startswith("answers to one look were of the sessions s1 and s2: it restarted meanwhile, or two controllers")
    assert view.sessions == ("s1", "s1", "s2")


@pytest.mark.parametrize("part", ["queue", "computer", "api"])
@pytest.mark.parametrize("status", [0, 500, 502])
def test_any_part_that_fails_makes_an_incomplete_view(here, part, status):
    here.faults.plan(Fault(f"jenkins {part}", status=status))
    assert here.controller.look().problem is not None
    assert here.controller.look().problem is None


@pytest.mark.parametrize("after", [False, True])
def test_a_change_without_answer_may_have_taken_effect(here, after):
    here.jenkins.add_node(a_world_node("cpu-1"))
    here.faults.plan(Fault("jenkins changeOfflineCause", after=after))
    with pytest.raises(UnansweredError):
        here.controller.set_offline("cpu-1", "x")
    assert here.controller.node("cpu-1").offline is after


@pytest.mark.parametrize("lacking", ["hudson.model.Computer.Disconnect", "hudson.model.Computer.Connect"])
def test_a_missing_permission_is_named(here, lacking):
    """Disconnect implies Connect, so who lacks Connect lacks Disconnect, too."""
    here.jenkins.add_node(a_world_node("cpu-1"))
    here.api.lacks.add(lacking)
    with pytest.raises(ConfigError, match=r"lacks hudson\.model\.Computer\.Disconnect"):
        here.controller.set_offline("cpu-1", "x")


def test_wrong_credentials_are_a_named_problem(kind):
    with stand(kind, accounts={"u": "another token"}) as here:
        assert here.controller.look().problem == (
            "RefusedCredentialsError: Jenkins refused the credentials (401): check the controller's secret"
        )


LOGINS = (
    "https://sso.example.org/authorize?rd=https%3A%2F%2Fjenkins%2Fcomputer%2Fcpu-1%2F",
    "/login?from=%2Fcomputer%2Fcpu-1%2FtoggleOffline",
    "https://jenkins.example.org/jenkins/main/computer/cpu-1/toggleOffline",  # the same place over https: nothing was done there either
)


@pytest.mark.parametrize("login", LOGINS)
def test_a_change_that_a_login_proxy_redirects_has_failed(here, login):
    here.jenkins.add_node(a_world_node("cpu-1"))
    here.api.login_at = login
    with pytest.raises(RedirectedError, match="login page or a proxy"):
        here.controller.toggle_offline("cpu-1", "x")


def test_every_change_that_a_login_proxy_redirects_has_failed(here):
    here.jenkins.add_node(a_world_node("cpu-1"))
    here.api.login_at = "/oauth2/sign_in?rd=/computer/"
    spec = NodeSpec(name="cpu-2", labels=("cpu",), executors=1, exclusive=True, remote_dir="/x", description="")
    for change in (
        lambda: here.controller.set_offline("cpu-1", "x"),
        lambda: here.controller.create_node(spec),
        lambda: here.controller.delete_node("cpu-1"),
        lambda: here.controller.cancel_item(1),
    ):
        with pytest.raises(RedirectedError):
            change()
    assert list(here.jenkins.nodes) == ["cpu-1"]


def changes(here):
    """Each change that is made by a POST, by its name."""
    spec = NodeSpec(name="cpu-2", labels=("cpu",), executors=1, exclusive=True, remote_dir="/x", description="")
    controller, builds = here.controller, JenkinsBuilds(here.controller.connection)
    return {
        "set_offline": lambda: controller.set_offline("cpu-1", "x"),
        "toggle_offline": lambda: controller.toggle_offline("cpu-1", "x"),
        "set_labels": lambda: controller.set_labels("cpu-1", ["gpu"], instead_of=["cpu"], exclusive=True),
        "create_node": lambda: controller.create_node(spec),
        "delete_node": lambda: controller.delete_node("cpu-1"),
        "cancel_item": lambda: controller.cancel_item(1),
        "start": lambda: builds.start("job/a", None),
        "start with parameters": lambda: builds.start("job/a", {"REF": "main"}),
        "stop": lambda: builds.stop("job/a/1"),
        "cancel": lambda: builds.cancel(1),
    }


CHANGES = ["set_offline", "toggle_offline", "set_labels", "create_node", "delete_node", "cancel_item"]
CHANGES += ["start", "start with parameters", "stop", "cancel"]
PAGE = b"<!DOCTYPE html><html><head><title>Log\n in </title></head></html>"
STRANGERS = {
    "a login page": (LOGIN_PAGE, DoubtfulError, r"answered 200 \(Server nginx, page 'Sign in to Example'\)"),
    "a page without a type": (Response(200, {}, PAGE), DoubtfulError, r"answered 200 \(page 'Log in'\): a login page or a proxy"),
    "an accepting proxy": (Response(202, {"Server": "envoy"}, b""), DoubtfulError, r"answered 202 \(Server envoy\)"),
    "a load balancer": (BALANCER_REFUSES, InTheWayError, r"not Jenkins \(Server awselb/2.0, page '403 Forbidden'\) answered 403"),
    "a bare refusal": (Response(403, {}, b"denied"), InTheWayError, "something that is not Jenkins answered 403"),
    "a proxy's login": (Response(401, {}, b"<title>401 Authorization Required</title>"), RefusedCredentialsError, "not Jenkins .*401"),
    "a moved place": (Response(301, {"Location": "/computer/cpu-1/"}, b""), RedirectedError, "a redirect to .*computer/cpu-1/"),
    "a login elsewhere": (Response(302, {"Location": "https://sso.example.org/authorize"}, b""), RedirectedError, "sso.example.org"),
    "Jenkins' own login": (Response(302, {"Location": "/login?from=%2Fjob%2Fa%2F"}, b""), RedirectedError, "/login"),
    "a gateway": (
        Response(504, {}, b"<title>504 Gateway Time-out</title>"),
        TransientError,
        "not Jenkins .page '504 Gateway Time-out'. ans",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_a_stranger_answers_a_change_is_no_success_and_its_sender_is_named(here, stranger, change):
    answer, error, words = STRANGERS[stranger]
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    here.api.in_front["POST"] = answer
    with pytest.raises(TransientError if stranger == "a gateway" else error, match=words):
        changes(here)[change]()
    node = here.jenkins.nodes["cpu-1"]
    assert (list(here.jenkins.nodes), node.temporarily_offline, here.jenkins.builds) == (["cpu-1"], False, [])


def test_whether_a_build_was_started_is_not_known_if_a_page_answers(here):
    here.api.in_front["POST"] = LOGIN_PAGE
    with pytest.raises(UnansweredError):
        changes(here)["start"]()


@pytest.mark.parametrize("ask", ["agent_secret", "heavy_weight", "set_labels"])
def test_a_page_is_no_file_either(here, ask):
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    here.api.in_front["GET"] = LOGIN_PAGE
    asks = {"agent_secret": lambda: here.controller.agent_secret("cpu-1"), "heavy_weight": lambda: here.controller.heavy_weight("a")}
    with pytest.raises(InTheWayError, match="page 'Sign in to Example'"):
        (asks | changes(here))[ask]()


@pytest.mark.parametrize("name", ["e01_bad_token_get", "e02_anonymous", "e03_no_permission_toggle", "e04_crumb_missing"])
@pytest.mark.parametrize("server", ["Jetty(12.0.17)", "nginx", ""])
def test_a_refusal_of_jenkins_is_its_own_whatever_proxy_passes_it_on(name, server):
    recorded = recording(name)
    headers = {**recorded["headers"], "Server": server}
    error = error_of(recorded["status"], headers, recorded["body"])
    assert "not Jenkins" not in str(error)
    assert str(error).startswith("Jenkins ")


@pytest.mark.parametrize("call", ["look", "node", "set_offline", "create_node", "delete_node", "agent_secret", "health"])
def test_a_token_that_was_rotated_is_read_again_whatever_is_asked_first(kind, call):
    """A warm container that only registers agents never looks: 60 of 60 registrations failed."""
    with stand(kind, accounts={"u": "t"}, read_token=iter(["old", "t", "never read"]).__next__) as here:
        here.jenkins.add_node(a_world_node("cpu-1"))
        spec = NodeSpec(name="cpu-2", labels=("cpu",), executors=1, exclusive=True, remote_dir="/x", description="")
        arguments = {"look": (), "health": (), "set_offline": ("cpu-1", "x"), "create_node": (spec,)}
        answer = getattr(here.controller, call)(*arguments.get(call, ("cpu-1",)))
        assert call != "look" or answer.problem is None


def test_credentials_that_stay_wrong_are_read_again_once_a_call(kind):
    tokens = ["old", "old", "t"]
    with stand(kind, accounts={"u": "t"}, read_token=lambda: tokens.pop(0)) as here:
        here.jenkins.add_node(a_world_node("cpu-1"))
        with pytest.raises(ConfigError, match="401"):
            here.controller.node("cpu-1")
        assert here.controller.node("cpu-1") is not None
