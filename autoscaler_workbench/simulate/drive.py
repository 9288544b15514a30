"""Drive a world minute by minute: the three functions on their schedule, until the fleet has come to rest."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

from autoscaler.adapters.account import SsmImages
from autoscaler.adapters.ec2 import Ec2Compute
from autoscaler.adapters.jenkins.builds import JenkinsBuilds
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.telling import EssentialMetrics
from autoscaler.control import measure, passes
from autoscaler.control.measure import notify, publish_essential
from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import Outcome, Report, counts_of, leave_note, merged_json, places_of_reports
from autoscaler.control.run_steps import carry_orders_on
from autoscaler.control.slots import announce_looks, why_skipped
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.lifecycle import Announced, InstanceEvent
from autoscaler.domain.memo import Memo
from autoscaler.domain.report.problems import Thresholds
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Builds, Compute, LookSlots, Ports
from autoscaler_workbench.fakes.costs import InMemoryCosts
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client, LocalSession, LocalSsmClient
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.identity import ask_pass
from autoscaler_workbench.fakes.in_process import InProcessCompute, InProcessController
from autoscaler_workbench.fakes.run_orders import InMemoryRunOrders
from autoscaler_workbench.fakes.state import (
    InMemoryHistory,
    InMemoryJobs,
    InMemoryMetrics,
    InMemoryNotifier,
    InMemoryState,
    InMemoryTelemetry,
)
from autoscaler_workbench.fakes.world.agents import Agents
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.world import World
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.result import is_at_rest

MINUTE = 60.0
_FUNCTION_SECONDS = 55.0
_FUNCTIONS = ("publish_metrics", "scale_up", "scale_down", "register_agent", "instance_events")
_USER = "autoscaler"
# The longest idle window, a few boots, and the passes of an hour: a fleet that is not at rest by then never will be.
_PATIENCE_SECONDS = 6 * 3600.0


class Functions(Protocol):
    """The three functions, however they are run. The scaling ones return their plan."""

    def publish_metrics(self) -> None:
        """Run one tick of it."""

    def scale_up(self) -> dict[str, Any]:
        """Run one tick of it."""

    def scale_down(self) -> dict[str, Any]:
        """Run one tick of it."""


@dataclass(slots=True)
class Progress:
    """How far a run has come. ``plans``: of the last tick; a failed step is an error, as is an exception."""

    passes: int = 0
    errors: int = 0
    error_texts: list[str] = field(default_factory=list)
    plans: list[dict[str, Any]] = field(default_factory=list)


def drive(world: World, replay: Replay, functions: Functions, *, hours: float, every: float = MINUTE) -> Iterator[Progress]:
    """Run a tick each minute of the trace and `scale_up` ``every`` seconds, then on until the fleet has come to rest; yield after each."""
    progress, minute = Progress(), -1.0
    start_at = world.timeline.now
    trace_end = start_at + hours * 3600
    last_change_at = start_at
    for tick in count():
        world.move_to(start_at + tick * every)
        is_tick, minute = tick * every // MINUTE > minute, tick * every // MINUTE
        tick_once(functions, progress, () if is_tick else (functions.scale_up,))
        yield progress
        over = world.timeline.now >= trace_end
        if not over or any(build.ended is None and build.started_at is not None for build in replay.builds):
            last_change_at = world.timeline.now
        if over and (is_at_rest(world, replay.builds) or world.timeline.now - last_change_at > _PATIENCE_SECONDS):
            return


def tick_once(functions: Functions, progress: Progress, which: Sequence[Callable[[], dict[str, Any] | None]] = ()) -> None:
    """Run the three functions now, or those alone, and count their errors."""
    progress.passes += 1
    progress.plans = []
    for function in which or (functions.publish_metrics, functions.scale_up, functions.scale_down):
        try:
            plan = function()
        except AutoscalerError as error:
            progress.errors += 1
            progress.error_texts.append(f"{type(error).__name__}: {error}")
        else:
            if plan is not None:
                progress.plans.append(plan)
                progress.errors += failed_steps(plan)


def failed_steps(plan: dict[str, Any]) -> int:
    """Count the steps of a plan that failed."""
    return sum(step["outcome"] == Outcome.FAILED for step in plan.get("steps", []))


@dataclass(slots=True)
class InMemory:
    """The production passes on the world's APIs, with state and metrics in memory."""

    world: World
    fleet: Fleet
    faults: Faults = field(default_factory=Faults)
    state: InMemoryState = field(default_factory=InMemoryState)
    metrics: InMemoryMetrics = field(default_factory=InMemoryMetrics)
    history: InMemoryHistory = field(default_factory=InMemoryHistory)
    jobs: InMemoryJobs = field(default_factory=InMemoryJobs)
    costs: InMemoryCosts = field(default_factory=InMemoryCosts)
    run_orders: InMemoryRunOrders = field(default_factory=InMemoryRunOrders)
    notifier: InMemoryNotifier = field(default_factory=InMemoryNotifier)
    reports: list[Report] = field(default_factory=list)
    logged: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    apis: dict[str, JenkinsApi] = field(default_factory=dict)
    skew_seconds: float = 0.0  # how far the functions' clock is ahead of the world's
    look_every_seconds: float = MINUTE
    memo: Memo = field(default_factory=Memo)  # of the whole run
    slots: LookSlots | None = None  # of looks between the ticks
    thresholds: Thresholds | None = None  # those of `MetricsLevel: essential`, where that is what runs
    sdk_attempts: int = 1  # how often the SDK sends what fails, but for launches
    token: str = "first"  # what the secret holds now
    ports: Ports = field(init=False)
    agents: Agents = field(init=False)
    _ids: Iterator[int] = field(default_factory=count)
    _containers: dict[str, tuple[JenkinsController, ...]] = field(
        default_factory=dict
    )  # by function; none where the world is seen straight

    def __post_init__(self) -> None:
        """Wire the ports, and let agents register through the same state."""
        # Not those of jobs and costs: no pass reads them, and their calls would shift which of the others fail by chance.
        self.state.faults = self.metrics.faults = self.notifier.faults = self.history.faults = self.faults
        self.run_orders.faults = self.faults
        self.apis = {name: JenkinsApi(controller, f"http://{name}/", self.faults) for name, controller in self.world.controllers.items()}
        controllers = tuple(self._controller(api) for api in self.apis.values())
        self.ports = Ports(
            controllers=controllers,
            compute=self._compute(),
            images=SsmImages(lambda: LocalSsmClient(Ec2Api(self.world.ec2, self.faults))),
            state=self.state,
            rate_limiter=self.state,
            lease=self.state,
            metrics=EssentialMetrics(self.metrics) if self.thresholds else self.metrics,
            history=self.history,
            jobs=self.jobs,
            costs=self.costs,
            notifier=self.notifier,
            clock=lambda: self.world.timeline.now + self.skew_seconds,
            sleep=self.world.timeline.sleep,
            new_id=lambda: f"launch-{next(self._ids)}",
            shuffled=lambda slots: self.world.chance.sample(slots, len(slots)),
            log=lambda event, **facts: self.logged.append((event, facts)),
            look_every_seconds=self.look_every_seconds,
            telemetry=InMemoryTelemetry(self.state),
            **self._more_ports(controllers),
        )
        self._containers = {name: tuple(self._controller(api) for api in self.apis.values()) for name in _FUNCTIONS}
        self.agents = Agents(self.world, ask_pass(lambda: self.ports_of("register_agent"), lambda: self.fleet, lambda: self.world.usage))
        self.world.ec2.announce = self.instance_events

    def _more_ports(self, controllers: Iterable[JenkinsController]) -> dict[str, Any]:
        return {"builds": _builds_of(controllers), "reruns": self.state, "run_orders": self.run_orders, "slots": self.slots}

    def publish_metrics(self) -> None:
        """Run one tick. However often others look, it does once a minute."""
        ports = replace(self.ports_of("publish_metrics"), look_every_seconds=max(MINUTE, self.look_every_seconds))
        invocation = self.invocation()
        measured = measure.collect(ports, self.fleet, invocation)
        if self.thresholds is not None:
            publish_essential(ports, self.fleet.name, measured, invocation, self.thresholds)
            return
        try:
            ports.metrics.publish(measured.data, ports.clock())
        finally:
            notify(ports, measured.told, measured.situation, invocation.ends_at)

    def scale_up(self) -> dict[str, Any]:
        """Run one tick."""
        announce_looks(self.ports_of("scale_up"), self.world.timeline.now)
        return merged_json(self._note("scale_up", passes.scale_up))

    def wake_scale_up(self, event: dict[str, Any]) -> None:
        """Look between two ticks, where a message of the queue says so and nobody else has."""
        woken = json.loads(event["Records"][0]["body"])
        if why_skipped(self.ports_of("scale_up"), woken["slot"], woken["at"]):
            return
        try:
            self._note("scale_up", passes.scale_up)
        except AutoscalerError as error:
            self.logged.append(("look_failed", {"error": str(error)}))

    def scale_down(self) -> dict[str, Any]:
        """Run one tick."""
        reports = self._note("scale_down", passes.scale_down)
        carry_orders_on(self.ports_of("scale_down"), self.fleet, self.invocation(), reports)
        return merged_json(reports)

    def instance_events(self, instance: Instance, what: str) -> None:
        """Handle an EC2 event; a failure is logged, and the next scheduled pass repairs it."""
        try:
            reports, _ = passes.handle(
                self.ports_of("instance_events"),
                self.fleet,
                self.invocation(),
                InstanceEvent(kind=Announced(what), instance_id=instance.id),
            )
        except AutoscalerError as error:
            self.logged.append(("instance_events_failed", {"error": str(error)}))
        else:
            self.reports += reports

    def ports_of(self, function: str) -> Ports:
        """The ports of a function's warm container, which keeps its connections and credentials; to controllers of the fleet file alone."""
        served = self.fleet.controllers
        if self._containers:
            warm = tuple(controller for controller in self._containers[function] if controller.name in served)
            return replace(self.ports, controllers=warm, builds=_builds_of(warm))
        if all(controller.name in served for controller in self.ports.controllers):
            return self.ports
        controllers = tuple(controller for controller in self.ports.controllers if controller.name in served)
        return replace(self.ports, controllers=controllers, builds={name: self.ports.builds[name] for name in served})

    def rotate_token(self) -> None:
        """Give the account another token, and write it into the secret; nobody tells the containers."""
        self.token = f"token-{next(self._ids)}"
        for api in self.apis.values():
            api.accounts = {_USER: self.token}

    def read_in_process(self, *, keeps_looks: bool = True) -> None:
        """From now on read the world in process, in half the time. ``keeps_looks``: False where a test changes the world itself."""
        self._containers = {}
        controllers = tuple(
            InProcessController(api, self.fleet.job_parameters, self.connecting(api), keeps_looks=keeps_looks) for api in self.apis.values()
        )
        compute = self._compute_in_process()
        self.ports = replace(self.ports, controllers=controllers, compute=compute, builds=_builds_of(controllers))

    def deploy(self, file: Fleet) -> None:
        """Run with another fleet file from now on."""
        is_in_process = isinstance(self.ports.compute, InProcessCompute)
        self.fleet = file
        self.world.fleet = replace(self.world.fleet, pools={**self.world.fleet.pools, **file.pools})  # machines boot as they were launched
        self.ports = replace(self.ports, compute=self._compute_in_process() if is_in_process else self._compute())

    def invocation(self, *, dry_run: bool = False) -> Invocation:
        """Begin an invocation now."""
        now = self.ports.clock()
        return Invocation(request_id=f"request-{next(self._ids)}", ends_at=now + _FUNCTION_SECONDS, dry_run=dry_run, memo=self.memo)

    def _note(self, function: str, run: Callable[[Ports, Fleet, Invocation], list[Report]]) -> list[Report]:
        ports = self.ports_of(function)
        reports = run(ports, self.fleet, replace(self.invocation(), by=function))
        self.reports += reports
        if self.thresholds:
            leave_note(ports, function, counts_of(reports), places_of_reports(reports), completed=True)
        return reports

    def _controller(self, api: JenkinsApi) -> JenkinsController:
        return JenkinsController(
            api.controller.name, api.base, self.connecting(api), lambda: self.world.timeline.now, self.fleet.job_parameters
        )

    def connecting(self, api: JenkinsApi) -> Callable[[], Any]:
        """How a function opens a session there, with the token of that time."""
        return lambda: LocalSession(api, _USER, self.token)

    def _compute_in_process(self) -> InProcessCompute:
        return InProcessCompute(Ec2Api(self.world.ec2, self.faults), self.fleet, self.sdk_attempts)

    def _compute(self) -> Compute:
        api = Ec2Api(self.world.ec2, self.faults)
        client: Any = LocalEc2Client(api, self.sdk_attempts)
        launcher: Any = LocalEc2Client(api)
        return Ec2Compute(lambda: client, self.fleet, lambda: launcher)


def _builds_of(controllers: Iterable[JenkinsController]) -> dict[str, Builds]:
    """The builds of each controller, over the connection that it has."""
    return {controller.name: JenkinsBuilds(controller.connection) for controller in controllers}


class InProcess(InMemory):
    """The same, reading the world in process from the start: for runs of weeks."""

    def __post_init__(self) -> None:
        """Wire the ports, then read in process."""
        super().__post_init__()
        self.read_in_process()

    def publish_metrics(self) -> None:
        """Learn as when publishing; nobody reads the metrics of such a run."""
        measure.observe_and_learn(self.ports, self.fleet, self.ports.state.read(), self.invocation())
