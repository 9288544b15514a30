"""The fleet as an operator wrote it: pools, offerings, limits, hosts; and the machines, reservations and volumes of pools."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from math import inf
from typing import Literal, Self

from autoscaler.domain.facts.job_settings import Decline, Declined, JobParameters, JobWeights
from autoscaler.domain.facts.started_builds import RerunPolicy, RunPolicy

# Capacity that AWS keeps for an operator, who pays for it whether or not anything runs.


# EC2 ends the instances of a Capacity Block so long before the block ends:
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
BLOCK_ENDS_EARLY_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPrice:
    """What an agent would cost by itself that was launched into this reservation. ``is_billed``: it does, and its record's price has it."""

    id: str
    usd_per_hour: float
    is_billed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservation:
    """A Capacity Reservation, or a Capacity Block, of so many machines of one type. Its pool launches into it and nowhere else."""

    id: str
    count: int
    usd_per_hour: float  # of one machine, used or not
    block: bool = False  # EC2 ends what runs in it; what runs in a reservation goes on, at the price on demand
    starts_at: float = 0.0
    ends_at: float = inf

    @property
    def leaves_at(self) -> float:
        """When its machines are not free any more: EC2 ends them, or they cost what others cost."""
        return self.ends_at - BLOCK_ENDS_EARLY_SECONDS if self.block else self.ends_at

    def paid_seconds(self, since: float, until: float) -> float:
        """How long it is paid for between two instants."""
        return max(0.0, min(until, self.ends_at) - max(since, self.starts_at))

    def unpaid_seconds(self, since: float, until: float) -> float:
        """How long what runs in it is billed by itself between two instants: after its end."""
        return max(0.0, until - max(since, self.ends_at))


# What a machine is, whoever owns it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts of a machine, as EC2's table has them or its operator wrote them; None: nobody says. ``gpu``: model; "" where it has none."""

    arch: str | None = None
    vcpu: int | None = None
    memory_gib: float | None = None
    gpus: int | None = None
    gpu: str | None = None


# Pools, their offerings and limits, hosts, and the nodes that agents get.


# Pipelines resume within minutes of a restart; one that has not for so long never will, and its agent must not be kept for ever.
RESUME_TIMEOUT_SECONDS = 7200.0


class Platform(StrEnum):
    """Sets price, bootstrap and the default remote directory."""

    LINUX = "linux"
    WINDOWS = "windows"


