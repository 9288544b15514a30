"""The Controller port, over HTTP and in memory."""

import pytest

from autoscaler.domain.model import agent_spec, beacon_spec
from autoscaler.domain.snapshot import OfflineCause
from autoscaler.errors import ConfigError, ConflictError, TransientError, UnansweredError
from support.worlds import a_world_node, stand
from workbench.world.faults import Fault
from workbench.world.jenkins import Kind


@pytest.fixture(params=["memory", "http"])
def kind(request):
    return request.param


@pytest.fixture
def here(kind):
    with stand(kind) as stood:
        yield stood


def test_a_look_shows_queue_nodes_and_state(here):
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    running = here.jenkins.submit("folder/job one", "cpu", 100.0)
    here.world.move_to(here.world.timeline.now + 30)
    here.jenkins.submit("next", "cpu && !gpu", 60.0)
    here.world.move_to(here.world.timeline.now + 45)
    view = here.controller.look()
    assert (view.problem, view.quieting_down, view.session) == (None, False, here.jenkins.session)
    [item] = view.items
    assert (item.job, item.label, item.starved, item.waiting_seconds) == ("next", "cpu && !gpu", True, 45.0)
    node = next(node for node in view.nodes if node.name == "cpu-1")
    assert (node.idle, node.offline, node.labels) == (False, False, {"cpu-1", "cpu"})
    assert [build.job for build in node.builds] == [running.job]


def test_the_item_that_comes_next_is_listed_first(here):
    for number in range(3):
        here.jenkins.submit(f"job-{number}", "nothing", 1.0)
    assert [item.job for item in here.controller.look().items] == ["job-0", "job-1", "job-2"]


def test_a_pipelines_label_is_known_once_the_beacon_stands(here):
    here.jenkins.submit("pipe", "cpu&&linux", 1.0, kind=Kind.PIPELINE)
    assert here.controller.look().items[0].wait.label is None
    here.controller.create_node(beacon_spec(here.fleet))
    item = here.controller.look().items[0]
    assert (item.label, item.wait.label, item.run) == (None, "cpu&&linux", "job/pipe/1")


@pytest.mark.parametrize(
    "job", ["größe/ok", 'quo"te', "a b/c%2Fd", "x" * 300, "日本/語"], ids=["umlaut", "quote", "blank", "long", "japanese"]
)
def test_jobs_of_any_name_are_read(here, job):
    here.jenkins.submit(job, 'weird "label"', 1.0)
    view = here.controller.look()
    assert (view.problem, len(view.items), view.items[0].label) == (None, 1, 'weird "label"')


def test_offline_and_back_again(here):
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    here.controller.set_offline("cpu-1", "autoscaler:f:retire:<p> & 'q'")
    node = here.controller.node("cpu-1")
    assert (node.offline, node.temporarily_offline, node.cause) == (True, True, OfflineCause.PERSON)
    assert node.reason == "autoscaler:f:retire:<p> & 'q'"
    here.controller.toggle_offline("cpu-1")
    assert not here.controller.node("cpu-1").offline


def test_the_toggle_turns_both_ways(here):
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    here.controller.toggle_offline("cpu-1")
    assert here.controller.node("cpu-1").offline


def test_setting_offline_replaces_whatever_mark_there_is(here):
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    here.jenkins.set_offline("cpu-1", "disk swap", "anna")
    here.controller.set_offline("cpu-1", "ours")
    assert here.controller.node("cpu-1").reason == "ours"


def test_a_draining_node_is_not_idle_until_its_build_is_done(here):
    here.jenkins.add_node(a_world_node("cpu-1", "cpu"))
    here.jenkins.submit("job", "cpu", 100.0)
    here.world.move_to(here.world.timeline.now + 1)
    here.controller.set_offline("cpu-1", "drain")
    assert not here.controller.node("cpu-1").idle
    here.world.move_to(here.world.timeline.now + 100)
    assert here.controller.node("cpu-1").idle


def test_a_created_node_is_as_it_was_specified(here):
    spec = agent_spec(here.fleet, here.fleet.pools["cpu"], "i-0ab1")
    here.controller.create_node(spec)
    node = here.controller.node(spec.name)
    assert node.labels == {spec.name, "cpu", "autoscaler-fleet-f"}
    assert (node.executors, node.offline, node.cause, node.description) == (1, True, OfflineCause.NONE, spec.description)
    with pytest.raises(ConflictError):
        here.controller.create_node(spec)


def test_deleting_twice_is_harmless(here):
    here.jenkins.add_node(a_world_node("cpu-1"))
    here.controller.delete_node("cpu-1")
    here.controller.delete_node("cpu-1")
    assert here.controller.node("cpu-1") is None


def test_names_with_odd_signs_are_reached(here):
    here.jenkins.add_node(a_world_node("a b-ü(1)"))
    here.controller.set_offline("a b-ü(1)", "x")
    assert here.controller.node("a b-ü(1)").offline


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
