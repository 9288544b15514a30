"""The memory of passes, with the last definitions of pools: part of the snapshot on the way in, part of the plan on the way out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeVar

from autoscaler.domain.facts.fleet import Market, Platform, PoolVolumes, Share
from autoscaler.domain.facts.job_settings import MonthParts, PluginWeight
from autoscaler.domain.facts.runs import AskedRun, Blocks, CountedEnds, PoolResults, SeenItems, Streak
from autoscaler.domain.facts.started_builds import LeftBuild, LostBuild, RanAgain

# The last definitions of pools, as they are kept with the memory, and which agents lost their pool when.


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedType:
    """An instance type of a pool, as it was bought, and the highest price of its offerings."""

    instance_type: str
    market: Market
    usd_per_hour: float
    most_usd_per_hour: float
    volume_usd_per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDefinition:
    """What winding a pool down needs of its definition in the fleet file."""

    labels: tuple[str, ...]
    controllers: tuple[str, ...]
    executors: int
    platform: Platform
    exclusive: bool
    remote_dir: str
    boot_seconds: float
    boot_timeout_seconds: float
    drain_settle_seconds: float
    drain_timeout_seconds: float | None = None
    share: Share = Share.NONE
    of_hosts: bool = False
    types: tuple[PricedType, ...] = ()


# When EC2 and the controllers could be seen.


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """When EC2 or a controller was last seen as a whole, and the spans before that in which it was not: from, to."""

    at: float
    blind: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSession:
    """A controller's session since its last restart, and the builds that may still be bound to its nodes."""

    session: str
    since_at: float
    restarted: bool = False  # it followed another life that we saw
    busy: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # runs on each busy node when last seen; "" where not told
    marked: tuple[str, ...] = ()  # nodes that were marked offline when last seen: no other build has begun there since
    suspects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # nodes that may look idle and are not: their missing runs
    began_at: float = 0.0  # when a build was last seen to begin
    before: str = ""  # the session before it
    returned_at: float = 0.0  # when it was seen again after another one, which no restart explains


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeNode:
    """A node that stands free beside waiting items which it may take, and the jobs that it did not take so far."""

    since_at: float  # free beside them without a gap
    seen_at: float
    looks: int
    session: str
    labels: tuple[str, ...]  # that it had: with other labels it stands anew
    refused: Mapping[str, float] = field(default_factory=dict)  # when each job was last seen waiting beside it
    is_useless: bool = False  # it refuses whatever waits: it counts for nothing until it takes a build


EC2_ANSWERED = "EC2 answered "  # what the cause of a refusal begins with
# After each bet in a row that was won, so many times as many are tried at once.
WIDER = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A rise of demand, followed for as long as a boot takes."""

    peaks: tuple[tuple[float, int], ...]  # of the window before it: (at, agents needed)
    rises: tuple[tuple[float, int, float], ...]  # (at, executors needed beyond those agents, those that nobody expected until then)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The most agents needed lately. ``peaks`` falls in need and rises in time: later and smaller ones only."""

    opened_at: float
    seen_at: float
    peaks: tuple[tuple[float, int], ...]  # (at, agents needed)
    guessed: float = 0.0  # executors launched for jobs that may come, as far as their agents have had the time to boot
    burst: Burst | None = None  # the one that goes on
    builds: int | None = None  # on agents that took builds; None: written before that was kept

    @property
    def most(self) -> int:
        """The most agents needed at once inside the window."""
        return self.peaks[0][1] if self.peaks else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleReturns:
    """How often demand for agents of one level, which count for one, came back, and how many jobs would have waited, by idle time."""

    times: tuple[float, ...]
    jobs: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How a burst grew: seconds since it began, and executors needed beyond the agents before it. Both rise."""

    steps: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A condition seen on an agent, since when without a gap; two looks make a fact."""

    condition: str
    first_at: float
    last_at: float
    request_id: str  # of the invocation that first saw it
    session: str
    idle_before_at: float | None = None  # the look before showed it ready and idle: cordoned while idle


