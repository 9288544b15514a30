"""What one pass saw of Jenkins, EC2 and our own state; immutable."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

from autoscaler.domain.facts.fleet import HOST, PoolVolumes, ReservedPrice
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.orders import Overrides
from autoscaler.domain.facts.runs import RunAnswer
from autoscaler.domain.facts.started_builds import LostFacts, RunOrder
from autoscaler.domain.facts.telemetry import Devices

# What waits in a controller's queue, and what Jenkins says it waits for.


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What Jenkins says an item waits for. All empty and ``for_executor``: any executor, or a label it did not name."""

    for_executor: bool
    label: str | None = None  # Jenkins' normalised text
    named: str | None = None  # a label or the only node that has it: Jenkins does not say which
    nodes: tuple[str, ...] = ()  # nodes that it would take if they were online
    unclear: str = ""  # Jenkins' words, where nobody here knows what they mean: plugins have their own


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """One entry of the queue. ``waiting_seconds``: since it became buildable, by the controller's own clock."""

    id: int
    job: str
    run: str
    label: str | None  # as the job has it; None: not told (pipelines), or no label
    labelless: bool  # the job is of a kind that tells its label, and has none
    wait: Wait
    buildable: bool
    waiting_seconds: float
    in_quiet_mode: bool = False  # it waits until its controller leaves quiet mode
    signature: str = ""  # what tells it apart from others of its job: a stage, or parameters; for people's statistics alone
    display: str = ""  # the name that people gave its job for display, if that is another than the job's own; to look it up by

    @property
    def asked_label(self) -> str | None:
        """The label expression that it asks for, from the job or from Jenkins' reason."""
        return self.label if self.label is not None else self.wait.label

    @property
    def starved(self) -> bool:
        """It waits for an executor and for nothing else."""
        return self.buildable and self.wait.for_executor

    @property
    def unclear(self) -> bool:
        """It is free to run, and waits for something that we do not understand."""
        return self.buildable and bool(self.wait.unclear)


# Reservations: an agent that a person has for a while. Data only, kept in the agent's record and in the launch made for it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Who has an agent, why, and until when. ``by``: who ordered it; ``request``: so that the same request reserves once."""

    person: str
    reason: str
    by: str
    since_at: float
    until_at: float
    request: str

    def is_over(self, now: float) -> bool:
        """Tell whether its time is over: it was released, or it ended by itself."""
        return now >= self.until_at


# Intents: launches, each written down before it is sent.


