"""Records as 0.2.0 keeps them: whom an instance serves, and as which node, stands in the record itself, and not in ``bindings``.

Records are read in both forms. They are written so that 0.2.0 can read them, too, unless it would treat what they are about wrongly.
So agents at work outlast an upgrade from it, and the way back.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import from_json, to_json

from autoscaler.adapters.kept import NOTHING, Unknown
from autoscaler.domain.facts.snapshot import Record

_RECORD, _NAMES = "record", frozenset({"controller", "node", "life"})


def in_todays_form(body: bytes | str) -> bytes:
    """Return the JSON of an earlier record with its binding. `ValueError` or `KeyError` if it is none."""
    entry: dict[str, Any] = from_json(body)
    record = entry[_RECORD]
    if not isinstance(record, dict) or "bindings" in record:
        raise ValueError("this is no record of an earlier version")
    binding = {"controller": record["controller"], "node": record["node"], "life": record.get("life", 0)}
    return to_json(entry | {_RECORD: record | {"bindings": [binding]}})


def without_earlier_names(unknown: Unknown) -> Unknown:
    """Leave out what earlier versions call by these names: it is written anew each time."""
    inside = unknown.inside.get(_RECORD)
    if inside is None or not inside.extras.keys() & _NAMES:
        return unknown
    rest = replace(inside, extras={name: value for name, value in inside.extras.items() if name not in _NAMES})
    others = {name: part for name, part in unknown.inside.items() if name != _RECORD}
    return replace(unknown, inside=others | ({_RECORD: rest} if rest else {}))


def with_earlier_names(unknown: Unknown, record: Record) -> Unknown:
    """Add whom a record's instance serves, and as which node, under the names of earlier versions."""
    if not record.is_instance or record.leaves or record.reservation or record.devices_for or len(record.bindings) != 1:
        return unknown
    names: Mapping[str, Any] = {"controller": record.controller, "node": record.node, "life": record.life}
    inside = unknown.inside.get(_RECORD, NOTHING)
    return replace(unknown, inside={**unknown.inside, _RECORD: replace(inside, extras={**inside.extras, **names})})
