"""Time-lines of pools with office hours: agents are there when they begin, and go by the usual rules once they are over."""

from dataclasses import replace
from zoneinfo import ZoneInfo

from autoscaler.domain.facts.fleet import PoolSchedule, WarmPool
from autoscaler.domain.facts.orders import Overrides, PoolOverride
from autoscaler.domain.facts.plan import Launch, Start
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool, an_offering
from support.remembered import with_tables
from support.timeline import MINUTE, Day
from support.warm import starts_proven
from support.worlds import START, in_memory

# The world begins on a Friday at 08:00 UTC, which is 09:00 in Berlin.
BERLIN = ZoneInfo("Europe/Berlin")
BOOT = 240.0
EVEN_BOOTS = replace(CALM, boot_from=1.0, boot_to=1.0, pending_from_seconds=0.0, pending_to_seconds=0.0, connect_to_seconds=3.0)


def from_ten(hours=1, **numbers):
    """From 10:00 to 11:00 in Berlin: an hour after the world begins."""
    return PoolSchedule(days=frozenset(range(5)), from_minute=600, to_minute=600 + 60 * hours, time_zone=BERLIN, **numbers)


def a_day(*schedules, physics=EVEN_BOOTS, **facts):
    return Day(in_memory(a_pool("cpu", boot_seconds=BOOT, schedules=schedules, **facts), physics=physics))


def minutes_since_start(at):
    return (at - START) / MINUTE


def launched_at(day):
    return [minutes_since_start(instance.launched_at) for instance in day.world.ec2.instances.values()]


def connected(day):
    return sum(node.connected for name, node in day.jenkins.nodes.items() if name in day.nodes())


def test_the_agents_of_a_schedule_are_there_when_it_begins_and_not_much_sooner():
    day = a_day(from_ten(min_agents=4))
    day.minutes(54)
    assert day.agents() == 0
    day.minutes(6)
    assert (connected(day), launched_at(day)) == (4, [55.0] * 4)
    [launch] = day.done(Launch)
    assert (launch.reason, launch.detail) == (Reason.MIN_AGENTS, "0 of 4 agents, by its schedule from 10:00 Europe/Berlin")


def test_the_agents_of_a_schedule_stay_until_it_ends_and_go_by_the_usual_rules_then():
    day = a_day(from_ten(min_agents=4), idle_seconds=300.0)
    day.minutes(119)
    assert day.agents() == 4
    builds = day.queue(2, seconds=1800.0)
    day.minutes(20)
    assert (day.agents(), [build.ended for build in builds]) == (2, [None, None])
    day.minutes(40)
    assert (day.agents(), [build.ended for build in builds]) == (0, [Ended.FINISHED] * 2)


def test_where_nine_of_ten_boots_were_slower_than_the_file_says_agents_are_launched_as_much_sooner():
    day = a_day(from_ten(min_agents=2))
    seen = day.fleet.state.memory
    day.fleet.state.memory = with_tables(seen, boots={"cpu": (300.0,) * 2 + (600.0,) * 17 + (900.0,)})
    day.minutes(60)
    assert launched_at(day) == [49.0] * 2


def test_stopped_agents_are_started_a_start_before_the_schedule_and_not_a_boot():
    warm = WarmPool(min_agents=0, max_agents=4, max_age_seconds=86_400.0)
    offering = an_offering(volume_usd_per_hour=0.01)
    day = starts_proven(a_day(from_ten(min_agents=2), warm_pool=warm, offerings=(offering,), idle_seconds=300.0))
    day.minutes(1).queue(2, seconds=300.0)
    day.minutes(39)
    assert [instance.state for instance in day.world.alive()] == ["stopped", "stopped"]
    day.minutes(16)
    assert [instance.state for instance in day.world.alive()] == ["stopped", "stopped"]
    day.minutes(4)
    assert (connected(day), len(day.done(Start)), len(launched_at(day))) == (2, 1, 2)


def test_executors_are_kept_free_while_a_schedule_says_so():
    day = a_day(from_ten(warm_executors=3), executors=2)
    day.minutes(60)
    assert connected(day) == 2
    day.queue(3, seconds=3000.0)
    day.minutes(8)
    assert connected(day) == 3


def test_a_schedule_that_lowers_the_maximum_ends_no_build_and_launches_nothing_beyond_it():
    day = a_day(from_ten(max_agents=1))
    day.minutes(40)
    builds = day.queue(3, seconds=2400.0)
    day.minutes(20)
    assert day.agents() == 3
    more = day.queue(2, seconds=60.0)
    day.minutes(10)
    assert (day.agents(), [build.started_at for build in more]) == (3, [None, None])
    day.minutes(30)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 3
    assert len(launched_at(day)) == 3


def test_a_maximum_that_a_schedule_raises_is_raised_when_it_begins_and_before_only_for_its_minimum():
    day = a_day(from_ten(max_agents=6, min_agents=3), max_agents=1)
    day.minutes(40)
    day.queue(6, seconds=6000.0)
    day.minutes(18)
    assert day.agents() == 3
    day.minutes(3)
    assert day.agents() == 6


def test_what_an_operator_orders_for_a_while_beats_the_schedule():
    day = a_day(from_ten(min_agents=4))
    order = PoolOverride(pool="cpu", since_at=START, until_at=START + 90 * MINUTE, by="ada", reason="no need today", min_agents=1)
    day.fleet.state.overrides = Overrides(numbers=(order,))
    day.minutes(80)
    assert day.agents() == 1
    day.minutes(11)
    assert day.agents() == 4
