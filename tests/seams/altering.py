"""Altering one fact: of one thing (a node, a record, a pool...) one field has another value, wherever a function reads it.

A thing is named by its class and identity; what has no identity of its own is named by its place in the thing that holds it.
"""

import typing
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import tzinfo
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any
from zoneinfo import ZoneInfo

from seams.facts import hints

_IDENTITIES = ("instance_id", "id", "name", "key", "path", "pool", "team")
_MOST_ELEMENTS = 12
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fact stands: the thing, the steps from it to the fact's owner, and the fact."""

    thing: str
    steps: tuple[Any, ...]
    fact: str


@dataclass(frozen=True, slots=True)
class Alteration:
    """A fact that has another value."""

    place: Place
    value: Any


def places(answer: Any, source: str) -> Iterator[tuple[Place, Any]]:
    """Every fact in an answer, with its value."""
    yield from _places(answer, source, ())


def _places(value: Any, thing: str, steps: tuple[Any, ...]) -> Iterator[tuple[Place, Any]]:
    if is_dataclass(value):
        kind = type(value)
        if name := _name_of(value) or ("" if steps else kind.__name__):
            thing, steps = name, ()
        for field in fields(kind):
            held = getattr(value, field.name)
            yield Place(thing, steps, f"{kind.__name__}.{field.name}"), held
            yield from _places(held, thing, (*steps, field.name))
    elif isinstance(value, Mapping):
        for key in list(value)[:_MOST_ELEMENTS]:
            yield from _places(value[key], thing, (*steps, key))
    elif isinstance(value, tuple | list):
        for index, element in enumerate(value[:_MOST_ELEMENTS]):
            yield from _places(element, thing, (*steps, index))


def is_empty(value: object) -> bool:
    """Tell whether a fact says nothing."""
    return value is None or (isinstance(value, Sized) and len(value) == 0)


def altered(answer: Any, source: str, alteration: Alteration) -> Any:
    """The answer with the alteration; itself where it does not hold that fact."""
    return _altered(answer, source, (), alteration)


def _altered(value: Any, thing: str, steps: tuple[Any, ...], wanted: Alteration) -> Any:
    if is_dataclass(value):
        kind = type(value)
        if name := _name_of(value) or ("" if steps else kind.__name__):
            thing, steps = name, ()
        owner, _, fact = wanted.place.fact.partition(".")
        if kind.__name__ == owner and (thing, steps) == (wanted.place.thing, wanted.place.steps):
            return replace(value, **{fact: wanted.value})
        if not _may_hold(kind, owner):
            return value
        held = {field.name: getattr(value, field.name) for field in fields(kind) if field.init}
        changed = {name: new for name, old in held.items() if (new := _altered(old, thing, (*steps, name), wanted)) is not old}
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        after = {key: _altered(element, thing, (*steps, key), wanted) for key, element in value.items()}
        return after if any(after[key] is not value[key] for key in value) else value
    if isinstance(value, tuple | list):
        elements = [_altered(element, thing, (*steps, index), wanted) for index, element in enumerate(value)]
        return type(value)(elements) if any(new is not old for new, old in zip(elements, value, strict=True)) else value
    return value


def _name_of(value: Any) -> str:
    """The thing's class and identity; "" where it has none of its own."""
    names = [f.name for f in fields(value)]
    identity = next((getattr(value, name) for name in _IDENTITIES if name in names), None)
    return f"{type(value).__name__} {identity}" if isinstance(identity, str | int) else ""


@cache
def _may_hold(kind: type, owner: str) -> bool:
    return owner in _classes_in(kind, frozenset())


def _classes_in(hint: Any, seen: frozenset[type]) -> frozenset[str]:
    if is_dataclass(hint):
        if hint in seen:
            return frozenset()
        inside = (_classes_in(hints(hint)[field.name], seen | {hint}) for field in fields(hint))
        return frozenset({hint.__name__}).union(*inside)
    return frozenset().union(*(_classes_in(part, seen) for part in typing.get_args(hint)))


