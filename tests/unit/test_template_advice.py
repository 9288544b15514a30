"""Warnings of what would be priced wrong, or never boot, as far as the fleet file says so."""

from datetime import UTC, datetime

import pytest

from autoscaler_workbench.advice import warnings_in
from autoscaler_workbench.maintenance.fleet_name import check_secrets

FLEET = """\
fleet: f
limits: {max_agents: 9, max_launches_per_hour: 9, max_usd_per_hour: 100, max_usd_per_month: 30000}
controllers: {main: {url: "https://jenkins.example.org/"}}
pools:
  cpu: {executors: 4, max_agents: 5, POOL}
"""
LISTED = datetime(2026, 7, 20, tzinfo=UTC).timestamp()


def warnings(tmp_path, pool, now=None):
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("POOL", pool), encoding="utf-8")
    return [line.removeprefix(f"{path}:") for line in warnings_in(path, now=now)]


@pytest.mark.parametrize(
    "pool",
    [
        "launch_template: autoscaler-linux-f, instance_types: [c5.large]",
        "launch_template: autoscaler-windows-f, platform: windows, instance_types: [c5.large]",
        "launch_template: autoscaler-arm64-f, instance_types: [c7g.large]",
        "launch_template: autoscaler-linux-f, instance_requirements: [arch=x86_64, vcpu>=8]",
        "launch_template: lt-0123456789abcdef0, instance_types: [c5.large]",
        "launch_template: my-windows, instance_types: [c5.large]",
        "launch_template: my, instance_types: [c5.large], platform: windows, usd_per_hour: 1, prices: {system: linux}",
    ],
)
def test_what_goes_together_has_no_warning(tmp_path, pool):
    assert warnings(tmp_path, pool) == []


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (
            "launch_template: autoscaler-windows-f, instance_types: [c5.large]",
            "5:55: pools.cpu.platform (linux): autoscaler-windows-f launches windows, and the pool is priced as linux",
        ),
        (
            "platform: linux, launch_template: autoscaler-windows-f, instance_types: [c5.large], usd_per_hour: 0.2",
            "5:48: pools.cpu.platform (linux): autoscaler-windows-f launches windows; write platform: windows",
        ),
        (
            "launch_template: autoscaler-linux-f, instance_types: [c5.large], platform: windows",
            "5:113: pools.cpu.platform (windows): autoscaler-linux-f launches linux, and the pool is priced as windows",
        ),
        (
            "launch_template: autoscaler-linux-other, instance_types: [c5.large]",
            "5:55: pools.cpu.launch_template (autoscaler-linux-other): it belongs to the fleet other, this fleet's is autoscaler-linux-f; ",
        ),
        (
            "launch_template: autoscaler-linux-f, instance_types: [c7g.large]",
            "5:75: pools.cpu.instance_types (c7g.large): its processor is arm64, the image of autoscaler-linux-f is for x86_64",
        ),
        (
            "launch_template: autoscaler-arm64-f, instance_types: [c5.large]",
            "pools.cpu.instance_types (c5.large): its processor is x86_64, the image of autoscaler-arm64-f is for arm64",
        ),
        (
            "launch_template: autoscaler-arm64-f, instance_requirements: [arch=x86_64]",
            "pools.cpu.instance_requirements (",
        ),
        (
            "launch_template: my, platform: windows, instance_types: [c5.large], prices: {system: linux}",
            "pools.cpu.prices.system (linux): the pool's platform is windows, which AWS bills otherwise",
        ),
        (
            "launch_template: my, instance_types: [mac2.metal, mac-m4.metal], usd_per_hour: 1",
            "pools.cpu.instance_types (mac2.metal): Mac machines run on dedicated hosts only",
        ),
    ],
)
def test_what_does_not_go_together_is_a_warning_with_its_place(tmp_path, pool, said):
    assert said in warnings(tmp_path, pool)[0]


def test_both_things_about_a_windows_template_of_another_fleet_are_named(tmp_path):
    lines = warnings(tmp_path, "launch_template: autoscaler-windows-other, instance_types: [c5.large]")
    assert [line.split("pools.cpu.")[1].split(" ")[0] for line in lines] == ["launch_template", "platform"]


def test_prices_older_than_half_a_year_are_a_warning_with_the_first_pool_that_goes_by_them(tmp_path):
    pool = "launch_template: autoscaler-linux-f, instance_types: [c5.large]"
    assert warnings(tmp_path, pool, LISTED + 100 * 86_400) == []
    [old] = warnings(tmp_path, pool, LISTED + 400 * 86_400)
    assert old.startswith("5:3: prices of 2026-07-20, 400 days old: cpu; ")


def test_a_build_warns_of_old_prices_too(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("POOL", "launch_template: x, instance_types: [c5.large]"), encoding="utf-8")
    (tmp_path / "samconfig.toml").write_text("", encoding="utf-8")
    [old] = check_secrets(tmp_path, path, LISTED + 400 * 86_400)
    assert "400 days old: cpu" in old