class IntentState(StrEnum):
    """``written -> sent -> settled``."""

    WRITTEN = "written"
    SENT = "sent"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A launch, written down before the call: the exact request with its client token."""

    id: str
    state: IntentState
    pool: str
    controller: str
    count: int
    usd_per_hour: float  # the most that an agent on the dearest offering asked for may cost: reserved
    request: str  # what is sent, byte for byte
    created_at: float
    keep_until: float
    instances: tuple[str, ...]  # while it is open: those that were listed; others may be there, too
    empty_look_at: float | None  # when a list first left some of it out, ten minutes after the launch
    version: str = ""  # that is launched, where the pool names an image's parameter
    reservation: Reservation | None = None  # of the person that it is launched for

    @property
    def open(self) -> bool:
        """Its outcome is not known yet."""
        return self.state is not IntentState.SETTLED


# Versions: what agents are launched from. A version of the launch template and, where the pool names a parameter, an image.
#
# A version is text, such as "7" or "7 with ami-0123": so it is remembered, compared and told.


_WITH = " with "


def version_of(template: str, image: str) -> str:
    """Join a version of a launch template and an image; "" where either is not known."""
    return f"{template}{_WITH}{image}" if template and image else ""


def parts_of(version: str) -> tuple[str, str]:
    """Split a version: that of its launch template, and its image; "" where it names none."""
    template, _, image = version.partition(_WITH)
    return template, image


def differ(one: str, other: str) -> bool:
    """Tell whether two versions are known not to be the same; one that names no image may have any."""
    if not one or not other:
        return False
    (template, image), (other_template, other_image) = parts_of(one), parts_of(other)
    return template != other_template or bool(image and other_image and image != other_image)


def told_follows(version: str, before: str) -> str:
    """Say that a version follows another one, in the terms in which they differ."""
    (template, image), (old_template, old_image) = parts_of(version), parts_of(before)
    if old_image and not image and template == old_template:
        return f"its launch template's own image follows {old_image}"
    if image and template == old_template:
        return f"image {image} follows {old_image or 'that of the launch template'}"
    return f"version {version} of its launch template follows {before}"


def told_outdated(version: str, current: str) -> str:
    """Say what an agent was launched from and what is launched now, likewise."""
    (template, image), (new_template, new_image) = parts_of(version), parts_of(current)
    if image and not new_image and template == new_template:
        return f"launched from image {image}, now it is its launch template's own"
    if image and new_image and template == new_template:
        return f"launched from image {image}, now it is {new_image}"
    return f"launched from version {version} of its launch template, now it is {current}"


# Records that another version of the autoscaler wrote, and this one cannot read: what it can tell of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRecord:
    """A record in a ``state`` that nobody here knows, or in none that can be read: "". Nothing is done to its agent."""

    state: str = ""
    controller: str = ""
    node: str = ""

    @property
    def text(self) -> str:
        """Say why it cannot be read, and whose it is."""
        why = f"its state is {self.state!r}, which this version does not know" if self.state else "this version cannot read it"
        return f"{why}; its node is {self.node} on {self.controller}" if self.node else why


# What was seen of nodes, instances and records, and the snapshot that holds all of it.


CLOCKS_DIFFER_SECONDS = 120.0  # at the most, of machines on which invocations run
LOOK_GAP_SECONDS = 180.0  # after a longer gap a look is worth nothing: what happened in between is unknown
INTERRUPTION_SECONDS = 600.0  # EC2 ends what it takes back two minutes after it said so: what is there long after that stays
MINUTE_SECONDS = 60.0  # the schedule's interval
ONE_OFF = "/one-off/"  # in the key of what takes no executor


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The build on one executor. ``elapsed_seconds`` and the estimate are Jenkins' own, where they are plausible."""

    key: str  # names this run on this executor
    job: str
    run: str
    elapsed_seconds: float | None
    estimate_seconds: float | None
    signature: str = ""  # as of a queue item, as far as an executor tells it; of a node block the name that encloses it now
    is_block: bool = False  # a node block of a pipeline
    display: str = ""  # as of a queue item

    @property
    def is_one_off(self) -> bool:
        """Tell whether it takes no executor: a pipeline's own step, or the parent of a matrix."""
        return ONE_OFF in self.key


class OfflineCause(StrEnum):
    """Who or what took a node offline."""

    NONE = "none"
    PERSON = "person"  # any user, us included: the mark tells
    LOST = "lost"  # no mark: a lost channel, or a failed launch. Jenkins before 2.482 shows it in place of the mark's own cause
    OTHER = "other"  # a monitor of Jenkins or of a plugin, or what nobody here knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One Jenkins node. ``idle`` counts one-off executors too."""

    name: str
    labels: frozenset[str]
    executors: int
    offline: bool
    temporarily_offline: bool
    cause: OfflineCause
    reason: str
    description: str
    idle: bool
    builds: tuple[Build, ...]
    agent: bool  # False: the controller's built-in node
    ended: tuple[Build, ...] = ()  # builds that have ended, and that executors go on showing: no work
    lost_at: float | None = None  # when its agent's connection was lost, by the controller's clock; a mark hides that
    offline_by: str = ""  # the person who took it offline
    is_deleted: bool = False  # it is listed because a build is on it, and shows no executor: Jenkins has no such node any more


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerView:
    """One controller as a look showed it. Incomplete: nothing destructive may follow from it."""

    name: str
    problem: str | None
    session: str
    sessions: tuple[str, ...] = ()  # of the answers of this look in turn, if they are not all of one session
    quieting_down: bool
    items: tuple[QueueItem, ...]  # in the order in which Jenkins will take them
    nodes: tuple[Node, ...]
    unread: frozenset[str] = frozenset()  # names of nodes that are there and were not understood
    set_aside: tuple[str, ...] = ()  # what could not be understood, a line each
    response_seconds: float
    version: tuple[int, ...] = ()  # of Jenkins; () where it was not told
    quiet_reason: str = ""  # why it is in quiet mode, where somebody said so
    shows_jobs: bool = True  # False: not a single one. Without Job/Read the queue looks empty
    in_parts: str = ""  # why Jenkins' reasons came in parts, and maybe not all; such a view counts for demand only

    @property
    def complete(self) -> bool:
        """Every part was read, in one session of the controller."""
        return self.problem is None

    @classmethod
    def of_nothing(cls, name: str, problem: str, response_seconds: float) -> Self:
        """Make a view of a controller that could not be read, and say why."""
        return cls(name=name, problem=problem, session="", quieting_down=False, items=(), nodes=(), response_seconds=response_seconds)


