"""Which quota of running vCPUs an instance counts against, and whether the fleet fits below it."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.report.quotas import Quota, counts_against, needs
from support.builders import a_fleet, a_pool, an_offering

STANDARD = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
GPUS = "Running On-Demand G and VT instances"


@pytest.mark.parametrize(
    ("name", "instance_type", "market"),
    [
        (STANDARD, "c5.18xlarge", Market.ON_DEMAND),
        (STANDARD, "t3a.medium", Market.ON_DEMAND),
        (GPUS, "g4dn.xlarge", Market.ON_DEMAND),
        (GPUS, "vt1.3xlarge", Market.ON_DEMAND),
        ("Running On-Demand P instances", "p3.2xlarge", Market.ON_DEMAND),
        ("Running On-Demand Trn instances", "trn1.2xlarge", Market.ON_DEMAND),
        ("All P4, P3 and P2 Spot Instance Requests", "p4d.24xlarge", Market.SPOT),
        ("All P5 Spot Instance Requests", "p5.48xlarge", Market.SPOT),
        ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", "m5.large", Market.SPOT),
    ],
)
def test_a_type_counts_against_the_quota_of_its_family(name, instance_type, market):
    assert counts_against(Quota(name=name, vcpus=1.0), instance_type, market)


@pytest.mark.parametrize(
    ("name", "instance_type", "market"),
    [
        (STANDARD, "g4dn.xlarge", Market.ON_DEMAND),
        (STANDARD, "trn1.2xlarge", Market.ON_DEMAND),
        (STANDARD, "c5.large", Market.SPOT),
        ("All P5 Spot Instance Requests", "p4d.24xlarge", Market.SPOT),
        ("EC2-VPC Elastic IPs", "c5.large", Market.ON_DEMAND),
    ],
)
def test_and_against_no_other(name, instance_type, market):
    assert not counts_against(Quota(name=name, vcpus=1.0), instance_type, market)


def need(quota, *pools, vcpus, **limits):
    return list(needs(a_fleet(*pools, **limits), [Quota(name=STANDARD, vcpus=quota)], vcpus))


def test_pools_count_together_each_with_the_largest_of_its_types():
    mixed = a_pool("mixed", offerings=(an_offering("c5.large"), an_offering("c5.xlarge", subnet="b")), max_agents=2)
    plain, gpu = a_pool("plain", offerings=(an_offering("m5.large"),), max_agents=3), a_pool("gpu", offerings=(an_offering("g5.xlarge"),))
    sizes = {"c5.large": 2, "c5.xlarge": 4, "m5.large": 2, "g5.xlarge": 4}
    [found] = need(14.0, mixed, plain, gpu, vcpus=sizes)
    assert (found.pools, found.vcpus, found.fits) == (("mixed", "plain"), 2 * 4 + 3 * 2, True)
    [found] = need(13.0, mixed, plain, gpu, vcpus=sizes)
    assert not found.fits


def test_the_fleets_limit_bounds_what_is_needed():
    [found] = need(8.0, a_pool("cpu", offerings=(an_offering("c5.xlarge"),), max_agents=50), vcpus={"c5.xlarge": 4}, max_agents=2)
    assert (found.vcpus, found.fits) == (8, True)


def test_a_quota_that_no_pool_counts_against_is_not_told():
    assert need(1.0, a_pool("gpu", offerings=(an_offering("g5.xlarge"),)), vcpus={"g5.xlarge": 4}) == []
