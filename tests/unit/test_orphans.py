"""Orphans: nodes that we made and that no record knows. Whose they are stands in their description, and people's marks are theirs."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import agent_spec
from autoscaler.domain.facts.nodes import described_instance
from autoscaler.domain.facts.plan import Adopt, DeleteNode
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause
from support.builders import a_fleet, a_look, a_memory, a_node, a_pool, a_snapshot, a_view, an_agent, an_empty_window, an_instance
from support.decisions import scale_down

HOME = "123456789012/us-west-2"
FLEET = replace(a_fleet(), home=HOME)
SPEC = agent_spec(FLEET, a_pool(), "i-7")


def an_orphan(**facts):
    return a_node(SPEC.name, *SPEC.labels, **({"description": SPEC.description, "offline": True, "cause": OfflineCause.OTHER} | facts))


def decided(node, *, state=InstanceState.TERMINATED, fleet=FLEET, **facts):
    memory = a_memory(observations={f"main/{node.name}": a_look("orphan", seconds_ago=3600.0, session="")}, windows=an_empty_window())
    return scale_down(a_snapshot(a_view(node), fates={"i-7": state}, **({"memory": memory} | facts)), fleet).steps


def test_the_node_of_an_instance_that_has_terminated_is_deleted():
    [step] = decided(an_orphan())
    assert (type(step), step.node, step.instance_id, step.fate) == (DeleteNode, SPEC.name, "i-7", InstanceState.TERMINATED)


@pytest.mark.parametrize(
    "node",
    [
        replace(an_orphan(), name="cpu-copy"),
        an_orphan(description=SPEC.description.replace(HOME, "999999999999/eu-west-1")),
        an_orphan(description=SPEC.description.replace(f" in {HOME}", "")),
        an_orphan(description=SPEC.description.replace("fleet f,", "fleet other,")),
        an_orphan(description="Anna's machine, like i-7."),
        an_orphan(temporarily_offline=True, cause=OfflineCause.PERSON, reason="disk swap, ask Anna"),
        an_orphan(offline=False),
    ],
    ids=["a copy", "another account", "no account", "another fleet", "a person's words", "a person's mark", "connected"],
)
def test_nobody_elses_node_is_touched(node):
    assert decided(node) == ()


@pytest.mark.parametrize("state", [InstanceState.SHUTTING_DOWN, InstanceState.NOT_FOUND, InstanceState.RUNNING])
def test_what_has_not_surely_ended_keeps_its_node(state):
    assert decided(an_orphan(), state=state) == ()


def test_its_labels_are_not_what_makes_it_ours():
    [step] = decided(replace(an_orphan(), labels=frozenset({"edited"})))
    assert isinstance(step, DeleteNode)


def test_an_instance_is_adopted_with_the_node_that_its_tag_names_whatever_a_person_made_of_its_labels():
    node = a_node("cpu-7", "edited", description="edited, too")
    memory = a_memory(observations={"i-7": a_look("stray", session="")}, windows=an_empty_window())
    snapshot = a_snapshot(a_view(node), instances=(an_instance("i-7", node="cpu-7"),), memory=memory)
    [step] = scale_down(snapshot, FLEET).steps
    assert (type(step), step.node) == (Adopt, "cpu-7")


def test_a_description_that_we_wrote_names_its_instance():
    assert described_instance(FLEET, SPEC.name, SPEC.description) == "i-7"
    assert described_instance(a_fleet(), SPEC.name, agent_spec(a_fleet(), a_pool(), "i-7").description) == "i-7"


@pytest.mark.parametrize("state", [None, InstanceState.NOT_FOUND, InstanceState.SHUTTING_DOWN], ids=str)
def test_an_agent_whose_instance_ec2_does_not_show_to_have_ended_keeps_its_node(state):
    record, node = an_agent(7)
    lost = replace(node, offline=True, cause=OfflineCause.OTHER)
    memory = a_memory(observations={"i-7": a_look("ended", session="", seconds_ago=3600.0)}, windows=an_empty_window())
    fates = {} if state is None else {"i-7": state}
    steps = scale_down(a_snapshot(a_view(lost), records=(record,), instances=(), fates=fates, memory=memory), FLEET).steps
    assert [step for step in steps if isinstance(step, DeleteNode)] == []
