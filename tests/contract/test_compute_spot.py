"""What the Compute port tells of spot prices, with real boto3 over HTTP and in memory."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from autoscaler.adapters import ec2
from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.physics import Physics
from support.builders import a_fleet, a_pool, an_offering
from support.worlds import stand

FLEET = a_fleet(a_pool("cpu"))


@pytest.fixture(params=["memory", "http"])
def here(request):
    with stand(request.param, FLEET) as stood:
        yield stood


def send(here, offering, intent_id="l-1"):
    launch = Launch(
        controller="main",
        pool="cpu",
        count=1,
        market=Market.SPOT,
        offerings=(offering,),
        keep_until=0.0,
        intent_id=None,
        reason=Reason.MANUAL,
        detail="",
    )
    return here.compute.launch(here.compute.compose(launch, intent_id))


def test_spot_prices_are_told_by_type_zone_and_platform_as_instances_name_them(here):
    spot, other = an_offering(subnet="subnet-b", market=Market.SPOT), an_offering("m5.large", market=Market.SPOT)
    here.world.ec2.zones["subnet-b"] = "us-west-2b"
    here.world.ec2.spot_usd_per_hour = {spot.key: 1.25, other.key: 0.5}
    send(here, spot)
    [instance] = here.compute.instances()
    assert instance.priced_as == "c5.18xlarge/us-west-2b/Linux/UNIX"
    now = here.world.timeline.now
    assert here.compute.spot_prices({spot.instance_type}, {instance.platform}, now) == {instance.priced_as: 1.25}
    assert here.compute.spot_prices({"t9.none"}, {instance.platform}, now) == {}


def test_spot_prices_move_from_hour_to_hour_and_the_last_change_is_told(here):
    spot = an_offering(market=Market.SPOT)
    here.world.ec2.spot_usd_per_hour = {spot.key: 1.0, f"{spot.key}/Windows": 2.0}
    here.world.ec2.physics = Physics(spot_swing=0.5)
    told = []
    for _ in range(3):
        told.append(here.compute.spot_prices({spot.instance_type}, {"Linux/UNIX", "Windows"}, here.world.timeline.now))
        here.world.move_to(here.world.timeline.now + 3600.0)
    linux, windows = ([prices[f"c5.18xlarge/us-west-2a/{platform}"] for prices in told] for platform in ("Linux/UNIX", "Windows"))
    assert len({*linux}) == 3
    assert all(0.5 <= usd <= 1.5 for usd in linux)
    assert all(1.0 <= usd <= 3.0 for usd in windows)
    assert [2 * usd for usd in linux] != windows


def test_a_machine_that_becomes_dearer_than_may_be_paid_is_taken_back(here):
    spot = an_offering(market=Market.SPOT, spot_max_usd_per_hour=1.05)
    here.world.ec2.spot_usd_per_hour = {spot.key: 1.0}
    here.world.ec2.physics = Physics(spot_swing=0.5)
    while not send(here, spot, f"l-{here.world.timeline.now}").instances:
        here.world.move_to(here.world.timeline.now + 3600.0)
    here.world.move_to(here.world.timeline.now + 30 * 3600.0)
    assert not here.world.alive()


def test_spot_prices_are_read_page_by_page(here):
    here.world.ec2.listing = Listing(page=2)
    here.world.ec2.spot_usd_per_hour = {an_offering(f"c{kind}.large", market=Market.SPOT).key: kind + 0.5 for kind in range(5)}
    told = here.compute.spot_prices({f"c{kind}.large" for kind in range(5)}, {"Windows"}, here.world.timeline.now)
    assert told == {f"c{kind}.large/us-west-2a/Windows": kind + 0.5 for kind in range(5)}


def test_spot_prices_that_are_not_answered_are_an_error(here):
    here.faults.plan(Fault("ec2 DescribeSpotPriceHistory", times=9))
    with pytest.raises(TransientError):
        here.compute.spot_prices({"c5.large"}, {"Linux/UNIX"}, here.world.timeline.now)


def test_of_two_changes_of_a_price_the_later_one_counts_whatever_network_it_is_of():
    def change(usd, hour, platform="Linux/UNIX"):
        at = datetime(2026, 11, 1, hour, tzinfo=UTC)
        return {"InstanceType": "c5.large", "AvailabilityZone": "a", "ProductDescription": platform, "SpotPrice": usd, "Timestamp": at}

    client = Mock()
    client.get_paginator.return_value.paginate.return_value = [
        {"SpotPriceHistory": [change("0.3", 9, "Linux/UNIX (Amazon VPC)"), change("0.2", 7)]},
        {"SpotPriceHistory": []},
    ]
    compute = ec2.Ec2Compute(lambda: client, FLEET, lambda: client)
    assert compute.spot_prices({"c5.large"}, {"Linux/UNIX"}, 0.0) == {"c5.large/a/Linux/UNIX": 0.3}
