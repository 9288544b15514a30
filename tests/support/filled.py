"""Values of any stored type with something in each of their fields, and JSON of them as a later version might have written it."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

NEWS = "from_a_later_version"
_PLAIN = {str: "x", int: 3, float: 2.5, bool: True}


def filled(of: Any) -> Any:
    """Return a value of a type: no field is empty, or as it is by default."""
    origin, parts = get_origin(of), get_args(of)
    if of in _PLAIN:
        return _PLAIN[of]
    if is_dataclass(of):
        hints = get_type_hints(of)
        return of(**{field.name: filled(hints[field.name]) for field in fields(of)})
    if isinstance(of, type) and issubclass(of, Enum):
        return [*of][-1]
    if origin in (Union, types.UnionType):
        return filled(next(part for part in parts if part is not type(None)))
    if origin is tuple:
        return (filled(parts[0]),) if parts[-1] is ... else tuple(filled(part) for part in parts)
    if origin in (frozenset, list):
        return origin([filled(parts[0])])
    if origin is not None and issubclass(origin, Mapping):
        return {filled(parts[0]): filled(parts[1])}
    return of(*(filled(part) for part in get_type_hints(of).values()))  # a named tuple


def with_news(value: Any, raw: Any) -> tuple[Any, int]:
    """Add something new to each object in the JSON of a value; count these."""
    if is_dataclass(value):
        raw, count = {**raw, NEWS: {"nested": [1, None, "ü"]}}, 1
        for field in fields(value):
            if field.name in raw:
                raw[field.name], more = with_news(getattr(value, field.name), raw[field.name])
                count += more
        return raw, count
    if isinstance(value, Mapping) and isinstance(raw, dict):
        pairs = {str(key): with_news(part, raw[str(key)]) for key, part in value.items()}
        return {key: part for key, (part, _) in pairs.items()}, sum(count for _, count in pairs.values())
    if isinstance(value, list | tuple) and isinstance(raw, list):
        parts = [with_news(part, of) for part, of in zip(value, raw, strict=True)]
        return [part for part, _ in parts], sum(count for _, count in parts)
    return raw, 0
