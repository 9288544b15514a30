"""The ports to the outside world. Adapters and the simulated world keep the same promises."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from autoscaler.domain.facts.fleet import NodeSpec, Offering, Volume
from autoscaler.domain.facts.job_settings import CostBatch, MonthCosts
from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.orders import Overrides
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.pools import Source
from autoscaler.domain.facts.runs import Item, Job, Run, RunAnswer, RunEnd, RunGraph
from autoscaler.domain.facts.snapshot import (
    MINUTE_SECONDS,
    ControllerView,
    Instance,
    InstanceState,
    Intent,
    IntentState,
    Node,
    Record,
    RecordState,
    UnreadRecord,
)
from autoscaler.domain.facts.started_builds import Rerun, RerunState, RunOrder
from autoscaler.domain.facts.telemetry import Devices, Telemetry
from autoscaler.domain.report.datum import Datum, PassNotes
from autoscaler.domain.report.problems import Subscription
from autoscaler.domain.report.quotas import Executions, Quota
from autoscaler.domain.report.registration import Identity
from autoscaler.domain.report.told import Event, Message, Told
from autoscaler.errors import AutoscalerError, TransientError


class Controller(Protocol):
    """One Jenkins controller. Calls raise `TransientError` (or `ConfigError` for refused credentials)."""

    @property
    def name(self) -> str:
        """Return the controller's name in the fleet file."""

    @property
    def url(self) -> str:
        """Return the URL at which agents reach it."""

    def look(self) -> ControllerView:
        """Read queue, nodes and state, each once. It raises nothing: a problem makes the view incomplete."""

    def node(self, name: str) -> Node | None:
        """Read one node now; None when it does not exist."""

    def set_offline(self, name: str, reason: str) -> None:
        """Mark a node offline with this reason, replacing whatever reason it has."""

    def toggle_offline(self, name: str, reason: str) -> None:
        """Bring a temporarily offline node online, and an online one offline for this reason. Never send it again without a read."""

    def set_labels(
        self, name: str, labels: Collection[str], *, instead_of: Collection[str], exclusive: bool, executors: int | None = None
    ) -> None:
        """Replace some labels of a node by others, and its mode; what it has beside them stays. ``executors``: None leaves their number.

        Builds on executors that are too many go on, and these go when they end.
        `ConflictError` where it is marked offline: a mark set in the same instant is erased.
        """

    def create_node(self, spec: NodeSpec) -> None:
        """Create a node for an inbound agent; `ConflictError` when the name is taken."""

    def delete_node(self, name: str) -> None:
        """Delete a node; a no-op if it is already gone."""

    def cancel_item(self, item: int) -> bool:
        """Take an item out of the queue; False if it has left."""

    def result(self, run: str) -> RunEnd | None:
        """Return how a run ended, aborted or not; None while it runs, and where Jenkins does not show it."""

    def graph(self, run: str, most_steps: int) -> RunGraph | None:
        """Read a pipeline's run step by step, so many steps at most; None where Jenkins does not show it."""

    def node_of_block(self, run: str, step: int) -> str:
        """Return the node that a pipeline's node block had, by the step that asked for it; "" where Jenkins does not tell."""

    def whether_ended(self, run: str) -> RunAnswer:
        """Ask a run whether it has ended, though an executor shows it."""

    def health(self) -> Mapping[str, Health]:
        """Return the readings of the node monitors by node ("" is the built-in one), as far as the account may see them."""

    def heavy_weight(self, job: str) -> int:
        """Read how many executors the Heavy Job plugin gives a job; 1 where it gives none. Needs Job/ExtendedRead."""

    def agent_secret(self, name: str) -> str:
        """Read the secret by which a node's agent connects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferingError:
    """One offering could not be had; ``code`` is EC2's. ``denied``: the action for which IAM gives no permission."""

    code: str
    offering_key: str  # "" when EC2 did not say which
    denied: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAnswer:
    """EC2's answer to one launch: instances, errors, or both."""

    instances: tuple[tuple[str, str, str], ...]  # id, instance type, market
    errors: tuple[OfferingError, ...]


