"""Warnings of keys of a warm pool that have no effect."""

import pytest

from autoscaler_workbench.advice import warnings_in

TOP = """\
fleet: f
limits: {max_agents: 50, max_launches_per_hour: 20, max_usd_per_hour: 500, max_usd_per_month: 90000}
controllers: {main: {url: "https://jenkins.example.com/", secret: jenkins/main}}
"""
POOL = "executors: 1, launch_template: t, instance_types: [c5.large], max_agents: 5"
IN_A_SCHEDULE = '[{from: "08:00", to: "18:00", time_zone: UTC, warm_pool: {max_age_hours: 48, max_disk_age_hours: 24}}]'


def warnings(tmp_path, pool, defaults=""):
    path = tmp_path / "fleet.yaml"
    path.write_text(f"{TOP}{defaults}pools:\n  cpu: {{{POOL}, {pool}}}\n", encoding="utf-8")
    return [line.removeprefix(f"{path}:") for line in warnings_in(path)]


def said(where, hours, disk):
    return (
        f"{where}.max_age_hours ({hours}): has no effect, since max_disk_age_hours ({disk}) ends the agent sooner; raise that or lower this"
    )


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ("warm_pool: {max_age_hours: 720}", said("pools.cpu.warm_pool", 720, "by default 168")),
        ("warm_pool: {max_age_hours: 25, max_disk_age_hours: 24.5}", said("pools.cpu.warm_pool", 25, "24.5")),
        (f"schedules: {IN_A_SCHEDULE}", said("pools.cpu.schedules[0].warm_pool", 48, "24")),
    ],
)
def test_a_stop_that_may_last_longer_than_a_disk_serves_is_warned_of_where_it_is_written(tmp_path, pool, expected):
    [warning] = warnings(tmp_path, pool)
    place, _, text = warning.partition(": ")
    assert text == expected
    assert place.startswith("5:")


def test_it_is_warned_of_once_if_it_stands_in_the_defaults(tmp_path):
    [warning] = warnings(tmp_path, "market: on-demand", "defaults:\n  warm_pool: {max_age_hours: 720}\n")
    assert warning == f"5:30: {said('defaults.warm_pool', 720, 'by default 168')}"


@pytest.mark.parametrize(
    "pool",
    [
        "warm_pool: {}",
        "warm_pool: off",
        "warm_pool: {max_age_hours: 168}",
        "warm_pool: {max_disk_age_hours: 24}",  # nobody wrote the other
        "warm_pool: {max_age_hours: 720, max_disk_age_hours: 720}",
    ],
)
def test_what_has_an_effect_or_was_not_written_is_not_warned_of(tmp_path, pool):
    assert warnings(tmp_path, pool) == []
