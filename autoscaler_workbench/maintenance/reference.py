"""Writes what is made from definitions in the code: the fleet file's schema, and the pages of keys, reasons and deadlines."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from autoscaler.config.findings import PATTERNS
from autoscaler.config.settings import FILE, Tuning, fleet_schema
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.states import OF_AGENTS, OF_OTHERS

ROOT = Path(__file__).parents[2]
_FROM, _TO = "<!-- from here on made by `make reference` -->\n", "<!-- up to here -->\n"
_KINDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
_GROUPS = {
    Reason.FORESEEN: "Why something is done",
    Reason.BOOT_TIMEOUT: "Why something is repaired",
    Reason.MAY_RESUME: "Why something is not done",
}
_WIDTH = 140
_LISTED = {"string": "texts"}
_OFF = "`off`"


def written(root: Path) -> dict[Path, str]:
    """Return what each file must hold; text outside the marks of a page is its author's."""
    docs = root / "docs"
    return {
        root / "autoscaler_workbench" / "data" / FILE: json.dumps(fleet_schema(), indent=2) + "\n",
        docs / "fleet-file.md": _between_marks(docs / "fleet-file.md", key_reference(fleet_schema())),
        docs / "reasons.md": _between_marks(docs / "reasons.md", reason_reference()),
        docs / "deadlines.md": _between_marks(docs / "deadlines.md", deadline_reference()),
    }


def key_reference(schema: dict[str, Any]) -> str:
    """List all keys, section by section."""
    parts, tuning = schema["$defs"], set(Tuning.model_fields)
    own = {key: value for key, value in parts["PoolSettings"]["properties"].items() if key not in tuning}
    sections = {
        "At the top": schema,
        "`limits`": parts["LimitSettings"],
        "`controllers.NAME`": parts["ControllerSettings"],
        "`kinds.NAME`": parts["KindSettings"],
        "`pools.NAME`": parts["PoolSettings"] | {"properties": own},
        "`defaults`, and `pools.NAME`": parts["Tuning"],
        "`capacity_reservation`": parts["CapacityReservationSettings"],
        "`prices`": parts["PriceSettings"],
        "`warm_pool`": parts["WarmPoolSettings"],
        "`rerun`": parts["RerunSettings"],
        "`rerun.lost`": parts["LostSettings"],
        "`schedules`": parts["ScheduleSettings"],
        "`runs`": parts["RunSettings"],
        "`hosts.NAME`": parts["HostSettings"],
        "`teams.NAME`": parts["TeamSettings"],
    }
    return "\n".join(f"## {title}\n\n{section['description']}\n\n" + "".join(_keys(section, parts)) for title, section in sections.items())


def reason_reference() -> str:
    """List all reasons, group by group."""
    lines: list[str] = []
    for reason in Reason:
        lines += ["", f"## {_GROUPS[reason]}", ""] if reason in _GROUPS else []
        lines += _item(f"**`{reason}`** {reason.meaning}")
    return "\n".join(lines[1:]) + "\n"


def deadline_reference() -> str:
    """List all states."""
    lines: list[str] = []
    for title, rows in {"Agents": OF_AGENTS, "Everything else": OF_OTHERS}.items():
        lines += ["", f"## {title}", ""]
        for row in rows:
            word = f"In lists *{row.word}*. " if row.word else ""
            facts = f"{word}Recognised by: {row.recognised_by}. Ended by: {row.ended_by}. Deadline: {row.deadline}. Then: {row.then}."
            lines += _item(f"**`{row.name}`** {facts} Told: {row.told}.")
    return "\n".join(lines[1:]) + "\n"


def _keys(section: dict[str, Any], parts: dict[str, Any]) -> Iterator[str]:
    for key, about in section["properties"].items():
        plain = parts[about["$ref"].rpartition("/")[2]] | about if "$ref" in about else about
        facts = "; ".join(filter(None, [_kind(plain), _rule(plain), _default(plain, required=key in section.get("required", ()))]))
        yield "\n".join(_item(f"**`{key}`** ({facts}). {plain['description']}")) + "\n"


def _kind(about: dict[str, Any]) -> str:
    if "enum" in about:
        return " or ".join([", ".join(f"`{one}`" for one in about["enum"][:-1]), f"`{about['enum'][-1]}`"])
    if "oneOf" in about:
        return " or ".join("keys and values" if "$ref" in one else _OFF for one in about["oneOf"])
    if "$ref" in about or about["type"] == "object":
        return "keys and values"
    if about["type"] == "array":
        return f"list of {_LISTED.get(about['items'].get('type', ''), 'keys and values')}"
    return " ".join(filter(None, [_KINDS[about["type"]], *_bounds(about)]))


def _bounds(about: dict[str, Any]) -> list[str]:
    least, above, most, below = (about.get(key) for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"))
    return [
        f"from {least:,}" if least is not None else f"above {above:,}" if above is not None else "",
        f"to {most:,}" if most is not None else f"below {below:,}" if below is not None else "",
    ]


def _rule(about: dict[str, Any]) -> str:
    pattern = about.get("pattern") or about.get("items", {}).get("pattern")
    each = "each " if "items" in about else ""
    return each + PATTERNS[pattern].removeprefix("must be ") if pattern else ""


def _default(about: dict[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    default = about.get("default")
    if default in (None, [], {}):
        return ""
    if default is False and "oneOf" in about:
        return f"default {_OFF}"
    return f"default `{json.dumps(default) if isinstance(default, bool) else f'{default:g}' if isinstance(default, float) else default}`"


def _item(text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _between_marks(page: Path, text: str) -> str:
    before, _, rest = page.read_text(encoding="utf-8").partition(_FROM)
    _, mark, after = rest.partition(_TO)
    if not mark:
        raise SystemExit(f"{page}: the marks {_FROM.strip()} and {_TO.strip()} are missing")
    return f"{before}{_FROM}\n{text}\n{_TO}{after}"


def main() -> int:
    """Write all of them."""
    for path, text in written(ROOT).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
