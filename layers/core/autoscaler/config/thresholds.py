"""The numbers of the stack's alarms, as the function that judges them is given them."""

from collections.abc import Mapping
from dataclasses import fields

from autoscaler.config.environment import refused
from autoscaler.domain.report.problems import Thresholds

_VARIABLES = {
    "job_wait_seconds": "JOB_WAIT_ALARM_SECONDS",
    "idle_usd_per_hour": "IDLE_USD_ALARM",
    "failure_streak": "FAILURE_STREAK_ALARM",
    "agent_disk_bytes": "AGENT_DISK_ALARM_BYTES",
    "agent_memory_bytes": "AGENT_MEMORY_ALARM_BYTES",
    "agent_gpu_memory_bytes": "AGENT_GPU_MEMORY_ALARM_BYTES",
    "controller_disk_bytes": "CONTROLLER_DISK_ALARM_BYTES",
    "controller_memory_bytes": "CONTROLLER_MEMORY_ALARM_BYTES",
    "controller_response_seconds": "CONTROLLER_RESPONSE_ALARM_SECONDS",
    "controller_cpu_percent": "CONTROLLER_CPU_ALARM_PERCENT",
}


def read_thresholds(environment: Mapping[str, str]) -> Thresholds:
    """Read them; `ConfigError` names the first that is missing or no number."""
    return Thresholds(**{field.name: _number(environment, _VARIABLES[field.name]) for field in fields(Thresholds)})


def _number(environment: Mapping[str, str], name: str) -> float:
    text = environment.get(name, "")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise refused(name, text, "must be a number, 0 or more")
    return value