class Compute(Protocol):
    """EC2, for the instances with our fleet tag."""

    def instances(self) -> tuple[Instance, ...]:
        """List what has our fleet tag and has not ended: `FOREIGN` if we did not launch it. May lag by 30 s: absence proves nothing."""

    def ended_lately(self) -> tuple[Instance, ...]:
        """List what we launched and has terminated, as long as EC2 shows it: for about an hour."""

    def fates(self, ids: Collection[str]) -> Mapping[str, InstanceState]:
        """Ask for instances by id; ids unknown to EC2 are `NOT_FOUND`, and what we did not launch `FOREIGN` until it has terminated."""

    def end_reasons(self, ids: Collection[str]) -> Mapping[str, str]:
        """Ask why instances have ended, in EC2's codes. What EC2 does not know, or gives no reason for, is left out."""

    def fate(self, instance_id: str) -> InstanceState:
        """Ask for one instance alone. `NOT_FOUND` only where EC2 says that it does not know this very id."""

    def identity(self, instance_id: str) -> Identity | None:
        """Return what EC2 shows of any instance; None: EC2 does not know it, yet or any more."""

    def name_instance(self, instance_id: str, node: str, controller: str) -> None:
        """Show the node's name and whose it is in EC2, as its ``Name`` and as our own tags; safe to repeat."""

    def compose(self, launch: Launch, intent_id: str) -> str:
        """Compose the exact request, with its client token made from the intent id. Calls nothing."""

    def zones(self, subnets: Collection[str]) -> Mapping[str, str]:
        """Return the zones of several subnets, without those that EC2 does not know; of one alone, nothing. `TransientError`."""

    def launch(self, request: str) -> LaunchAnswer:
        """Send a composed request. `UnansweredError`: it may have taken effect; `MismatchError`: it has, once; `LaunchRefusedError`: no."""

    def try_launch(self, launch: Launch) -> None:
        """Ask EC2 whether it would let us launch; launches nothing. `LaunchRefusedError` where it would not, `UnansweredError`."""

    def try_instance(self, pool: str, offering: Offering) -> None:
        """Ask the same of one instance on one offering, its role included, which a fleet's dry run leaves out."""

    def terminate(self, instance_id: str) -> None:
        """Terminate one instance; a no-op if it is already gone. `StuckError` where EC2 refuses."""

    def stop(self, instance_id: str, *, by_force: bool = False) -> None:
        """Stop a running instance, or one that stops already; its disk stays. ``by_force``: whatever its system is at.

        `StuckError`: EC2 never will; `TransientError`: not now.
        """

    def start(self, ids: Collection[str]) -> Mapping[str, TransientError]:
        """Start stopped instances, a no-op for those that start or run already; return what went wrong with each that was not started.

        `LaunchRefusedError` where there is no machine for it, or it may not run; `TransientError` while it still stops; `UnansweredError`.
        """

    def console_output(self, instance_id: str) -> str:
        """Return the end of an instance's console; "" where EC2 has nothing (yet)."""

    def spot_prices(self, instance_types: Collection[str], platforms: Collection[str], at: float) -> Mapping[str, float]:
        """Return spot prices at that time, in dollars an hour by `Instance.priced_as`. `TransientError`."""

    def template_versions(self, pools: Collection[str]) -> Mapping[str, str]:
        """Return the launch template version that each pool would launch from now; without those that EC2 does not know."""

    def volumes(self, of: Collection[Source]) -> Mapping[Source, Sequence[Volume]]:
        """Return the volumes that EC2 makes for an agent from each of these; without those that it does not know. `TransientError`."""


class Images(Protocol):
    """The images that parameters name, as whoever makes images keeps them up to date."""

    def current(self, parameters: Collection[str]) -> Mapping[str, str]:
        """Return the image id that each parameter holds, without those that are unknown or hold no image's. `TransientError`."""


