"""What does not hold yet: switch and property, and why. An entry goes as soon as its fix is there."""

from collections.abc import Collection

NOT_YET: dict[tuple[str, str], str] = {}


def is_known(name: str, switches: Collection[str]) -> bool:
    """Tell whether a property is known not to hold under one of these switches."""
    return any((switch, name) in NOT_YET for switch in switches)
