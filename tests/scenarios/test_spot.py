"""Time-lines on the spot market: spot while it is to be had, and on-demand, really, when it is not."""

from autoscaler.domain.facts.fleet import Market
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.result import dollars_an_hour
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

SPOT = tuple(an_offering(subnet=subnet, market=Market.SPOT, usd_per_hour=1.0) for subnet in ("subnet-a", "subnet-b"))
FIRM = tuple(an_offering(subnet=subnet, usd_per_hour=3.0) for subnet in ("subnet-a", "subnet-b"))


def a_day(*offerings, **facts):
    day = Day(in_memory(a_pool("cpu", offerings=offerings, idle_seconds=600.0, **facts)))
    day.world.ec2.zones["subnet-b"] = "us-west-2b"
    return day


def no_capacity(day, *offerings):
    for offering in offerings:
        day.world.ec2.capacity[offering.key] = 0


def markets(day):
    return [instance.market for instance in day.world.ec2.instances.values()]


def test_spot_is_asked_for_first():
    day = a_day(*SPOT, *FIRM)
    day.minutes(2).queue(3)
    day.minutes(4)
    assert markets(day) == ["spot"] * 3


def test_a_fallback_really_asks_for_on_demand():
    """A peer's fallback asks for spot again."""
    day = a_day(*SPOT, *FIRM)
    no_capacity(day, *SPOT)
    day.minutes(2)
    builds = day.queue(2, seconds=60.0)
    day.minutes(15)
    assert markets(day) == ["on-demand"] * 2
    assert {build.ended for build in builds} == {Ended.FINISHED}


def test_one_zone_without_spot_leaves_the_other():
    day = a_day(*SPOT, *FIRM)
    no_capacity(day, SPOT[0])
    day.minutes(2).queue(2)
    day.minutes(4)
    assert [(i.market, i.subnet) for i in day.world.ec2.instances.values()] == [("spot", "subnet-b")] * 2


def test_a_pool_of_spot_alone_waits_for_spot():
    day = a_day(*SPOT)
    no_capacity(day, *SPOT)
    day.minutes(2).queue(1)
    day.minutes(10)
    assert markets(day) == []
    day.world.ec2.capacity.clear()
    day.minutes(15)
    assert markets(day) == ["spot"]


def test_the_hours_limit_holds_however_much_spot_prices_rise_after_the_launch():
    spot = an_offering(market=Market.SPOT, usd_per_hour=1.0, most_usd_per_hour=3.0)
    day = Day(in_memory(a_pool("cpu", offerings=(spot,)), max_usd_per_hour=10.0))
    day.minutes(2).queue(9, seconds=3600.0)
    day.minutes(5)
    day.world.ec2.spot_usd_per_hour[spot.key] = 3.0
    assert len(markets(day)) == 3
    assert dollars_an_hour(day.world) == 9.0
    assert [record.usd_per_hour for record in day.fleet.state.records.values()] == [1.0] * 3


def test_an_item_that_waits_for_a_booting_agent_does_not_make_the_next_one_dear():
    day = a_day(*SPOT, *FIRM, boot_seconds=600.0, boot_timeout_seconds=1800.0)
    day.minutes(2).queue(1)
    day.minutes(6)
    day.queue(1, seconds=3000.0)
    day.minutes(3)
    assert markets(day) == ["spot", "spot"]


def test_when_patience_is_over_the_oldest_item_gets_on_demand():
    day = a_day(*SPOT, *FIRM)
    day.minutes(2)
    day.world.ec2.refuse = ("InsufficientInstanceCapacity", "none")
    day.queue(1)
    day.minutes(5)
    day.world.ec2.refuse = None
    day.minutes(10)
    assert markets(day) == ["on-demand"]
