"""State and metrics in memory, with the promises of the ports."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.orders import Overrides, unknown_orders
from autoscaler.domain.facts.snapshot import CLOCKS_DIFFER_SECONDS, Intent, IntentState, Record, RecordState, UnreadRecord
from autoscaler.domain.facts.started_builds import Rerun, RerunState
from autoscaler.domain.facts.telemetry import Devices, Telemetry
from autoscaler.domain.report.datum import Datum, PassNotes
from autoscaler.domain.report.problems import Subscription
from autoscaler.domain.report.registration import MAX_REQUESTS_PER_HOUR, REQUEST_WINDOW_SECONDS
from autoscaler.domain.report.told import Event, Message, Told
from autoscaler.errors import ConflictError, TransientError, UnansweredError
from autoscaler.ports import StoredState
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Faults, StatusError

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")
_Saved = TypeVar("_Saved", Memory, Learned, Overrides, Told, PassNotes)


def _call(
    method: Callable[Concatenate["InMemoryState", _Arguments], _Answer],
) -> Callable[Concatenate["InMemoryState", _Arguments], _Answer]:
    """Wrap one call to the table: a planned fault raises what the adapter raises when DynamoDB fails."""

    @wraps(method)
    def call(state: "InMemoryState", /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        try:
            with state.faults.around(f"state {method.__name__}"):
                return method(state, *arguments, **named)
        except ConnectionLostError as error:
            raise UnansweredError("the state did not answer") from error
        except StatusError as error:
            raise TransientError("the state answered with an error") from error

    return call


def _without(items: dict[str, _Item], kind: str, unread: set[str]) -> dict[str, _Item]:
    return {key: item for key, item in items.items() if f"{kind}#{key}" not in unread}


@dataclass(slots=True)
class InMemoryState:
    """State store, lease and rate limiter of one fleet. ``faults`` may fail any call, before or after it took effect."""

    records: dict[str, Record] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    learned: dict[str, Learned] = field(default_factory=dict)
    overrides: Overrides = field(default_factory=Overrides)
    told: Told = field(default_factory=Told)
    devices: dict[str, Devices] = field(default_factory=dict)
    passes: dict[str, PassNotes] = field(default_factory=dict)
    reruns: dict[str, Rerun] = field(default_factory=dict)  # what was answered for lost builds
    requests: dict[str, tuple[float, int]] = field(default_factory=dict)  # when the hour began, and how often since; by instance
    reports: dict[str, Telemetry] = field(default_factory=dict)  # what each machine told of itself last
    holder: tuple[str, float] | None = None
    faults: Faults = field(default_factory=Faults)
    unreadable: set[str] = field(default_factory=set)  # names of what another version wrote, as in the table

    @_call
    def read(self) -> StoredState:
        """Read everything."""
        later = {f"record#{name}": record for name, record in self.records.items() if not isinstance(record.state, RecordState)}
        unread = self.unreadable | later.keys()
        if not unread:
            return StoredState(
                records=tuple(self.records.values()),
                intents=tuple(self.intents.values()),
                memory=self.memory,
                learned=dict(self.learned),
                overrides=self.overrides,
                told=self.told,
                devices=dict(self.devices),
                passes=dict(self.passes),
            )
        return StoredState(
            records=tuple(_without(self.records, "record", unread).values()),
            intents=tuple(_without(self.intents, "intent", unread).values()),
            memory=Memory(version=self.memory.version) if "memory" in unread else self.memory,
            learned={key: Learned(version=one.version) if f"learned#{key}" in unread else one for key, one in self.learned.items()},
            overrides=unknown_orders(self.overrides.version) if "overrides" in unread else self.overrides,
            told=Told(version=self.told.version) if "told" in unread else self.told,
            devices=_without(self.devices, "devices", unread),
            passes=_without(self.passes, "passes", unread),
            unread=tuple(sorted(unread)),
            unread_as={
                name: UnreadRecord(state=record.state, controller=record.controller, node=record.node or "")
                for name, record in later.items()
            },
        )

    @_call
    def record(self, instance_id: str) -> Record | None:
        """Read one record."""
        known = self.records.get(instance_id)
        is_readable = known is not None and isinstance(known.state, RecordState) and f"record#{instance_id}" not in self.unreadable
        return known if is_readable else None

    @_call
    def note_devices(self, machine: str, devices: Devices) -> None:
        """Replace what a machine tells."""
        self.devices[machine] = devices

    @_call
    def add_record(self, record: Record) -> None:
        """Write a new record."""
        if record.instance_id in self.records:
            raise ConflictError("the record exists")
        self._check_node(record)
        self.records[record.instance_id] = record

    @_call
    def change_record(self, record: Record, *, expected: RecordState, holder: str = "") -> Record:
        """Replace a record of this revision, while the lease is still the holder's where one is named."""
        if holder and (self.holder is None or self.holder[0] != holder):
            raise ConflictError("the lease is somebody else's")
        known = self.records.get(record.instance_id)
        if known is None or (known.state, known.revision) != (expected, record.revision):
            raise ConflictError("the record was changed meanwhile")
        changed = replace(record, revision=record.revision + 1)
        if record.state is RecordState.GONE:
            del self.records[record.instance_id]
        else:
            self._check_node(record)
            self.records[record.instance_id] = changed
        return changed

    @_call
    def add_intent(self, intent: Intent, *, holder: str) -> None:
        """Write a new intent while the lease is still the holder's."""
        if self.holder is None or self.holder[0] != holder:
            raise ConflictError("the lease is somebody else's")
        if intent.id in self.intents:
            raise ConflictError("the intent exists")
        self.intents[intent.id] = intent

    @_call
    def change_intent(self, intent: Intent, *, expected: IntentState) -> None:
        """Replace an intent in the expected state."""
        known = self.intents.get(intent.id)
        if known is None or known.state is not expected:
            raise ConflictError("the intent was changed meanwhile")
        self.intents[intent.id] = intent

    @_call
    def remove_intent(self, intent: Intent) -> None:
        """Remove a settled intent."""
        known = self.intents.get(intent.id)
        if known is not None and known.open:
            raise ConflictError("the intent is open")
        self.intents.pop(intent.id, None)

    @_call
    def rerun(self, key: str) -> Rerun | None:
        """Read one answer."""
        return self.reruns.get(key)

    @_call
    def add_rerun(self, rerun: Rerun, *, holder: str) -> None:
        """Write a new answer while the lease is still the holder's."""
        if self.holder is None or self.holder[0] != holder:
            raise ConflictError("the lease is somebody else's")
        if rerun.key in self.reruns:
            raise ConflictError("the lost build was answered for")
        self.reruns[rerun.key] = rerun

    @_call
    def change_rerun(self, rerun: Rerun, *, expected: RerunState) -> None:
        """Replace an answer in the expected state."""
        known = self.reruns.get(rerun.key)
        if known is None or known.state is not expected:
            raise ConflictError("the lost build was answered for meanwhile")
        self.reruns[rerun.key] = rerun

    @_call
    def save_memory(self, memory: Memory) -> None:
        """Replace the memory of this version."""
        self.memory = self._next(memory, self.memory.version, "memory")

    @_call
    def save_learned(self, controller: str, learned: Learned) -> None:
        """Replace what was learned, of this version."""
        known = self.learned.get(controller)
        self.learned[controller] = self._next(learned, known.version if known else 0, f"learned#{controller}")

    @_call
    def save_overrides(self, overrides: Overrides) -> None:
        """Replace the overrides of this version."""
        self.overrides = self._next(overrides, self.overrides.version, "overrides")

    @_call
    def save_told(self, told: Told) -> None:
        """Replace what people were told of, of this version."""
        self.told = self._next(told, self.told.version, "told")

    @_call
    def pass_notes(self, function: str) -> PassNotes:
        """Read the notes of one function."""
        known = self.passes.get(function, PassNotes())
        return PassNotes(version=known.version) if f"passes#{function}" in self.unreadable else known

    @_call
    def save_pass_notes(self, function: str, notes: PassNotes) -> None:
        """Replace the notes of this version."""
        known = self.passes.get(function, PassNotes())
        self.passes[function] = self._next(notes, known.version, f"passes#{function}")

    def _next(self, saved: _Saved, version: int, name: str) -> _Saved:
        if saved.version != version:
            raise ConflictError(f"{name} was replaced meanwhile")
        self.unreadable.discard(name)
        return replace(saved, version=version + 1)

    @_call
    def acquire(self, owner: str, *, now: float, until: float) -> bool:
        """Take the lease if it is free, ours, expired, or of a clock far ahead."""
        if self.holder is not None and self.holder[0] != owner and now <= self.holder[1] <= until + CLOCKS_DIFFER_SECONDS:
            return False
        self.holder = owner, until
        return True

    @_call
    def release(self, owner: str) -> None:
        """Give the lease up."""
        if self.holder is not None and self.holder[0] == owner:
            self.holder = None

    @_call
    def admit(self, instance_id: str, *, now: float, telemetry: Telemetry | None = None, devices: Devices | None = None) -> bool:
        """Count one ask of a machine, and keep what it tells."""
        since, asked = self.requests.get(instance_id, (now, 0))
        if since <= now - REQUEST_WINDOW_SECONDS:
            since, asked = now, 0
        if asked >= MAX_REQUESTS_PER_HOUR:
            return False
        self.requests[instance_id] = since, asked + 1
        if telemetry:
            self.reports[instance_id] = replace(telemetry, told_at=now)
        if devices:
            self.devices[instance_id] = devices
        return True

    def _check_node(self, record: Record) -> None:
        """A node is one instance's."""
        if not record.node:
            return
        having = [k.instance_id for k in self.records.values() if k.node == record.node and k.controller == record.controller]
        if having not in ([], [record.instance_id]):
            raise ConflictError("another instance has this node")


