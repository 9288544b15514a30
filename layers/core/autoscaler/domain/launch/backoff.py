"""Meaning of EC2's refusals: each error code is about an offering, a subnet, a family, a market, a pool or the account."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import Offering, Pool
from autoscaler.domain.facts.memory import EC2_ANSWERED, Trial
from autoscaler.domain.facts.plan import Had, Refusal
from autoscaler.domain.facts.snapshot import InstanceState, Snapshot
from autoscaler.domain.situation.bets import (
    ACCOUNT,
    CAPACITY_PAUSES,
    PERSON_PAUSES,
    THROTTLE_PAUSES,
    UNSUPPORTED_PAUSES,
    Outcome,
    TrialOf,
    offerings_of,
)
from autoscaler.domain.situation.situation import Look

# Families that share a quota, by the quota's name; of all others each has its own.
_SHARED_QUOTAS = {
    "standard": frozenset({"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"}),
    "g and vt": frozenset({"g", "gr", "vt"}),
}


def quota_family(instance_type: str) -> str:
    """Name the vCPU quota that an instance type shares with others, as far as its name tells."""
    found = re.match(r"[a-z]+", instance_type)
    letters = found[0] if found else instance_type
    return next((name for name, families in _SHARED_QUOTAS.items() if letters in families), letters)


class Scope(StrEnum):
    """The scope of an error code."""

    OFFERING = "offering"
    SUBNET = "subnet"
    FAMILY = "family"  # of instance types that share a quota, on one market
    MARKET = "market"
    POOL = "pool"
    ACCOUNT = "account"
    UNKNOWN = "unknown"


def scopes_of(had: Had) -> list[str]:
    """Name the scopes that work, as a launch shows. Which subnet an instance is in, the answer does not say."""
    offerings = (TrialOf.OFFERING.scope(had.pool, offering.key) for offering in had.asked if offering.instance_type in had.types)
    return [ACCOUNT, TrialOf.POOL.scope(had.pool), *offerings]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meaning:
    """The scope of a trial, and its pauses: after the first refusal, the second, and so on."""

    scope: Scope
    pauses: tuple[float, ...]


def _lasting(scope: Scope, pauses: tuple[float, ...] = PERSON_PAUSES) -> _Meaning:
    return _Meaning(scope=scope, pauses=pauses)


_SHORT = _lasting(Scope.OFFERING, CAPACITY_PAUSES)
_UNKNOWN = _lasting(Scope.UNKNOWN)
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html; which of them CreateFleet answers beside instances, AWS does
# not say, so that all are taken either way.
_MEANINGS: dict[str, _Meaning] = {
    **dict.fromkeys(
        (
            "InsufficientInstanceCapacity",
            "InsufficientHostCapacity",
            "InsufficientReservedInstanceCapacity",
            "InsufficientCapacity",
            "InsufficientCapacityOnHost",
            "InsufficientVolumeCapacity",
            "UnfulfillableCapacity",
            "ReservationCapacityExceeded",
            "SpotMaxPriceTooLow",
        ),
        _SHORT,
    ),
    **dict.fromkeys(
        (
            "Unsupported",
            "UnsupportedOperation",
            "UnsupportedHostConfiguration",
            "UnsupportedTenancy",
            "InvalidInstanceType",
            "VolumeTypeNotAvailableInZone",
        ),
        _lasting(Scope.OFFERING, UNSUPPORTED_PAUSES),
    ),
    **dict.fromkeys(
        ("InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded", "InvalidSubnet", "InvalidSubnetID.NotFound"),
        replace(_SHORT, scope=Scope.SUBNET),
    ),
    "MaxSpotInstanceCountExceeded": replace(_SHORT, scope=Scope.FAMILY),
    **dict.fromkeys(("VcpuLimitExceeded", "InstanceLimitExceeded"), _lasting(Scope.FAMILY)),
    **dict.fromkeys(
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "MaxSpotFleetRequestCountExceeded"),
        _lasting(Scope.MARKET),
    ),
    **dict.fromkeys(
        (
            "InvalidAMIID.Malformed",
            "InvalidAMIID.NotFound",
            "InvalidAMIID.Unavailable",
            "InvalidBlockDeviceMapping",
            "InvalidFleetConfig",
            "InvalidFleetConfiguration",
            "InvalidGroup.NotFound",
            "InvalidKeyPair.NotFound",
            "InvalidLaunchTemplateId.Malformed",
            "InvalidLaunchTemplateId.NotFound",
            "InvalidLaunchTemplateId.VersionNotFound",
            "InvalidLaunchTemplateName.MalformedException",
            "InvalidLaunchTemplateName.NotFoundException",
            "InvalidSecurityGroupID.NotFound",
            "InvalidSnapshot.NotFound",
            "InvalidUserData.Malformed",
            "SecurityGroupsPerInstanceLimitExceeded",
            "TagLimitExceeded",
        ),
        _lasting(Scope.POOL),
    ),
    **dict.fromkeys(
        (
            "RequestLimitExceeded",
            "RequestResourceCountExceeded",
            "RequestThrottled",
            "ResourceCountExceeded",
            "Throttling",
            "ThrottlingException",
            "MaxFleetCountExceeded",
            "Blocked",
            "OptInRequired",
            "PendingVerification",
        ),
        _lasting(Scope.ACCOUNT, THROTTLE_PAUSES),
    ),
}
_ADDRESSES = ("InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded")
_VOLUME_QUOTAS = ("VolumeLimitExceeded", "VolumeLimitExceeded.Iops", "MaxIOPSLimitExceeded", "TotalVolumeStorageLimitExceeded")
_OF_LAUNCHES = (TrialOf.OFFERING.scope(""), TrialOf.POOL.scope(""), ACCOUNT)
KNOWN_CODES = frozenset(_MEANINGS)
# Only these codes say that EC2 is short of machines.
_LACKING_CAPACITY = frozenset(code for code, meaning in _MEANINGS.items() if meaning is _SHORT) | {"MaxSpotInstanceCountExceeded"}


def refusals_of_launch(pool: Pool, refusals: Iterable[Refusal]) -> Iterator[Outcome]:
    """Name the scopes of one launch's errors; a scope with several errors is lost once, for the one with the longest pauses."""
    lost: dict[str, Outcome] = {}
    for refusal in refusals:
        for scope, meaning in _failed_by(pool, refusal):
            if scope not in lost or lost[scope].pauses < meaning.pauses:
                lost[scope] = Outcome(scope=scope, pauses=meaning.pauses, why=f"{EC2_ANSWERED}{refusal.text}")
    yield from lost.values()


