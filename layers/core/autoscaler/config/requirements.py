"""Instance types by what a machine must have: conditions on the carried table of shapes, expanded into a fixed list with known prices.

The same conditions always give the same list, whatever EC2 has meanwhile: a new type comes with a new version of the table.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, StringConstraints

from autoscaler.config.machines import shapes
from autoscaler.config.price_list import carried_prices
from autoscaler.domain.facts.fleet import Allocation, Platform
from autoscaler.domain.run_orders.criteria import Condition, ConditionError, Value, read_condition

if TYPE_CHECKING:
    from autoscaler.config.settings import PoolSettings

INSTANCE_TYPE = r"^[a-z0-9-]+\.[a-z0-9-]+$"
# EC2 takes 300 combinations of type and subnet in one request; beyond the cheapest few, more types hardly make capacity likelier.
MOST_TYPES = 20
_FACTS = ("arch", "vcpu", "memory_gib", "gpus", "gpu", "usd_per_hour", "instance_type")
_GPU_FACTS = {"gpus", "gpu"}
# Burstable machines are throttled, bare metal boots for minutes, and general types of before 2017 are dear for what they do.
_LEFT_OUT = re.compile(r"t\d.*|.*\.metal.*|(a1|c[1-4]|cc[12]|cr1|d2|h1|hs1|i[23]|m[1-4]|r[34]|x1e?)\..*")

# Parts of a GPU count as none in the table, and other accelerators are no GPUs.
_ACCELERATED = re.compile(r"g\d|p\d|inf|trn|dl|vt|f\d")


def _condition(text: str) -> str:
    try:
        condition = read_condition(text)
    except ConditionError as error:
        raise ValueError(f"({text}) {error}") from error
    if condition.fact not in _FACTS:
        raise ValueError(f"({text}) {condition.fact} is no fact of an instance type; there are {', '.join(_FACTS)}")
    return text


_Condition = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_condition)]
InstanceTypes = Annotated[
    Annotated[list[Annotated[str, StringConstraints(pattern=INSTANCE_TYPE)]], Field(min_length=1)] | None,
    Field(
        description="EC2 instance types in order of preference, such as [m7i.xlarge, m6i.xlarge]. All of one processor architecture, that "
        "of the launch template's image."
    ),
]
Requirements = Annotated[
    Annotated[list[_Condition], Field(min_length=1, max_length=20)] | None,
    Field(
        description="Instead of instance_types: what a machine must have, such as [arch=x86_64, vcpu>=8, memory_gib>=32, usd_per_hour<1]. "
        f"Facts: {', '.join(_FACTS)}. The {MOST_TYPES} cheapest types of the carried table that satisfy all are taken, the cheapest first; "
        "autoscaler validate lists them. Burstable, bare-metal and old types are left out, and those with GPUs where no condition is on "
        "gpus or gpu."
    ),
]


AllocationKey = Annotated[
    Annotated[Allocation, Field(strict=False)] | None,
    Field(
        description="Which of several instance types and subnets EC2 takes. in-order: as they are written, for spot among those with "
        "capacity. by-price: the cheapest on demand; for spot what is cheap and seldom taken back (price-capacity-optimized). Default: "
        "in-order for instance_types, by-price for instance_requirements.",
    ),
]


def allocation_of(pool: "PoolSettings") -> Allocation:
    """Return in which way EC2 chooses among a pool's offerings."""
    by_default = Allocation.BY_PRICE if pool.instance_requirements else Allocation.IN_ORDER
    return pool.allocation or by_default


def types_of(pool: "PoolSettings") -> tuple[str, ...]:
    """Return the instance types of a pool, in order of preference; () where it names none, or none satisfies what it requires."""
    if pool.instance_types or not pool.instance_requirements:
        return tuple(pool.instance_types or ())
    return types_for(tuple(pool.instance_requirements), pool.platform)


@cache
def types_for(requirements: tuple[str, ...], platform: Platform) -> tuple[str, ...]:
    """Return the instance types that satisfy all conditions, the cheapest first."""
    conditions = tuple(map(read_condition, requirements))
    with_gpus = any(condition.fact in _GPU_FACTS for condition in conditions)
    prices = {name: usd for name, by_platform in carried_prices().items() if (usd := by_platform.get(str(platform)))}
    found = [
        name
        for name, usd in prices.items()
        if name in shapes() and _satisfies(name, shapes()[name] | {"usd_per_hour": usd}, conditions, with_gpus=with_gpus)
    ]
    return tuple(sorted(found, key=lambda name: (prices[name], name))[:MOST_TYPES])


def _satisfies(name: str, facts: Mapping[str, Value], conditions: tuple[Condition, ...], *, with_gpus: bool) -> bool:
    if _LEFT_OUT.fullmatch(name) or ((facts["gpus"] or _ACCELERATED.match(name)) and not with_gpus):
        return False
    return all(condition.holds(name if condition.fact == "instance_type" else facts[condition.fact]) for condition in conditions)
