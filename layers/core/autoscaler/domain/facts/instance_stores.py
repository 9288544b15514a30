"""Instance types with instance stores: disks of the machine itself, which are empty after a stop."""

import re
from functools import lru_cache

from autoscaler.domain.facts.fleet import Market, Offering, Pool

# AWS writes a d after the generation for these disks (m5d, g4dn, x2iedn), and has families that are made of them (i4i, is4gen, d3, h1).
# https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
_NAMED = re.compile(r"(i|im|is|d|h)\d[^.]*|[a-z]+\d+[a-z]*d[a-z]*(-.*)?")
# Other families have them, too, and do not say so in their names.
_OTHERS = re.compile(
    r"c1|c3|m[123]|r3|x1e?|cc2|cg1|cr1|hi1|hs1|dl1|f[12]|g2|g5|g6[ef]?|g7e?|gr6f?|mac-m4(pro)?|p5(e|en)?|p6(-|e-).*|trn1n?|trn2u?"
)


@lru_cache(maxsize=1000)
def has_instance_store(instance_type: str) -> bool:
    """Tell by its name whether machines of a type have disks of their own. All sizes of a family have them, or none."""
    family = instance_type.partition(".")[0]
    return any(families.fullmatch(family) for families in (_NAMED, _OTHERS))


def may_stop_type(pool: Pool, instance_type: str) -> bool:
    """Tell whether a pool stops machines of a type."""
    return pool.warm_pool is not None and (pool.warm_pool.instance_stores or not has_instance_store(instance_type))


def stoppable(pool: Pool) -> tuple[Offering, ...]:
    """List what may be stopped of all that a pool launches."""
    return tuple(o for o in pool.offerings if o.market is Market.ON_DEMAND and may_stop_type(pool, o.instance_type))


def never_stopped(pool: Pool) -> tuple[str, ...]:
    """Name the types of a pool with stopped agents that are left out, since they have instance stores."""
    types = dict.fromkeys(offering.instance_type for offering in pool.offerings if offering.market is Market.ON_DEMAND)
    return tuple(name for name in types if pool.warm_pool is not None and not may_stop_type(pool, name))
