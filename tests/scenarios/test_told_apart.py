"""An answer to a machine names every connection on which a build may run, even if our own state is lost, unread, old, or cut off."""

import pytest

from autoscaler.domain.facts.fleet import Share, WarmPool
from autoscaler.domain.facts.plan import Adopt, Terminate
from autoscaler.domain.facts.snapshot import Binding, RecordState
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.timeline import Day
from support.worlds import in_memory

TWO = ("main", "other")
LONG = 2400.0
WARM = WarmPool(min_agents=0, max_agents=1, max_age_seconds=86_400.0)


def a_day_of(pool, *hosts, **facts):
    day = Day(in_memory(pool, hosts=hosts, **facts), by_adapters=True)
    day.other = day.world.controllers.get("other")
    day.fleet.agents.all_ask_on = True
    return day.minutes(3)


def a_host_given_to_the_other(share=Share.ROTATE):
    """A host that was given to the other controller, and has a build there."""
    day = a_day_of(a_pool_of_hosts(controllers=TWO, share=share), a_host())
    build = day.other.submit("theirs", "rocm", LONG)
    day.minutes(8)
    assert build.node == "rocm-1"
    return day, build


def lose(day):
    """Lose all records, as with a table that was deleted."""
    state = day.fleet.state
    state.records.clear()
    state.intents.clear()
    state.memory = type(state.memory)(version=state.memory.version)


def nodes_of(controller):
    return [name for name in controller.nodes if not name.startswith("autoscaler-beacon")]


def test_a_host_whose_record_is_lost_goes_on_where_it_is_connected():
    day, build = a_host_given_to_the_other()
    lose(day)
    day.minutes(50)
    assert (build.ended, nodes_of(day.jenkins), nodes_of(day.other)) == (Ended.FINISHED, [], ["rocm-1"])


def test_a_host_that_has_just_begun_anew_when_its_record_is_lost_leaves_no_node_on_another_controller():
    day, build = a_host_given_to_the_other()
    day.minutes(45)
    assert build.ended is Ended.FINISHED
    host = day.world.hosts["rocm-1"]
    day.fleet.agents.power_fails(host)
    lose(day)
    day.fleet.agents.power_returns(host)
    day.minutes(8)
    assert (nodes_of(day.jenkins), nodes_of(day.other)) == ([], ["rocm-1"])
    assert day.other.nodes["rocm-1"].connected


def test_a_host_of_several_at_once_goes_on_in_the_life_that_it_is_in_though_its_records_are_lost():
    day = a_day_of(a_pool_of_hosts(controllers=TWO, share=Share.COOPERATIVE, executors=2), a_host())
    day.other.delete_node("rocm-1")
    day.minutes(14)
    assert {record.life for record in day.fleet.state.read().records} == {0, 1}
    build = day.other.submit("theirs", "rocm", LONG)
    day.minutes(1)
    lose(day)
    day.minutes(50)
    assert build.ended is Ended.FINISHED
    assert {record.life for record in day.fleet.state.read().records} == {0, 1}


@pytest.mark.parametrize("side", ["host-rocm-1@main", "host-rocm-1@other"])
def test_a_side_whose_record_cannot_be_read_stays_connected(side):
    day = a_day_of(a_pool_of_hosts(controllers=TWO, share=Share.COOPERATIVE, executors=2), a_host())
    builds = [*day.queue(1, label="rocm", seconds=LONG), day.other.submit("theirs", "rocm", LONG)]
    day.minutes(2)
    day.fleet.state.unreadable.add(f"record#{side}")
    day.minutes(12)
    day.fleet.state.unreadable.clear()
    day.minutes(45)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 2


def test_an_agent_that_was_given_to_another_controller_goes_on_in_its_life_though_its_record_is_lost():
    facts = {"controllers": TWO, "share": Share.ROTATE, "max_agents": 1, "idle_seconds": 7200.0}
    day = a_day_of(a_pool("gpu", **facts))
    day.queue(1, label="gpu", seconds=60.0)
    day.minutes(12)
    build = day.other.submit("theirs", "gpu", LONG)
    day.minutes(6)
    assert build.started_at is not None
    lose(day)
    day.minutes(20)
    assert (build.ended, len(day.done(Adopt))) == (None, 1)
    assert [record.life for record in day.fleet.state.read().records] == [1]
    day.minutes(30)
    assert build.ended is Ended.FINISHED