@dataclass(slots=True)
class InMemoryTelemetry:
    """What machines told, as the state that admitted them keeps it. ``faults`` may fail the read."""

    state: InMemoryState
    faults: Faults = field(default_factory=Faults)

    def latest(self) -> Mapping[str, Telemetry]:
        """Return the last report of each machine."""
        with _failing(self.faults, "telemetry latest"):
            return dict(self.state.reports)


@dataclass(slots=True)
class InMemoryMetrics:
    """Keeps what was published, newest last. ``faults`` may fail it."""

    published: list[tuple[float, Datum]] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def publish(self, data: Iterable[Datum], at: float) -> int:
        """Keep the data."""
        data = list(data)
        try:
            with self.faults.around("metrics PutMetricData"):
                self.published += [(at, datum) for datum in data]
        except (ConnectionLostError, StatusError) as error:
            raise TransientError("PutMetricData failed") from error
        return len(data)

    def values(self, name: str, **dimensions: str) -> list[float]:
        """Every value of one metric."""
        wanted = set(dimensions.items())
        return [v for _, d in self.published if d.name == name and wanted <= set(d.dimensions) for v in d.values]


@dataclass(slots=True)
class InMemoryNotifier:
    """Keeps what people were told, newest last. ``faults`` may fail it."""

    sent: list[Message] = field(default_factory=list)
    subscribed: tuple[Subscription, ...] = (Subscription(address="you@example.org", confirmed=True),)
    runbooks: str = "docs"
    faults: Faults = field(default_factory=Faults)

    def send(self, message: Message) -> None:
        """Keep it."""
        with self._answering("Publish"):
            self.sent.append(message)

    def subscriptions(self) -> tuple[Subscription, ...]:
        """Return whom a test has subscribed."""
        with self._answering("ListSubscriptionsByTopic"):
            return self.subscribed

    @contextmanager
    def _answering(self, action: str) -> Iterator[None]:
        try:
            with self.faults.around(f"sns {action}"):
                yield
        except (ConnectionLostError, StatusError) as error:
            raise TransientError(f"{action} failed") from error


