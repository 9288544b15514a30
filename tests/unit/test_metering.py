"""What an agent costs since the last look: its machine from the second in which it began, its disk before."""

import pytest

from autoscaler.domain.facts.job_settings import MonthParts
from autoscaler.domain.facts.memory import SpotPrices
from autoscaler.domain.facts.metering import paid_since
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from support.builders import NOW, a_fleet, a_pool, a_record, a_snapshot, an_instance, an_offering

FLEET = a_fleet(a_pool("cpu", offerings=(an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.6),)))
HOUR = 3600.0


def paid(began, state=InstanceState.RUNNING, *, launched=NOW - 9 * HOUR, since=NOW - HOUR):
    """Dollars since a look, of an agent that was launched, and began anew later."""
    record = a_record("i-1", state=RecordState.STARTING, usd_per_hour=3.6, volume_usd_per_hour=0.6, launched_at=launched)
    return metered(record, an_instance("i-1", state=state, launched_at=began), since).by_pool.get("cpu", 0.0)


def metered(record, instance, since=NOW - HOUR):
    return paid_since(a_snapshot(records=(record,), instances=(instance,)), FLEET, SpotPrices(), since)


@pytest.mark.parametrize(
    ("began", "state", "usd"),
    [
        (NOW - 2 * HOUR, InstanceState.RUNNING, 3.6),
        (NOW - HOUR / 2, InstanceState.RUNNING, 1.8 + 0.3),
        (NOW - HOUR / 2, InstanceState.PENDING, 1.8 + 0.3),
        (NOW - 2 * HOUR, InstanceState.STOPPED, 0.6),
        (NOW - HOUR / 2, InstanceState.STOPPING, 0.06 + 0.59),
        (NOW + 1.0, InstanceState.PENDING, 0.6),
    ],
    ids=["runs", "was started in between", "is about to run", "is off", "ran for a moment in between", "by a clock that is ahead"],
)
def test_a_machine_costs_from_its_start_on_and_its_disk_before(began, state, usd):
    assert paid(began, state) == pytest.approx(usd)


def test_a_launch_costs_nothing_before_it():
    assert paid(NOW - HOUR / 4, launched=NOW - HOUR / 4) == pytest.approx(0.9)


def test_before_the_first_look_nothing_is_metered():
    assert paid(NOW - 2 * HOUR, since=0.0) == 0.0


@pytest.mark.parametrize(
    ("state", "instance", "parts"),
    [
        (RecordState.REGISTERED, InstanceState.RUNNING, MonthParts(disk_usd=0.6)),
        (RecordState.REQUESTED, InstanceState.RUNNING, MonthParts(boot_usd=3.6, disk_usd=0.6)),
        (RecordState.STARTING, InstanceState.RUNNING, MonthParts(boot_usd=3.6, disk_usd=0.6)),
        (RecordState.STOPPED, InstanceState.STOPPED, MonthParts(stopped_usd=0.6, disk_usd=0.6)),
    ],
)
def test_boots_stopped_agents_and_disks_are_told_apart(state, instance, parts):
    record = a_record("i-1", state=state, usd_per_hour=3.6, volume_usd_per_hour=0.6, launched_at=NOW - 9 * HOUR)
    assert metered(record, an_instance("i-1", state=instance, launched_at=NOW - 2 * HOUR)).parts == parts
