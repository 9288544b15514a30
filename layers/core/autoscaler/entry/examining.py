"""What the doctor asks of the function that may launch."""

from dataclasses import asdict
from typing import Any

from autoscaler import bootstrap
from autoscaler.control.doctor import examine_launches
from autoscaler.events import read_doctor


def try_launches(event: Any) -> dict[str, Any]:
    """Try a launch of every pool, short of launching; return what was found."""
    dry_run = read_doctor(event)
    wired = bootstrap.runtime()
    return {
        "action": "doctor",
        "dry_run": dry_run,
        "findings": [asdict(finding) for finding in examine_launches(wired.ports.compute, wired.fleet)],
    }
