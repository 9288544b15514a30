"""Busy executors of a pool are never more than its executors."""

import pytest
from hypothesis import given

from support.builders import a_build, a_fleet, a_mark, a_node, a_pool, a_record, a_snapshot, a_view, cordoned
from support.fleets import looks
from support.told import status


def shown(*agents):
    pool = a_pool("cpu", executors=4)
    snapshot = a_snapshot(a_view(*(node for _, node in agents)), records=tuple(record for record, _ in agents))
    [told] = status(snapshot, a_fleet(pool)).pools
    return f"{told.busy}/{told.executors}"


def an_agent(number, builds, executors=4):
    record = a_record(f"i-{number}", node=f"cpu-{number}")
    return record, a_node(f"cpu-{number}", "cpu", executors=executors, builds=tuple(a_build(f"job-{n}") for n in range(builds)))


def drains(agent):
    record, node = agent
    return record, cordoned(node, a_mark())


@pytest.mark.parametrize(
    ("agents", "says"),
    [
        ([an_agent(1, 4), an_agent(2, 1)], "5/8"),
        ([an_agent(1, 4), drains(an_agent(2, 3))], "7/7"),  # it said 7/4
        ([an_agent(1, 0), drains(an_agent(2, 3)), drains(an_agent(3, 0))], "3/7"),
        ([an_agent(1, 4, executors=2)], "2/2"),  # somebody gave its node fewer executors while builds ran
    ],
)
def test_what_still_runs_on_agents_out_of_use_counts_on_both_sides(agents, says):
    assert shown(*agents) == says


@given(looks())
def test_no_more_executors_are_busy_than_there_are(look):
    for pool in status(look.snapshot, look.fleet).pools:
        assert pool.busy <= pool.executors
