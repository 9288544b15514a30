"""The benchmark of a pass still runs: it speaks for the adapters, whose calls change. Its figures are no test's business."""

from dataclasses import astuple

import pytest

from autoscaler.config import load_settings
from benchmarks import burst, cold, monthly, size


def test_a_small_fleet_can_be_measured():
    shown = size.column(40).shown
    assert shown["requests a pass and controller"] == "3"
    assert shown["instances"] == "40"
    assert "pass without network: scale_down" in shown


def test_every_agent_of_a_burst_is_answered_however_few_executions_there_are():
    few, many = burst._burst(12, 1, 30.0), burst._burst(12, 47, 30.0)
    assert len(few.answered) == len(many.answered) == 12
    assert few.refused > many.refused == 0


def test_a_cold_handler_finds_its_fleet_file(tmp_path):
    written = cold.fleet_file(tmp_path / "fleet")
    assert load_settings(written).fleet
    assert written.with_suffix(".json").exists()


def test_a_month_of_each_level_is_priced_and_the_essential_one_is_far_cheaper():
    essential, full = (monthly.bill_of(level, 10, monthly._count(level, 4, 2, minutes=2)) for level in monthly.LEVELS)
    assert essential.metrics <= 14 * 0.30
    assert essential.alarms == pytest.approx(0.80)
    assert full.alarms > 4.0
    assert essential.looks == pytest.approx(full.looks, rel=0.2)
    assert sum(astuple(full)) - full.looks > 3 * (sum(astuple(essential)) - essential.looks)
