"""A person and the autoscaler at the same node at the same moment: whose mark it is stays known, wherever the pass is cut off."""

import pytest

from autoscaler.control import nodes
from autoscaler.domain.facts.plan import Cordon, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.monitoring import DISK
from scenarios.conftest import MARK, NODE
from support.builders import a_mark

BRING_BACK = Uncordon(controller="main", pool="cpu", node=NODE, mark=MARK, reason=Reason.DEMAND_IS_BACK, detail="")


def a_person_brings_it_online_first(here):
    """Just before our toggle arrives, and once."""

    people = ["anna"]

    def meanwhile(call):
        if call == "jenkins toggleOffline" and people:
            here.jenkins.toggle(NODE, "", people.pop())

    here.faults.meanwhile = meanwhile


def test_what_somebody_else_brought_online_at_the_same_moment_is_online_in_the_end(here):
    a_person_brings_it_online_first(here)
    assert nodes.uncordon(here.controller, BRING_BACK).outcome == "done"
    assert not here.jenkins.nodes[NODE].temporarily_offline


def test_a_toggle_that_marked_it_offline_and_was_cut_off_left_our_own_mark(here):
    a_person_brings_it_online_first(here)
    here.faults.plan(Fault("jenkins toggleOffline", after=True))
    with pytest.raises(TransientError):
        nodes.uncordon(here.controller, BRING_BACK)
    assert here.jenkins.nodes[NODE].reason == MARK.text
    assert nodes.uncordon(here.controller, BRING_BACK).outcome == "done"
    assert not here.jenkins.nodes[NODE].temporarily_offline


def cordon(here, **facts):
    mark = a_mark(pass_id="now")
    given = {"controller": "main", "pool": "cpu", "node": NODE, "mark": mark, "reason": Reason.SURPLUS, "detail": ""}
    return nodes.cordon(here.controller, Cordon(**(given | facts)))


def test_a_person_s_mark_is_never_overwritten(here):
    here.jenkins.set_offline(NODE, "disk swap", "anna")
    assert cordon(here).outcome == "skipped"
    assert here.jenkins.nodes[NODE].reason == "disk swap"


def test_our_own_earlier_mark_gives_way_only_where_that_was_decided(here):
    assert cordon(here).outcome == "skipped"
    assert cordon(here, replaces=a_mark(pass_id="another")).outcome == "skipped"
    assert cordon(here, replaces=MARK).outcome == "done"
    assert here.jenkins.nodes[NODE].reason == a_mark(pass_id="now").text


def test_what_a_person_marked_over_our_mark_is_not_brought_back(here):
    """The toggle would bring it online, and the person's mark would be gone without trace."""
    here.jenkins.set_offline(NODE, "disk swap", "anna")
    assert nodes.uncordon(here.controller, BRING_BACK).outcome == "skipped"
    assert here.jenkins.nodes[NODE].reason == "disk swap"


def test_what_is_online_already_is_not_toggled(here):
    here.jenkins.toggle(NODE, "", "anna")
    assert nodes.uncordon(here.controller, BRING_BACK).outcome == "skipped"
    assert not here.jenkins.nodes[NODE].temporarily_offline


def test_a_mark_that_is_not_there_after_it_was_set_is_a_failure(here):
    here.jenkins.toggle(NODE, "", "anna")
    here.faults.meanwhile = lambda call: here.jenkins.delete_node(NODE) if NODE in here.jenkins.nodes and call.endswith("Cause") else None
    with pytest.raises(TransientError):
        cordon(here)


def marked_by_a_monitor(here):
    node = here.jenkins.nodes[NODE]
    node.temporarily_offline, node.cause, node.reason = True, DISK, "Disk space is below threshold of 1.00 GiB."
    return node


def test_a_monitor_s_mark_gives_way_where_that_was_decided(here):
    marked_by_a_monitor(here)
    assert cordon(here).outcome == "skipped"
    assert cordon(here, over_monitor=True).outcome == "done"
    assert here.jenkins.nodes[NODE].reason == a_mark(pass_id="now").text


def test_what_a_monitor_has_brought_online_meanwhile_stays_online(here):
    marked_by_a_monitor(here).clear_mark()
    assert cordon(here, over_monitor=True).outcome == "skipped"
    assert not here.jenkins.nodes[NODE].temporarily_offline


def test_a_person_who_marks_it_meanwhile_keeps_it(here):
    marked_by_a_monitor(here)
    here.jenkins.set_offline(NODE, "I look at its disk", "anna")
    assert cordon(here, over_monitor=True).outcome == "skipped"
    assert here.jenkins.nodes[NODE].reason == "I look at its disk"