def alternatives(value: Any, hint: Any, others: list[Any]) -> list[Any]:
    """Other values that a fact may have. ``others``: values that the same fact has elsewhere."""
    found = [other for other in others if other != value][:4]
    found += _alternatives(value, hint)
    distinct: list[Any] = []
    for other in found:
        if other != value and other not in distinct:
            distinct.append(other)
    return distinct


def _alternatives(value: Any, hint: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case Enum():
            return [member for member in type(value) if member is not value]
        case int():
            return [0, value + 1, max(0, value - 1), 3 * value + 2, 1, 50]
        case float():
            return _other_numbers(value)
        case str():
            return ["", f"{value}x", "2"]
        case None:
            return _made(hint)
        case Mapping() | tuple() | list() | frozenset() | set():
            return _other_collections(value, hint)
        case _:
            return [ZoneInfo("Asia/Tokyo")] if isinstance(value, tzinfo) else [*_made(hint), *_with_one_other_field(value)]


def _with_one_other_field(value: Any, most: int = 8) -> list[Any]:
    found = []
    for field in fields(value):
        others = alternatives(getattr(value, field.name), hints(type(value))[field.name], [])
        found += [replace(value, **{field.name: other}) for other in others[:2] if field.init]
    return found[:most]


def _other_numbers(value: float) -> list[float]:
    if value > 1e9:  # a time
        return [value + by * sign for by in (2 * MINUTE, 20 * MINUTE, 3 * HOUR, 2 * DAY) for sign in (1, -1)] + [0.0, value + 1.0]
    return [0.0, 2 * value + 1.0, value / 10, 1000.0 * value, value + HOUR, 0.5, float("inf")]


def _other_collections(value: Any, hint: Any) -> list[Any]:
    if isinstance(value, Mapping):
        keys = list(value)
        # A number, a time or a word for each key: whatever it stands for.
        varied = [
            {key: new} for key in keys[:3] for new in _alternatives(value[key], None)[:8] if isinstance(value[key], float | int | str)
        ]
        return [
            {},
            *({k: v for k, v in value.items() if k != key} for key in keys[:4]),
            *({**value, **one} for one in varied),
            *(
                {**value, key: other}
                for key in keys[:2]
                if is_dataclass(value[key])
                for other in _with_one_other_field(value[key], most=30)
            ),
            *_made(hint),
        ]
    kind = type(value)
    elements = list(value)
    without = [kind(elements[:n] + elements[n + 1 :]) for n in range(min(4, len(elements)))]
    varied = []
    if elements and isinstance(elements[0], float | int | str) and kind is not frozenset:
        varied = [kind([new, *elements[1:]]) for new in _alternatives(elements[0], None)[:8]]
        varied += [kind([new] * 5) for new in _alternatives(elements[0], None)[:8]]
    if elements and is_dataclass(elements[0]):
        varied = [kind([other, *elements[1:]]) for other in _with_one_other_field(elements[0])]
    return [kind(), *without, *varied, kind([*elements, *elements]), *_made(hint)]


def _made(hint: Any) -> list[Any]:
    """Values made from a type alone."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or isinstance(hint, UnionType):
        return [value for part in parts for value in _made(part)]
    if hint is type(None):
        return [None]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)
    if is_dataclass(hint):
        return _made_dataclass(hint)
    if hint in (bool, int, float, str):
        return {bool: [True, False], int: [1, 7], float: [1.0, 7200.0, 1.8e9], str: ["x"]}[hint]
    if origin in (tuple, frozenset):
        return [origin([value]) for value in _made(parts[0])[:2]] if parts else []
    return []


def _made_dataclass(hint: Any) -> list[Any]:
    given = {f.name: _made(hints(hint)[f.name]) for f in fields(hint) if f.default is MISSING and f.default_factory is MISSING}
    return [hint(**{name: values[0] for name, values in given.items()})] if all(given.values()) else []


Reading = Callable[[str, Any], Any]
