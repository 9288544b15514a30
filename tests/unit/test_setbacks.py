"""What EC2's refusals mean for the next passes."""

import pytest

from autoscaler.domain.memory import Memory
from autoscaler.domain.model import Market
from autoscaler.domain.setbacks import note_setback
from support.builders import NOW, a_pool, an_offering

SPOT = an_offering(market=Market.SPOT)
POOL = a_pool("cpu", offerings=(SPOT, an_offering()))


def cooled(*setbacks):
    memory = Memory()
    for code, key in setbacks:
        memory = note_setback(memory, POOL, code, key, NOW)
    return {key: cool_off.until_at - NOW for key, cool_off in memory.cool_offs.items()}


@pytest.mark.parametrize(
    ("code", "key", "expected"),
    [
        ("InsufficientInstanceCapacity", SPOT.key, {f"cpu/{SPOT.key}": 180.0}),
        ("InsufficientInstanceCapacity", "", {f"cpu/{SPOT.key}": 180.0, f"cpu/{an_offering().key}": 180.0}),
        ("Unsupported", SPOT.key, {f"cpu/{SPOT.key}": 86_400.0}),
        ("MaxSpotInstanceCountExceeded", "", {f"cpu/{SPOT.key}": 180.0}),
        ("VcpuLimitExceeded", "", {"cpu": 300.0}),
        ("InvalidLaunchTemplateName.NotFoundException", "", {"cpu": 300.0}),
        ("RequestLimitExceeded", "", {"account": 60.0}),
        ("SomethingNobodyKnows", "", {"cpu": 300.0}),
    ],
)
def test_each_code_cools_what_it_is_about(code, key, expected):
    assert cooled((code, key)) == expected


def test_what_has_no_capacity_may_be_tried_after_a_minute_where_nothing_else_is_left_and_nothing_else_may():
    codes = ("InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "Unsupported", "VcpuLimitExceeded", "RequestLimitExceeded")
    waits = []
    for code in codes:
        [cool_off] = note_setback(Memory(), POOL, code, SPOT.key, NOW).cool_offs.values()
        waits.append(cool_off.last_resort_at - NOW)
    assert waits == [60.0, 60.0, 86_400.0, 300.0, 60.0]


def test_capacity_that_stays_missing_is_asked_for_less_and_less():
    once = ("InsufficientInstanceCapacity", SPOT.key)
    assert [cooled(*[once] * times)[f"cpu/{SPOT.key}"] for times in (1, 2, 3, 9)] == [180.0, 360.0, 600.0, 600.0]