class Market(StrEnum):
    """How capacity is bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class Allocation(StrEnum):
    """How EC2 chooses among the offerings of a market: in the order in which they are written, or by price, for spot by capacity, too."""

    IN_ORDER = "in-order"
    BY_PRICE = "by-price"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """Instance type x subnet ("" is the launch template's own) x market, and its price.

    ``usd_per_hour``: of the machine, as is expected: what plans go by. Limits reserve the most that may be paid, since a spot price may
    rise to the on-demand price after the launch.
    """

    instance_type: str
    subnet: str
    market: Market
    usd_per_hour: float
    most_usd_per_hour: float | None = None  # the machine may cost; None: as is expected
    volume_usd_per_hour: float = 0.0  # its volumes cost
    spot_max_usd_per_hour: float | None = None  # sent to EC2 as the most to pay; None: EC2's own, the on-demand price

    @property
    def key(self) -> str:
        """The name under which it backs off."""
        return f"{self.instance_type}/{self.subnet}/{self.market}"

    @property
    def billed_usd_per_hour(self) -> float:
        """The expected price of an agent on it, with its volume."""
        return self.usd_per_hour + self.volume_usd_per_hour

    @property
    def reserved_usd_per_hour(self) -> float:
        """The highest price of an agent on it, with its volume."""
        most = self.usd_per_hour if self.most_usd_per_hour is None else self.most_usd_per_hour
        return most + self.volume_usd_per_hour


class Quarantine(StrEnum):
    """How an agent on which builds fail is treated: replaced, kept cordoned for inspection, or left in use."""

    REPLACE = "replace"
    KEEP = "keep"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The limits of a pool, of a team or of the fleet; infinite where there is none."""

    max_agents: float = inf
    max_launches_per_hour: float = inf
    max_usd_per_hour: float = inf
    max_usd_per_month: float = inf
    max_hours_per_day: float = inf  # of all its agents together, in a calendar day (UTC)


NO_CEILINGS = Ceilings()


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    """How many stopped agents a pool keeps at least and at most, for how long, and how much their disks may have seen."""

    min_agents: int
    max_agents: int
    max_age_seconds: float  # of a stop
    max_disk_seconds: float = 168 * 3600.0  # since the launch
    max_disk_builds: int = 200
    instance_stores: bool = False  # types that have some are stopped, too


class Share(StrEnum):
    """How controllers share the agents of a pool.

    Each has its own, or an idle one goes to the controller whose jobs wait, or each machine serves all of them at once.
    """

    NONE = "none"
    ROTATE = "rotate"
    COOPERATIVE = "cooperative"


class Lending(StrEnum):
    """When agents of a rarer kind are lent to jobs of a general one: never; idle ones; or those foreseen to be needed, too."""

    NEVER = "never"
    IDLE = "idle"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSchedule:
    """Hours of the week in which a pool has other numbers; None: as without it. `facts/pools.py` says when it holds."""

    days: frozenset[int]  # on which it begins; Monday is 0
    from_minute: int  # of the day
    to_minute: int  # of the same day; beyond 1440: of the day after
    time_zone: tzinfo
    min_agents: int | None = None
    max_agents: int | None = None
    warm_executors: int | None = None
    warm_pool: WarmPool | Literal[False] | None = None  # False: no stopped agents


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One kind of agent. Spans are seconds; ``idle_seconds`` overrides the computed break-even window."""

    name: str
    labels: frozenset[str]
    controllers: tuple[str, ...]
    executors: int
    platform: Platform
    launch_template: str
    launch_template_version: str
    offerings: tuple[Offering, ...]  # in order of preference, spot before the on-demand it falls back to
    max_agents: int
    min_agents: int
    warm_executors: int
    exclusive: bool
    remote_dir: str
    queue_maturity_seconds: float
    max_wait_seconds: float
    wait_usd_per_hour: float
    boot_seconds: float
    boot_timeout_seconds: float
    max_idle_seconds: float
    idle_seconds: float | None
    drain_settle_seconds: float
    spot_patience_seconds: float
    max_agent_hours: float | None = None  # an older agent is replaced; None: never for its age
    drain_timeout_seconds: float | None = None  # a longer drain is an alarm, never a kill; None: no alarm
    quarantine: Quarantine = Quarantine.REPLACE
    max_builds: int | None = None  # on one agent, which is replaced then; None: any number
    max_job_seconds: float | None = None  # a job that takes longer is no demand for it; None: any job is
    warm_pool: WarmPool | None = None  # None: agents are terminated, and never stopped
    image_parameter: str = ""  # which names the image to launch; "": the launch template does
    kind: str = ""  # one of the fleet file's kinds; "": none
    lent_labels: frozenset[str] = frozenset()  # of the general kinds: its agents carry them only while they are lent
    lend: Lending = Lending.NEVER
    share: Share = Share.NONE
    ceilings: Ceilings = NO_CEILINGS  # beside max_agents
    priority: int = 0  # where a limit keeps jobs waiting, pools of a higher one go first
    rerun: RerunPolicy | None = None  # of builds that are lost with an agent; None: they are left to people
    schedules: tuple[PoolSchedule, ...] = ()  # in the order they were written: a later one has the last word
    allocation: Allocation = Allocation.IN_ORDER
    capacity: CapacityReservation | None = None  # that its agents are launched into; None: they are bought one by one
    volume_gib: float | None = None  # of all volumes of an agent, as its price counts them; None: nobody says
    # A GiB of gp3 costs so much, and volumes are counted as its launch template and image have them; None: as the offerings say.
    volume_usd_per_gib_month: float | None = None
    of_hosts: bool = False  # its machines are hosts: none is ever launched, stopped or ended
    has_left: bool = False  # it is not in the fleet file any more, or does not serve this controller any more: its agents are drained

    @property
    def max_stopped(self) -> int:
        """How many of its agents may be stopped at once."""
        return self.warm_pool.max_agents if self.warm_pool else 0

    def left(self) -> Self:
        """Return this pool as it is to agents of a controller that it does not serve any more: it wants none of them."""
        return replace(self, has_left=True, min_agents=0, warm_executors=0, warm_pool=None, lend=Lending.NEVER, schedules=())


class AtMonthLimit(StrEnum):
    """How agents are treated once the month's money is spent: drained, or left in use with none added."""

    STOP = "stop"
    LAUNCH_NOTHING = "launch-nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Ceilings):
    """The hard ceilings of the fleet."""

    max_agents: int
    max_launches_per_hour: int
    at_month_limit: AtMonthLimit = AtMonthLimit.STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Pools that share limits and a share of the fleet's. ``weight``: of this share, against other teams'."""

    name: str
    pools: frozenset[str]
    weight: float = 1.0
    ceilings: Ceilings = NO_CEILINGS

    @property
    def text(self) -> str:
        """Who it is, for people."""
        return f"team {self.name}" if self.name else "the pools of no team together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine of the operator's own. ``role_id``: unique id of the role that it alone has; ``address``: how a person gets in."""

    name: str
    pool: str
    role_id: str
    owner: str = ""
    address: str = ""
    machine: Machine = field(default_factory=Machine)

    @property
    def id(self) -> str:
        """What it is called where instances have ids."""
        return f"{HOST}{self.name}"


# No id of an EC2 instance begins so.
HOST = "host-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything one deployment manages."""

    name: str
    limits: Limits
    controllers: tuple[str, ...]
    pools: Mapping[str, Pool]
    teams: Mapping[str, Team] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    controller_hosts: Mapping[str, str] = field(default_factory=dict)  # controllers whose machines tell, by the unique id of its role
    slot_controllers: frozenset[str] = frozenset()  # on these an operator makes the nodes; elsewhere each agent gets its own
    home: str = ""  # AWS account and region, ACCOUNT/REGION: another deployment of this name elsewhere is another fleet
    resume_timeouts: Mapping[str, float] = field(default_factory=dict)  # seconds, by controller; unlisted: RESUME_TIMEOUT_SECONDS
    rerun_parameter: str = "AUTOSCALER_RUN_ID"  # by which a build that we started is found, where its job declares it
    job_parameters: JobParameters = field(default_factory=JobParameters)  # that tell builds apart in statistics
    weights: JobWeights = field(default_factory=JobWeights)  # of jobs
    ignored_labels: tuple[str, ...] = ()  # that another cloud serves; * stands for any letters
    runs: RunPolicy | None = None  # None: nobody may order runs
    machines: Mapping[str, Machine] = field(default_factory=dict)  # by instance type, if runs may be ordered or weights are learned
    prices_listed_on: Mapping[str, str] = field(default_factory=dict)  # day of the carried prices, by pool that goes by them
    left_pools: Mapping[str, Pool] = field(default_factory=dict)  # that left the fleet file and have agents yet: no pool of the fleet
    declined: Declined | None = None  # jobs that pools decline, by what was learned; None: no pool declines any
    held_labels: frozenset[str] = frozenset()  # that a person holds now: nodes of ours are without them

    def resume_timeout(self, controller: str) -> float:
        """How long after a restart a pipeline may still resume on its node."""
        return self.resume_timeouts.get(controller, RESUME_TIMEOUT_SECONDS)

    @property
    def ownership_label(self) -> str:
        """The label that every node of ours carries."""
        return f"autoscaler-fleet-{self.name}"

    @property
    def launched(self) -> Self:
        """The same fleet without its hosts: what is bought."""
        return replace(self, pools={name: pool for name, pool in self.pools.items() if not pool.of_hosts}, hosts={})

    def ignores(self, label: str | None) -> bool:
        """Tell whether another cloud serves what asks for this label."""
        return label is not None and any(fnmatchcase(label, re.sub(r"([\[?])", r"[\1]", pattern)) for pattern in self.ignored_labels)

    def declines(self, controller: str, pool: str, job: str, *, of_pipeline: bool = False) -> Decline | None:
        """Say why a pool takes no builds of a job, though its labels would do; None if it takes them."""
        return self.declined.why(controller, pool, job, of_pipeline=of_pipeline) if self.declined else None

    @property
    def beacon(self) -> str:
        """The name of the first beacon, a node that never connects, so that the queue names labels."""
        return f"autoscaler-beacon-{self.name}"

    def is_beacon(self, node: str) -> bool:
        """Tell whether a node is one of our beacons, by its name; no name in the fleet file has a tilde."""
        return node == self.beacon or node.startswith(f"{self.beacon}~")

    def pool_of(self, name: str, controller: str) -> Pool | None:
        """The pool of an agent on a controller, as it is to that agent: it may have left the fleet file."""
        pool = self.pools.get(name)
        if pool is None:
            return self.left_pools.get(name)
        return pool if controller in pool.controllers else pool.left()

    def pools_of(self, controller: str) -> tuple[Pool, ...]:
        """The pools that may serve this controller, in the order they were written."""
        return tuple(pool for pool in self.pools.values() if controller in pool.controllers)

    def pool_of_slot(self, controller: str, labels: Collection[str]) -> Pool | None:
        """The pool of a static node: of the pools whose labels it has, the one with most labels, then by name."""
        if controller not in self.slot_controllers or self.ownership_label not in labels:
            return None
        fitting = [pool for pool in self.pools_of(controller) if pool.labels <= set(labels)]
        return min(fitting, key=lambda pool: (-len(pool.labels), pool.name), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A Jenkins node to be created."""

    name: str
    labels: tuple[str, ...]
    executors: int
    exclusive: bool
    remote_dir: str
    description: str


# What a node carries in place of the labels that jobs ask for, once they were taken; a person sees by it why nothing is built there.
CORDONED_LABEL = "autoscaler-cordoned"
# The label of an agent that has no room for another build, by the weights of those that it has.
FULL_LABEL = "autoscaler-full"
# A node has this label in place of those that a person holds.
HELD_LABEL = "autoscaler-held"
# A node that carries one of these has lost labels of ours for a while. With the first two it is exclusive.
EXCLUSIVE = frozenset((CORDONED_LABEL, FULL_LABEL))
EMPTIED = EXCLUSIVE | {HELD_LABEL}


def labels_given(fleet: Fleet, pool: Pool) -> tuple[str, ...]:
    """The labels that the fleet file gives to the nodes of a pool."""
    return (*sorted(pool.labels), fleet.ownership_label)


def user_for(pool: Pool, controller: str) -> str:
    """Name the user who runs a controller's builds on a host, or a machine that controllers share; "": the one of all its builds."""
    if (pool.share is Share.NONE and not pool.of_hosts) or pool.platform is not Platform.LINUX:
        return ""
    return BUILD_USER + re.sub(r"[^a-z0-9]", "-", controller.lower())[:_LONGEST_USER]


# The users of builds on hosts, and on machines that controllers share, begin so.
BUILD_USER = "jenkins-"
# useradd takes 32 characters.
_LONGEST_USER = 24


def agent_spec(fleet: Fleet, pool: Pool, instance_id: str, controller: str = "") -> NodeSpec:
    """Describe the node of an instance. The name is never used again: an agent's secret is a function of the name alone."""
    user = user_for(pool, controller)
    name = node_name(pool.name, instance_id)
    return NodeSpec(
        name=name,
        labels=labels_given(fleet, pool),
        executors=pool.executors,
        exclusive=pool.exclusive,
        remote_dir=f"/home/{user}/agent" if user else pool.remote_dir,
        description=f"Agent {name} of fleet {fleet.name}, {'connected' if instance_id.startswith(HOST) else 'launched'} by the autoscaler "
        f"on instance {instance_id}{in_home(fleet)}.",
    )


def node_name(pool: str, machine: str) -> str:
    """Name the node that is made for a machine."""
    return machine.removeprefix(HOST) if machine.startswith(HOST) else f"{pool}-{machine.removeprefix('i-')}"


def in_home(fleet: Fleet) -> str:
    """Write where a fleet runs, as the descriptions of its nodes say it."""
    return f" in {fleet.home}" if fleet.home else ""


# What the machines of a pool are, as the table of instance types or the fleet file says it.


def machines_of(pool: Pool, fleet: Fleet) -> list[Machine]:
    """Return each machine that the pool may have; of a type that is in no table nothing is known."""
    if pool.of_hosts:
        return [host.machine for host in fleet.hosts.values() if host.pool == pool.name]
    return [fleet.machines.get(offering.instance_type, Machine()) for offering in pool.offerings]


# Instance types with instance stores: disks of the machine itself, which are empty after a stop.


# AWS writes a d after the generation for these disks (m5d, g4dn, x2iedn), and has families that are made of them (i4i, is4gen, d3, h1).
# https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
_NAMED = re.compile(r"(i|im|is|d|h)\d[^.]*|[a-z]+\d+[a-z]*d[a-z]*(-.*)?")
# Other families have them, too, and do not say so in their names.
_OTHERS = re.compile(
    r"c1|c3|m[123]|r3|x1e?|cc2|cg1|cr1|hi1|hs1|dl1|f[12]|g2|g5|g6[ef]?|g7e?|gr6f?|mac-m4(pro)?|p5(e|en)?|p6(-|e-).*|trn1n?|trn2u?"
)


@lru_cache(maxsize=1000)
def has_instance_store(instance_type: str) -> bool:
    """Tell by its name whether machines of a type have disks of their own. All sizes of a family have them, or none."""
    family = instance_type.partition(".")[0]
    return any(families.fullmatch(family) for families in (_NAMED, _OTHERS))


def may_stop_type(pool: Pool, instance_type: str) -> bool:
    """Tell whether a pool stops machines of a type."""
    return pool.warm_pool is not None and (pool.warm_pool.instance_stores or not has_instance_store(instance_type))


def stoppable(pool: Pool) -> tuple[Offering, ...]:
    """List what may be stopped of all that a pool launches."""
    return tuple(o for o in pool.offerings if o.market is Market.ON_DEMAND and may_stop_type(pool, o.instance_type))


def never_stopped(pool: Pool) -> tuple[str, ...]:
    """Name the types of a pool with stopped agents that are left out, since they have instance stores."""
    types = dict.fromkeys(offering.instance_type for offering in pool.offerings if offering.market is Market.ON_DEMAND)
    return tuple(name for name in types if pool.warm_pool is not None and not may_stop_type(pool, name))


# The volumes that EC2 makes for an agent of a pool, as its launch template and its image say.


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """One volume. ``gib``: None if neither says its size; ``kind``: such as gp3, "" if neither says it."""

    device: str
    gib: float | None = None
    kind: str = ""

    def __str__(self) -> str:
        """Describe it to people."""
        size = "of unknown size" if self.gib is None else f"{self.gib:g} GiB"
        return f"{self.device} {size}{f' {self.kind}' if self.kind else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolVolumes:
    """All volumes of an agent. ``source``: the launch template, its version and the image that they were read from."""

    source: str
    volumes: tuple[Volume, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Tell whether every size is known, and there is any volume: an image that nobody may read has some, too."""
        return bool(self.volumes) and all(volume.gib is not None for volume in self.volumes)
