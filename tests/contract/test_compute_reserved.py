"""Launches into Capacity Reservations and Blocks, with real boto3 over HTTP and in memory."""

import json

import pytest

from autoscaler.adapters.account import AwsAccount
from autoscaler.domain.facts.fleet import CapacityReservation
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import LaunchRefusedError
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client
from support.builders import NOW, a_fleet, a_pool, an_offering
from support.worlds import stand

OFFERING = an_offering("p5.48xlarge", subnet="subnet-a", usd_per_hour=0.0)


def a_pool_of(name, **facts):
    capacity = CapacityReservation(**({"id": f"cr-{name}", "count": 2, "usd_per_hour": 9.0, "starts_at": NOW - 1.0} | facts))
    return a_pool(name, offerings=(OFFERING,), capacity=capacity)


BLOCK, RESERVATION = a_pool_of("block", block=True, ends_at=NOW + 7200.0), a_pool_of("reservation")


@pytest.fixture(params=["memory", "http"])
def here(request):
    with stand(request.param, a_fleet(BLOCK, RESERVATION)) as stood:
        yield stood


def composed(here, pool, count=1, intent="l-1"):
    launch = Launch(
        controller="main",
        pool=pool,
        count=count,
        market=OFFERING.market,
        offerings=(OFFERING,),
        keep_until=0.0,
        intent_id=None,
        reason=Reason.MANUAL,
        detail="",
    )
    return here.compute.compose(launch, intent)


def test_a_launch_into_a_block_is_one_and_no_more_than_there_are_machines(here):
    request = json.loads(composed(here, "block", 3))
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert not {"SpotOptions", "OnDemandOptions"} & set(request)
    answer = here.compute.launch(composed(here, "block", 3))
    assert [(kind, market) for _, kind, market in answer.instances] == [("p5.48xlarge", "capacity-block")] * 2
    assert [error.code for error in answer.errors] == ["ReservationCapacityExceeded"]
    here.world.move_to(here.world.timeline.now + 30.0)
    assert {one.market for one in here.compute.instances()} == {"capacity-block"}


def test_a_launch_into_a_reservation_is_one_on_demand_and_there_is_room_again_once_one_has_ended(here):
    answer = here.compute.launch(composed(here, "reservation", 2))
    assert {market for _, _, market in answer.instances} == {"on-demand"}
    assert here.compute.launch(composed(here, "reservation", 1, "l-2")).instances == ()
    here.compute.terminate(answer.instances[0][0])
    assert len(here.compute.launch(composed(here, "reservation", 1, "l-3")).instances) == 1


def test_ec2_ends_the_machines_of_a_block_half_an_hour_before_it_ends_and_launches_none_then(here):
    here.compute.launch(composed(here, "block"))
    here.world.move_to(NOW + 7200.0 - 1801.0)
    assert len(here.world.alive()) == 1
    here.world.move_to(NOW + 7200.0 - 1799.0)
    assert not here.world.alive()
    assert here.compute.launch(composed(here, "block", 1, "l-2")).instances == ()


def test_a_template_that_names_no_such_capacity_or_not_as_a_block_is_refused(here):
    here.world.ec2.template_data["block"] = here.world.ec2.template_data["block"] | {"InstanceMarketOptions": {}}
    with pytest.raises(LaunchRefusedError, match="InvalidParameterCombination"):
        here.compute.launch(composed(here, "block"))
    here.world.ec2.reserved.clear()
    with pytest.raises(LaunchRefusedError, match="InvalidCapacityReservationId"):
        here.compute.launch(composed(here, "reservation"))


def test_a_launch_template_must_name_the_capacity_of_its_pool_and_of_no_other():
    with stand("memory", a_fleet(BLOCK, RESERVATION, a_pool("cpu"))) as here:
        client = LocalEc2Client(Ec2Api(here.world.ec2, here.faults))
        account = AwsAccount(lambda _service: client, here.fleet)
        assert [line for lines in account.unsafe_templates({}).values() for line in lines if "apacity" in line] == []
        data = here.world.ec2.template_data
        data["block"], data["cpu"] = data["cpu"], data["reservation"]
        told = account.unsafe_templates({})
        wanted = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
        assert f"{wanted} (missing) must be cr-block (capacity_reservation)" in told["block"]
        assert any("MarketType must be capacity-block" in line for line in told["block"])
        assert f"{wanted} (cr-reservation) must not be set: the pool has no capacity_reservation" in told["cpu"]
