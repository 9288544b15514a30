"""Checks FILE and writes it with its checked JSON to DIRECTORY: what the fleet layer's build does."""

import hashlib
import json
import sys
from pathlib import Path

from autoscaler.config.load import load_fleet
from autoscaler.config.problems import FleetFileError
from autoscaler.config.yaml_file import parse
from autoscaler.errors import ConfigError


def main() -> int:
    """Refuse a fleet file that is wrong, one line a problem."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        load_fleet(source)
    except ConfigError as error:
        print("\n".join(error.lines if isinstance(error, FleetFileError) else [str(error)]), file=sys.stderr)  # noqa: T201
        return 1
    raw = source.read_bytes()
    checked = {"sha256": hashlib.sha256(raw).hexdigest(), "fleet": parse(raw)}
    (target / source.name).write_bytes(raw)
    (target / source.with_suffix(".json").name).write_text(json.dumps(checked), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
