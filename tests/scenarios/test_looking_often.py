"""Time-lines with looks between the ticks: a queue that is late, wakes twice or loses calls costs no launch and makes none twice."""

from random import Random

from autoscaler_workbench.fakes.slots import InMemorySlots
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_fleet, a_pool
from support.timeline import Day
from support.worlds import a_world

POOLS = ("cpu", "gpu", "arm", "windows", "utility")


def a_day(**unkind):
    fleet = a_fleet(*(a_pool(name, executors=1, max_agents=50, queue_maturity_seconds=0.0) for name in POOLS))
    world = a_world(fleet)
    slots = InMemorySlots(after=world.timeline.after, chance=Random(3), **unkind)
    functions = InMemory(world, fleet, look_every_seconds=10.0, slots=slots)
    slots.wake = functions.wake_scale_up
    return Day(functions), slots


def launched_after(day, pool, seconds):
    """Submit the first job of a pool so many seconds after a tick; return how long after that an agent is asked for."""
    at = day.world.timeline.now + seconds
    day.world.timeline.after(seconds, lambda: day.queue(1, pool, seconds=36_000.0))
    day.minutes(2)
    return min(record.launched_at for record in day.fleet.state.records.values() if record.pool == pool) - at


def test_demand_is_served_within_some_ten_seconds_of_being_visible():
    day, _ = a_day()
    day.minutes(3)
    assert max(launched_after(day, pool, seconds) for pool, seconds in zip(POOLS, (1.0, 9.5, 17.0, 33.0, 48.0), strict=True)) <= 11.0


def test_a_queue_that_wakes_twice_launches_once():
    day, slots = a_day(twice_share=1.0)
    day.minutes(3).queue(3, seconds=36_000.0)
    day.minutes(4)
    assert day.agents("cpu") == 3
    assert len(slots.taken) == 6 * 5


def test_a_queue_that_is_always_late_costs_the_looks_between_and_nothing_else():
    day, slots = a_day(late_share=1.0)
    day.minutes(3).queue(3, seconds=36_000.0)
    day.minutes(4)
    assert day.agents("cpu") == 3
    assert slots.taken == set()


def test_a_queue_that_fails_is_a_minute_with_one_look():
    day, slots = a_day()
    slots.faults.plan(Fault("slots announce", times=10**6))
    day.minutes(3).queue(3, seconds=36_000.0)
    day.minutes(4)
    assert (day.failed, day.agents("cpu")) == (0, 3)
    assert {event for event, _ in day.fleet.logged} >= {"looks_not_announced"}
