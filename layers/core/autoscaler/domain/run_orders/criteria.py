"""What a person asks of the machines that runs take place on: conditions on facts of a pool, such as ``vcpu>=8`` or ``gpu=A10G``."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt

from autoscaler.domain.facts.fleet import Fleet, Pool, machines_of

Value = str | float
_CONDITION = re.compile(r"\s*(?P<fact>[a-z_]+)\s*(?P<operator><=|>=|!=|=|<|>)\s*(?P<value>.*\S)\s*")
_NUMBERS: Mapping[str, Callable[[float, float], bool]] = {"<=": le, ">=": ge, "<": lt, ">": gt}
_OF_MACHINES = ("arch", "vcpu", "memory_gib", "gpus", "gpu")
FACTS = (*_OF_MACHINES, "usd_per_hour", "platform", "executors", "pool", "kind", "instance_type", "subnet")


class ConditionError(ValueError):
    """It cannot be read; the text says what would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition. ``operator``: = and != compare words, the others numbers."""

    fact: str
    operator: str
    value: str

    @property
    def text(self) -> str:
        """As a person writes it."""
        return f"{self.fact}{self.operator}{self.value}"

    def holds(self, value: Value) -> bool:
        """Tell whether one value satisfies it."""
        if self.operator in _NUMBERS:
            return isinstance(value, float | int) and _NUMBERS[self.operator](value, float(self.value))
        return _equal(value, self.value) is (self.operator == "=")


def read_condition(text: str) -> Condition:
    """Read a condition; raise `ConditionError` where there is no such fact, or it cannot be compared so."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ConditionError("must be a fact, one of = != < <= > >=, and a value, such as vcpu>=8")
    if found["fact"] not in FACTS:
        raise ConditionError(f"{found['fact']} is no fact of a pool; there are {', '.join(FACTS)}")
    if found["operator"] in _NUMBERS and _number(found["value"]) is None:
        raise ConditionError(f"{found['value']} is no number")
    return Condition(fact=found["fact"], operator=found["operator"], value=found["value"])


def unmet(conditions: Iterable[Condition], pool: Pool, fleet: Fleet) -> str | None:
    """Say which condition not every machine of a pool satisfies; None when all do."""
    for condition in conditions:
        values = values_of(condition.fact, pool, fleet)
        if not values:
            return f"nobody says its {condition.fact} ({condition.text} was asked)"
        if wrong := [value for value in values if not condition.holds(value)]:
            value = (wrong[0] or "none") if isinstance(wrong[0], str) else f"{wrong[0]:g}"
            return f"its {condition.fact} is {value} ({condition.text} was asked)"
    return None


def values_of(fact: str, pool: Pool, fleet: Fleet) -> tuple[Value, ...]:
    """Return what a fact may be on the machines of a pool, each value once; () where nobody says for one of them."""
    known: Mapping[str, Iterable[Value]] = {
        "usd_per_hour": (offering.billed_usd_per_hour for offering in pool.offerings),
        "platform": [str(pool.platform)],
        "executors": [pool.executors],
        "pool": [pool.name],
        "kind": [pool.kind] if pool.kind else [],
        "instance_type": (offering.instance_type for offering in pool.offerings if not pool.of_hosts),
        "subnet": (offering.subnet for offering in pool.offerings if offering.subnet),
    }
    if fact not in _OF_MACHINES:
        return tuple(dict.fromkeys(known[fact]))
    values = [getattr(machine, fact) for machine in machines_of(pool, fleet)]
    return () if None in values else tuple(dict.fromkeys(values))


def _equal(value: Value, asked: str) -> bool:
    """Compare numbers as such, and texts whole or by one of their words: ``gpu=A10G`` is an NVIDIA A10G."""
    if not isinstance(value, str):
        return _number(asked) == value
    return asked.casefold() in (value.casefold(), *value.casefold().split())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
