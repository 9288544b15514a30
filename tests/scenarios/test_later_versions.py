"""Time-lines in which a later version has written something: states and marks that nobody here knows."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.plan import Terminate
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool
from support.remembered import with_tables
from support.timeline import Day
from support.worlds import in_memory


@pytest.fixture
def day():
    return Day(in_memory(a_pool("cpu", executors=2, idle_seconds=120.0, max_agents=2)))


def one_agent(day, seconds=600.0):
    day.minutes(2).queue(1, seconds=seconds)
    day.minutes(6)
    [instance] = day.world.alive()
    return instance


def why(day, subject):
    return " / ".join(day.why(subject))


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_nothing_is_done_to_an_agent_in_an_unknown_state_and_it_is_named(day, busy):
    instance = one_agent(day, seconds=1800.0 if busy else 200.0)
    record = day.fleet.state.records[instance.id]
    day.fleet.state.records[instance.id] = parked = replace(record, state="parked")
    day.minutes(120)
    assert ([one.id for one in day.world.alive()], day.nodes()) == ([instance.id], [record.node])
    assert not day.jenkins.nodes[record.node].temporarily_offline
    assert day.fleet.state.records[instance.id] == parked
    assert {build.ended for build in day.jenkins.builds} == {Ended.FINISHED}
    for subject in (instance.id, record.node):
        assert "its state is 'parked', which this version does not know" in why(day, subject)
    [unread] = day.status().unread
    assert (unread.startswith(f"record#{instance.id} "), "'parked'" in unread) == (True, True)
    day.fleet.state.records[instance.id] = record  # by the version that knows it
    day.minutes(15)
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.agents(), day.nodes()) == ([], [], 0, [])


def test_an_agent_with_an_unknown_mark_ends_its_builds_and_goes_once_it_is_idle(day):
    instance = one_agent(day, seconds=1500.0)
    node = day.fleet.state.records[instance.id].node
    day.jenkins.set_offline(node, "autoscaler:f:hibernates:pass-9", "bot")
    day.queue(2, seconds=100.0)  # it takes none of them
    day.minutes(10)
    assert instance.id in [one.id for one in day.world.alive()]
    assert "hibernates" in why(day, node)
    assert "another version set this mark" in why(day, node)
    day.minutes(25)
    assert instance.id in [step.instance_id for step in day.done(Terminate)]
    assert {build.ended for build in day.jenkins.builds} == {Ended.FINISHED}
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.agents(), day.nodes()) == ([], [], 0, [])


@pytest.mark.parametrize("words", ["autoscaler:f:keep this one:bob", "autoscaler:f:mine", "autoscaler:other:hibernates:p", "bob: mine"])
def test_a_person_who_writes_words_of_their_own_keeps_the_node(day, words):
    instance = one_agent(day, seconds=100.0)
    day.jenkins.set_offline(day.fleet.state.records[instance.id].node, words, "bob")
    day.minutes(90)
    assert [one.id for one in day.world.alive()] == [instance.id]


def test_a_mark_that_a_later_version_owes_an_agent_stops_no_pass(day):
    instance = one_agent(day, seconds=300.0)
    day.fleet.state.memory = with_tables(day.fleet.state.memory, owed={instance.id: "hibernates"})
    day.minutes(20)
    assert {build.ended for build in day.jenkins.builds} == {Ended.FINISHED}
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.agents(), day.nodes()) == ([], [], 0, [])


@pytest.mark.parametrize("side", ["its own", "the other"])
def test_a_machine_of_two_controllers_is_not_ended_while_the_state_of_one_side_is_unknown(side):
    pool = a_pool("gpu", controllers=("main", "other"), share=Share.COOPERATIVE, executors=2, max_agents=2, idle_seconds=600.0)
    day = Day(in_memory(pool)).minutes(3)
    day.queue(1, label="gpu", seconds=60.0)
    day.minutes(8)
    records = day.fleet.state.records
    [name] = [name for name, record in records.items() if record.is_instance is (side == "its own")]
    record, records[name] = records[name], replace(records[name], state="parked")
    node = day.world.controllers["other"].nodes.pop(record.node) if side == "the other" else None  # by hand
    day.minutes(90)
    assert (day.agents(), records[name].state) == (1, "parked")
    if node:
        day.world.controllers["other"].nodes[record.node] = node
    records[name] = record
    day.minutes(60)
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.agents()) == ([], [], 0)
