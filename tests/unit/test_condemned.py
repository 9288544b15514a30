"""What becomes of agents that were given up, until nothing is left of them."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import DeleteNode, Forget, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, RecordState, Wait
from support.builders import NOW, a_build, a_look, a_mark, a_memory, an_agent, an_empty_window, an_instance, an_item, cordoned
from support.decisions import decide_down, kinds, steps_of


def a_condemned(number, **facts):
    record, node = an_agent(number)
    return replace(record, state=RecordState.CONDEMNED), cordoned(replace(node, **facts))


def test_what_was_condemned_is_gone_on_with():
    record = replace(an_agent()[0], state=RecordState.CONDEMNED)
    assert kinds(decide_down((record, None))) == [Terminate]
    ends = {"instances": (), "fates": {"i-1": InstanceState.SHUTTING_DOWN}}
    gone = {"instances": (), "fates": {"i-1": InstanceState.TERMINATED}}
    assert kinds(decide_down((record, None), **ends)) == [Forget]
    assert kinds(decide_down((record, an_agent()[1]), **ends)) == []
    assert kinds(decide_down((record, an_agent()[1]), **gone)) == [DeleteNode]


def test_a_record_is_not_closed_while_its_controller_cannot_be_read_though_its_instance_is_gone():
    gone = {"instances": (), "fates": {"i-1": InstanceState.TERMINATED}}
    condemned = replace(an_agent()[0], state=RecordState.CONDEMNED)
    assert decide_down((condemned, None), view={"problem": "503", "session": ""}, **gone).steps == ()
    assert decide_down((condemned, None), view={"unread": frozenset({"cpu-1"})}, **gone).steps == ()


@pytest.mark.parametrize("state", ["busy", "online"])
def test_a_condemned_agent_that_is_not_at_rest_is_not_terminated(state):
    record, node = an_agent(builds=(a_build(),)) if state == "busy" else an_agent()
    looked = a_memory(windows=an_empty_window(), observations={"i-1": a_look("drained")})
    condemned = replace(record, state=RecordState.CONDEMNED)
    assert Terminate not in kinds(decide_down((condemned, cordoned(node) if state == "busy" else node), memory=looked))


def test_a_condemned_agent_that_a_build_waits_for_is_not_terminated_and_keeps_nobody_else_from_it():
    (waited_for, first), (loose, second) = a_condemned(1), a_condemned(2)
    looks = {name: a_look("drained") for name in ("i-1", "i-2")}
    pinning = an_item(1, why=Wait(for_executor=False, nodes=("cpu-1",)))
    memory = a_memory(windows=an_empty_window(), observations=looks)
    plan = decide_down((waited_for, first), (loose, second), items=(pinning,), memory=memory)
    assert [step.instance_id for step in steps_of(Terminate, plan)] == ["i-2"]


@pytest.mark.parametrize(
    ("seconds", "mark", "is_brought_back"),
    [(300.0, MarkClass.RETIRE, True), (299.0, MarkClass.RETIRE, False), (300.0, MarkClass.QUARANTINE, False), (300.0, None, False)],
)
def test_a_condemned_agent_whose_end_was_lost_is_brought_back_for_a_build_that_waits_for_it_by_name(seconds, mark, is_brought_back):
    """A reload had brought it online, a pipeline began there, and it was marked again: its build waited for ever after a restart."""
    record, node = an_agent()
    condemned = replace(record, state=RecordState.CONDEMNED, changed_at=NOW - seconds)
    pinning = an_item(1, job="nested", why=Wait(for_executor=False, nodes=("cpu-1",)))
    marked = cordoned(node, a_mark(mark)) if mark else replace(node, offline=True, temporarily_offline=True, cause=OfflineCause.OTHER)
    plan = decide_down((condemned, marked), items=(pinning,))
    assert [step.reason for step in steps_of(Uncordon, plan)] == [Reason.PINNED] * is_brought_back
    assert kinds(plan) == [Uncordon] * is_brought_back


@pytest.mark.parametrize("state", [RecordState.CONDEMNED, RecordState.REGISTERED], ids=["condemned", "stopped"])
def test_one_whose_node_could_not_be_read_is_not_terminated_and_is_named(state):
    stopped = state is RecordState.REGISTERED
    record = replace(an_agent()[0], state=state)
    looked = a_memory(windows=an_empty_window(), observations={"i-1": a_look("stopped" if stopped else "drained")})
    instances = (an_instance("i-1", state=InstanceState.STOPPED if stopped else InstanceState.RUNNING),)
    plan = decide_down((record, None), view={"unread": frozenset({"cpu-1"})}, instances=instances, memory=looked)
    assert plan.steps == ()
    assert [said.reason for said in plan.held if "cpu-1" in said.detail] == [Reason.NODE_UNREAD]
    assert kinds(decide_down((record, None), instances=instances, memory=looked)) == [Terminate]