def test_an_agent_that_was_stopped_and_started_goes_on_in_its_life_though_its_record_is_lost():
    day = a_day_of(a_pool("gpu", max_agents=1, idle_seconds=120.0, warm_pool=WARM))
    day.queue(1, label="gpu", seconds=60.0)
    day.minutes(20)
    [build] = day.queue(1, label="gpu", seconds=LONG)
    day.minutes(6)
    assert (build.started_at is not None, [one.life for one in day.world.alive()]) == (True, [1])
    lose(day)
    day.minutes(50)
    assert (build.ended, len(day.done(Adopt))) == (Ended.FINISHED, 1)


def restored(day, build, seen):
    """Give the agent of a long build an earlier record back, as a restored table does, and live until the build has ended."""
    assert build.started_at is not None
    day.fleet.state.records[seen.instance_id] = seen
    day.minutes(50)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")
    return day


def when(day, state, life=0):
    """Wait for the agent's record to be so, and keep it."""
    for _ in range(30):
        day.minutes(1)
        for record in day.fleet.state.records.values():
            if (record.state, record.life) == (state, life):
                return record
    raise AssertionError(f"no agent was {state} in its life {life}")


@pytest.mark.parametrize(
    ("state", "life"), [(RecordState.REQUESTED, 0), (RecordState.STOPPED, 0), (RecordState.STARTING, 1), (RecordState.STOPPING, 1)]
)
def test_an_agent_that_was_stopped_and_started_since_its_record_was_saved_goes_on_in_its_life(state, life):
    day = a_day_of(a_pool("gpu", max_agents=1, idle_seconds=120.0, boot_seconds=90.0, warm_pool=WARM))
    day.queue(1, label="gpu", seconds=60.0)
    saved = when(day, state) if life == 0 else None
    when(day, RecordState.STOPPED)
    day.queue(1, label="gpu", seconds=60.0)
    saved = saved or when(day, state, life)
    when(day, RecordState.STOPPED, 1)
    [build] = day.queue(1, label="gpu", seconds=LONG)
    when(day, RecordState.REGISTERED, 2)
    restored(day.minutes(2), build, saved)


def test_an_agent_that_took_a_static_node_since_its_record_was_saved_keeps_it_to_its_end():
    day = a_day_of(a_pool("gpu", max_agents=2, idle_seconds=120.0), slots={f"slot-{number}": ("gpu",) for number in range(3)})
    [build] = day.queue(1, label="gpu", seconds=LONG)
    saved = when(day, RecordState.REQUESTED)
    restored(day.minutes(5), build, saved).minutes(15)
    assert (day.world.alive(), day.fleet.state.records) == ([], {})


@pytest.mark.parametrize(
    ("state", "life"), [(RecordState.REQUESTED, 0), (RecordState.REGISTERED, 0), (RecordState.STARTING, 1), (RecordState.REGISTERED, 2)]
)
def test_an_agent_that_was_given_to_another_controller_since_its_record_was_saved_goes_on_there(state, life):
    day = a_day_of(a_pool("gpu", controllers=TWO, share=Share.ROTATE, max_agents=1, idle_seconds=7200.0, boot_seconds=90.0))
    for number, (controller, seconds) in enumerate([(day.jenkins, 60.0), (day.other, 60.0), (day.jenkins, 60.0), (day.other, LONG)]):
        build = controller.submit("next", "gpu", seconds)
        if number == life:
            saved = when(day, state, life)
        when(day, RecordState.REGISTERED, number)
        day.minutes(5)  # it has just asked who it is, and asks again in five minutes
    restored(day, build, saved)
    [record] = day.fleet.state.read().records
    assert (day.done(Terminate), record.bindings) == ([], (Binding(controller="other", node=build.node, life=3),))


def test_java_of_the_last_life_that_finds_the_next_ones_node_first_takes_no_build_that_is_then_lost():
    day = a_day_of(a_pool_of_hosts(), a_host())
    builds = day.queue(3, label="rocm", seconds=300.0)
    day.minutes(1)
    day.jenkins.abort(builds[0])
    day.jenkins.delete_node("rocm-1")
    for build in builds:
        build.killed_by = ""
    day.fleet.faults.plan(Fault("jenkins doCreateItem", after=True))  # the node is there, and the host was not told
    day.minutes(40)
    assert [build.ended for build in builds[2:]] == [Ended.FINISHED]
    assert day.jenkins.nodes["rocm-1"].connected
