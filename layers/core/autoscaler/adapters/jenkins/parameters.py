"""Reads what builds and queue items were started with, where the fleet file names parameters that tell them apart."""

from collections.abc import Iterator
from typing import Any

# Asked for only then: the values of one build may be many thousand characters.
ACTIONS = "actions[parameters[name,value]]"
# Jenkins shows no value of these, but whatever a plugin may show of them is no name of a kind of builds.
_HIDDEN = ("Password", "Secret")


def parameters_of(actions: Any) -> dict[str, str]:
    """Return the values by name. What is hidden, or no text, number or truth value, is left out; so is what is not understood."""
    return {name: text for one in _parameters(actions) if (name := one.get("name")) and (text := _text(one)) is not None}


def _parameters(actions: Any) -> Iterator[dict[str, Any]]:
    for action in actions if isinstance(actions, list) else ():
        named = action.get("parameters") if isinstance(action, dict) else None
        yield from (one for one in (named if isinstance(named, list) else ()) if isinstance(one, dict) and isinstance(one.get("name"), str))


def _text(parameter: dict[str, Any]) -> str | None:
    value = parameter.get("value")
    if any(word in str(parameter.get("_class")) for word in _HIDDEN):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None
