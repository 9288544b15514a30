"""Reads a fleet file. Lines, suggestions and words for a problem are looked for only once there is one."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from autoscaler.config.problems import FleetFileError, Problem
from autoscaler.config.rules import contradictions
from autoscaler.config.settings import FleetSettings
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.wording import shortened
from autoscaler.errors import ConfigError

_LONGEST_PATH = 200


def load_settings(path: Path) -> FleetSettings:
    """Read and check a fleet file; a JSON beside it that was checked from the same bytes spares parsing YAML."""
    raw = _bytes(path)
    try:
        return check(_content(raw, path), str(path))
    except FleetFileError as error:
        raise _located(error.problems, raw, path) from None


def load_fleet(path: Path) -> Fleet:
    """Read, check and translate a fleet file."""
    settings = load_settings(path)
    try:
        return settings.domain()
    except FleetFileError as error:
        raise _located(error.problems, _bytes(path), path) from None


def check(raw: object, where: str) -> FleetSettings:
    """Check what a fleet file holds; `FleetFileError` with key, value and rule of all that is wrong."""
    try:
        settings = FleetSettings.model_validate(raw)
    except ValidationError:
        settings = None
    if settings is None or any(contradictions(settings)):
        from autoscaler.config.findings import problems_of  # noqa: PLC0415 - for an error only

        raise FleetFileError(where, problems_of(raw))
    return settings


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{shortened(str(path), _LONGEST_PATH)}: cannot be read ({error.strerror or error})") from error


def _content(raw: bytes, path: Path) -> object:
    known = _checked(path.with_suffix(".json"))
    if "fleet" in known and known.get("sha256") == hashlib.sha256(raw).hexdigest():
        return known["fleet"]
    from autoscaler.config.yaml_file import parse  # noqa: PLC0415 - not in the warm path: a checked JSON stands beside the deployed file

    return parse(raw)


def _checked(path: Path) -> dict[str, object]:
    """Return what was checked before; nothing of a file that is no such JSON, but somebody's own."""
    try:
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _located(problems: Iterable[Problem], raw: bytes, path: Path) -> FleetFileError:
    from autoscaler.config.yaml_file import located  # noqa: PLC0415 - for an error only

    return FleetFileError(str(path), located(problems, raw))