class InstanceState(StrEnum):
    """EC2's states, one for ids that EC2 does not know, and one for what we did not launch, whatever its tags say."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"
    NOT_FOUND = "not-found"
    FOREIGN = "foreign"

    @property
    def ended(self) -> bool:
        """EC2 said that it will never run again."""
        return self in _ENDED


_ENDED = (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)  # no set: members are hashed slowly, and compared by identity
ON = (InstanceState.PENDING, InstanceState.RUNNING)
# EC2 bills no machine from the moment in which it is to stop: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html
OFF = (InstanceState.STOPPING, InstanceState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One EC2 instance that carries our fleet tag."""

    id: str
    state: InstanceState
    pool: str
    controller: str
    launch: str  # id of the intent
    instance_type: str
    market: str
    launched_at: float  # or started again: EC2 tells only the later one
    template_version: str = ""  # of its launch template; "" where EC2 does not say
    image: str = ""
    node: str = ""  # as it was named at registration
    zone: str = ""  # availability zone
    platform: str = ""  # as bills name it
    state_reason: str = ""  # EC2's code for why it is in this state; "" where it does not say
    subnet: str = ""
    keeps_disk: bool = True  # when it is stopped: its root is a volume

    @property
    def priced_as(self) -> str:
        """The key of its spot price."""
        return f"{self.instance_type}/{self.zone}/{self.platform}"


