"""The last read of a node before its machine is terminated: what it must refuse."""

import pytest

from autoscaler.control import nodes
from autoscaler.domain.facts.plan import DeleteNode
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from scenarios.conftest import MARK, NODE
from support.builders import a_mark


def why_not(here, mark=MARK):
    return nodes.may_terminate(here.controller, NODE, mark)


def may_delete(here, fate, **facts):
    step = DeleteNode(
        controller="main", pool="cpu", node=NODE, instance_id="i-1", fate=fate, reason=Reason.INSTANCE_GONE, detail="", **facts
    )
    return nodes.may_delete(here.controller, step)


def test_marked_by_us_offline_and_idle_it_may_go(here):
    assert why_not(here) is None


def test_a_build_that_slipped_in_before_the_mark_keeps_it(here):
    here.jenkins.toggle(NODE, "", "u")
    here.jenkins.submit("job", "cpu", 600.0)
    here.jenkins.schedule()
    here.controller.set_offline(NODE, MARK.text)
    assert why_not(here) == "a build slipped in"


def test_somebody_elses_mark_keeps_it(here):
    here.jenkins.set_offline(NODE, "disk swap", "anna")
    assert "does not carry our mark" in why_not(here)


def test_another_pass_s_mark_keeps_it(here):
    here.controller.set_offline(NODE, a_mark(pass_id="another").text)
    assert "does not carry our mark" in why_not(here)


def test_being_online_keeps_it(here):
    here.jenkins.toggle(NODE, "", "anna")
    assert why_not(here) == "its node is online"


def test_a_node_that_is_not_there_keeps_nothing(here):
    here.jenkins.delete_node(NODE)
    assert why_not(here) is None


@pytest.mark.parametrize("fate", [InstanceState.TERMINATED, InstanceState.NOT_FOUND])
def test_a_node_that_is_connected_is_not_deleted_whatever_ec2_says(here, fate):
    here.jenkins.toggle(NODE, "", "anna")
    assert may_delete(here, fate) == "its node is connected"


def test_what_ec2_merely_does_not_know_any_more_may_still_build(here):
    here.jenkins.toggle(NODE, "", "u")
    here.jenkins.submit("job", "cpu", 600.0)
    here.jenkins.schedule()
    here.controller.set_offline(NODE, MARK.text)
    assert may_delete(here, InstanceState.NOT_FOUND) == "a build is on it"
    assert may_delete(here, InstanceState.NOT_FOUND, though_busy=True) is None
    assert may_delete(here, InstanceState.TERMINATED) is None