class Account(Protocol):
    """The AWS account, for the doctor. Each method raises `AutoscalerError`."""

    def not_offered(self) -> Mapping[str, tuple[str, ...]]:
        """Return by pool a line for each missing subnet, and for each instance type that a subnet's zone does not offer."""

    def unsafe_templates(self, images: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """Return by pool a line for each thing that is missing in its launch template, or unsafe.

        ``images``: by pool, those that are launched instead of its launch template's.
        """

    def volume_keys(self) -> Mapping[str, str]:
        """Return by pool that stops agents the key of the account's own that encrypts their volumes; without those that have none."""

    def vcpus(self) -> Mapping[str, int]:
        """Return vCPUs by instance type of the fleet's pools; without those that EC2 does not know."""

    def instances_of_no_stack(self) -> Mapping[str, tuple[str, ...]]:
        """Return by fleet the instances in this region of fleets that have no stack there."""

    def has_spot_role(self) -> bool:
        """Tell whether the account has the role without which EC2 launches no spot instance."""

    def executions(self) -> Executions:
        """Return how many executions of functions the account may have at once in this region."""

    def quotas(self) -> tuple[Quota, ...]:
        """Return the account's limits on running vCPUs in this region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """The stored state of one fleet, as it was read."""

    records: tuple[Record, ...] = ()
    intents: tuple[Intent, ...] = ()
    memory: Memory = field(default_factory=Memory)
    learned: Mapping[str, Learned] = field(default_factory=dict)
    overrides: Overrides = field(default_factory=Overrides)
    told: Told = field(default_factory=Told)
    devices: Mapping[str, Devices] = field(default_factory=dict)  # by machine, as its agent told of them last
    passes: Mapping[str, PassNotes] = field(default_factory=dict)  # by function; only at `MetricsLevel: essential`
    unread: tuple[str, ...] = ()  # names of what is there and cannot be read: ``record#i-1``, ``intent#l-1``, ``memory``...
    unread_as: Mapping[str, UnreadRecord] = field(default_factory=dict)  # what can be told of records among these, by name


class StateStore(Protocol):
    """The store of one fleet's state. A write that loses a race raises `ConflictError` and changes nothing.

    Losing the memory, what was learned or overrides costs time, never a build.
    """

    def read(self) -> StoredState:
        """Read everything, including what this pass wrote. An item that cannot be read stops nothing: it is named."""

    def record(self, instance_id: str) -> Record | None:
        """Read one record alone; None where there is none, or it cannot be read."""

    def note_devices(self, machine: str, devices: Devices) -> None:
        """Replace a machine's report about its devices. It is forgotten a day later; losing it costs a look."""

    def add_record(self, record: Record) -> None:
        """Write a new record; `ConflictError` if there is one for this instance, or another instance has its node."""

    def change_record(self, record: Record, *, expected: RecordState, holder: str = "") -> Record:
        """Replace the record of this revision, whose state is ``expected``, unless another instance has its node; return the next one.

        A record that is gone is removed. With ``holder``: only while the lease is still theirs.
        """

    def add_intent(self, intent: Intent, *, holder: str) -> None:
        """Write a new intent; `ConflictError` if there is one with this id, or the lease is not ``holder``'s any more."""

    def change_intent(self, intent: Intent, *, expected: IntentState) -> None:
        """Replace an intent whose state is still ``expected``."""

    def remove_intent(self, intent: Intent) -> None:
        """Remove a settled intent; a no-op if it is already gone."""

    def save_memory(self, memory: Memory) -> None:
        """Replace the memory that had this version; `ConflictError` if it was replaced meanwhile."""

    def save_learned(self, controller: str, learned: Learned) -> None:
        """Replace what was learned on a controller, likewise."""

    def save_overrides(self, overrides: Overrides) -> None:
        """Replace what operators have ordered, likewise."""

    def save_told(self, told: Told) -> None:
        """Replace what people were told of, likewise. Losing it costs a second message."""

    def pass_notes(self, function: str) -> PassNotes:
        """Read what the passes of a function left, alone; of none that can be read, notes of nothing."""

    def save_pass_notes(self, function: str, notes: PassNotes) -> None:
        """Replace the notes of this version, likewise. Losing them costs the counts of an hour."""


class RateLimiter(Protocol):
    """Counts how often each machine asked to register; one count for all executions."""

    def admit(self, instance_id: str, *, now: float, telemetry: Telemetry | None = None, devices: Devices | None = None) -> bool:
        """Count one request; False when the machine has made `MAX_REQUESTS_PER_HOUR` in the hour that its first one opened.

        What it tells with the request is kept in the same write, and not where it is False: its last report for
        `TelemetryStore.latest`, its devices as by `StateStore.note_devices`.
        """


class Lease(Protocol):
    """The right to act on the fleet. ``owner``: of one execution alone, since AWS may deliver one event twice."""

    def acquire(self, owner: str, *, now: float, until: float) -> bool:
        """Take it if it is free, expired by our clock, or this owner's: a call whose answer was lost may be repeated.

        A lease also counts as expired if it ends later than ``until`` by more than clocks differ: a clock far ahead has written it.
        """

    def release(self, owner: str) -> None:
        """Release it; a no-op if somebody else has it by now."""


class Metrics(Protocol):
    """The metrics service."""

    def publish(self, data: Iterable[Datum], at: float) -> int:
        """Send all data of one instant; return how many."""


class History(Protocol):
    """What was done lately. No pass reads it; losing it costs nothing but the answer to a person."""

    def note(self, events: Sequence[Event]) -> None:
        """Add events, in the order in which they happened. If a day has very many, only the last are kept."""

    def since(self, at: float, now: float) -> list[Event]:
        """Return the events from then on, oldest first; two weeks are kept."""


class Notifier(Protocol):
    """Tells people."""

    @property
    def runbooks(self) -> str:
        """Where they read on."""

    def send(self, message: Message) -> None:
        """Send one message; sent again after a failure, it may arrive twice."""

    def subscriptions(self) -> Sequence[Subscription]:
        """Return whom messages and alarms go to; of very many some. `TransientError`."""


class LookSlots(Protocol):
    """Looks between the ticks of the schedule. A slot is a time; its name is the same whoever is woken for it."""

    def announce(self, slots: Mapping[str, float], now: float) -> None:
        """Have `scale_up` woken at each of these times: as a rule once and within a second, now and then late, twice, or not at all."""

    def take(self, slot: str, now: float) -> bool:
        """Take a slot; True for whoever asks first alone."""


# About builds: Jenkins' own, and the stores of what was answered, ordered and paid, and of what agents tell.


class Builds(Protocol):
    """The builds of one controller, one by one. Calls raise `TransientError` (or `ConfigError` for a missing permission)."""

    def run(self, path: str) -> Run | None:
        """Read one build; None where Jenkins does not show it: it was deleted, or this account may not see it."""

    def job(self, path: str, since: float) -> Job | None:
        """Read one job, with what waits in the queue and what began of it; None where Jenkins does not show it.

        Four requests at most: `Job.is_whole` says whether everything since then is among its builds.
        """

    def item(self, item: int) -> Item:
        """Read what became of a queue item."""

    def start(self, job: str, parameters: Mapping[str, str] | None) -> int:
        """Start a build and return its queue item, which may have been there before: Jenkins merges equal ones.

        ``parameters``: None for a job that declares none. `RefusedBuildError`: nothing was done, and asking again would change nothing;
        `UnansweredError`: it may have been started, so look before asking again; any other error: nothing was done.
        """

    def stop(self, path: str) -> None:
        """Stop a build, which ends some seconds later, unless it is done before; a no-op where it has ended, or is not there.

        `RefusedBuildError` where this account may not. Safe to repeat: after an error, and while it goes on.
        """

    def cancel(self, item: int) -> bool:
        """Take an item out of the queue; False if it has left, and may have begun. `RefusedBuildError` where this account may not.

        Safe to repeat. A pipeline's run has left the queue at once: that is stopped, and what waits of it in the queue goes with it.
        """


class RerunStore(Protocol):
    """The store of what was answered for lost builds, one by one. A write that loses a race raises `ConflictError` and changes nothing."""

    def rerun(self, key: str) -> Rerun | None:
        """Read one answer; None where there is none."""

    def add_rerun(self, rerun: Rerun, *, holder: str) -> None:
        """Write a new answer; `ConflictError` if there is one to this build, or the lease is not ``holder``'s any more."""

    def change_rerun(self, rerun: Rerun, *, expected: RerunState) -> None:
        """Replace an answer whose state is still ``expected``."""


class RunOrderStore(Protocol):
    """The store of what people ordered to be run, one by one. A write that loses a race raises `ConflictError` and changes nothing."""

    def open_orders(self) -> tuple[RunOrder, ...]:
        """Read the orders that have not ended, oldest first; what cannot be read is left out."""

    def order(self, order_id: str) -> RunOrder | None:
        """Read one order, ended or not; None where there is none. `TransientError` for one that another version wrote."""

    def ended(self, most: int) -> tuple[RunOrder, ...]:
        """Read the orders that ended last, newest first. They are kept for 90 days."""

    def add_order(self, order: RunOrder) -> None:
        """Write a new order; `ConflictError` if there is one with this id, `ConfigError` if it is larger than can be kept."""

    def change_order(self, order: RunOrder) -> RunOrder:
        """Replace an open order of the same version, and return it with the next one; one with ``ended_at`` ends so.

        `ConflictError` if it was changed meanwhile, or has ended.
        """


class CostStore(Protocol):
    """The store of what jobs cost, for people alone: no pass reads it. A write that loses a race raises `ConflictError`."""

    def batch(self) -> CostBatch:
        """Read what is not in a month's costs yet; an empty batch where there is none."""

    def month(self, name: str) -> MonthCosts:
        """Read the costs of a month or a day, without the batch; without any where there are none. Kept for 25 months, or for 63 days."""

    def book(self, months: Sequence[MonthCosts], batch: CostBatch, at: float) -> None:
        """Replace months, days and the batch, each of its version, all or nothing. Rows of what is too large are folded. ``at``: now."""


class TelemetryStore(Protocol):
    """What each machine told of itself last; `RateLimiter.admit` writes it. Losing it costs nothing but the next five minutes' figures."""

    def latest(self) -> Mapping[str, Telemetry]:
        """Return the last report of each machine, by its id; a day old at the most. `TransientError`."""


class JobStore(Protocol):
    """Statistics of jobs, for people alone: no pass reads them. A write that loses a race raises `ConflictError`."""

    def tracker(self, controller: str) -> JobTracker:
        """Read what is under way on a controller; an empty one where there is none."""

    def save_tracker(self, controller: str, tracker: JobTracker, at: float) -> None:
        """Replace the tracker that had this version; ``at``: now."""

    def rows(self, controller: str, subjects: Collection[Subject]) -> tuple[JobRow, ...]:
        """Read the rows of these subjects, in all pools."""

    def save_rows(self, rows: Collection[JobRow], at: float) -> None:
        """Replace these rows, or add them; of too many those are kept that were seen last. ``at``: now."""

    def all_rows(self) -> tuple[JobRow, ...]:
        """Read every row of every controller."""


Clock = Callable[[], float]
Sleep = Callable[[float], None]
T = TypeVar("T")
D = TypeVar("D")
Caught = type[AutoscalerError] | tuple[type[AutoscalerError], ...]
_FAILED = object()


class SideBySide(Protocol):
    """Makes calls that do not wait for each other."""

    def __call__(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Make them all, and return their answers in the order of the calls."""


def one_by_one(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make calls one after another, for a simulated world in which no call takes time."""
    return [call() for call in calls]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Everything a pass may touch. ``clock``: epoch seconds; ``new_id``: a name never used before; ``shuffled``: in an order of chance.

    ``look_every_seconds``: from one look of the function to the next; below 60, at ``slots``.
    ``side_by_side``: makes calls that do not wait for each other.
    """

    controllers: tuple[Controller, ...]
    compute: Compute
    images: Images
    state: StateStore
    rate_limiter: RateLimiter
    lease: Lease
    metrics: Metrics
    history: History
    jobs: JobStore
    costs: CostStore
    run_orders: RunOrderStore
    reruns: RerunStore
    notifier: Notifier | None  # None: there is no topic
    clock: Clock
    sleep: Sleep
    new_id: Callable[[], str]
    shuffled: Callable[[list[Node]], list[Node]]
    log: Callable[..., None]
    look_every_seconds: float = MINUTE_SECONDS
    slots: LookSlots | None = None  # None: one look a minute
    side_by_side: SideBySide = one_by_one
    failed: frozenset[str] = frozenset()  # controllers; to ask them again in this invocation would take the others' time
    asks_about_builds: bool = True  # that are lost or overdue; False: `scale_down` answers for them, and alone remembers what is said
    builds: Mapping[str, Builds] = field(default_factory=dict)  # by controller
    telemetry: TelemetryStore | None = None  # None: nobody asks what agents tell

    def or_else(self, call: Callable[[], T], event: str, *, otherwise: D, caught: Caught = AutoscalerError, **facts: object) -> T | D:
        """Return what a call returns. If it fails, log the event with the error, and return the other value."""
        try:
            return call()
        except caught as error:
            self.log(event, **facts, error=f"{type(error).__name__}: {error}")
            return otherwise

    def is_done(self, call: Callable[[], object], event: str, *, caught: Caught = AutoscalerError, **facts: object) -> bool:
        """Tell whether a call succeeds. If it fails, log the event with the error."""
        return self.or_else(call, event, otherwise=_FAILED, caught=caught, **facts) is not _FAILED
