"""Answers the doctor in the function that may launch."""

from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from autoscaler import bootstrap
from autoscaler.control.doctor import examine_launches
from autoscaler.entry.events import checked
from autoscaler.entry.operations import Doctor


def try_launches(event: Any) -> dict[str, Any]:
    """Try a launch of every pool, short of launching; return what was found."""
    dry_run = checked(TypeAdapter(Doctor), event).dry_run
    wired = bootstrap.runtime()
    findings = [asdict(finding) for finding in examine_launches(wired.ports.compute, wired.fleet)]
    return {"action": "doctor", "dry_run": dry_run, "findings": findings}
