"""The Compute port stops instances and starts them again, with real boto3 over HTTP and in memory."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler.errors import LaunchRefusedError, StuckError, TransientError, UnansweredError
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_fleet, a_pool, an_offering
from support.worlds import stand

OFFERING = an_offering(subnet="subnet-a")
SPOT = an_offering(market=Market.SPOT)
UNKNOWN = "i-0123456789abcdef0"


@pytest.fixture(params=["memory", "http"])
def here(request):
    with stand(request.param, a_fleet(a_pool("cpu", offerings=(OFFERING, SPOT)))) as stood:
        yield stood


def launched(here, offering=OFFERING, intent="l-1"):
    """One instance that is pending."""
    launch = Launch(
        controller="main",
        pool="cpu",
        count=1,
        market=offering.market,
        offerings=(offering,),
        keep_until=0.0,
        intent_id=None,
        reason=Reason.MANUAL,
        detail="",
    )
    [(instance_id, _, _)] = here.compute.launch(here.compute.compose(launch, intent)).instances
    return instance_id


def running(here):
    instance_id = launched(here)
    passes(here, 30)
    return instance_id


def stopped(here):
    instance_id = running(here)
    here.compute.stop(instance_id)
    passes(here, 90)
    return instance_id


def why_not_started(here, instance_id):
    error = here.compute.start([instance_id])[instance_id]
    return type(error), str(error)


def passes(here, seconds):
    here.world.move_to(here.world.timeline.now + seconds)


def listed(here):
    [instance] = here.compute.instances()
    return instance


def test_a_stopped_instance_is_stopping_first_and_stays_listed_with_its_reason(here):
    instance_id = running(here)
    here.compute.stop(instance_id)
    assert listed(here).state is InstanceState.STOPPING
    passes(here, 90)
    assert (listed(here).id, listed(here).state) == (instance_id, InstanceState.STOPPED)
    assert listed(here).state_reason == "Client.UserInitiatedShutdown"


def test_an_instance_that_is_started_is_pending_runs_under_its_old_id_and_tells_when_it_was_started(here):
    instance_id = stopped(here)
    before, tags = listed(here), dict(here.world.ec2.instances[instance_id].tags)
    assert here.compute.start([instance_id]) == {}
    assert (listed(here).state, listed(here).launched_at) == (InstanceState.PENDING, here.world.timeline.now)
    assert listed(here).launched_at > before.launched_at
    passes(here, 30)
    assert (listed(here).id, listed(here).state) == (instance_id, InstanceState.RUNNING)
    assert here.world.ec2.instances[instance_id].tags == tags


@pytest.mark.parametrize("seconds", [0, 90])
def test_stopping_again_changes_nothing(here, seconds):
    instance_id = running(here)
    here.compute.stop(instance_id)
    passes(here, seconds)
    before = listed(here).state
    here.compute.stop(instance_id)
    assert listed(here).state is before


@pytest.mark.parametrize("seconds", [0, 30])
def test_starting_again_changes_nothing(here, seconds):
    instance_id = stopped(here)
    assert here.compute.start([instance_id]) == {}
    passes(here, seconds)
    before = listed(here)
    assert here.compute.start([instance_id]) == {}
    assert listed(here) == before


def test_what_is_pending_cannot_be_stopped_yet_and_what_still_stops_cannot_be_started_yet(here):
    instance_id = launched(here)
    with pytest.raises(TransientError, match="IncorrectInstanceState"):
        here.compute.stop(instance_id)
    passes(here, 30)
    here.compute.stop(instance_id)
    assert here.compute.start([instance_id])[instance_id].code == "IncorrectInstanceState"


def test_what_is_terminated_or_unknown_is_neither_stopped_nor_started(here):
    instance_id = running(here)
    here.compute.terminate(instance_id)
    for gone in (instance_id, UNKNOWN):
        with pytest.raises(TransientError):
            here.compute.stop(gone)
        assert why_not_started(here, gone)[0] is LaunchRefusedError
    assert here.compute.fate(instance_id) is InstanceState.SHUTTING_DOWN


def test_a_stopped_instance_can_be_terminated(here):
    instance_id = stopped(here)
    here.compute.terminate(instance_id)
    passes(here, 60)
    assert here.compute.fate(instance_id) is InstanceState.TERMINATED


def test_a_one_time_spot_instance_and_a_protected_one_never_stop(here):
    spot = launched(here, SPOT)
    passes(here, 30)
    with pytest.raises(StuckError, match="UnsupportedOperation"):
        here.compute.stop(spot)
    here.world.ec2.instances[spot].market = "on-demand"
    here.world.ec2.instances[spot].stop_protected = True
    with pytest.raises(StuckError, match="OperationNotPermitted"):
        here.compute.stop(spot)
    assert listed(here).state is InstanceState.RUNNING


def test_a_start_without_capacity_in_its_zone_is_refused_by_that_name_and_leaves_it_stopped(here):
    instance_id = stopped(here)
    here.world.ec2.capacity[OFFERING.key] = 0
    error = here.compute.start([instance_id])[instance_id]
    assert isinstance(error, LaunchRefusedError)
    assert error.code == "InsufficientInstanceCapacity"
    assert listed(here).state is InstanceState.STOPPED


def test_a_start_that_fails_ends_stopped_again_and_says_why(here):
    instance_id = stopped(here)
    here.world.ec2.instances[instance_id].fails_to_start = "Client.InternalError"
    assert here.compute.start([instance_id]) == {}
    assert listed(here).state is InstanceState.PENDING
    passes(here, 30)
    assert (listed(here).state, listed(here).state_reason) == (InstanceState.STOPPED, "Client.InternalError")


def test_of_several_those_are_started_that_can_be(here):
    one = stopped(here)
    other = launched(here, intent="l-2")
    passes(here, 30)
    here.compute.stop(other)
    assert set(here.compute.start([one, other, UNKNOWN])) == {other, UNKNOWN}
    passes(here, 30)
    assert here.compute.fate(one) is InstanceState.RUNNING


def test_a_stop_that_was_not_answered_may_have_taken_effect(here):
    instance_id = running(here)
    here.faults.plan(Fault("ec2 StopInstances", status=0, times=9, after=True))
    with pytest.raises(UnansweredError):
        here.compute.stop(instance_id)
    assert listed(here).state is InstanceState.STOPPING


def test_a_start_that_was_not_answered_may_have_taken_effect_and_is_not_sent_for_each_alone(here):
    instance_id = stopped(here)
    here.faults.plan(Fault("ec2 StartInstances", status=0, times=9, after=True))
    assert why_not_started(here, instance_id)[0] is UnansweredError
    assert listed(here).state is InstanceState.PENDING