def held_by_what_is_stopped(code: str, *, everywhere: bool = False) -> bool:
    """Tell whether a stopped instance holds what a launch lacked: an address of its subnet, or volumes of a quota for the whole account."""
    return code in _VOLUME_QUOTAS or (not everywhere and code in _ADDRESSES)


def keeps_from_starting(code: str) -> bool:
    """Tell whether EC2 lacks machines, or a quota lacks room, for what is stopped as well; nothing is wrong with that."""
    meaning = _MEANINGS.get(code)
    return code in _LACKING_CAPACITY or (meaning is not None and meaning.scope in (Scope.FAMILY, Scope.ACCOUNT))


# If EC2 accepts a launch and ends its instance while it is pending, the end means the same as a refusal with that code. After such an end
# an accepted launch proves nothing until one of its machines runs.


def code_of_end(why: str) -> str:
    """Return the code of an error from EC2's reason for a state, which also says whose error it is: Client.VolumeLimitExceeded."""
    return why.partition(".")[2]


def short_ends(snapshot: Snapshot) -> dict[str, str]:
    """Return by id the codes of instances that EC2 ended because something was short; nothing is wrong with their image or template."""
    codes = {name: code_of_end(why) for name, why in snapshot.end_reasons.items()}
    return {name: code for name, code in codes.items() if keeps_from_starting(code) or held_by_what_is_stopped(code)}


def short_launches(known: Mapping[str, Trial], look: Look) -> Iterator[Outcome]:
    """Find launches that EC2 ended because something was short. Launches from before the first such end do not count again."""
    short, lost = short_ends(look.snapshot), dict[str, Outcome]()
    listed = {instance.id: instance for instance in look.snapshot.instances if instance.state.ended}
    for agent in [agent for agent in look.agents if agent.record.instance_id in short]:
        record, code = agent.record, short[agent.record.instance_id]
        offerings = offerings_of(record, agent.pool, listed.get(record.machine))
        # A quota of volumes is about nothing that could be chosen otherwise.
        keys = [""] if held_by_what_is_stopped(code, everywhere=True) else [offering.key for offering in offerings]
        refusals = [Refusal(code=code, offering_key=key, asked=agent.pool.offerings) for key in keys]
        for one in refusals_of_launch(agent.pool, refusals):
            if one.scope not in known or record.began_at >= known[one.scope].failed_at:
                lost.setdefault(one.scope, replace(one, launch=record.launch))
    yield from lost.values()


