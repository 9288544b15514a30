"""The outside world as it answered once: the real adapters on top, nothing to wait for below."""

import importlib
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.ec2 import Ec2Compute
from autoscaler.adapters.jenkins.builds import JenkinsBuilds
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.session import Answer, NotThereError
from autoscaler.control import measure, passes
from autoscaler.control.observe import Invocation
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.report.datum import Datum
from autoscaler.ports import Ports
from autoscaler_workbench.fakes.costs import InMemoryCosts
from benchmarks.ec2_answers import read_pages


@dataclass(frozen=True, slots=True)
class Cans:
    """Everything that one pass is answered."""

    fleet: Fleet
    now: float
    answers: dict[str, Answer]  # by path
    instances: list[bytes]  # DescribeInstances, pages of XML
    templates: dict[str, Any]  # DescribeLaunchTemplates, as boto3 gives it
    items: list[dict[str, Any]]  # the state table


@dataclass(slots=True)
class Session:
    """What `JenkinsController` needs of a session."""

    answers: Mapping[str, Answer]

    def allow_seconds(self, seconds: float | None) -> None:
        """Nothing takes time here."""

    def get(self, path: str, _tree: str, _patience: object = None) -> Answer:
        """Answer as recorded; of a queue item nothing is known."""
        if path not in self.answers:
            raise NotThereError(path)
        return self.answers[path]


@dataclass(slots=True)
class Client:
    """What the adapters need of boto3's clients: one page of everything; what is written is taken and forgotten."""

    page: dict[str, Any]
    written: list[dict[str, Any]] = field(default_factory=list)

    def query(self, **_request: Any) -> dict[str, Any]:
        """All in one page."""
        return self.page

    def put_item(self, **request: Any) -> None:
        """Take it."""
        self.written.append(request["Item"])

    def transact_write_items(self, **request: Any) -> None:
        """Take what is put."""
        for write in request["TransactItems"]:
            if "Put" in write:
                self.put_item(**write["Put"])

    def delete_item(self, **_request: Any) -> None:
        """Take it."""


@dataclass(slots=True)
class Ec2Client:
    """What the adapter needs of boto3's client of EC2; instances are read from what EC2 sends, and each page is let go of."""

    instances: list[bytes]
    templates: dict[str, Any]

    def get_paginator(self, name: str) -> "Ec2Pages":
        """Pages of one kind."""
        return Ec2Pages(lambda: read_pages(self.instances) if name == "describe_instances" else iter([self.templates]))


@dataclass(frozen=True, slots=True)
class Ec2Pages:
    """Whatever is asked for, what was recorded."""

    pages: Callable[[], Iterator[dict[str, Any]]]

    def paginate(self, **_request: Any) -> Iterator[dict[str, Any]]:
        """Page by page."""
        return self.pages()


class Silence:
    """Metrics that nobody hears."""

    def publish(self, data: Iterator[Datum], at: float) -> int:  # noqa: ARG002
        """Count them."""
        return len(list(data))


def open_cans(cans: Cans) -> Ports:
    """Wire the real adapters to what was recorded."""
    session: Any = Session(cans.answers)
    ec2: Any = Ec2Client(cans.instances, cans.templates)
    dynamodb: Any = Client({"Items": cans.items})
    state = DynamoState(lambda: dynamodb, "table", cans.fleet.name)
    silence: Any = Silence()
    controller = JenkinsController("main", "http://jenkins.invalid/", lambda: session, monotonic)
    return Ports(
        controllers=(controller,),
        builds={"main": JenkinsBuilds(controller.connection)},
        compute=Ec2Compute(lambda: ec2, cans.fleet, lambda: ec2),
        images=silence,
        state=state,
        rate_limiter=silence,
        lease=state,
        metrics=silence,
        history=silence,
        jobs=silence,
        costs=InMemoryCosts(),
        run_orders=silence,
        reruns=silence,
        notifier=None,
        clock=lambda: cans.now,
        sleep=lambda _seconds: None,
        new_id=lambda: "id",
        shuffled=list,
        log=lambda *_args, **_facts: None,
    )


def passes_of(ports: Ports, fleet: Fleet) -> dict[str, Callable[[], object]]:
    """The three functions' passes. ``scale_up`` decides and does not act: what it wants to launch is EC2's time, not ours."""
    invocation = Invocation(request_id="i", ends_at=ports.clock() + 55.0)
    dry = Invocation(request_id="i", ends_at=ports.clock() + 55.0, dry_run=True)
    return {
        "publish_metrics": lambda: measure.collect(ports, fleet, invocation),
        "scale_up": lambda: passes.scale_up(ports, fleet, dry),
        "scale_down": lambda: passes.scale_down(ports, fleet, invocation),
    }


def main() -> None:
    """Run one function's pass over pickled cans, and print the peak of this process' memory in bytes, before and after."""
    path, function = Path(sys.argv[1]), sys.argv[2]
    importlib.import_module("autoscaler.entry.scheduled")  # all that a handler imports
    before = _peak_bytes()
    cans: Cans = pickle.loads(path.read_bytes())  # noqa: S301 - written by the benchmark a moment ago
    passes_of(open_cans(cans), cans.fleet)[function]()
    print(before, _peak_bytes())  # noqa: T201


def _peak_bytes() -> int:
    """The peak of this program; `getrusage` would count what its parent had, too."""
    [line] = [line for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
