"""Everything that the steps of the story act on."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.aws import Account
from rehearsal.jenkins import Jenkins
from rehearsal.machines import Machines
from rehearsal.operator import Operator
from rehearsal.plan import Plan
from rehearsal.report import Report


@dataclass(slots=True)
class Scene:
    """``without_warm_pool``: a tree that is built with another fleet file meanwhile."""

    plan: Plan
    report: Report
    account: Account
    jenkins: Jenkins
    operator: Operator
    machines: Machines
    without_warm_pool: Future[Path] | None = None

    def passes(self) -> None:
        """Invoke what scales, as two ticks would."""
        self.account.invoke("ScaleUp")
        self.account.invoke("ScaleDown")

    def until(self, subject: str, look: Callable[[], Any], expected: Any = True, *, seconds: float = 90.0) -> None:
        """Invoke passes until the expected is there."""

        def look_after_passes() -> Any:
            if (seen := look()) != expected:
                self.passes()
            return seen

        self.report.until(subject, look_after_passes, expected, seconds=seconds)

    def queue(self, *jobs: str, build_seconds: float, label: str | None = None) -> None:
        """Queue a build of each job."""
        for job in jobs:
            self.jenkins.queue(job, build_seconds, *([label] if label else []))

    def all_succeed(self, *jobs: str) -> dict[str, str]:
        """What `results` shows once the builds of these jobs have ended well."""
        return dict.fromkeys(jobs, "SUCCESS")

    def results(self, *jobs: str) -> dict[str, str | None]:
        """The result of the last build of each of these jobs; None while it waits or runs."""
        shown = self.jenkins.results()
        return {job: shown[job] for job in jobs}

    def nodes_of(self, *jobs: str) -> set[str]:
        """The nodes on which the last builds of these jobs run, or ran."""
        return {node for job, node in self.jenkins.nodes_by_job().items() if job in jobs}

    def states(self) -> list[str]:
        """The states of the fleet's instances, those that have terminated left out."""
        return sorted(instance["State"]["Name"] for instance in self.account.instances().values())

    def online(self, pool: str) -> int:
        """How many nodes of a pool are online."""
        return sum(online for name, online in self.jenkins.nodes().items() if name.startswith(f"{pool}-"))

    def records(self) -> dict[str, str]:
        """The state of each record, by instance."""
        return {record["item"].removeprefix("record#"): record["state"] for record in self.account.items("record#")}
