"""Time-lines of every error code by which EC2 refuses a launch: what else is to be had is had as quickly for each."""

from functools import cache

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler_workbench.fakes.world.ec2.error_codes import LAUNCH_CODES
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

FIRST, SECOND = an_offering("c5.large", subnet="subnet-a"), an_offering("g5.xlarge", subnet="subnet-b")
SPOT, FIRM = an_offering(market=Market.SPOT, usd_per_hour=1.0), an_offering()
# Of these it is the account that must wait, whatever is asked for, or the pool's template that a person must mend.
NO_OTHER_WAY = {
    *("RequestLimitExceeded", "RequestResourceCountExceeded", "RequestThrottled", "ResourceCountExceeded", "Throttling"),
    *("ThrottlingException", "MaxFleetCountExceeded", "Blocked", "OptInRequired", "PendingVerification"),
    *(code for code in LAUNCH_CODES if code.startswith(("InvalidAMIID", "InvalidLaunchTemplate", "InvalidFleet", "InvalidBlock"))),
    *("InvalidGroup.NotFound", "InvalidKeyPair.NotFound", "InvalidSecurityGroupID.NotFound", "InvalidSnapshot.NotFound"),
    *("InvalidUserData.Malformed", "SecurityGroupsPerInstanceLimitExceeded", "TagLimitExceeded"),
}


def waits_of_two(offerings, meanwhile):
    """How long two jobs wait, the second of which comes a minute after the first was launched for."""
    day = Day(in_memory(a_pool("cpu", offerings=offerings, boot_seconds=60.0, queue_maturity_seconds=0.0)))
    day.minutes(2)
    meanwhile(day.world.ec2)
    waits = []
    for _ in range(2):
        [build] = day.queue(1, seconds=3600.0)
        queued_at = day.world.timeline.now
        day.minutes(2)
        waits.append((build, queued_at))
    day.minutes(12)
    return [build.started_at - queued_at for build, queued_at in waits]


def answers(key, code):
    return lambda ec2: ec2.answers.update({key: code})


@cache
def waits_as_usual(offerings):
    """How long they wait where EC2 has no machines of the first offering: each code is compared with that."""
    return waits_of_two(offerings, answers(offerings[0].key, "InsufficientInstanceCapacity"))


@pytest.mark.parametrize("code", LAUNCH_CODES)
def test_where_another_offering_gives_everything_no_code_makes_the_next_job_wait(code):
    """An unknown code, a full subnet and a missing spot role each paused the whole pool: 372 s where it could be 134."""
    as_usual = waits_as_usual((FIRST, SECOND))
    assert waits_of_two((FIRST, SECOND), answers(FIRST.key, code)) == pytest.approx(as_usual, abs=30.0)


@pytest.mark.parametrize("code", [code for code in LAUNCH_CODES if code not in NO_OTHER_WAY])
def test_where_spot_is_refused_as_a_whole_on_demand_is_asked_for_as_quickly_for_each_code(code):
    def refuse_spot(ec2):
        ec2.refuse_market["spot"] = code, "refused"

    as_usual = waits_as_usual((SPOT, FIRM))
    assert waits_of_two((SPOT, FIRM), refuse_spot) == pytest.approx(as_usual, abs=30.0)