EVENTS_KEPT = 2000


@dataclass(slots=True)
class InMemoryHistory:
    """Keeps the events, oldest first. ``faults`` may fail it."""

    events: list[Event] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def note(self, events: Sequence[Event]) -> None:
        """Keep them."""
        try:
            with self.faults.around("history note"):
                self.events = [*self.events, *events][-EVENTS_KEPT:]
        except (ConnectionLostError, StatusError) as error:
            raise TransientError("the history was not written") from error

    def since(self, at: float, now: float) -> list[Event]:
        """Find them."""
        return [event for event in self.events if at <= event.at <= now]


@dataclass(slots=True)
class InMemoryJobs:
    """Keeps the job statistics. ``faults`` may fail any call."""

    trackers: dict[str, JobTracker] = field(default_factory=dict)
    kept: dict[tuple[str, Subject, str], JobRow] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def tracker(self, controller: str) -> JobTracker:
        """Read it."""
        with _failing(self.faults, "jobs tracker"):
            return self.trackers.get(controller, JobTracker())

    def save_tracker(self, controller: str, tracker: JobTracker, at: float) -> None:  # noqa: ARG002 - memory forgets nothing
        """Replace the tracker of this version."""
        with _failing(self.faults, "jobs save_tracker"):
            if self.trackers.get(controller, JobTracker()).version != tracker.version:
                raise ConflictError("the tracker was replaced meanwhile")
            self.trackers[controller] = replace(tracker, version=tracker.version + 1)

    def rows(self, controller: str, subjects: Collection[Subject]) -> tuple[JobRow, ...]:
        """Find them."""
        with _failing(self.faults, "jobs rows"):
            return tuple(row for row in self.kept.values() if row.controller == controller and row.subject in subjects)

    def save_rows(self, rows: Collection[JobRow], at: float) -> None:  # noqa: ARG002
        """Keep them."""
        with _failing(self.faults, "jobs save_rows"):
            self.kept |= {(row.controller, row.subject, row.pool): row for row in rows}

    def all_rows(self) -> tuple[JobRow, ...]:
        """Return them."""
        with _failing(self.faults, "jobs all_rows"):
            return tuple(self.kept.values())


@contextmanager
def _failing(faults: Faults, call: str) -> Iterator[None]:
    """Let a call fail as planned."""
    try:
        with faults.around(call):
            yield
    except (ConnectionLostError, StatusError) as error:
        raise TransientError(f"{call} failed") from error
