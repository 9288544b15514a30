"""Who gives way, over random fleets that are full."""

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from autoscaler.domain import decide
from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler.domain.facts.reasons import Reason
from support.builders import NOW, a_build, a_fleet, a_memory, a_pool, a_snapshot, a_view, a_window, an_agent, an_item, an_offering

POOLS = ("cpu", "gpu", "utility")


@st.composite
def full_fleets(draw):
    """Agents that work or stand idle, none of them for long enough to be surplus; items; and limits that may be reached."""
    agents = [
        an_agent(number, pool=draw(st.sampled_from(POOLS)), builds=(a_build(f"b{number}"),) * draw(st.sampled_from([0, 0, 1])))
        for number in range(1, draw(st.integers(2, 6)) + 1)
    ]
    items = tuple(
        an_item(number, label=draw(st.sampled_from([*POOLS, "cpu||gpu"])), waiting_seconds=draw(st.sampled_from([120.0, 4000.0, 1.0])))
        for number in range(1, draw(st.integers(1, 5)) + 1)
    )
    windows = {f"main/{pool}": a_window(peaks=((NOW - 60, 6),)) for pool in POOLS}
    snapshot = a_snapshot(
        a_view(*(node for _, node in agents), items=items),
        records=tuple(record for record, _ in agents),
        memory=a_memory(windows=windows, idle_since={f"i-{n}": NOW - draw(st.integers(0, 900)) for n in range(1, 7)}),
    )
    pools = [
        a_pool(name, min_agents=draw(st.integers(0, 1)), offerings=(an_offering(usd_per_hour=draw(st.sampled_from([1.0, 3.0, 9.0]))),))
        for name in POOLS
    ]
    return snapshot, a_fleet(
        *pools, max_agents=len(agents) + draw(st.integers(0, 1)), max_usd_per_hour=draw(st.sampled_from([9.0, 18.0, 99.0]))
    )


def gives_way(snapshot, fleet):
    return [step for step in decide.scale_down(snapshot, fleet).steps if isinstance(step, Cordon) and step.reason is Reason.GIVES_WAY]


def launched(snapshot, fleet):
    """Agents launched for the queue; a pool's minimum is no reason for anybody to give way."""
    steps = decide.scale_up(snapshot, fleet).steps
    return sum(step.count for step in steps if isinstance(step, Launch) and step.reason is not Reason.MIN_AGENTS)


def without(snapshot, nodes):
    """What is seen when these are gone."""
    [view] = snapshot.controllers.values()
    left = replace(view, nodes=tuple(node for node in view.nodes if node.name not in nodes))
    records = tuple(record for record in snapshot.records if record.node not in nodes)
    instances = tuple(i for i in snapshot.instances if i.id in {record.instance_id for record in records})
    return replace(snapshot, controllers={"main": left}, records=records, instances=instances)


@given(full_fleets())
def test_only_who_is_idle_gives_way_and_something_is_launched_for_it(world):
    snapshot, fleet = world
    gone = gives_way(snapshot, fleet)
    event(f"{len(gone)} give way")
    if gone:
        nodes = {node.name: node for node in snapshot.controllers["main"].nodes}
        assert all(nodes[step.node].idle and not nodes[step.node].builds for step in gone)
        assert launched(without(snapshot, {step.node for step in gone}), fleet) > launched(snapshot, fleet)


@given(full_fleets())
def test_nobody_gives_way_where_there_is_room(world):
    snapshot, fleet = world
    assert not gives_way(snapshot, replace(fleet, limits=replace(fleet.limits, max_agents=1000, max_usd_per_hour=1e6)))


@given(full_fleets())
def test_no_more_give_way_than_jobs_wait(world):
    """A dollar limit may take several cheap agents for a dear one; a limit on agents takes one for one."""
    snapshot, fleet = world
    mature = sum(item.waiting_seconds >= 30.0 for item in snapshot.controllers["main"].items)
    assert len(gives_way(snapshot, replace(fleet, limits=replace(fleet.limits, max_usd_per_hour=1e6)))) <= mature
