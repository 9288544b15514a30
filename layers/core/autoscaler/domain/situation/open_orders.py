"""Whether orders of runs may be open: only then they are read, and carried on, though the key `runs` may have left the fleet file."""

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.situation.situation import Look


def may_have_orders(fleet: Fleet, memory: Memory) -> bool:
    """Tell whether orders may be open: people may order runs, or could when orders were last looked at, or some were open then."""
    return fleet.runs is not None or memory.may_have_orders


def next_may_have_orders(memory: Memory, look: Look) -> bool:
    """Remember whether a look without the key is to read orders. As long as they cannot be read, they may be there."""
    orders = look.snapshot.run_orders
    return may_have_orders(look.fleet, memory) if orders is None else look.fleet.runs is not None or bool(orders)
