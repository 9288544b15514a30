"""What is billed beside the agents: by estimate, and only what an operator says is there."""

import pytest

from autoscaler.config import load_fleet
from autoscaler.domain.facts.costs import Estimates, MonthCosts, MonthParts
from autoscaler.domain.report.estimates import estimates_of
from autoscaler.errors import ConfigError
from support.builders import NOW

JANUARY = MonthCosts(name="2027-01", metered_usd=9.0, parts=MonthParts(hours=200.0))
PASSED = (NOW - 1_798_761_600.0) / 3600.0  # hours from the beginning of January 2027 on


def usd(given, month=JANUARY, now=NOW):
    return {one.name: one.usd for one in estimates_of(month, given, now)}


def test_nothing_is_estimated_of_what_nobody_says_is_there():
    assert usd(Estimates()) == {}


def test_public_addresses_go_by_the_hours_of_machines_that_are_on():
    assert usd(Estimates(public_addresses=True)) == {"public addresses": pytest.approx(1.0)}


def test_nat_gateways_go_by_the_hours_of_the_month_and_by_what_agents_fetch():
    given = Estimates(nat_gateways=2, nat_gib_per_agent_hour=3.0)
    assert usd(given) == {"NAT gateways": pytest.approx(2 * 0.045 * PASSED + 600 * 0.045)}
    assert usd(given, now=NOW + 90 * 86_400.0) == {"NAT gateways": pytest.approx(2 * 0.045 * 31 * 24 + 600 * 0.045)}
    december = MonthCosts(name="2026-12")
    assert usd(Estimates(nat_gateways=1), december) == {"NAT gateways": pytest.approx(0.045 * 31 * 24)}


def test_volumes_are_part_of_what_was_metered_and_nothing_else_is():
    month = MonthCosts(name="2027-01", parts=MonthParts(disk_usd=4.0, hours=1.0))
    given = Estimates(public_addresses=True, nat_gateways=1)
    assert {one.name: one.metered for one in estimates_of(month, given, NOW)} == {
        "volumes": True,
        "public addresses": False,
        "NAT gateways": False,
    }


FILE = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers: {main: {url: https://jenkins.example.org/}}
pools: {cpu: {executors: 4, launch_template: cpu, instance_types: [c7i.large], max_agents: 5}}
estimates: {%s}
"""


def fleet_with(tmp_path, keys):
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE % keys, encoding="utf-8")
    return load_fleet(path)


def test_a_fleet_file_says_what_is_there_and_what_it_costs(tmp_path):
    given = fleet_with(tmp_path, "public_addresses: true, nat_gateways: 2, nat_gateway_usd_per_hour: 0.052").estimates
    assert given == Estimates(public_addresses=True, nat_gateways=2, nat_gateway_usd_per_hour=0.052)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("nat_gateways: -1", "estimates.nat_gateways (-1): must be 0 or more"),
        ("nat_gateway: 1", "estimates.nat_gateway: unknown key, did you mean nat_gateways?"),
        ("public_addresses: yes please", "estimates.public_addresses ('yes please'): must be true or false"),
    ],
)
def test_what_is_wrong_about_them_is_one_line(tmp_path, keys, line):
    with pytest.raises(ConfigError) as error:
        fleet_with(tmp_path, keys)
    assert line in str(error.value)
