"""Instance types by what a machine must have."""

import json

import pytest

from autoscaler.config import load_fleet
from autoscaler.config.prices import MOST_TYPES, carried_prices
from autoscaler.domain.facts.fleet import Allocation, Market
from autoscaler.errors import ConfigError
from support.cli import autoscaler

FILE = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers:
  main: {url: https://jenkins.example.org/}
pools:
  cpu:
    executors: 4
    launch_template: cpu
    %s
    max_agents: 5
"""


def written(tmp_path, *lines):
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE % "\n    ".join(lines), encoding="utf-8")
    return path


def pool_of(tmp_path, *lines):
    return load_fleet(written(tmp_path, *lines)).pools["cpu"]


def types(pool):
    return [offering.instance_type for offering in pool.offerings]


def test_the_cheapest_types_that_satisfy_all_are_taken_the_cheapest_first(tmp_path):
    pool = pool_of(tmp_path, "instance_requirements: [arch=x86_64, vcpu>=8, memory_gib>=32, usd_per_hour<0.4]")
    assert types(pool)[:2] == ["m5a.2xlarge", "m6a.2xlarge"]
    prices = [offering.usd_per_hour for offering in pool.offerings]
    assert prices == sorted(prices)
    assert prices == [carried_prices()[name]["linux"] for name in types(pool)]
    assert prices[-1] < 0.4
    assert pool.allocation is Allocation.BY_PRICE


def test_of_many_only_so_many_are_taken(tmp_path):
    assert len(pool_of(tmp_path, "instance_requirements: [arch=x86_64]").offerings) == MOST_TYPES


def test_burstable_bare_metal_old_and_accelerated_types_are_left_out(tmp_path):
    found = types(pool_of(tmp_path, "instance_requirements: [arch=x86_64, vcpu>=8, memory_gib>=16]"))
    assert [name for name in found if name.startswith(("t2", "t3", "m4", "c4", "g", "p", "inf")) or "metal" in name] == []


def test_a_condition_on_gpus_brings_those_with_gpus(tmp_path):
    assert types(pool_of(tmp_path, "instance_requirements: [gpu=A10G, gpus=1, vcpu<=8]")) == ["g5.xlarge", "g5.2xlarge"]


def test_windows_has_prices_of_its_own(tmp_path):
    pool = pool_of(tmp_path, "instance_requirements: [gpu=A10G, gpus=1, vcpu<=4]", "platform: windows")
    assert [(o.instance_type, o.usd_per_hour) for o in pool.offerings] == [("g5.xlarge", 1.19)]


def test_spot_comes_first_where_both_are_bought_and_the_order_may_be_kept(tmp_path):
    pool = pool_of(tmp_path, "instance_requirements: [gpu=A10G, gpus=1, vcpu<=8]", "market: spot-then-on-demand", "allocation: in-order")
    assert [o.market for o in pool.offerings] == [Market.SPOT, Market.SPOT, Market.ON_DEMAND, Market.ON_DEMAND]
    assert pool.allocation is Allocation.IN_ORDER


def test_types_that_are_named_are_taken_in_their_order_unless_told_otherwise(tmp_path):
    named = "instance_types: [m7i.xlarge, m6i.xlarge]"
    assert pool_of(tmp_path, named).allocation is Allocation.IN_ORDER
    assert pool_of(tmp_path, named, "allocation: by-price").allocation is Allocation.BY_PRICE


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["instance_requirements: [vcpu>=many]"], "(vcpu>=many) many is no number"),
        (["instance_requirements: [pool=cpu]"], "(pool=cpu) pool is no fact of an instance type; there are arch, vcpu"),
        (["instance_requirements: [vcpu>9999]"], "instance_requirements (vcpu>9999): no instance type of the carried table satisfies all"),
        (["instance_requirements: [vcpu=4]"], "one image starts on one architecture only"),
        (
            ["instance_requirements: [vcpu=4]", "instance_types: [m7i.xlarge]"],
            "instance_requirements: only one of it and instance_types can be given",
        ),
        (["platform: linux"], "pools.cpu.instance_types: missing"),
        (["instance_types: [m7i.xlarge]", "allocation: cheap"], "allocation ('cheap'): must be in-order or by-price"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, lines, line):
    with pytest.raises(ConfigError) as refused:
        load_fleet(written(tmp_path, *lines))
    assert line in str(refused.value)


def test_validate_lists_what_was_chosen_and_for_how_much(tmp_path):
    path = written(tmp_path, "instance_requirements: [gpu=A10G, gpus=1, vcpu<=8]")
    told = json.loads(autoscaler("validate", str(path), "--json").stdout)
    assert told["pools"]["cpu"]["instance_types"] == {"g5.xlarge": 1.006, "g5.2xlarge": 1.212}
