"""A source for the page that answers as a small fleet does, and keeps what it was ordered."""

from typing import Any

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.ui.source import Past

NOW = 1_800_000_000.0


def an_agent(node: str, word: str = "busy", busy: int = 1, **facts: Any) -> dict[str, Any]:
    given = {"controller": "main", "pool": "gpu", "node": node, "instance_id": f"i-{node}", "instance_type": "g4dn.xlarge"}
    given |= {"word": word, "state": word}
    given |= {"busy": busy, "executors": 1, "jobs": ("unix-gpu/PR-12",) if busy else (), "age_seconds": 700.0, "idle_seconds": None}
    return given | {"usd_per_hour": 0.5, "note": ""} | facts


def a_pool_status(name: str, **facts: Any) -> dict[str, Any]:
    given = {"controller": "main", "pool": name, "starved": 0, "longest_wait_seconds": 0.0, "agents": {}, "executors": 0, "busy": 0}
    return given | {"max_agents": 10, "usd_per_hour": 0.0, "paused": ""} | facts


STATUS = {
    "pools": [a_pool_status("gpu", starved=2, longest_wait_seconds=754.0, agents={"busy": 2}), a_pool_status("quiet")],
    "problems": {},
    "failing": [],
    "without_jobs": [],
    "unread": [],
    "stopped": "",
    "agents": 4,
    "max_agents": 100,
    "launches_in_the_hour": 9,
    "max_launches_per_hour": 10,
    "usd_per_hour": 2.0,
    "reserved_usd_per_hour": 2.5,
    "max_usd_per_hour": 10.0,
    "usd_in_the_month": 900.0,
    "max_usd_per_month": 900.0,
}


class PageSource:
    """Answers from what it was given; ``fails``: what it raises instead of an overview."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {
            "now_at": NOW,
            "status": STATUS,
            "agents": [
                an_agent("gpu-1"),
                an_agent("gpu-2", busy=0),
                an_agent("gpu-3", word="booting", busy=0),
                an_agent("gpu-4", word="draining", busy=0, note="retire"),
            ],
            "queue": [
                {
                    "job": "<b>unix</b>/PR-13",
                    "label": "gpu",
                    "waiting_seconds": 754.0,
                    "detail": "it would start in 4 min on an executor of gpu",
                }
            ],
            "events": [
                {
                    "at": 1_800_000_000.0,
                    "by": "scale_up",
                    "what": "launch",
                    "where": "main/gpu",
                    "subject": "1 of 1",
                    "reason": "starved-queue",
                }
                | {"detail": "2 items would wait 0.3 h together", "outcome": "done"}
            ],
            "holds": [],
            "numbers": [],
        }
        self.orders: list[tuple[str, dict[str, Any]]] = []
        self.fails: str = ""
        self.unknown: str = ""
        self.minutes = 360  # of which the past is known

    def overview(self) -> dict[str, Any]:
        if self.fails:
            raise TransientError(self.fails)
        return self.told

    def past(self) -> Past:
        quiet = {"alarm": "JobWaits", "state": "OK", "since_at": None, "says": "Jobs wait too long.", "runbook": "docs/x.md#y", "rang": ()}
        rings = {
            "alarm": "BreakersOpen",
            "state": "ALARM",
            "since_at": NOW - 600.0,
            "rang": ((NOW - 7200.0, NOW - 3600.0), (NOW - 600.0, None)),
        }
        begin = NOW - self.minutes * 60.0
        spend = tuple((begin + minute * 60.0, float(minute % 9)) for minute in range(self.minutes) if not 100 < minute < 160)
        alarms = [quiet, quiet | rings]
        return Past(begins_at=begin, ends_at=NOW, spend=spend, every_seconds=60.0, alarms=alarms, unknown=self.unknown)

    def why(self, subject: str) -> list[str]:
        return [f"{subject} waits for an executor"] if subject != "nosuch" else []

    def order(self, verb: str, facts: dict[str, Any]) -> str:
        if facts.get("pool") == "nosuch":
            raise ConfigError("pool (nosuch): is not one of the pools (gpu, quiet)")
        self.orders.append((verb, facts))
        return f"{verb}: done"


class RecordedMoments:
    """Two hours, every moment of which is the small fleet; ``looked_at``: those that were asked for."""

    title, begins_at, ends_at, busiest_at = "a day", NOW - 7200.0, NOW, NOW - 3600.0

    def __init__(self) -> None:
        self.looked_at: list[float] = []

    def at(self, when: float) -> PageSource:
        self.looked_at.append(when)
        return PageSource()
