"""What can be told of a record that this version cannot read."""

import json
from collections.abc import Mapping
from typing import Any

from autoscaler.domain.facts.snapshot import RecordState, UnreadRecord


def unread_record(item: Mapping[str, Any]) -> UnreadRecord | None:
    """Tell of an unreadable record what has its usual place; None where there is nothing."""
    try:
        record = json.loads(item["body"]["S"])["record"]
        binding = record["bindings"][0]
        state = "" if record["state"] in {*RecordState} else str(record["state"])
        return UnreadRecord(state=state, controller=str(binding["controller"]), node=str(binding.get("node") or ""))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
