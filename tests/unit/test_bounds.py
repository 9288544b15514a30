"""What a trace must cost: a pool of $3.60 an hour, two executors an agent, 100 seconds of boot, a disk of $0.036 an hour."""

from itertools import pairwise

import pytest

from autoscaler_workbench.experiment.lower_bounds import pool_lower_bounds
from autoscaler_workbench.simulate.result import StepCurve
from support.builders import a_pool, an_offering

MACHINE = an_offering(usd_per_hour=3.6, volume_usd_per_hour=0.036)


def a_bound(*steps, boot_seconds=100.0):
    """Steps: (at, how many builds run from then on)."""
    curve = StepCurve(times=[float(at) for at, _ in steps], counts=[count for _, count in steps])
    work = sum(count * (later - at) for (at, count), (later, _) in pairwise(steps))
    return pool_lower_bounds(curve, work, a_pool(executors=2, boot_seconds=boot_seconds, offerings=(MACHINE,)))


def test_the_work_alone_fills_every_executor():
    assert a_bound((0, 3), (1000, 0)).work_usd == pytest.approx(1.5)


def test_packed_counts_whole_agents_at_each_moment():
    assert a_bound((0, 3), (1000, 1), (1500, 0)).packed_usd == pytest.approx(1.0 + 1.5)


def test_each_agent_boots_once():
    assert a_bound((0, 3), (1000, 1), (1500, 0)).booted_usd == pytest.approx(2.5 + 0.2)


@pytest.mark.parametrize(("gap", "usd"), [(30, 0.03), (5000, 0.1)])
def test_between_two_spells_it_idles_or_boots_whichever_is_shorter(gap, usd):
    assert a_bound((0, 1), (1000, 0), (1000 + gap, 1), (2000 + gap, 0)).booted_usd == pytest.approx(2.0 + 0.1 + usd)


# A start costs a minute at least, and the disk a hundredth of the machine.
@pytest.mark.parametrize(("gap", "usd"), [(50, 0.05), (1000, 0.06 + 0.01), (5000, 0.1)])
def test_between_two_spells_it_idles_stops_or_boots_whichever_is_cheapest(gap, usd):
    assert a_bound((0, 1), (1000, 0), (1000 + gap, 1), (2000 + gap, 0)).stopped_usd == pytest.approx(2.0 + 0.1 + usd)


def test_a_start_costs_a_part_of_the_boot_where_that_is_more_than_a_minute():
    bound = a_bound((0, 1), (1000, 0), (11_000, 1), (12_000, 0), boot_seconds=1000.0)
    assert bound.stopped_usd == pytest.approx(2.0 + 1.0 + 0.325 + 0.1)


def test_nothing_costs_nothing():
    assert a_bound().booted_usd == 0.0
