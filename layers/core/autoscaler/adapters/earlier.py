"""Names in records of 0.3.0 that this version does not know, and must not carry on."""

from dataclasses import replace

from autoscaler.adapters.kept import Unknown

# Whom an instance serves, written for 0.2.0: not true for long. And what was launched to be stopped: on the way back 0.3.0 would stop
# such an agent after its one build, and start it for another one.
_RECORD, _NAMES = "record", frozenset({"controller", "node", "life", "to_stop"})


def without_earlier_names(unknown: Unknown) -> Unknown:
    """Leave these names out of the unknown data of a record, so that they go once it is written."""
    inside = unknown.inside.get(_RECORD)
    if inside is None or not inside.extras.keys() & _NAMES:
        return unknown
    rest = replace(inside, extras={name: value for name, value in inside.extras.items() if name not in _NAMES})
    others = {name: part for name, part in unknown.inside.items() if name != _RECORD}
    return replace(unknown, inside=others | ({_RECORD: rest} if rest else {}))
