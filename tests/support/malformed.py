"""Ways in which an event, or anything else that is made of JSON, can be malformed."""

from collections.abc import Iterator
from typing import Any

LONG = "x" * 100_000
DEEP: Any = []  # as deep as what notices what is left over in a test can write down; numbers as long as Lambda can read
for _ in range(400):
    DEEP = [DEEP]
WRONG = [
    True,
    None,
    [],
    {},
    "",
    LONG,
    10**30,
    10**4000,
    -1,
    1e308,
    5e-324,
    float("nan"),
    "a\n\x00\x1b[31m",
    "\ud800",
    "0001-01-01T00:00:00",
]
WRONG += [[None], {"x": 1}, [LONG], DEEP, "9999-12-31T23:59:59Z"]
WRONG_KEYS = [LONG, "a\nb", "\ud800"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to a value and to each value in it."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return the value with another one at a path, which may be a new key's."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return value | {key: replaced(value.get(key), tuple(rest), new)}
    return [replaced(child, tuple(rest), new) if number == key else child for number, child in enumerate(value)]


def variants(event: Any) -> Iterator[Any]:
    """Yield the event with one value of it replaced, missing or added, in each place and each way."""
    for path in places(event):
        for wrong in WRONG:
            yield replaced(event, path, wrong)
        value = event
        for key in path:
            value = value[key]
        if isinstance(value, dict):
            for key in WRONG_KEYS:
                yield replaced(event, (*path, key), 1)
            for key in value:
                yield replaced(event, path, {other: kept for other, kept in value.items() if other != key})
            yield replaced(event, path, value | {f"key{number}": number for number in range(1000)})
