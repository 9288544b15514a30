"""The Controller port when Jenkins is in trouble: what only a world of one's own can be made to do."""

import pytest

from autoscaler.adapters.jenkins.session import RedirectedError
from autoscaler.domain.facts.fleet import NodeSpec
from autoscaler.errors import ConfigError, TransientError, UnansweredError
from autoscaler_workbench.fakes.world.faults import Fault
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
    assert "restarted while it was being read" in here.controller.look().problem


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


def test_a_missing_permission_is_named(here):
    here.jenkins.add_node(a_world_node("cpu-1"))
    here.api.lacks.add("hudson.model.Computer.Disconnect")
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