@dataclass(frozen=True, slots=True, kw_only=True)
class InState:
    """In which state of the table an agent is, by its name, and since when. ``pool``: of an instance without a record."""

    state: str
    since_at: float
    pool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Losses and wins of one scope, since something was lost there. Each launch, start or step is a bet.

    ``failures``: losses in a row, those that were launched together once; ``since_at``: of the first, ``failed_at``: of the last.
    ``why``: of the last. Nothing is tried before ``until_at`` while it ``is_closed``, and then few at once. ``wins``: in a row;
    ``pauses``: taken since the last. ``outcomes``: of the last bets, by machine: whether it was won.
    Of boots also ``failed``: the latest instances, each of which counts once; ``version``: that did not boot; ``said``: the last line on
    the console of the last one. ``launch``: EC2 ended its machines while they were pending.
    """

    failures: int
    since_at: float
    failed_at: float
    until_at: float
    why: str
    failed: tuple[str, ...] = ()
    version: str = ""
    said: str = ""
    launch: str = ""
    outcomes: Mapping[str, bool] = field(default_factory=dict)
    is_closed: bool = False
    wins: int = 0
    pauses: int = 0

    @property
    def is_failing(self) -> bool:
        """Tell whether it has not worked since it failed."""
        return self.failures > 0

    @property
    def is_broken(self) -> bool:
        """Tell whether few are tried at once, and none of those has worked: people are told for so long."""
        return self.is_closed and self.is_failing

    def width(self, now: float) -> float:
        """How many may be tried at once: one, then four times as many after each bet in a row that was won."""
        return inf if not self.is_closed else 0.0 if now < self.until_at else WIDER**self.wins

    @property
    def code(self) -> str:
        """EC2's own word for it, if EC2 refused it."""
        return self.why.removeprefix(EC2_ANSWERED).partition(" (")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ration(Trial):
    """Launches for jobs that free executors refuse. A bet is lost if its agent refuses them as well.

    A bet is won if more of the jobs run at once in these ``pools`` than did while they were refused (``most``, ``most_at``: last). That
    some begin is no win: a throttle lets them begin all day.
    """

    seen_at: float
    jobs: tuple[str, ...]
    pools: tuple[str, ...] = ()
    most: int = 0
    most_at: float = 0.0
    is_cut_short: bool = False  # its pause was ended early, and no bet was won since


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityDelay:
    """How long launches of a pool were refused for want of capacity: past requests, and the shortage that lasts."""

    asks: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0  # of those seconds
    asked_at: float = 0.0
    since_at: float | None = None  # refused since then


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """An instance that EC2 does not let us terminate, and why, in its words."""

    since_at: float
    tried_at: float
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """An instance that EC2 does not show: since when, and when EC2 was first asked for it alone and did not know it."""

    since_at: float
    asked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorMark:
    """A monitor took an agent offline: since when, and what it says. ``at_once``: as soon as the agent had connected."""

    since_at: float
    words: str
    at_once: bool = False
    is_counted: bool = False  # as a boot that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPast:
    """What passes remember of an agent, or of an instance or node that is no agent. It goes when that goes."""

    state: InState | None = None
    look: Observation | None = None  # what the last looks saw of it that may have to be removed
    idle_since: float | None = None
    draining_since: float | None = None
    pool_left_at: float | None = None  # when its pool left the fleet file
    away_since: float | None = None  # of a host that is not connected
    booted: str = ""  # the life whose boot or start was noted
    connected: str = ""  # the life in which it was seen connected
    ready_since: float | None = None  # it is connected, or was until it had been for minutes: one that reboots at first still boots
    mark: MonitorMark | None = None
    stuck: Stuck | None = None
    is_ending: bool = False  # EC2 confirmed that it ends it
    missing: Missing | None = None
    ended_why: str | None = None  # it has terminated: why, in EC2's code; "" if EC2 did not say
    owed: str = ""  # class of the mark that is to be set again
    is_kept: bool = False  # suspect, and its operator wants to look at it
    is_unstoppable: bool = False  # EC2 does not let us stop it

    @property
    def is_held(self) -> bool:
        """Tell whether it stays though it was given up, or drained: its operator looks at it, or EC2 does not end it."""
        return self.is_kept or self.stuck is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """Dollars metered in a calendar month (UTC). ``by_pool``: of these, since pools are told apart."""

    name: str = ""
    usd: float = 0.0
    metered_at: float = 0.0
    by_pool: Mapping[str, float] = field(default_factory=dict)
    parts: MonthParts = field(default_factory=MonthParts)  # of these


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """Hours that the agents of each pool have run in a calendar day (UTC); kept where a limit is about them."""

    name: str = ""
    metered_at: float = 0.0
    hours: Mapping[str, float] = field(default_factory=dict)  # by pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Dollars metered within a quarter of an hour, by pool."""

    since_at: float
    by_pool: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrices:
    """The spot prices that EC2 last told, in dollars an hour by `Instance.priced_as`."""

    asked_at: float = 0.0
    usd_per_hour: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPast:
    """What passes remember of a pool."""

    proven: str = ""  # the version that was seen to boot last
    capacity: CapacityDelay | None = None
    boots: tuple[float, ...] = ()  # seconds
    starts: tuple[float, ...] = ()  # of stopped agents, likewise
    started: str = ""  # the version of which one was last seen to start again
    never_lent_at: float | None = None  # when a job was seen that no lent agent could run
    volumes: PoolVolumes | None = None  # of agents as they are launched now
    taken: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # when agents were taken within the hour, by class
    definition: LastDefinition | None = None  # of one that has agents or launches


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNeeds:
    """How many agents of a pool a controller needed lately, how soon it needed them again, and how bursts grew."""

    window: Window | None = None
    returns: Mapping[str, IdleReturns] = field(default_factory=dict)  # by level
    growths: tuple[Growth, ...] = ()  # of the last bursts


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerPast:
    """What passes remember of a controller, besides its session."""

    looks: Looks | None = None
    needs: Mapping[str, PoolNeeds] = field(default_factory=dict)  # by pool
    free_nodes: Mapping[str, FreeNode] = field(default_factory=dict)  # nodes free beside waiting items, by name
    rations: Mapping[str, Ration] = field(default_factory=dict)  # launches for jobs that free executors refuse, by label
    beacon_items: frozenset[int] = frozenset()  # items that ask for a beacon by its name
    asked: Mapping[str, AskedRun] = field(default_factory=dict)  # runs that were asked whether they have ended, by executor
    beside: Mapping[str, float] = field(default_factory=dict)  # since when jobs wait beside free executors
    hand_outs: tuple[float, ...] = ()  # seconds that the last jobs which began had waited beside free executors, the longest of each look


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPast:
    """What passes remember of the whole fleet. If 0.3.0 is deployed again, it starts without this."""

    months: tuple[Month, ...] = ()  # others that have begun: a clock may go back to one, or was ahead in one
    day: Day = field(default_factory=Day)
    days: tuple[Day, ...] = ()  # likewise
    lately: tuple[Spending, ...] = ()  # what was spent in the last hours; kept where there are teams
    spot_prices: SpotPrices = field(default_factory=SpotPrices)
    gone_from: Mapping[str, str] = field(default_factory=dict)  # pools of agents without a record, as `Memory.gone`
    left: Mapping[str, LeftBuild] = field(default_factory=dict)  # lost builds that a person must see to, for a day, by controller and run
    may_have_orders: bool = False  # the key `runs` was in the fleet file, or orders were open, when they were last looked at
    hold_until: float = 0.0  # most agents lost their pool at once; none drains before


