"""Says which limits of a pool or of a team people have ordered for a while, and until when."""

from typing import Any

from autoscaler.domain.wording import dollars
from autoscaler_workbench.ui.trouble import until_when

Answer = dict[str, Any]
_POOL_WORDS = {"min_agents": "at least", "max_agents": "at most", "warm_executors": "warm executors:", "max_stopped": "stopped at most"}
_TEAM_WORDS = {
    "max_agents": "agents: at most",
    "max_launches_per_hour": "launches in the hour: at most",
    "max_usd_per_hour": "an hour: at most",
    "max_usd_per_month": "in the month: at most",
}
_DOLLARS = ("max_usd_per_hour", "max_usd_per_month")


def limits_now(answer: Answer) -> str:
    """Say which limits of a pool or of a team apply, which of them are not the fleet file's, and until when."""
    told = answer["limits"]
    kind, listed, words = ("team", "teams", _TEAM_WORDS) if "team" in told else ("pool", "numbers", _POOL_WORDS)
    now, before, name = told["now"], told["fleet_file"], told[kind]
    shown = [key for key in words if _is_shown(key, now, before)]
    parts = [f"{words[key]} {_written(key, now[key])}{_instead_of(key, now[key], before[key])}" for key in shown]
    ends = next((until_when(order, answer["now_at"]) for order in answer[listed] if order[kind] == name), "")
    whose = f"team {name}" if kind == "team" else name
    limits = ", ".join(parts) or "no limits of its own"
    return f"{whose}: {limits}; {f'{ends}, then as in the fleet file' if ends else 'as in the fleet file'}{_price(told)}"


def _price(told: Answer) -> str:
    """Say what a minimum costs an hour that is not the fleet file's."""
    least = told["now"].get("min_agents") or 0
    usd = told.get("usd_per_hour", 0.0) * least
    return f"; at least {dollars(usd)} an hour" if usd and least != told["fleet_file"]["min_agents"] else ""


def _is_shown(key: str, now: Answer, before: Answer) -> bool:
    """Tell whether a limit is worth a word. A pool without a warm pool has no stopped agents anyway."""
    return now.get(key) is not None and (key != "max_stopped" or bool(now[key] or before[key]))


def _instead_of(key: str, now: float, before: float | None) -> str:
    if now == before:
        return ""
    return f" (fleet file: {'no limit' if before is None else _written(key, before)})"


def _written(key: str, number: float) -> str:
    return dollars(number) if key in _DOLLARS else f"{number:g}"
