"""The benchmark of a pass still runs: it speaks for the adapters, whose calls change. Its figures are no test's business."""

from benchmarks import size


def test_a_small_fleet_can_be_measured():
    shown = size.column(40).shown
    assert shown["requests a pass and controller"] == "3"
    assert shown["instances"] == "40"
    assert "pass without network: scale_down" in shown
