"""What people read of a look: facts and a fleet file in, words out."""

from collections.abc import Mapping
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.learn import assess
from autoscaler.domain.report import explain as answers
from autoscaler.domain.report.messages import write_messages
from autoscaler.domain.report.status import status_of
from autoscaler.domain.report.told import Told


def explain(snapshot: Snapshot, fleet: Fleet, subject: str, asked: str | None = None) -> list[str]:
    """What `why` answers."""
    return answers.explain(snapshot, fleet, subject, asked)


def status(snapshot: Snapshot, fleet: Fleet, reports: Mapping[str, Any] | None = None) -> Any:
    """What `status` shows. ``reports``: of machines."""
    return status_of(assess(snapshot, fleet), reports or {})


def messages(snapshot: Snapshot, fleet: Fleet, told: Any = None) -> list[Any]:
    """The messages that are sent after a look, if people were told so much before."""
    return list(write_messages(told or Told(), assess(snapshot, fleet), "docs")[1])