class RecordState(StrEnum):
    """``requested -> registered -> condemned -> gone``, and ``registered -> stopping -> stopped -> starting -> registered``.

    Each change is a conditional write on the revision that was read.
    """

    REQUESTED = "requested"
    REGISTERED = "registered"
    STOPPING = "stopping"  # it is to be stopped; it takes no builds any more
    STOPPED = "stopped"  # its disk alone is kept; it has no node
    STARTING = "starting"  # it is to be started; it asks who it is, as after a launch
    CONDEMNED = "condemned"
    GONE = "gone"

    @property
    def is_asked_for(self) -> bool:
        """It was launched or started, and has not registered since."""
        return self in (RecordState.REQUESTED, RecordState.STARTING)

    @property
    def is_there(self) -> bool:
        """It may take builds now or soon, as far as its record tells."""
        return self.is_asked_for or self is RecordState.REGISTERED

    @property
    def is_given_up(self) -> bool:
        """It goes: demand does not bring it back, and nobody looks at it any more."""
        return self in (RecordState.CONDEMNED, RecordState.STOPPING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Whom an instance serves, and as which node. ``life``: how often the instance began anew there.

    ``deleted_at``: when Jenkins answered that it has deleted that node.
    """

    controller: str
    node: str | None = None
    life: int = 0
    deleted_at: float = 0.0


# Between a machine and the controller of one more side of it: a machine that serves several at once has a record for each.
SIDE = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What we know of one instance of ours. ``bindings``: one, as long as an agent serves one controller."""

    instance_id: str
    state: RecordState
    pool: str
    bindings: tuple[Binding, ...]
    launch: str
    instance_type: str
    usd_per_hour: float
    launched_at: float
    registered_at: float | None
    keep_until: float
    changed_at: float
    node_life: int | None = None  # the life in which its node was made; None: it has not been made yet
    labels: tuple[str, ...] = ()  # that its node was made with; none for a slot, whose labels are its operator's
    exclusive: bool = True  # the mode that its node was made with
    cordon: str = ""  # our mark, where its labels were taken for it
    by_weight: bool = False  # its node was made or changed to show as many executors as its builds leave room for
    lent_until: float = 0.0  # when its loan to jobs of a more general kind ends, or has ended
    lent_labels: tuple[str, ...] = ()  # with which it was last lent, whatever the fleet file says by now
    borrowers: tuple[str, ...] = ()  # keys of the builds that ran when the last loan ended
    trouble: str = ""  # why its node could not be made, or its secret not be read, when it last asked
    problem: str = ""  # why its last connection failed, in the machine's own words
    most_usd_per_hour: float | None = None  # it may cost; None: written before that was kept, or as is expected
    reserved: ReservedPrice | None = None  # the capacity that it was launched into, and is paid for by
    volume_usd_per_hour: float = 0.0  # of that its volumes, which cost even while it is stopped
    started_for: str = ""  # the person's request that it was last started for
    starts: tuple[float, ...] = ()  # when it was started again: within an hour of the last one
    version: str = ""  # that it was launched from, where its pool names an image's parameter
    rotated_at: float = 0.0  # when it was last given to another controller, or adopted
    leaves: tuple[Binding, ...] = ()  # controllers that it served before, whose nodes are yet to be deleted
    role_id: str = ""  # unique id of the role that it registered with
    reservation: Reservation | None = None  # of a person, over or not: it never serves anybody else after
    devices_for: tuple[Reservation, ...] = ()  # of people who have one device of it each, while builds go on
    interrupted_at: float = 0.0  # when EC2 last announced that it takes the instance back
    revision: int = field(default=0, compare=False)  # how often it was changed: a write is conditional on the one that was read

    @property
    def machine(self) -> str:
        """Id of its EC2 instance, or of its host."""
        return self.instance_id.partition(SIDE)[0]

    @property
    def is_host(self) -> bool:
        """Tell whether it is a machine of the operator's own, which nobody launches, stops or ends."""
        return self.instance_id.startswith(HOST)

    @property
    def is_side(self) -> bool:
        """Tell whether it is what an instance is on one more controller, beside the record of the instance itself."""
        return SIDE in self.instance_id and not self.is_host

    @property
    def is_instance(self) -> bool:
        """Tell whether it is an EC2 instance: counted, paid for, and ended with it."""
        return SIDE not in self.instance_id and not self.instance_id.startswith(HOST)  # by itself: each rule asks it of each agent

    @property
    def began_at(self) -> float:
        """When its present life began: its launch, its last start, or when it was adopted or given to another controller."""
        return max(self.starts[-1] if self.starts else self.launched_at, self.rotated_at)

    @property
    def is_measured(self) -> bool:
        """Tell whether its life began with a launch or a start: how long that took is learned."""
        return self.began_at > self.rotated_at

    @property
    def life_id(self) -> str:
        """Names this life of the instance, where it may have had others."""
        life = self.bindings[0].life
        return f"{self.instance_id}#{life}" if life else self.instance_id

    def is_interrupted(self, now: float) -> bool:
        """Tell whether EC2 announced that it takes the instance back, so lately that it may be about to end."""
        return self.interrupted_at > 0.0 and 0.0 <= now - self.interrupted_at < INTERRUPTION_SECONDS

    def is_lent(self, now: float) -> bool:
        """Tell whether jobs of a more general kind may use it."""
        return now < self.lent_until

    @property
    def controller(self) -> str:
        """Whom it serves."""
        return self.bindings[0].controller

    @property
    def node(self) -> str | None:
        """Its node there; None before it was registered."""
        return self.bindings[0].node

    @property
    def life(self) -> int:
        """How often the instance began anew."""
        return self.bindings[0].life

    def bound(self, *, node: str | None, life: int | None = None) -> Self:
        """Bind it to another node, or to none, in this life or another one."""
        (binding,) = self.bindings
        return replace(self, bindings=(replace(binding, node=node, life=binding.life if life is None else life, deleted_at=0.0),))

    def without_node(self, at: float) -> Self:
        """Note that Jenkins has deleted its node."""
        (binding,) = self.bindings
        return replace(self, bindings=(replace(binding, deleted_at=at),))

    @property
    def reserved_usd_per_hour(self) -> float:
        """The price that the limits reserve for it."""
        return self.usd_per_hour if self.most_usd_per_hour is None else self.most_usd_per_hour


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All facts that one pass decides from."""

    taken_at: float
    pass_id: str
    request_id: str  # one run of a function; it may hold two passes
    controllers: Mapping[str, ControllerView]
    instances: tuple[Instance, ...]  # that carry our tags, and that we launched
    fates: Mapping[str, InstanceState]  # by id, of what records or nodes name and the listing does not show
    records: tuple[Record, ...]
    intents: tuple[Intent, ...]
    memory: Memory
    learned: Mapping[str, Learned]  # by controller
    template_versions: Mapping[str, str] = field(default_factory=dict)  # what would be launched now, by pool; where EC2 says so
    images: Mapping[str, str] = field(default_factory=dict)  # that would be launched now, by pool; where a parameter says so
    overrides: Overrides = field(default_factory=Overrides)
    look_every_seconds: float = MINUTE_SECONDS
    end_reasons: Mapping[str, str] = field(default_factory=dict)  # EC2's codes, by id, of what has ended or stopped, and not by us
    unknown_alone: frozenset[str] = frozenset()  # long missing instances that EC2 did not know when it was asked for each of them alone
    ended: tuple[Instance, ...] = ()  # of which EC2 still tells; asked for after a gap in the looks
    foreign: tuple[Instance, ...] = ()  # that carry our tags, and that we did not launch
    spot_prices: Mapping[str, float] | None = None  # dollars an hour by `Instance.priced_as`; None: not asked, or not answered
    volumes: Mapping[str, PoolVolumes] = field(default_factory=dict)  # read in this look, by pool
    ended_runs: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by controller: runs asked for after a restart that have ended
    run_answers: Mapping[str, Mapping[str, RunAnswer]] = field(default_factory=dict)  # of overdue runs, by controller and run
    lost: Mapping[str, LostFacts] = field(default_factory=dict)  # facts about the builds in `Memory.lost`
    run_orders: tuple[RunOrder, ...] | None = ()  # that are open; None: they could not be read
    unread: tuple[str, ...] = ()  # of our own state: names of what is there and cannot be read
    unread_as: Mapping[str, UnreadRecord] = field(default_factory=dict)  # what can be told of records among these, by name
    devices: Mapping[str, Devices] = field(default_factory=dict)  # by machine, as far as it reports them

    @cached_property
    def unread_records(self) -> Mapping[str, UnreadRecord]:
        """Unreadable records by instance id: these count as alive, and are left alone."""
        names = (name for name in self.unread if name.startswith("record#"))
        return {name.removeprefix("record#"): self.unread_as.get(name, UnreadRecord()) for name in names}

    @cached_property
    def unread_launches(self) -> frozenset[str]:
        """Ids of unreadable launches: their instances count as alive, and are left alone."""
        return frozenset(name.removeprefix("intent#") for name in self.unread if name.startswith("intent#"))

    @cached_property
    def states(self) -> Mapping[str, InstanceState]:
        """The state of each machine by the id of its record: EC2's, where it was asked; a host is there."""
        seen = {**self.fates, **{instance.id: instance.state for instance in (*self.instances, *self.foreign)}}
        for record in self.records:
            if record.is_host:
                seen[record.instance_id] = InstanceState.RUNNING
            elif record.is_side and record.machine in seen:
                seen[record.instance_id] = seen[record.machine]
        return seen

    def is_off(self, record: Record) -> bool:
        """Tell whether an agent is stopped: no machine, and its disk alone costs money."""
        return record.state is RecordState.STOPPED and self.states.get(record.instance_id) not in ON

    def costs_disk_only(self, record: Record) -> bool:
        """Tell whether EC2 bills no machine of an agent now. If nobody asked EC2, our record tells whether it stops."""
        state = self.states.get(record.instance_id)
        return self.is_off(record) or state in OFF or (state is None and record.state is RecordState.STOPPING)

    @cached_property
    def living(self) -> tuple[Record, ...]:
        """Every record whose instance may still cost money."""
        ended = {instance_id for instance_id, state in self.states.items() if state.ended}
        return tuple([r for r in self.records if r.state is not RecordState.GONE and r.is_instance and r.instance_id not in ended])
