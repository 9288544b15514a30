"""Values as the JSON of items, with what other versions of the autoscaler have written there.

While a deploy runs, old and new functions take turns with the same items, and a new release may be
taken back. So what this version does not know is written back as it was read: in the same object,
under the same key, in the same element of a list.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

T = TypeVar("T")
_Object: TypeAlias = dict[str, Any]
_Pair: TypeAlias = tuple[Any, Any]  # what is known of an element, and the element itself

_FIELD, _ENTRY = 2, 3  # parts of a place: what the item holds, its field, and the key of an entry
_MOST_TIMES = 10  # errors may hide others


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A value, and the JSON it was read from if that holds more than this version writes."""

    value: T
    raw: bytes | None = None
    unread: tuple[str, ...] = ()  # places that are known here, and cannot be read


class Form(Generic[T]):
    """How values of a type stand in items: as JSON, with defaults or without, packed or as text."""

    def __init__(
        self,
        of: type[T],
        *,
        is_short: bool,
        is_packed: bool = True,
        forget: Callable[[Any], None] = lambda _raw: None,
    ) -> None:
        """Prepare for a type. ``forget``: takes out what is to go with the next write."""
        self._adapter: TypeAdapter[T] = TypeAdapter(of)
        self._is_short, self._is_packed, self._forget = is_short, is_packed, forget

    def load(self, body: bytes) -> Read[T]:
        """Read a value; `ValueError`.

        Most bodies are this version's own, byte by byte: that is quicker than to look for more.
        """
        value = self._adapter.validate_json(body)
        if self._adapter.dump_json(value, exclude_defaults=self._is_short) == body:
            return Read(value)
        raw = from_json(body)
        self._forget(raw)
        return Read(value, to_json(raw) if _has_more(raw, self._known(value)) else None)

    def load_what_can_be_read(self, body: bytes, times: int = _MOST_TIMES) -> Read[T]:
        """Read a value without entries that cannot be read: these are kept, too; `ValueError`."""
        try:
            return self.load(body)
        except ValidationError as error:
            if not times:
                raise
            rest = from_json(body)
            unread = _take_out(rest, error)
        read = self.load_what_can_be_read(to_json(rest), times - 1)
        raw = from_json(body)
        self._forget(raw)
        return Read(read.value, to_json(raw), tuple(sorted({*unread, *read.unread})))

    def body(self, value: T, raw: bytes | None = None) -> tuple[bytes | str, bytes | None]:
        """Return what an item is to hold, and what of it is ``raw`` then; it was so before."""
        text = self._adapter.dump_json(value, exclude_defaults=self._is_short)
        if raw:
            before = self._known(self.load_what_can_be_read(raw).value)
            raw = text = to_json(merged(self._known(value), from_json(raw), before))
        return zlib.compress(text) if self._is_packed else text.decode(), raw

    def _known(self, value: T) -> Any:
        return from_json(self._adapter.dump_json(value))


def body_of(content: _Object) -> bytes:
    """Return the JSON of an attribute, packed or not; `ValueError`, `KeyError`, `zlib.error`."""
    return zlib.decompress(content["B"]) if "B" in content else content["S"].encode()


def merged(new: Any, raw: Any, known: Any, moved: Sequence[_Pair] = ()) -> Any:
    """Write new JSON over raw JSON: what is as it was known stays as it stands in the raw one.

    ``moved``: elements of other lists, which may be in this one by now.
    """
    if new == known:
        return raw
    if isinstance(new, dict) and isinstance(raw, dict) and isinstance(known, dict):
        return _merged_fields(new, raw, known)
    if isinstance(new, list) and _are_objects(new):
        before = [*(pair for pair in moved if pair[0] in new), *_pairs(raw, known)]
        return [merged(part, *pair) for part, pair in zip(new, _before(new, before), strict=True)]
    return new


def _merged_fields(new: _Object, raw: _Object, known: _Object) -> _Object:
    lists = {name: _pairs(part, known.get(name)) for name, part in raw.items()}
    whole = {name: part for name, part in raw.items() if name not in known}
    for name, part in new.items():
        if name not in raw and name in known and part == known[name]:
            continue  # a default that was left out
        moved = [pair for other in lists.keys() - {name} for pair in lists[other]]
        whole[name] = merged(part, raw.get(name), known.get(name), moved)
    return whole


def _has_more(raw: Any, known: Any) -> bool:
    if isinstance(raw, dict) and isinstance(known, dict):
        return any(name not in known or _has_more(part, known[name]) for name, part in raw.items())
    return any(_has_more(element, part) for part, element in _pairs(raw, known))


def _pairs(raw: Any, known: Any) -> list[_Pair]:
    """Return the elements of a list of objects, each beside what is known of it."""
    if not isinstance(raw, list) or not isinstance(known, list) or not _are_objects(known):
        return []
    return [*zip(known, raw, strict=True)] if len(raw) == len(known) else []


def _are_objects(parts: list[Any]) -> bool:
    return all(isinstance(part, dict) for part in parts)


def _before(new: list[_Object], pairs: list[_Pair]) -> list[_Pair]:
    """Return for each element what it was before: raw, and known; itself if it is new."""
    places, found = range(len(pairs)), dict[int, int]()
    alike = [(_likeness(pairs[n][0], part), at, n) for at, part in enumerate(new) for n in places]
    for likeness, at, place in sorted(alike, reverse=True):
        if likeness and at not in found and place not in found.values():
            found[at] = place
    return [pairs[found[at]][::-1] if at in found else (part, part) for at, part in enumerate(new)]


def _likeness(known: _Object, part: _Object) -> int:
    """Count equal fields of two objects with the same name, which comes first in their fields."""
    first = next(iter(known), "")
    if known.get(first) != part.get(first):
        return 0
    return sum(name in part and part[name] == of for name, of in known.items())


def _take_out(raw: Any, error: ValidationError) -> set[str]:
    """Take out each place with an error: an entry of a table by keys, or else a field."""
    taken, errors = set(), error.errors(include_url=False, include_input=False)
    for place in {detail["loc"][:_ENTRY] for detail in errors}:
        if len(place) < _FIELD or place[1] == "version":
            raise error
        what, name, *entry = map(str, place)
        fields = raw[what]
        if entry and isinstance(fields.get(name), dict) and entry[0] in fields[name]:
            del fields[name][entry[0]]
            taken.add(f"{name}/{entry[0]}")
        elif name in fields:
            del fields[name]
            taken.add(name)
    return taken
