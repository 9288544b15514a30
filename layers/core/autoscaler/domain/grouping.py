"""What belongs to the same key, together: lists and sums, in the order in which the keys come first."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """List the values of each key."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def summed(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """Add up the values of each key."""
    return {key: sum(values) for key, values in grouped(pairs).items()}
