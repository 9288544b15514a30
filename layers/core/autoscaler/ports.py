"""The ports to the outside world. Adapters and the simulated world keep the same promises."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from autoscaler.build_ports import Builds, CostStore, JobStore, RerunStore, RunOrderStore, TelemetryStore
from autoscaler.domain.facts.fleet import NodeSpec, Offering, Volume
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.orders import Overrides
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.pools import Source
from autoscaler.domain.facts.runs import RunAnswer, RunEnd, RunGraph
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

    def sees_jobs(self) -> bool:
        """Tell whether the account is shown any job."""

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
        """Take it if it is free, expired by our clock, or this owner's: a call whose answer was lost may be repeated."""

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


Clock = Callable[[], float]
Sleep = Callable[[float], None]
T = TypeVar("T")
D = TypeVar("D")


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
    notifier: Notifier | None  # None: there is no topic
    clock: Clock
    sleep: Sleep
    new_id: Callable[[], str]
    shuffled: Callable[[list[Node]], list[Node]]
    log: Callable[..., None]
    look_every_seconds: float = MINUTE_SECONDS
    slots: LookSlots | None = None  # None: one look a minute
    side_by_side: SideBySide = one_by_one
    asks_overdue_runs: bool = True  # False: what they say would not be remembered
    builds: Mapping[str, Builds] = field(default_factory=dict)  # by controller
    reruns: RerunStore | None = None  # None: nothing is run again
    run_orders: RunOrderStore | None = None  # None: nobody orders runs
    telemetry: TelemetryStore | None = None  # None: nobody asks what agents tell

    def or_else(
        self, call: Callable[[], T], event: str, *, otherwise: D, caught: type[AutoscalerError] = AutoscalerError, **facts: object
    ) -> T | D:
        """Return what a call returns. If it fails, log the event with the error, and return the other value."""
        try:
            return call()
        except caught as error:
            self.log(event, **facts, error=f"{type(error).__name__}: {error}")
            return otherwise

    def is_done(self, call: Callable[[], None], event: str, **facts: object) -> bool:
        """Tell whether a call succeeds. If it fails, log the event with the error."""
        try:
            call()
        except AutoscalerError as error:
            self.log(event, **facts, error=f"{type(error).__name__}: {error}")
            return False
        return True
