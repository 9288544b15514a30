"""Capacity Reservations and Blocks: how a fleet file names them, when they take their last builds, and what is wrong."""

from math import inf

import pytest

from autoscaler.config import load_fleet
from autoscaler.domain.facts.fleet import CapacityReservation
from autoscaler.domain.situation.pool_view import closes_at, long_build_seconds
from autoscaler.errors import ConfigError
from support.builders import NOW, a_learned, a_pool, key_of
from support.cli import autoscaler

FILE = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 1000, max_usd_per_month: 100000}
controllers: {main: {url: https://jenkins.example.org/}}
pools:
  block: {executors: 1, launch_template: block, instance_types: [p5.48xlarge], max_agents: 2 %s}
"""
BLOCK = ", capacity_reservation: {id: cr-0123456789abcdef0, kind: block, ends_at: 2026-12-01T11:30Z}"


def pool_of(tmp_path, keys):
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE % keys, encoding="utf-8")
    return load_fleet(path).pools["block"]


def test_its_machines_cost_nothing_in_decisions_and_the_list_price_in_the_month(tmp_path):
    pool = pool_of(tmp_path, BLOCK + ", prices: {multiplier: 0.5}")
    assert pool.capacity == CapacityReservation(
        id="cr-0123456789abcdef0", count=2, usd_per_hour=55.04 / 2, block=True, starts_at=0.0, ends_at=1_796_124_600.0
    )
    assert {offering.usd_per_hour for offering in pool.offerings} == {0.0}
    assert pool_of(tmp_path, "").capacity is None


def test_validate_says_that_its_machines_are_reserved(tmp_path):
    pool_of(tmp_path, BLOCK)
    said = autoscaler("validate", str(tmp_path / "fleet.yaml")).stdout
    assert "reserved" in said
    assert "0.000" not in said


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (BLOCK.replace(", ends_at: 2026-12-01T11:30Z", ""), "pools.block.capacity_reservation.ends_at: missing, a block has an end"),
        (BLOCK.replace("11:30Z", "11:30"), "capacity_reservation.ends_at: (2026-12-01T11:30) has no time zone, write 2026-12-01T11:30Z"),
        (BLOCK.replace("2026-12-01T11:30Z", "soon"), "capacity_reservation.ends_at: (soon) is no date and time"),
        (BLOCK.replace("kind", "starts_at: 2027-01-01T00:00Z, kind"), "ends_at (2026-12-01T11:30Z) must be after starts_at"),
        (BLOCK.replace("cr-0123456789abcdef0", "mine"), "must be the id of a Capacity Reservation or Block, such as cr-"),
        (BLOCK + ", market: spot", "pools.block.market (spot): what is launched into a block is on-demand"),
        (BLOCK + ", warm_pool: {}", "pools.block.capacity_reservation: its agents are not stopped"),
        (BLOCK + ", subnets: [subnet-0a1b2c3d, subnet-0a1b2c3e]", "pools.block.capacity_reservation: it is of one instance type in one"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, keys, line):
    with pytest.raises(ConfigError) as error:
        pool_of(tmp_path, keys)
    assert line in str(error.value)


def kept(**facts):
    return CapacityReservation(**({"id": "cr-1", "count": 2, "usd_per_hour": 9.0, "ends_at": NOW} | facts))


def test_a_block_closes_half_an_hour_and_a_long_build_before_its_end_a_reservation_at_its_end():
    learned = [a_learned(samples={key_of("cpu"): tuple(float(n) for n in range(1, 101)), key_of("gpu"): (9000.0,)})]
    assert long_build_seconds("cpu", learned) == 95.0
    assert closes_at(a_pool("cpu", capacity=kept(block=True)), learned) == NOW - 1800.0 - 95.0
    assert closes_at(a_pool("cpu", capacity=kept(block=True)), []) == NOW - 1800.0 - 3600.0
    assert closes_at(a_pool("cpu", capacity=kept()), learned) == NOW
    assert closes_at(a_pool("cpu", capacity=kept(ends_at=inf)), learned) == closes_at(a_pool("cpu"), learned) == inf


def test_it_is_paid_from_its_beginning_to_its_end():
    capacity = kept(starts_at=NOW - 100.0, ends_at=NOW)
    assert capacity.paid_seconds(NOW - 200.0, NOW - 50.0) == 50.0
    assert capacity.paid_seconds(NOW - 50.0, NOW + 50.0) == 50.0
    assert capacity.paid_seconds(NOW + 1.0, NOW + 50.0) == 0.0
    assert capacity.unpaid_seconds(NOW - 50.0, NOW + 30.0) == 30.0
    assert capacity.unpaid_seconds(NOW - 50.0, NOW) == 0.0
