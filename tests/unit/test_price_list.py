"""What a fleet pays for its machines: which carried prices it goes by, how old they are, and what is paid of them."""

from datetime import UTC, datetime

import pytest

from autoscaler.config import load_fleet
from autoscaler.config.prices import carried_prices, listed_on
from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.report.status import price_ages
from autoscaler.errors import ConfigError
from autoscaler_workbench.advice import warnings_in

FILE = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers:
  main: {url: https://jenkins.example.org/}
%s
pools:
  cpu: {executors: 4, launch_template: cpu, instance_types: [c7i.2xlarge], max_agents: 5, market: spot-then-on-demand %s}
  win: {executors: 4, launch_template: win, instance_types: [%s], max_agents: 5, platform: windows}
"""
TYPE = "c7i.2xlarge"
LISTED = datetime(2026, 7, 20, tzinfo=UTC).timestamp()
DAY = 86_400.0


def written(tmp_path, defaults="", pool="", windows="c5.2xlarge"):
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE % (f"defaults: {{prices: {defaults}}}" if defaults else "", pool, windows), encoding="utf-8")
    return path


def prices_of(tmp_path, **keys):
    """The expected and the highest price by market."""
    offered = load_fleet(written(tmp_path, **keys)).pools["cpu"].offerings
    return {one.market: (one.usd_per_hour, one.reserved_usd_per_hour - one.volume_usd_per_hour) for one in offered}


def test_a_multiplier_is_paid_of_the_list_price_on_demand_and_of_nothing_else(tmp_path):
    usd = carried_prices()[TYPE]["linux"]
    in_full, less = prices_of(tmp_path), prices_of(tmp_path, pool=", prices: {multiplier: 0.72}")
    assert in_full[Market.ON_DEMAND] == (usd, usd)
    assert less[Market.ON_DEMAND] == pytest.approx((0.72 * usd, 0.72 * usd))
    assert less[Market.SPOT] == in_full[Market.SPOT] == pytest.approx((0.35 * usd, usd))


def test_a_pool_s_own_multiplier_goes_before_that_of_all(tmp_path):
    usd = carried_prices()[TYPE]["linux"]
    assert prices_of(tmp_path, defaults="{multiplier: 0.5}")[Market.ON_DEMAND][0] == pytest.approx(0.5 * usd)
    own = prices_of(tmp_path, defaults="{multiplier: 0.5, system: linux}", pool=", prices: {multiplier: 0.8}")
    assert own[Market.ON_DEMAND][0] == pytest.approx(0.8 * usd)


def test_a_price_that_is_written_is_what_is_paid(tmp_path):
    own = prices_of(tmp_path, defaults="{multiplier: 0.5}", pool=", usd_per_hour: 3.0")
    assert own[Market.ON_DEMAND] == (3.0, 3.0)


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (", prices: {multiplier: 0}", "pools.cpu.prices.multiplier (0): must be more than 0"),
        (", prices: {multiplier: 11}", "pools.cpu.prices.multiplier (11): must be 10 or less"),
        (", prices: {region: eu-west-9}", "pools.cpu.prices.region: (eu-west-9) no prices of it are carried, only of us-east-1"),
        (", prices: {region: Ireland}", "pools.cpu.prices.region: (Ireland) is no AWS region"),
        (", prices: {system: rhel}", "pools.cpu.instance_types (c7i.2xlarge): no rhel price is carried for it, set usd_per_hour"),
        (", prices: {multiplyer: 0.5}", "pools.cpu.prices.multiplyer: unknown key, did you mean multiplier?"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_line(tmp_path, pool, said):
    with pytest.raises(ConfigError) as error:
        load_fleet(written(tmp_path, pool=pool))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_type_whose_price_on_windows_no_source_tells_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(ConfigError, match=r"pools\.win\.instance_types \(c7i\.2xlarge\): no windows price is carried for it, set usd_per"):
        load_fleet(written(tmp_path, windows=TYPE))


@pytest.mark.parametrize(
    "kind", ["g6.xlarge", "g6e.xlarge", "p4d.24xlarge", "p5.48xlarge", "c7i.large", "c7a.large", "c7g.large", "c8g.large"]
)
def test_today_s_types_have_a_price_on_linux(kind):
    assert carried_prices()[kind]["linux"] > 0


def test_prices_have_a_day_by_operating_system():
    assert (listed_on("us-east-1", "linux"), listed_on("us-east-1", "windows")) == ("2026-07-20", "2023-08-30")
    assert listed_on("us-east-1", "rhel") == listed_on("eu-west-9", "linux") == ""


def test_the_age_of_prices_is_told_by_pool_and_old_ones_are_a_warning(tmp_path):
    path = written(tmp_path)
    windows, linux = price_ages(load_fleet(path), LISTED + 180 * DAY)
    assert (linux.told, linux.old) == ("prices of 2026-07-20, 180 days old: cpu", False)
    [*_, replayed] = price_ages(load_fleet(path), LISTED - 1821 * DAY)  # the clock of a replay is before that day
    assert (replayed.told, replayed.old) == ("prices of 2026-07-20: cpu", False)
    assert (windows.listed_on, windows.pools, windows.old) == ("2023-08-30", ("win",), True)
    said = [line for line in warnings_in(path, now=LISTED + 181 * DAY) if "prices of" in line]
    assert len(said) == 2
    assert "2026-07-20, 181 days old: cpu; make prices REGIONS=... fetches today's; usd_per_hour of a pool says" in said[0] + said[1]
    assert not [line for line in warnings_in(path) if "prices of" in line]


def test_a_pool_that_says_what_it_pays_has_no_age(tmp_path):
    assert "cpu" not in load_fleet(written(tmp_path, pool=", usd_per_hour: 1.0")).prices_listed_on
