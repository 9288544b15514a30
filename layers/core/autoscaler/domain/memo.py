"""Memo: the last value of each calculation, kept with the facts it follows from and the time at which it may change.

A decision is as pure with a memo as without one: a value is taken only where every fact equals the one that it was worked out from, and
the time has not come at which it may be another. A memo lives for one invocation, or for one simulated run, and holds nothing else.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, TypeVar

FOR_EVER = inf

Key = TypeVar("Key", bound=Hashable)
Facts = TypeVar("Facts")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A value that holds from ``at`` until just before ``not_before``, seconds since the epoch, while its facts are these."""

    facts: Any
    at: float
    not_before: float
    value: Any

    def holds(self, facts: Any, now: float) -> bool:
        return self.at <= now < self.not_before and self.facts == facts


@dataclass(slots=True)
class Memo:
    """Values by the name of their calculation. ``asked`` and ``found``: how often a value was wanted, and was there."""

    asked: int = 0
    found: int = 0
    _kept: dict[Hashable, _Kept] = field(default_factory=dict)
    _groups: dict[Hashable, dict[Any, _Kept]] = field(default_factory=dict)

    def value(self, name: Hashable, facts: Any, now: float, work: Callable[[], tuple[Value, float]]) -> Value:
        """Give one value. ``work``: works it out, and says before when it need not be worked out again while its facts are the same."""
        kept = self._renewed(self._kept.get(name), facts, now, work)
        self._kept[name] = kept
        value: Value = kept.value
        return value

    def values(
        self, name: Hashable, facts: Mapping[Key, Facts], now: float, work: Callable[[Key, Facts], tuple[Value, float]]
    ) -> dict[Key, Value]:
        """Give the value of each key by its facts; whatever has no facts any more is forgotten."""
        before = self._groups.get(name, {})
        kept = {key: self._renewed(before.get(key), its, now, partial(work, key, its)) for key, its in facts.items()}
        self._groups[name] = kept
        return {key: one.value for key, one in kept.items()}

    def _renewed(self, kept: _Kept | None, facts: Any, now: float, work: Callable[[], tuple[Any, float]]) -> _Kept:
        self.asked += 1
        if kept is not None and kept.holds(facts, now):
            self.found += 1
            return kept
        value, not_before = work()
        return _Kept(facts, now, not_before, value)
