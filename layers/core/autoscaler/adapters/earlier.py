"""Records as 0.2.0 keeps them: the record itself says whom an instance serves, and as which node. There are no ``bindings``.

0.3.0 leaves such a record as it is while nothing about its agent changes, and what it writes has both forms. Both are read.
"""

from dataclasses import replace
from typing import Any

from pydantic_core import from_json, to_json

from autoscaler.adapters.kept import Unknown

_RECORD, _NAMES = "record", frozenset({"controller", "node", "life", "to_stop"})


def in_todays_form(body: bytes | str) -> bytes:
    """Return the JSON of an earlier record with its binding. `ValueError` or `KeyError` if it is none."""
    entry: dict[str, Any] = from_json(body)
    record = entry[_RECORD]
    if not isinstance(record, dict) or "bindings" in record:
        raise ValueError("this is no record of an earlier version")
    binding = {"controller": record["controller"], "node": record["node"], "life": record.get("life", 0)}
    return to_json(entry | {_RECORD: record | {"bindings": [binding]}})


def without_earlier_names(unknown: Unknown) -> Unknown:
    """Leave out what 0.3.0 wrote, and what would not be true for long: 0.3.0 may stop what it launched to be stopped, and no used disk."""
    inside = unknown.inside.get(_RECORD)
    if inside is None or not inside.extras.keys() & _NAMES:
        return unknown
    rest = replace(inside, extras={name: value for name, value in inside.extras.items() if name not in _NAMES})
    others = {name: part for name, part in unknown.inside.items() if name != _RECORD}
    return replace(unknown, inside=others | ({_RECORD: rest} if rest else {}))
