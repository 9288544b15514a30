"""What EC2's refusals mean for the next passes."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.plan import Refusal
from autoscaler.domain.launch.backoff import KNOWN_CODES, quota_family, refusals_of_launch
from autoscaler.domain.situation.bets import TrialOf, note
from autoscaler_workbench.fakes.world.ec2.error_codes import LAUNCH_CODES
from support.builders import NOW, a_pool, an_offering

SPOT = an_offering(market=Market.SPOT)
POOL = a_pool("cpu", offerings=(SPOT, an_offering()))
C, C_B = an_offering("c5.large", subnet="a"), an_offering("c5.large", subnet="b")
M, G = an_offering("m5.large", subnet="a"), an_offering("g5.xlarge", subnet="b")
WIDE = a_pool("cpu", offerings=(C, C_B, M, G))
DAY = 86_400.0
ALL_OF_SPOT = {TrialOf.OFFERING.scope("cpu", SPOT.key): 60.0}


def pauses(pool, *refusals):
    """Each refusal is a launch of its own."""
    known = {}
    for refusal in refusals:
        known = note(known, refusals_of_launch(pool, [refusal]), NOW)
    return {scope: trial.until_at - NOW for scope, trial in known.items()}


def alone(code, *asked):
    return Refusal(code=code, offering_key="", asked=asked)


def beside(code, named, *asked, had=(), met=True):
    return Refusal(code=code, offering_key=named.key, asked=asked, had=frozenset(had), met=met)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("InsufficientInstanceCapacity", ALL_OF_SPOT),
        ("UnfulfillableCapacity", ALL_OF_SPOT),
        ("SpotMaxPriceTooLow", ALL_OF_SPOT),
        ("MaxSpotInstanceCountExceeded", ALL_OF_SPOT),
        ("InsufficientFreeAddressesInSubnet", ALL_OF_SPOT),
        ("Unsupported", {TrialOf.OFFERING.scope("cpu", SPOT.key): 300.0}),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", {TrialOf.OFFERING.scope("cpu", SPOT.key): 300.0}),
        ("UnauthorizedOperation", {TrialOf.OFFERING.scope("cpu", SPOT.key): 300.0}),
        ("SomethingNobodyKnows", {TrialOf.OFFERING.scope("cpu", SPOT.key): 300.0}),
        ("InvalidLaunchTemplateName.NotFoundException", {TrialOf.POOL.scope("cpu"): 300.0}),
        ("RequestLimitExceeded", {"account": 60.0}),
        ("MaxFleetCountExceeded", {"account": 60.0}),
    ],
)
def test_a_refusal_of_everything_leaves_the_other_market_to_be_asked_where_that_may_help(code, expected):
    assert pauses(POOL, alone(code, SPOT)) == expected


@pytest.mark.parametrize("code", ["VcpuLimitExceeded", "UnauthorizedOperation", "SomethingNobodyKnows"])
def test_where_there_is_no_other_market_it_pauses_the_pool(code):
    assert pauses(WIDE, alone(code, C, C_B, M, G)) == {TrialOf.POOL.scope("cpu"): 300.0}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("InsufficientInstanceCapacity", {C: 60.0}),
        ("UnfulfillableCapacity", {C: 60.0}),
        ("InsufficientFreeAddressesInSubnet", {C: 60.0, M: 60.0}),
        ("VcpuLimitExceeded", {C: 300.0, C_B: 300.0, M: 300.0}),
        ("Unsupported", {C: DAY}),
        ("InvalidAMIID.NotFound", {C: 300.0}),
        ("UnauthorizedOperation", {C: 300.0}),
        ("SomethingNobodyKnows", {C: 300.0}),
        ("RequestLimitExceeded", {}),
        ("MaxFleetCountExceeded", {}),
    ],
)
def test_beside_instances_it_pauses_what_it_is_about_and_nothing_else(code, expected):
    refusal = beside(code, C, C, C_B, M, G, had=["g5.xlarge"])
    assert pauses(WIDE, refusal) == {TrialOf.OFFERING.scope("cpu", offering.key): seconds for offering, seconds in expected.items()}


def test_what_gave_an_agent_is_not_paused_for_a_quota_that_another_of_its_family_exceeds():
    assert pauses(WIDE, beside("VcpuLimitExceeded", C, C, M, had=["m5.large"])) == {
        TrialOf.OFFERING.scope("cpu", o.key): 300.0 for o in (C, C_B)
    }


def test_without_a_spot_role_nothing_is_paused_but_spot():
    spot = tuple(an_offering(kind, market=Market.SPOT) for kind in ("c5.large", "g5.xlarge"))
    pool = a_pool("cpu", offerings=(*spot, C))
    refusal = beside("AuthFailure.ServiceLinkedRoleCreationNotPermitted", spot[0], *spot, met=False)
    assert pauses(pool, refusal) == {TrialOf.OFFERING.scope("cpu", offering.key): 300.0 for offering in spot}


def test_a_subnet_without_addresses_is_left_alone_on_every_market():
    spot = an_offering("c5.large", subnet="a", market=Market.SPOT)
    pool = a_pool("cpu", offerings=(spot, C, C_B))
    assert pauses(pool, beside("InsufficientFreeAddressesInSubnet", spot, spot)) == {
        TrialOf.OFFERING.scope("cpu", o.key): 60.0 for o in (spot, C)
    }


def test_an_account_that_gave_less_than_was_asked_for_is_left_alone_for_a_while():
    assert pauses(WIDE, beside("RequestLimitExceeded", C, C, met=False)) == {"account": 60.0}


@pytest.mark.parametrize("code", LAUNCH_CODES)
def test_no_code_pauses_a_pool_whose_launch_was_met(code):
    refusal = beside(code, C, C, G, had=["g5.xlarge"])
    assert pauses(WIDE, refusal).keys() & {TrialOf.POOL.scope("cpu"), "account", TrialOf.OFFERING.scope("cpu", G.key)} == set()


def test_every_code_that_is_sorted_is_one_that_the_simulated_ec2_answers():
    assert set(LAUNCH_CODES) >= KNOWN_CODES


def test_capacity_that_stays_missing_is_asked_for_less_and_less():
    once = beside("InsufficientInstanceCapacity", SPOT, SPOT)
    assert [pauses(POOL, *[once] * times)[TrialOf.OFFERING.scope("cpu", SPOT.key)] for times in (1, 2, 3, 9)] == [60.0, 120.0, 300.0, 300.0]


def test_what_one_answer_says_twice_counts_once():
    refusals = [beside("InsufficientFreeAddressesInSubnet", offering, C, M) for offering in (C, M)]
    known = note({}, refusals_of_launch(WIDE, refusals), NOW)
    assert [trial.failures for trial in known.values()] == [1, 1]


def test_families_that_share_a_quota_count_as_one():
    assert {quota_family(kind) for kind in ("c5.large", "m6id.large", "im4gn.large", "t3.micro")} == {"standard"}
    assert quota_family("g5.xlarge") == quota_family("vt1.3xlarge")
    assert len({quota_family(kind) for kind in ("p3.2xlarge", "g5.xlarge", "inf1.xlarge", "c5.large")}) == 4
