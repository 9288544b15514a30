"""Clocks that were ahead and are right again: what was noted meanwhile must not keep anything waiting until that time comes."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from autoscaler.domain.facts.memory import Memory

# Invocations run on machines whose clocks differ by less.
_DIFFER_SECONDS = 120.0
# What is tried again after a pause, asked again after a while, or rationed by the hour.
_PACED = ("trials", "failing", "rations", "most_marked", "stuck", "asked")
_PLANNED = "until_at"  # the only time of these that may be yet to come


def turned_back(memory: Memory, now: float) -> dict[str, Any]:
    """Say what changes of the memory: what a clock that was ahead noted is as if noted now, with its pause from now on."""
    mended: dict[str, Any] = {name: _not_ahead(getattr(memory, name), now) for name in _PACED}
    mended["taken"] = {name: tuple(at for at in times if at - now <= _DIFFER_SECONDS) for name, times in memory.taken.items()}
    return {name: items for name, items in mended.items() if items != getattr(memory, name)}


def _not_ahead(items: Mapping[str, Any], now: float) -> dict[str, Any]:
    return {name: _as_of_now(item, now) for name, item in items.items()}


def _as_of_now(item: Any, now: float) -> Any:
    times = {field.name: getattr(item, field.name) for field in fields(item) if field.name.endswith("_at")}
    times = {name: at for name, at in times.items() if isinstance(at, float)}
    ahead_seconds = max((at for name, at in times.items() if name != _PLANNED), default=now) - now
    if ahead_seconds <= _DIFFER_SECONDS:
        return item
    return replace(item, **{name: at - ahead_seconds for name, at in times.items() if at > now})
