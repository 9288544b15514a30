"""A live run leaves nothing behind, whatever happens, and takes no more than it needs. Shown on the stand-in, which looks in the end."""

import os
import signal
import time

import jenkins
import pytest

from autoscaler.domain.facts.fleet import NodeSpec
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support import live_jobs
from support.live import PREFIX, LiveJenkins
from support.live_scene import needs_a_restart, needs_label_parameters, needs_matrices
from support.rig import opened, restart_by, stand_in_jenkins


@pytest.fixture
def live():
    with stand_in_jenkins() as jenkins:
        yield jenkins


def make_a_mess(live):
    live.add_node(f"{live.prefix}-1", "somewhere")
    live.start_agent(f"{live.prefix}-1")
    live.submit("runs", "somewhere", 600.0)
    live.submit("waits", "nowhere", 600.0)
    live.until(lambda: not live.node(f"{live.prefix}-1").idle, "a build runs")


def test_what_breaks_in_the_middle_leaves_nothing(live):
    with pytest.raises(ZeroDivisionError), opened(live):
        make_a_mess(live)
        raise ZeroDivisionError


def test_being_told_to_end_leaves_nothing(live):
    with pytest.raises(KeyboardInterrupt), opened(live):
        make_a_mess(live)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)


def test_what_somebody_removed_meanwhile_is_no_error(live):
    with opened(live):
        make_a_mess(live)
        live.session.post(f"job/{live.prefix}/doDelete")
        live.controller.delete_node(f"{live.prefix}-1")
    assert live.controller.node(f"{live.prefix}-1") is None


def test_one_failure_while_removing_stops_no_other(live, monkeypatch):
    monkeypatch.setattr(type(live), "_cancel_queued", lambda _self: (_ for _ in ()).throw(AutoscalerError("no answer")))
    with pytest.raises(AssertionError, match=f"remove what begins with {live.prefix}"), opened(live):
        make_a_mess(live)


def test_leftovers_of_a_run_that_was_killed_are_removed_an_hour_later(live):
    old, young = (f"{PREFIX}{int(time.time()) - age}-0abc" for age in (4000, 100))
    for name in (old, young):
        live.session.create_item("createItem", name, jenkins.EMPTY_FOLDER_XML)
        live.controller.create_node(spec_of(f"cpu-{name}-1"))
    with opened(live):
        assert [node.name for node in live.look().nodes if PREFIX in node.name] == [f"cpu-{young}-1"]
    live.session.post(f"job/{young}/doDelete")
    live.controller.delete_node(f"cpu-{young}-1")


def test_more_than_a_few_nodes_are_refused(live):
    with pytest.raises(AssertionError, match="polite tests make few nodes"), opened(live):
        for number in range(20):
            live.add_node(f"{live.prefix}-{number}")


def test_a_run_without_credentials_says_what_is_missing(live):
    live.session = type(live.session)(live.url, "live", "wrong", time.monotonic)
    with pytest.raises(AssertionError, match="check the controller's secret"):
        live.open()


def asks_for_everything(live):
    job = live.define("job", "params.AGENT_LABEL", 1.0, declares=("AGENT_LABEL", "REF"))
    return [lambda: needs_matrices(live), lambda: needs_label_parameters(live, job, "AGENT_LABEL"), lambda: needs_a_restart(live)]


def test_the_stand_in_leaves_nothing_out(live):
    with opened(live):
        for ask in asks_for_everything(live):
            ask()
    with stand_in_jenkins(plugins=()) as bare, opened(bare), pytest.raises(AssertionError, match="leaves nothing out"):
        needs_matrices(bare)


def test_what_a_controller_cannot_do_is_not_tried_and_says_why():
    with stand_in_jenkins(plugins=()) as bare:
        given = LiveJenkins(bare.url, bare.user, bare.token)  # as one of which only the URL is known
        with opened(given):
            for ask, why in zip(
                asks_for_everything(given), ("matrix-project is not", "NodeLabel Parameter is not", "RESTART_COMMAND"), strict=True
            ):
                with pytest.raises(pytest.skip.Exception, match=why):
                    ask()


def test_a_restart_is_the_command_of_the_person_whose_jenkins_it_is(tmp_path):
    restart_by(f"touch {tmp_path}/restarted")()
    assert (tmp_path / "restarted").exists()
    with pytest.raises(AssertionError, match=r"RESTART_COMMAND \(false\): exit 1"):
        restart_by("false")()


def test_the_stand_in_takes_no_pipeline_whose_step_needs_no_agent(live):
    """A real Jenkins runs the step `sleep` on the controller: it would go on while its agent is away."""
    script = live_jobs.config(Kind.PIPELINE, "cpu", 5.0, ()).replace("sh 'sleep 5'", "sleep 5")
    assert "{ sleep 5 }" in script
    with opened(live), pytest.raises(AutoscalerError, match="sh 'sleep N'"):
        live.session.create_item(f"job/{live.prefix}/createItem", "sleeps", script)


def spec_of(name):
    return NodeSpec(name=name, labels=(), executors=1, exclusive=True, remote_dir="live", description="of a live test")
