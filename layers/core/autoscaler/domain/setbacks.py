"""What EC2's refusals mean for the next passes: cool one offering, cool spot, pause a pool, slow down the account."""

from dataclasses import replace

from autoscaler.domain.memory import CoolOff, Memory
from autoscaler.domain.model import Market, Pool
from autoscaler.domain.numbers import (
    ACCOUNT_THROTTLE_SECONDS,
    COOL_OFF_SECONDS,
    LAST_RESORT_SECONDS,
    POOL_PAUSE_SECONDS,
    UNSUPPORTED_COOL_OFF_SECONDS,
)

_NO_CAPACITY = frozenset({"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity"})
_UNSUPPORTED = frozenset({"Unsupported", "UnsupportedOperation"})
_NO_SPOT = frozenset({"MaxSpotInstanceCountExceeded", "SpotMaxPriceTooLow"})
_THROTTLED = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException", "ResourceCountExceeded"})


def note_setback(memory: Memory, pool: Pool, code: str, offering_key: str, now: float) -> Memory:
    """Remember one refusal; a code that nobody knows pauses the pool, since asking again would answer the same."""
    if code in _THROTTLED:
        return _cool(memory, "account", ACCOUNT_THROTTLE_SECONDS, now, f"EC2 answered {code}")
    if code in _NO_SPOT:
        for offering in pool.offerings:
            if offering.market is Market.SPOT:
                memory = _cool_offering(memory, pool, offering.key, code, now)
        return memory
    if code in _UNSUPPORTED and offering_key:
        return _cool(memory, f"{pool.name}/{offering_key}", UNSUPPORTED_COOL_OFF_SECONDS, now, f"EC2 answered {code}")
    if code in _NO_CAPACITY:
        keys = [offering_key] if offering_key else [offering.key for offering in pool.offerings]
        for key in keys:
            memory = _cool_offering(memory, pool, key, code, now)
        return memory
    return _cool(memory, pool.name, POOL_PAUSE_SECONDS, now, f"EC2 answered {code}")


def is_shortage(code: str) -> bool:
    """Tell whether machines are short, and not something wrong with the asking."""
    return code in _NO_CAPACITY | _NO_SPOT


def _cool_offering(memory: Memory, pool: Pool, offering_key: str, code: str, now: float) -> Memory:
    key = f"{pool.name}/{offering_key}"
    times = memory.cool_offs[key].times if key in memory.cool_offs else 0
    seconds = COOL_OFF_SECONDS[min(times, len(COOL_OFF_SECONDS) - 1)]
    return _cool(memory, key, seconds, now, f"EC2 answered {code}", LAST_RESORT_SECONDS)


def _cool(memory: Memory, key: str, seconds: float, now: float, why: str, last_resort_seconds: float | None = None) -> Memory:
    times = memory.cool_offs[key].times + 1 if key in memory.cool_offs else 1
    cool_off = CoolOff(until_at=now + seconds, last_resort_at=now + (last_resort_seconds or seconds), times=times, why=why)
    return replace(memory, cool_offs={**memory.cool_offs, key: cool_off})
