"""The last line of a plan: how much of each kind would be done, and how much is held back."""

from collections import Counter
from typing import Any

from autoscaler.domain.wording import counted

# In this order. All other steps are counted together: they repair or finish what was begun.
_KINDS = {
    "launch": "to launch",
    "start": "to start",
    "uncordon": "to bring back",
    "cordon": "to drain",
    "stop": "to stop",
    "terminate": "to terminate",
}


def totals(plan: dict[str, Any]) -> str:
    """Count the agents of each kind of step; launches and ends are counted even if there is none."""
    counts = Counter[str]()
    for step in plan["steps"]:
        counts[step["step"] if step["step"] in _KINDS else ""] += step.get("count", 1)
    parts = [f"{counts[kind]} {words}" for kind, words in _KINDS.items() if counts[kind] or kind in {"launch", "terminate"}]
    others = [counted(counts[""], "other step")] if counts[""] else []
    return f"Plan: {', '.join([*parts, *others])}; {len(plan['held'])} not done."
