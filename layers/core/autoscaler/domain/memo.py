"""Memo: the last value of each calculation, kept with the facts it follows from and the time at which it may change.

A decision is as pure with a memo as without one: a value is taken only where every fact equals the one that it was worked out from, and
the time has not come at which it may be another. A memo lives for one invocation, or for one simulated run, and holds nothing else.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
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
    value: Any
    not_before: float


@dataclass(slots=True)
class Memo:
    """Values by the name of their calculation. ``asked`` and ``found``: how often a value was wanted, and was there."""

    asked: int = 0
    found: int = 0
    _kept: dict[Hashable, _Kept] = field(default_factory=dict)
    _groups: dict[Hashable, dict[Any, _Kept]] = field(default_factory=dict)

    def value(self, name: Hashable, facts: Any, now: float, work: Callable[[], tuple[Value, float]]) -> Value:
        """Give one value. ``work``: works it out, and says before when it need not be worked out again while its facts are the same."""
        kept = self._kept[name] = self._still_true(self._kept.get(name), facts, now) or _Kept(facts, now, *work())
        value: Value = kept.value
        return value

    def values(
        self, name: Hashable, facts: Mapping[Key, Facts], now: float, work: Callable[[Key, Facts], tuple[Value, float]]
    ) -> dict[Key, Value]:
        """Give the value of each key by its facts; whatever has no facts any more is forgotten."""
        before, after = self._groups.get(name, {}), dict[Any, _Kept]()
        for key, its in facts.items():
            after[key] = self._still_true(before.get(key), its, now) or _Kept(its, now, *work(key, its))
        self._groups[name] = after
        return {key: kept.value for key, kept in after.items()}

    def _still_true(self, kept: _Kept | None, facts: Any, now: float) -> _Kept | None:
        self.asked += 1
        if kept is None or not (kept.at <= now < kept.not_before and kept.facts == facts):
            return None
        self.found += 1
        return kept
