"""Time-lines of agents of reserved capacity, once `capacity_reservation` has left the fleet file: they cost what they truly cost."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import CapacityReservation, Fleet
from autoscaler.domain.facts.plan import Launch
from support.builders import NOW, a_pool, an_offering
from support.file_changes import file_is_now, pool_is_now
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0
FREE = an_offering("p5.48xlarge", subnet="subnet-a", usd_per_hour=0.0, volume_usd_per_hour=0.02)
PAID = replace(FREE, usd_per_hour=55.0)
KEPT = CapacityReservation(id="cr-0123456789abcdef0", count=1, usd_per_hour=55.0, starts_at=NOW)
ANOTHER = replace(KEPT, id="cr-00000000000000000")
KEY = {"capacity": KEPT, "offerings": (FREE,)}
NO_KEY = {"capacity": None, "offerings": (PAID,)}


def a_day(build_hours=12.0, **limits):
    """One agent in reserved capacity works for hours."""
    day = Day(in_memory(a_pool("gpu", max_agents=1, boot_seconds=120.0, **KEY), **limits))
    day.minutes(2).queue(1, "gpu", build_hours * HOUR)
    return day.minutes(28)


def metered_in(day, hours):
    def spent():
        return day.fleet.state.memory.month.by_pool.get("gpu", 0.0)

    before = spent()
    day.minutes(round(hours * 60))
    return spent() - before


def usd_per_hour(day):
    [entry] = day.status().pools
    return entry.usd_per_hour


def test_a_machine_that_was_launched_into_it_is_metered_at_its_price_once_the_key_has_left():
    day = a_day()
    assert metered_in(day, 1.0) == pytest.approx(55.0, rel=0.02)  # the reservation
    pool_is_now(day, "gpu", **NO_KEY)
    day.minutes(1)
    assert metered_in(day, 2.0) == pytest.approx(2 * 55.0, rel=0.02)  # the machine


def test_it_counts_against_the_limits_on_dollars_as_any_machine_of_that_price():
    day = a_day(max_usd_per_hour=60.0)
    pool_is_now(day, "gpu", **NO_KEY, max_agents=3)
    day.minutes(1)
    before = len(day.done(Launch))
    day.queue(2, "gpu", HOUR)
    day.minutes(20)
    assert (len(day.done(Launch)) - before, day.agents()) == (0, 1)


def test_nothing_is_counted_twice_while_the_key_comes_and_goes():
    day = a_day()
    for _ in range(3):
        pool_is_now(day, "gpu", **NO_KEY)
        day.minutes(1)
        assert metered_in(day, 0.5) == pytest.approx(55.0 / 2, rel=0.03)
        pool_is_now(day, "gpu", **KEY)
        day.minutes(1)
        assert metered_in(day, 0.5) == pytest.approx(55.0 / 2, rel=0.03)


def test_another_reservation_pays_for_no_machine_that_was_launched_into_the_old_one():
    day = a_day()
    pool_is_now(day, "gpu", capacity=ANOTHER)
    day.minutes(1)
    assert metered_in(day, 1.0) == pytest.approx(2 * 55.0, rel=0.03)


def test_a_reservation_that_ended_before_the_key_left_is_metered_as_before():
    day = a_day()
    pool_is_now(day, "gpu", capacity=replace(KEPT, ends_at=day.world.timeline.now))
    assert metered_in(day, 1.0) == pytest.approx(55.0, rel=0.03)
    pool_is_now(day, "gpu", **NO_KEY)
    day.minutes(1)
    assert metered_in(day, 1.0) == pytest.approx(55.0, rel=0.03)


def test_if_the_whole_pool_leaves_its_machine_is_metered_at_its_price():
    day = a_day()
    other: Fleet = in_memory(a_pool("cpu", labels=frozenset({"cpu"}))).fleet
    file_is_now(day, pools=other.pools)
    day.minutes(1)
    assert metered_in(day, 0.5) == pytest.approx(55.0 / 2, rel=0.05)


def test_an_operator_sees_the_price():
    day = a_day()
    assert usd_per_hour(day) == pytest.approx(0.02)
    pool_is_now(day, "gpu", **NO_KEY)
    day.minutes(1)
    assert usd_per_hour(day) == pytest.approx(55.02)
