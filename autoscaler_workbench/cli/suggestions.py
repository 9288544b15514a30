"""Suggests the name that a person may have meant instead of one that the fleet does not have."""

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.cli.remote import Deployed

_WITHIN_SECONDS = 3.0


def did_you_mean(deployed: Deployed, options: Iterable[Any]) -> str:
    """Name the pools, nodes, teams and controllers that are closest to what was typed; "" if all is known, or nobody answers."""
    typed = [name for option in options for name in _names(option)]
    try:
        known = replace(deployed, patience_seconds=_WITHIN_SECONDS).call("operate", {"action": "names"})["names"] if typed else {}
    except (AutoscalerError, KeyError):
        return ""
    names = [name for kind in known.values() for name in kind]
    close = [match for name in typed if name not in names for match in get_close_matches(name, names, 1)]
    return f"did you mean {' and '.join(close)}?" if close else ""


def _names(option: Any) -> list[str]:
    """Return the names in an option: one, several, or none."""
    return [name for name in (option if isinstance(option, list) else [option]) if isinstance(name, str)]