_NO_AGENT, _NO_POOL, _NO_NEEDS, _NO_CONTROLLER = AgentPast(), PoolPast(), PoolNeeds(), ControllerPast()
_Past = TypeVar("_Past", AgentPast, PoolPast, ControllerPast)


def without_empty(pasts: Mapping[str, _Past]) -> dict[str, _Past]:
    """Leave out entries that remember nothing."""
    return {name: past for name, past in pasts.items() if past not in (_NO_AGENT, _NO_POOL, _NO_CONTROLLER)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Everything that passes remember under the lease, kept with the agent, pool or controller that it is about.

    Losing it costs a break-even window and a second look, never a build. 0.3.0 reads `month`, `requests`, `sessions`, `gone`, `lost` and
    `reruns` as they stand here.
    """

    version: int = 0
    agents: Mapping[str, AgentPast] = field(default_factory=dict)  # by instance id; by name of a node without an agent
    pools: Mapping[str, PoolPast] = field(default_factory=dict)  # by name
    controllers: Mapping[str, ControllerPast] = field(default_factory=dict)  # by name; "" is EC2
    sessions: Mapping[str, ControllerSession] = field(default_factory=dict)  # by controller
    trials: Mapping[str, Trial] = field(default_factory=dict)  # by scope, as `situation.bets` names them
    fleet: FleetPast = field(default_factory=FleetPast)
    month: Month = field(default_factory=Month)
    requests: Mapping[str, float] = field(default_factory=dict)  # manual request ids done, and when
    gone: Mapping[str, float] = field(default_factory=dict)  # when agents without a record were launched, by instance id: the latest
    lost: Mapping[str, LostBuild] = field(default_factory=dict)  # builds whose agents have gone, by controller and run
    reruns: Mapping[str, RanAgain] = field(default_factory=dict)  # builds that we started again, by controller#item

    @property
    def proven(self) -> dict[str, str]:
        """The version that was seen to boot last, by pool."""
        return {name: past.proven for name, past in self.pools.items() if past.proven}

    def agent(self, instance_id: str) -> AgentPast:
        """Return what is remembered of an agent; nothing of one that is new."""
        return self.agents.get(instance_id, _NO_AGENT)

    def pool(self, name: str) -> PoolPast:
        """Return what is remembered of a pool."""
        return self.pools.get(name, _NO_POOL)

    def controller(self, name: str) -> ControllerPast:
        """Return what is remembered of a controller, or of EC2."""
        return self.controllers.get(name, _NO_CONTROLLER)

    def needs(self, controller: str, pool: str) -> PoolNeeds:
        """Return what a controller needed of a pool."""
        return self.controller(controller).needs.get(pool, _NO_NEEDS)

    def has_connected(self, life_id: str) -> bool:
        """Tell whether an agent was seen connected in this life, by the id of that."""
        return self.agent(life_id.partition("#")[0]).connected == life_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A build on an executor, and when it began, as far as we know. ``since_at``: when we first saw it, if Jenkins does not tell.

    ``begin_unknown``: nobody had looked for long before that, so that nobody knows how long it takes.
    """

    job: str
    pool: str
    since_at: float
    node: str = ""
    run: str = ""
    begin_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """A pipeline run, and what it had when last seen: ids of items, keys of builds."""

    project: str
    stage: str  # what it has in its stage, roughly: the name under which stages are learned
    since_at: float
    left_at: float | None = None  # when it was seen last, where it has nothing now
    items: tuple[int, ...] = ()
    builds: Mapping[str, str] = field(default_factory=dict)  # with their pools


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSeen:
    """How a stage of a project went: seconds until the next stage with its executors by pool, and seconds of last stages."""

    followed: tuple[tuple[float, Mapping[str, int]], ...] = ()
    ended: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """When a job with a schedule comes next, and how likely. ``kind``: the kind of prediction whose outcome is recorded."""

    at: float
    period_seconds: float
    share: float
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """How many predictions of a kind came true lately, and how many did not; old ones count less."""

    true: float = 0.0
    false: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When a job was asked for lately, and when it is expected. ``count``: how often in all."""

    pool: str
    times: tuple[float, ...]
    count: int
    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """The job after which another one comes: the delays until it came, and how often it did not."""

    after: str
    delays: tuple[float, ...]
    missed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftQueue:
    """How an item left the queue. ``waited_seconds``: 0 if an agent of ours took it; ``node``: of others, that did; "" if none did."""

    waited_seconds: float = 0.0
    node: str = ""


# What waits for longer does wait for agents; fewer that do not may be chance. Others like them get half as long again as the slowest took.
_SOON_SECONDS, _ENOUGH_LEFT, LEFT_KEPT, _PATIENCE = 600.0, 5, 10, 1.5


def patience_of(left: Iterable[LeftQueue]) -> float:
    """Say how many seconds jobs of a label set must wait until agents are launched for them, by how the last ones left the queue."""
    waits = [item.waited_seconds for item in left if 0 < item.waited_seconds <= _SOON_SECONDS]
    return _PATIENCE * max(waits) if len(waits) >= _ENOUGH_LEFT else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Facts learned on one controller: recent durations per job and pool, and the present builds and items."""

    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    running: Mapping[str, Sighting] = field(default_factory=dict)
    waiting: Mapping[str, float] = field(default_factory=dict)  # item -> seconds it had waited when last seen
    label_sets: Mapping[str, str] = field(default_factory=dict)  # of these items
    left_queue: Mapping[str, tuple[LeftQueue, ...]] = field(default_factory=dict)  # the last items, by label set
    runs: Mapping[str, RunSeen] = field(default_factory=dict)
    stages: Mapping[str, StageSeen] = field(default_factory=dict)  # by project and number
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)  # by job
    schedules: Mapping[str, TrackRecord] = field(default_factory=dict)  # by period, and how often the job had come: "3600 2/4"
    followers: Mapping[str, Follower] = field(default_factory=dict)  # by the job that follows
    streaks: Mapping[str, Streak] = field(default_factory=dict)  # by node
    succeeded_at: Mapping[str, float] = field(default_factory=dict)  # when a build last succeeded, by pool
    failing: Mapping[str, str] = field(default_factory=dict)  # jobs that last failed, and on which node; "": on several
    results: Mapping[str, PoolResults] = field(default_factory=dict)  # of builds, by pool
    blocks: Blocks = field(default_factory=Blocks)  # of pipelines
    builds: Mapping[str, int] = field(default_factory=dict)  # that began on a node, of pools that allow only so many
    short_of_disk: frozenset[str] = frozenset()  # instances whose agents said so last
    weights: Mapping[str, int] = field(default_factory=dict)  # of jobs that were seen to need more than one executor's share
    heavy_jobs: Mapping[str, PluginWeight] = field(default_factory=dict)  # as the Heavy Job plugin has them
    ends: CountedEnds = field(default_factory=CountedEnds)
    items: SeenItems = field(default_factory=SeenItems)
    seen_at: float = 0.0
    version: int = 0

    def tells_what(self, other: "Learned") -> bool:
        """Tell whether nothing but time has passed: nothing ran or waited, then or now."""
        return replace(self, seen_at=0.0) == replace(other, seen_at=0.0) and not (self.running or self.waiting or self.runs)
