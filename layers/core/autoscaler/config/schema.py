"""Makes the JSON schema of the fleet file, for editors and for the reference page, from the keys' own definitions."""

from typing import Any

from autoscaler.config.settings import TUNING_DEFAULTS, FleetSettings

FILE = "fleet.schema.json"
# The first line of a fleet file: editors with a YAML language server then complete keys, explain them and underline mistakes.
POINTER = f"# yaml-language-server: $schema={FILE}"

_NAMED = {"properties", "$defs"}


def fleet_schema() -> dict[str, Any]:
    """Return the JSON schema of a fleet file (draft 2020-12)."""
    plain: dict[str, Any] = _plain(FleetSettings.model_json_schema())
    for section in ("Tuning", "PoolSettings"):
        for key, default in TUNING_DEFAULTS.items():
            plain["$defs"][section]["properties"][key]["default"] = default
    plain["properties"]["defaults"]["default"] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "The fleet file of the Jenkins autoscaler"}
    return head | plain


def _plain(node: Any) -> Any:
    """Leave out what pydantic adds for its own sake: titles of keys, and null for keys that may be left out."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    # What is named by data is gone through: a key called title is no title.
    named = {key: {name: _plain(schema) for name, schema in value.items()} for key, value in node.items() if key in _NAMED}
    kept: dict[str, Any] = {key: named.get(key) or _plain(value) for key, value in node.items() if key != "title"}
    if kept.get("default", "") is None:
        del kept["default"]
    if "patternProperties" in kept:
        kept["additionalProperties"] = False  # a pool's or controller's name of another form is refused, too
    return _without_null(kept)


def _without_null(kept: dict[str, Any]) -> dict[str, Any]:
    given = [one for one in kept.get("anyOf", []) if one != {"type": "null"}]
    return {key: value for key, value in kept.items() if key != "anyOf"} | given[0] if len(given) == 1 else kept
