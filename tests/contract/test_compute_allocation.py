"""How EC2 is to choose among several offerings: in their order, or by price."""

import json

import pytest

from autoscaler.domain.facts.fleet import Allocation, Market
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from support.builders import a_fleet, a_pool, an_offering
from support.worlds import stand


def offered(market):
    return tuple(an_offering(kind, market=market) for kind in ("m5a.2xlarge", "m6a.2xlarge"))


def composed(here, allocation, market):
    launch = Launch(
        controller="main",
        pool=str(allocation),
        count=1,
        market=market,
        offerings=offered(market),
        keep_until=0.0,
        intent_id=None,
        reason=Reason.MANUAL,
        detail="",
    )
    return here.compute.compose(launch, "l-1")


@pytest.fixture(params=["memory", "http"])
def here(request):
    pools = (a_pool(str(way), allocation=way, offerings=(*offered(Market.SPOT), *offered(Market.ON_DEMAND))) for way in Allocation)
    with stand(request.param, a_fleet(*pools)) as stood:
        yield stood


@pytest.mark.parametrize(
    ("allocation", "market", "strategy"),
    [
        (Allocation.IN_ORDER, Market.SPOT, "capacity-optimized-prioritized"),
        (Allocation.IN_ORDER, Market.ON_DEMAND, "prioritized"),
        (Allocation.BY_PRICE, Market.SPOT, "price-capacity-optimized"),
        (Allocation.BY_PRICE, Market.ON_DEMAND, "lowest-price"),
    ],
)
def test_the_request_says_how_and_gives_priorities_only_where_they_count(here, allocation, market, strategy):
    request = json.loads(composed(here, allocation, market))
    [options] = [request[key] for key in ("SpotOptions", "OnDemandOptions") if key in request]
    [config] = request["LaunchTemplateConfigs"]
    assert options == {"AllocationStrategy": strategy}
    assert [one.get("Priority") for one in config["Overrides"]] == ([0.0, 1.0] if allocation is Allocation.IN_ORDER else [None, None])


@pytest.mark.parametrize(("allocation", "kind"), [(Allocation.IN_ORDER, "m5a.2xlarge"), (Allocation.BY_PRICE, "m6a.2xlarge")])
def test_what_is_cheaper_now_is_taken_where_the_order_does_not_count(here, allocation, kind):
    here.world.ec2.spot_usd_per_hour |= {"m5a.2xlarge//spot": 0.2, "m6a.2xlarge//spot": 0.1}
    answer = here.compute.launch(composed(here, allocation, Market.SPOT))
    assert [found for _, found, _ in answer.instances] == [kind]
