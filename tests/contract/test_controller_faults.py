"""The Controller port when Jenkins is in trouble: what only a world of one's own can be made to do."""

import pytest

from autoscaler.errors import ConfigError, TransientError, UnansweredError
from support.worlds import a_world_node, stand
from workbench.world.faults import Fault


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
    here.face.lacks.add("hudson.model.Computer.Disconnect")
    with pytest.raises(ConfigError, match=r"lacks hudson\.model\.Computer\.Disconnect"):
        here.controller.set_offline("cpu-1", "x")


def test_wrong_credentials_are_a_named_problem(kind):
    with stand(kind, accounts={"u": "another token"}) as here:
        assert here.controller.look().problem == "ConfigError: Jenkins refused the credentials (401): check the controller's secret"
