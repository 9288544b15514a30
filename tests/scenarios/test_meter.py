"""Time-lines: the dollars that the month's limit goes by are those that EC2 bills."""

from random import Random

import pytest

from autoscaler.domain.facts.fleet import Market, WarmPool
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.simulate.result import billed_dollars, dollars_an_hour
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

STOPS = WarmPool(min_agents=1, max_agents=3, max_age_seconds=86_400.0)
DEAR = an_offering(usd_per_hour=30.0, volume_usd_per_hour=0.01)


def metered(day):
    return day.fleet.state.memory.month.usd


def a_day_of_starts(**facts):
    """Short jobs come at any second, far apart: each has an agent of its own, which is stopped or ended after it."""
    day, chance = Day(in_memory(a_pool("cpu", offerings=(DEAR,), idle_seconds=60.0, **facts))), Random(1)
    for _ in range(12):
        day.world.timeline.after(chance.uniform(0, 600), lambda: day.jenkins.submit("job", "cpu", 90.0))
        day.minutes(20)
    return day


@pytest.mark.parametrize("warm_pool", [None, STOPS], ids=["ended", "stopped"])
def test_each_launch_and_start_is_metered_from_its_second_on(warm_pool):
    day = a_day_of_starts(warm_pool=warm_pool)
    assert sum(len(instance.spells) for instance in day.world.ec2.instances.values()) >= 8
    assert metered(day) == pytest.approx(billed_dollars(day.world), rel=0.005)


def test_what_runs_while_no_pass_sees_it_is_metered_later():
    day = Day(in_memory(a_pool("cpu", offerings=(DEAR,), min_agents=1))).minutes(30)
    day.world.move_to(day.world.timeline.now + 7200.0)
    assert metered(day.minutes(5)) == pytest.approx(billed_dollars(day.world), rel=0.005)


def test_spot_is_metered_at_prices_that_move_and_differ_by_zone_and_type():
    kinds = (("c5.large", "a"), ("c5.large", "b"), ("m5.large", "a"))
    spot = [
        an_offering(kind, subnet=zone, market=Market.SPOT, usd_per_hour=10.0, most_usd_per_hour=30.0, volume_usd_per_hour=0.01)
        for kind, zone in kinds
    ]
    day = Day(in_memory(a_pool("cpu", offerings=tuple(spot), min_agents=3), physics=Physics(spot_swing=0.8)))
    day.world.ec2.zones |= {"b": "us-west-2b"}
    day.world.ec2.capacity |= {one.key: 1 for one in spot}
    rates = set()
    for _ in range(7):
        rates.add(round(dollars_an_hour(day.minutes(60).world), 4))
    assert len(rates) == 7
    assert len({one.priced_as for one in day.fleet.ports.compute.instances()}) == 3
    assert metered(day) == pytest.approx(billed_dollars(day.world), rel=0.02)
    assert metered(day) != pytest.approx(7 * 3 * 10.01, rel=0.01)
