"""Meaning of EC2's refusals: each error code is about an offering, a subnet, a family, a market, a pool or the account."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import Offering, Pool
from autoscaler.domain.facts.memory import CoolOff
from autoscaler.domain.forecast.capacity import COOL_OFF_SECONDS
from autoscaler.domain.situation.pool_view import to_stop

LAST_RESORT_SECONDS = 60.0
_REMEMBERED_SECONDS = 3600.0  # beyond the end of a cool-off
UNSUPPORTED_COOL_OFF_SECONDS = 86_400.0
# A bad template or an exhausted vCPU quota needs a person; try again at this pace meanwhile.
POOL_PAUSE_SECONDS = 300.0
ACCOUNT_THROTTLE_SECONDS = 60.0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One error of a launch. ``offering_key``: "" where EC2 did not say; ``asked``: all offerings of one market in it."""

    code: str
    offering_key: str
    asked: tuple[Offering, ...]
    had: frozenset[str] = frozenset()  # instance types that it got all the same
    met: bool = False  # it got as many as it asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meaning:
    """The scope of a back-off, its length after each refusal in a row, and how soon to retry as a last resort."""

    scope: Scope
    seconds: tuple[float, ...]
    last_resort_seconds: float


def _lasting(scope: Scope, seconds: float) -> _Meaning:
    return _Meaning(scope=scope, seconds=(seconds,), last_resort_seconds=seconds)


_SHORT = _Meaning(scope=Scope.OFFERING, seconds=COOL_OFF_SECONDS, last_resort_seconds=LAST_RESORT_SECONDS)
_UNKNOWN = _lasting(Scope.UNKNOWN, POOL_PAUSE_SECONDS)
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
        _lasting(Scope.OFFERING, UNSUPPORTED_COOL_OFF_SECONDS),
    ),
    **dict.fromkeys(
        ("InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded", "InvalidSubnet", "InvalidSubnetID.NotFound"),
        replace(_SHORT, scope=Scope.SUBNET),
    ),
    "MaxSpotInstanceCountExceeded": replace(_SHORT, scope=Scope.FAMILY),
    **dict.fromkeys(("VcpuLimitExceeded", "InstanceLimitExceeded"), _lasting(Scope.FAMILY, POOL_PAUSE_SECONDS)),
    **dict.fromkeys(
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "MaxSpotFleetRequestCountExceeded"),
        _lasting(Scope.MARKET, POOL_PAUSE_SECONDS),
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
        _lasting(Scope.POOL, POOL_PAUSE_SECONDS),
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
        _lasting(Scope.ACCOUNT, ACCOUNT_THROTTLE_SECONDS),
    ),
}
KNOWN_CODES = frozenset(_MEANINGS)
# Of these, and of no other, it is EC2's machines that are short.
_LACKING_CAPACITY = frozenset(code for code, meaning in _MEANINGS.items() if meaning is _SHORT) | {"MaxSpotInstanceCountExceeded"}


def note_refusals(known: Mapping[str, CoolOff], pool: Pool, refusals: Iterable[Refusal], now: float) -> Mapping[str, CoolOff]:
    """Remember the errors of one launch by scope; a scope with several errors backs off once, for the longest."""
    cooled: dict[str, tuple[_Meaning, str]] = {}
    for refusal in refusals:
        for key, meaning in _cooled_by(pool, refusal):
            if key not in cooled or cooled[key][0].last_resort_seconds < meaning.last_resort_seconds:
                cooled[key] = meaning, f"EC2 answered {refusal.code}"
    return {**known, **{key: _cool(known.get(key), meaning, now, why) for key, (meaning, why) in cooled.items()}}


def note_stops(
    known: Mapping[str, CoolOff], stopped: Iterable[str], refused: Iterable[tuple[str, str]], now: float
) -> Mapping[str, CoolOff]:
    """Remember for a day of which pools EC2 did not let us stop an agent, and why: what is booted to be stopped may fare no better.

    ``stopped``: pools of which it did.
    """
    works, until_at = {to_stop(pool) for pool in stopped}, now + UNSUPPORTED_COOL_OFF_SECONDS
    left = {key: one for key, one in known.items() if key not in works}
    return left | {to_stop(pool): CoolOff(until_at=until_at, last_resort_at=until_at, times=1, why=why) for pool, why in refused}


def note_taken_back(cool_offs_before: Mapping[str, CoolOff], taken: Iterable[tuple[str, float, str]]) -> dict[str, CoolOff]:
    """Back off from offerings of which EC2 took machines back: key, when, and why. Machines that go while it lasts are of one spell.

    The first time, a pool without another offering may ask at once: its jobs have waited for the machine that was lost.
    """
    cool_offs = dict(cool_offs_before)
    for key, at, why in taken:
        before = cool_offs.get(key)
        if before is None or at >= before.until_at:
            cooled = _cool(before, _SHORT, at, why)
            cool_offs[key] = replace(cooled, last_resort_at=cooled.last_resort_at if before else at, taken_back=True)
    return cool_offs


def still_cooling(known: Mapping[str, CoolOff], now: float) -> dict[str, CoolOff]:
    """Leave out refusals of long ago: another one would be the first again."""
    return {key: cool_off for key, cool_off in known.items() if now - cool_off.until_at < _REMEMBERED_SECONDS}


def lacks_capacity(code: str) -> bool:
    """Tell whether EC2 lacks machines, and nothing is wrong with the request."""
    return code in _LACKING_CAPACITY


def may_be_the_image(code: str) -> bool:
    """Tell whether it may be for its image alone that EC2 refuses a launch: another image may be launched all the same."""
    meaning = _MEANINGS.get(code, _UNKNOWN)
    return meaning.scope in {Scope.POOL, Scope.UNKNOWN} or meaning.seconds[0] == UNSUPPORTED_COOL_OFF_SECONDS


def _cooled_by(pool: Pool, refusal: Refusal) -> Iterator[tuple[str, _Meaning]]:
    """Name the scopes that back off for one error. A launch that was met in full pauses neither pool nor account."""
    meaning = _MEANINGS.get(refusal.code, _UNKNOWN)
    named = next((offering for offering in refusal.asked if offering.key == refusal.offering_key), None)
    if meaning.scope is Scope.ACCOUNT:
        if not refusal.met:
            yield "account", meaning
    elif named is not None:
        yield from ((f"{pool.name}/{one.key}", meaning) for one in _like(named, pool, meaning.scope, refusal.had))
    elif refusal.had:
        return  # what it is about is not told, and it was not everything
    elif _concerns_all(meaning.scope, pool, refusal):
        yield pool.name, meaning
    else:
        if meaning.seconds[0] > POOL_PAUSE_SECONDS:
            meaning = _UNKNOWN  # it is right for a day of the one it is about, and does not say which
        yield from ((f"{pool.name}/{one.key}", meaning) for one in refusal.asked)


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


def _cool(known: CoolOff | None, meaning: _Meaning, now: float, why: str) -> CoolOff:
    times = known.times if known else 0
    seconds = meaning.seconds[min(times, len(meaning.seconds) - 1)]
    return CoolOff(until_at=now + seconds, last_resort_at=now + meaning.last_resort_seconds, times=times + 1, why=why)