def running(known: Mapping[str, Trial], look: Look) -> Iterator[Outcome]:
    """Find machines that run and were launched since EC2 ended others while they were pending."""
    unsure = {scope: trial for scope, trial in known.items() if trial.launch and scope.startswith(_OF_LAUNCHES)}
    machines = {machine.id: machine for machine in look.snapshot.instances if unsure and machine.state is InstanceState.RUNNING}
    for agent in [agent for agent in look.agents if agent.record.machine in machines]:
        offerings = tuple(offerings_of(agent.record, agent.pool, machines[agent.record.machine]))
        for scope in scopes_of(Had(pool=agent.pool.name, asked=offerings, types=frozenset({agent.record.instance_type}))):
            if scope in unsure and agent.record.launched_at >= unsure[scope].failed_at:
                yield Outcome(scope=scope, won=True, name=agent.record.instance_id)


def spells(known: Mapping[str, Trial], taken: Iterable[tuple[str, float, str]]) -> Iterator[Outcome]:
    """Name the offerings of which EC2 took machines back: scope, when, and why. Machines that go while the pause lasts are of one spell."""
    fresh = {scope: (at, why) for scope, at, why in taken if scope not in known or at >= known[scope].until_at}
    return (Outcome(scope=scope, at=at, why=why) for scope, (at, why) in fresh.items())


def lacks_capacity(code: str) -> bool:
    """Tell whether EC2 lacks machines, and nothing is wrong with the request."""
    return code in _LACKING_CAPACITY


def may_be_the_image(code: str) -> bool:
    """Tell whether it may be for its image alone that EC2 refuses a launch: another image may be launched all the same."""
    meaning = _MEANINGS.get(code, _UNKNOWN)
    return meaning.scope in {Scope.POOL, Scope.UNKNOWN} or meaning.pauses == UNSUPPORTED_PAUSES


def _failed_by(pool: Pool, refusal: Refusal) -> Iterator[tuple[str, _Meaning]]:
    """Name the scopes that one error is about. A launch that was met in full pauses neither pool nor account."""
    meaning = _MEANINGS["Throttling"] if refusal.in_doubt else _MEANINGS.get(refusal.code, _UNKNOWN)
    named = next((offering for offering in refusal.asked if offering.key == refusal.offering_key), None)
    if meaning.scope is Scope.ACCOUNT:
        if not refusal.met:
            yield ACCOUNT, meaning
    elif named is not None:
        yield from (
            (TrialOf.OFFERING.scope(pool.name, offering.key), meaning) for offering in _like(named, pool, meaning.scope, refusal.had)
        )
    elif refusal.had:
        return  # what it is about is not told, and it was not everything
    elif _concerns_all(meaning.scope, pool, refusal):
        yield TrialOf.POOL.scope(pool.name), meaning
    else:
        if meaning.pauses == UNSUPPORTED_PAUSES:
            meaning = _UNKNOWN  # it is right for a day of the one it is about, and does not say which
        yield from ((TrialOf.OFFERING.scope(pool.name, offering.key), meaning) for offering in refusal.asked)


def _like(named: Offering, pool: Pool, scope: Scope, had: frozenset[str]) -> Iterator[Offering]:
    """Return the named offering, and those of its pool that share its scope."""
    yield named
    for other in pool.offerings:
        if other == named:
            continue
        same_market = other.market is named.market and other.instance_type not in had
        if (
            (scope is Scope.SUBNET and other.subnet == named.subnet)
            or (scope is Scope.MARKET and same_market)
            or (scope is Scope.FAMILY and same_market and quota_family(other.instance_type) == quota_family(named.instance_type))
        ):
            yield other


def _concerns_all(scope: Scope, pool: Pool, refusal: Refusal) -> bool:
    """Tell whether a refusal of all offerings leaves nothing else to ask for: no other market, or none that would help."""
    elsewhere = {offering.market for offering in pool.offerings} - {offering.market for offering in refusal.asked}
    return scope is Scope.POOL or (not elsewhere and scope in {Scope.UNKNOWN, Scope.FAMILY, Scope.MARKET})
