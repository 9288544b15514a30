"""What does not hold yet, and why. An entry goes as soon as its fix is there."""

from collections.abc import Collection

from support.hostile.verdict import Violation

# By switch and property.
NOT_YET: dict[tuple[str, str], str] = {}
# By property and words of what is broken, whatever the switches are.
NOT_YET_SO: dict[tuple[str, str], str] = {}


def is_known(violation: Violation, switches: Collection[str]) -> bool:
    """Tell whether this is known not to hold."""
    if any((switch, violation.property) in NOT_YET for switch in switches):
        return True
    return any(name == violation.property and words in violation.text for name, words in NOT_YET_SO)
