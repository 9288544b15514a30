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
from rehearsal.plan import LABEL, Plan
from rehearsal.report import Report


@dataclass(slots=True)
class Scene:
    """``without_warm_pool``: a tree that is built with another fleet file meanwhile, for the step that deploys it."""

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

    def until(self, subject: str, look: Callable[[], Any], expected: Any = True) -> None:
        """Invoke passes until the expected is there."""

        def look_after_passes() -> Any:
            if (seen := look()) != expected:
                self.passes()
            return seen

        self.report.until(subject, look_after_passes, expected)

    def queue(self, *jobs: str, label: str = LABEL) -> None:
        """Queue a build of each job. It lasts until it is told to end."""
        for job in jobs:
            self.jenkins.queue(job, label)

    def until_at_work(self, *jobs: str, subject: str = "agents at work") -> None:
        """Invoke passes until the builds of these jobs run, each on an agent."""
        self.until(subject, lambda: len(self.nodes_of(*jobs)), len(jobs))

    def until_ended(self, *jobs: str, subject: str = "builds") -> None:
        """Tell the builds of these jobs to end, and invoke passes until they have ended well."""
        self.until(subject, lambda: self.told_to_end(*jobs), dict.fromkeys(jobs, "SUCCESS"))

    def told_to_end(self, *jobs: str) -> dict[str, str | None]:
        """Tell the builds of these jobs that run to end well; their results."""
        self.jenkins.let_end(*jobs)
        return self.results(*jobs)

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
