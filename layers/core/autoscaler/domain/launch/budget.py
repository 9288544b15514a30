"""The budget: how much of each limit is used, how many more launches it allows at their highest price, and whose limit forbids one."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from autoscaler.domain.facts.fleet import Offering, Pool
from autoscaler.domain.facts.metering import (
    HOUR_SECONDS,
    Level,
    LevelKind,
    hours_in_day,
    launched_lately,
    levels,
    missing_of,
    spent_in_month,
    unread_elsewhere,
    unrecorded,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, Record, RecordState, Snapshot
from autoscaler.domain.grouping import grouped
from autoscaler.domain.memo import FOR_EVER
from autoscaler.domain.situation.agents import Agent, Phase, has_settled
from autoscaler.domain.situation.bets import TrialOf, closed, trials_of
from autoscaler.domain.situation.canary import few_at_once, has_counted, to_begin
from autoscaler.domain.situation.left import is_controller_left
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import figure, figures_apart

# Usage of one level's limits, and the room that is kept within them for those whose turn it is.


# Within the month's limit an agent is reserved for this long: a build that has begun is never cut short to save money.
MONTH_RESERVE_SECONDS = 3600.0
# Likewise within the hours of a day.
DAY_RESERVE_HOURS = 1.0
_AGENTS = {LevelKind.POOL: Reason.MAX_AGENTS, LevelKind.TEAM: Reason.TEAM_MAX_AGENTS, LevelKind.FLEET: Reason.FLEET_MAX_AGENTS}
_FILLS = (Reason.USD_PER_MONTH, Reason.HOURS_PER_DAY)
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRoom:
    """Room that is kept in one pass. ``agents``: of each pool, each at ``usd_per_hour`` at the most.

    ``saved``: dollars an hour that are left for an agent which does not fit yet, by level; ``first``: who goes first there.
    """

    agents: Mapping[str, int] = field(default_factory=dict)
    usd_per_hour: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, float] = field(default_factory=dict)
    first: Mapping[str, str] = field(default_factory=dict)


NOTHING_KEPT = KeptRoom()


class _Projected(NamedTuple):
    """What a limit would be used for, by what there is and by what room is kept, after a launch. A tuple: placing a queue makes many."""

    reason: Reason
    used: float
    kept: float
    limit: float
    unit: str


@dataclass(slots=True, kw_only=True)
class Usage:
    """What is used of the limits of one level. ``kept_...``: room that others may not take."""

    level: Level
    agents: int
    launched: int
    usd_per_hour: float
    usd_in_month: float
    hours_in_day: float = 0.0
    kept_agents: int = 0
    kept_usd_per_hour: float = 0.0
    first: str = "another pool goes first"

    def copied(self) -> "Usage":
        """Return another one of the same figures; each budget has its own, and `dataclasses.replace` takes five times as long."""
        return Usage(
            level=self.level,
            agents=self.agents,
            launched=self.launched,
            usd_per_hour=self.usd_per_hour,
            usd_in_month=self.usd_in_month,
            hours_in_day=self.hours_in_day,
        )

    def count(self, agents: int, usd_per_hour: float) -> None:
        """Count agents, each at this price."""
        self.agents += agents
        self.usd_per_hour += agents * usd_per_hour
        self.usd_in_month += month_reserve(agents * usd_per_hour)

    def used_up_within(self, seconds: float) -> str:
        """Name the limit that what there is now uses up in so many seconds, after which it takes no build; "" if none."""
        hours, limits = seconds / HOUR_SECONDS, self.level.ceilings
        if self.hours_in_day + self.agents * hours >= limits.max_hours_per_day:
            return "max_hours_per_day"
        usd = self.usd_in_month - month_reserve(self.usd_per_hour) + self.usd_per_hour * hours  # spent, not reserved
        return "max_usd_per_month" if usd >= limits.max_usd_per_month else ""

    def keep_room(self, kept: KeptRoom) -> None:
        """Keep room for the pools whose turn it is."""
        mine = {pool: agents for pool, agents in kept.agents.items() if self.level.has(pool)}
        self.kept_agents = sum(mine.values())
        self.kept_usd_per_hour = sum(agents * kept.usd_per_hour[pool] for pool, agents in mine.items())
        self.kept_usd_per_hour += kept.saved.get(self.level.text, 0.0)
        self.first = kept.first.get(self.level.text, self.first)

    def take(self, agents: int, usd_per_hour: float) -> None:
        """Reserve agents that are launched, each at this price."""
        self.count(agents, usd_per_hour)
        self.launched += agents

    def refusal(self, usd_per_hour: float, kept_usd_per_hour: float | None) -> tuple[Reason, str] | None:
        """Name the limit that forbids one more agent at this price. ``kept_...``: the price at which room is kept for it, if it is."""
        mine = (0, 0.0) if kept_usd_per_hour is None else (1, kept_usd_per_hour)
        for one in self._with_more(1, usd_per_hour, *mine):
            if one.used > one.limit + ROUNDING:
                used, limit = figures_apart(one.used, one.limit)
                return one.reason, f"one more would make {used} {one.unit} in {self.level.text}, the limit is {limit}"
            if one.used + one.kept > one.limit + ROUNDING:
                return Reason.NOT_ITS_TURN, f"{self.first}; the limit is {figure(one.limit)} {one.unit} in {self.level.text}"
        return None

    def fits(self, agents: int, usd_per_hour: float, *, parts: int = 1, but: Collection[Reason] = ()) -> bool:
        """Tell whether so many more agents at this price fit into one of so many parts of each limit, but for these."""
        uses = (use for use in self._with_more(agents, usd_per_hour) if use.reason not in but)
        return all(parts * (use.used + use.kept) <= use.limit + ROUNDING for use in uses)

    def _with_more(self, agents: int, usd_per_hour: float, kept: int = 0, kept_usd_per_hour: float = 0.0) -> Iterator[_Projected]:
        """Project the use of each limit after so many more agents at this price. ``kept...``: the room that is kept for these."""
        limits, usd, for_others = self.level.ceilings, agents * usd_per_hour, self.kept_agents - kept
        others_usd = max(0.0, self.kept_usd_per_hour - kept_usd_per_hour)
        yield _Projected(_AGENTS[self.level.kind], self.agents + agents, for_others, limits.max_agents, "agents")
        yield _Projected(Reason.LAUNCH_RATE, self.launched + agents, for_others, limits.max_launches_per_hour, "launches within the hour")
        yield _Projected(Reason.USD_PER_HOUR, self.usd_per_hour + usd, others_usd, limits.max_usd_per_hour, "dollars per hour")
        month = self.usd_in_month + month_reserve(usd)
        yield _Projected(Reason.USD_PER_MONTH, month, month_reserve(others_usd), limits.max_usd_per_month, "dollars in the month")
        hours = self.hours_in_day + (self.agents + agents) * DAY_RESERVE_HOURS
        yield _Projected(Reason.HOURS_PER_DAY, hours, for_others * DAY_RESERVE_HOURS, limits.max_hours_per_day, "hours in the day")


def month_reserve(usd_per_hour: float) -> float:
    """How much of the month's money is reserved for agents of this price together."""
    return usd_per_hour * MONTH_RESERVE_SECONDS / HOUR_SECONDS


# The budget of one pass.


_EACH = frozenset(LevelKind)
# Why not, in detail, and whose limit it is; "" where it is none.
Refused: TypeAlias = tuple[Reason, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """The use of the limits as a look shows it, before anything is planned. ``unread``: records of which nobody knows the pool."""

    uses: list[Usage]  # of each level, the narrow ones first
    booting: Mapping[str, int]
    connecting: Mapping[str, int]
    not_to_work_with: Mapping[str, int]
    unread: int


class Budget:
    """The room that the limits still allow; a plan reserves by taking from it."""

    def __init__(
        self,
        situation: Situation,
        without: Collection[str] = (),
        *,
        kinds: Collection[LevelKind] = _EACH,
    ) -> None:
        """Count living and requested agents, open launches included.

        ``without``: instances that are taken to have left. ``kinds``: of limits that count.
        """
        self._situation = situation
        counted = _counted(situation, without)
        uses = [use.copied() for use in counted.uses]
        self._booting, self._connecting = dict(counted.booting), Counter(counted.connecting)
        self._not_to_work_with, self._unread = Counter(counted.not_to_work_with), counted.unread
        connections = trials_of(situation.memory, TrialOf.CONNECT)
        self._refusing = {name: trial for name, trial in connections.items() if trial.is_failing}  # controllers that let no agent connect
        self.to_begin = to_begin(situation)  # pools of which one agent is to try a new image
        self.tries_places: dict[str, str] = {}  # the controller whose agent tries what boots failed on, by pool
        self.taken: list[tuple[str, float]] = []  # pool and highest price of each agent reserved here
        self._answers: dict[tuple[str, float], Refused | None] = {}  # by pool and price
        self.levels, self.fleet = uses, uses[-1]  # the narrow ones first
        self._of_pool = _by_pool(uses)
        self._kinds, self._kept, self._room_kept = kinds, NOTHING_KEPT, Counter[str]()

    def keep(self, kept: KeptRoom) -> "Budget":
        """Keep room for those whose turn it is, but for what they have been given already."""
        self._room_kept = Counter(kept.agents) - Counter(pool for pool, _ in self.taken)
        self._kept = replace(kept, agents=self._room_kept)
        self._answers.clear()
        for use in self.levels:
            use.keep_room(self._kept)
        return self

    def levels_of(self, pool: str) -> list[Usage]:
        """The levels in which a pool counts, the narrow ones first."""
        return self._of_pool.get(pool, [self.fleet])

    def agents_to_work_with(self, pool: str) -> int:
        """Count the agents of a pool that builds may use: neither held for inspection nor a person's, nor there to be stopped first."""
        return self.levels_of(pool)[0].agents - self._unread - self._not_to_work_with[pool]

    def refusal(self, pool: Pool, offerings: Iterable[Offering]) -> Refused | None:
        """Name the limit that forbids one more agent at the highest of these prices; None if there is room."""
        return self.over_limit(pool, _highest(offerings)) or (None if self.tries(pool) else self._few_at_once(pool))

    def refusal_to_connect(self, controller: str) -> Refused | None:
        """Say why no further agent may be launched for a controller that lets none connect: one is on its way; None if it may."""
        trial = self._refusing.get(controller)
        if trial is None or not self._connecting[controller]:
            return None
        return Reason.CANNOT_CONNECT, f"no new agent can connect to {controller} ({trial.why}); one agent is tried until one connects", ""

    def note_launched_for(self, controller: str, agents: int = 1) -> None:
        """Note agents that are planned for a controller."""
        self._connecting[controller] += agents

    def tries(self, pool: Pool) -> bool:
        """Tell whether one more agent of a pool is to try its new image: beside the others, whatever is wrong with those."""
        return pool.name in self.to_begin

    def refusal_of_start(self, pool: Pool, record: Record, otherwise: Iterable[Offering]) -> Refused | None:
        """Name what forbids that a stopped agent starts, or that one of these offerings is launched instead; None if there is room."""
        refusal = self._few_at_once(pool)
        # What it starts has booted before: it is no canary.
        return self.over_limit(pool, _more_usd(record, otherwise)) or (refusal if refusal and refusal[0] is Reason.ONE_TRIAL else None)

    def over_limit(self, pool: Pool, usd_per_hour: float) -> Refused | None:
        """Name the limit that forbids one more agent at this price, and whose it is; None if there is room.

        Each item of a queue asks: the answer is the same until the next agent is reserved.
        """
        question = pool.name, usd_per_hour
        if question not in self._answers:
            self._answers[question] = self._ask_levels(pool, usd_per_hour)
        return self._answers[question]

    def _ask_levels(self, pool: Pool, usd_per_hour: float) -> Refused | None:
        kept_usd_per_hour = self._kept.usd_per_hour[pool.name] if self._room_kept[pool.name] else None
        for use in self.levels_of(pool.name):
            if use.level.kind in self._kinds and (refused := use.refusal(usd_per_hour, kept_usd_per_hour)):
                return (*refused, use.level.text)
        return None

    def _few_at_once(self, pool: Pool) -> Refused | None:
        booting = self._booting.get(pool.name, 0)
        few = few_at_once(self._situation, pool.name) if booting else None
        return (*few[1:], "") if few and booting >= few[0] else None

    def is_ample_for_others(self, pool: Pool, offerings: Iterable[Offering]) -> bool:
        """Tell whether one more agent would leave half of each shared limit."""
        several = len(pool.controllers) > 1
        shared = [use for use in self.levels_of(pool.name) if several or use.level.kind is LevelKind.FLEET or len(use.level.pools) > 1]
        return all(use.fits(1, _highest(offerings), parts=2, but=_FILLS) for use in shared)

    def has_room_for(self, agents: int, pool: Pool) -> bool:
        """Tell whether so many more agents of a pool, at its highest price, fit within every limit."""
        return all(use.fits(agents, _highest(pool.offerings)) for use in self.levels_of(pool.name))

    def take(self, pool: Pool, offerings: Iterable[Offering], agents: int = 1, *, tries: bool = False) -> None:
        """Reserve agents of one pool, at the highest of these prices. ``tries``: one that tries a new image, as no other will then."""
        self.reserve(pool, _highest(offerings), agents)
        if tries:
            self.to_begin -= {pool.name}
            self._booting[pool.name] -= agents  # it says nothing of what boots otherwise

    def take_start(self, pool: Pool, record: Record, otherwise: Iterable[Offering]) -> None:
        """Reserve a stopped agent that starts, or what is launched instead."""
        self.reserve(pool, _more_usd(record, otherwise))

    def reserve(self, pool: Pool, usd_per_hour: float, agents: int = 1) -> None:
        """Reserve agents of one pool on all levels, each at this price; room that was kept for them is theirs."""
        self._answers.clear()
        self.taken += [(pool.name, usd_per_hour)] * agents
        self._booting[pool.name] = self._booting.get(pool.name, 0) + agents
        in_turn = min(agents, self._room_kept[pool.name])
        self._room_kept[pool.name] -= in_turn
        for use in self.levels_of(pool.name):
            use.take(agents, usd_per_hour)
            if in_turn:
                use.kept_agents -= in_turn
                use.kept_usd_per_hour -= in_turn * self._kept.usd_per_hour[pool.name]


def _counted(situation: Situation, without: Collection[str]) -> _Counted:
    """Count living and requested agents, open launches included: once for a look, unless some are taken to have left."""
    if without:
        return _count(situation, without)
    facts = situation.snapshot, situation.memory, situation.fleet, situation.agents
    return situation.memo.value("budget", facts, situation.now, lambda: (_count(situation, without), FOR_EVER))


def used_up_before(situation: Situation, pool: str, seconds: float) -> str:
    """Say which limit what there is now may use up before then, so that no further build begins in a pool; "" if none."""
    late_seconds = 1.1 * seconds + MINUTE_SECONDS  # it is an estimate, and the limit is seen by the next look
    uses = (use for use in _counted(situation, ()).uses if use.level.has(pool))
    return next((f"{use.level.text} may have used up its {limit}" for use in uses if (limit := use.used_up_within(late_seconds))), "")


def _count(situation: Situation, without: Collection[str]) -> _Counted:
    snapshot = situation.snapshot
    living = [record for record in snapshot.living if record.instance_id not in without]
    running = [record for record in living if not snapshot.is_off(record)]
    not_to_work_with = Counter(record.pool for record in running if _is_not_to_work_with(situation, record))
    for intent in snapshot.intents:
        not_to_work_with[intent.pool] += missing_of(intent) if intent.reservation else 0
    unread = unread_elsewhere(snapshot)
    uses = list(use_of_each_level(situation, living, unread))
    _count_what_has_no_record(situation, uses)
    booting, connecting = _booting(situation), _connecting(situation)
    return _Counted(uses=uses, booting=booting, connecting=connecting, not_to_work_with=not_to_work_with, unread=unread)


def use_of_each_level(situation: Situation, living: Iterable[Record], unread: int = 0) -> Iterator[Usage]:
    """Count the agents with a record, what cannot be read, the launches of the hour and the dollars of the month.

    ``unread``: of which pool these are, nobody knows, so each level leaves them room.
    """
    snapshot, memory = situation.snapshot, situation.memory
    launched = launched_lately(snapshot, memory)
    # Of each agent: its pool, whether it holds a place, and the dollars an hour that are reserved for it.
    costs = [(record.pool, not _holds_no_place(situation, record), _reserved_usd(snapshot, record)) for record in living]
    by_pool = {name: list(costs_of) for name, costs_of in groupby(sorted(costs, key=itemgetter(0)), key=itemgetter(0))}
    for level in levels(situation.fleet):
        is_all = level.kind is LevelKind.FLEET
        mine = costs if is_all else [cost for name in sorted(level.pools) for cost in by_pool.get(name, ())]
        dearest = max((_highest_usd_per_hour(situation.fleet.pools[name]) for name in level.pools), default=0.0)
        usd_per_hour = sum([usd for _, _, usd in mine]) + unread * dearest
        yield Usage(
            level=level,
            agents=sum([is_on for _, is_on, _ in mine]) + unread,
            launched=sum(count for pool, count in launched.items() if not pool or level.has(pool)),
            usd_per_hour=usd_per_hour,
            usd_in_month=spent_in_month(memory.month, level) + month_reserve(usd_per_hour),
            hours_in_day=hours_in_day(memory.fleet.day, level, snapshot.taken_at),
        )


# What EC2 refuses to end takes the place of another agent for so long.
_REFUSED_PLACE_SECONDS = HOUR_SECONDS


def _holds_no_place(situation: Situation, record: Record) -> bool:
    """Tell whether an agent is stopped, or EC2 confirmed its end, whatever it shows of it yet, or refuses that for an hour."""
    past = situation.memory.agent(record.instance_id)
    is_refused = past.stuck is not None and situation.now - past.stuck.since_at >= _REFUSED_PLACE_SECONDS
    return situation.snapshot.is_off(record) or is_refused or past.is_ending


def _reserved_usd(snapshot: Snapshot, record: Record) -> float:
    """Reserve the disk alone for what is stopped, or stops. What starts is reserved as a whole, whatever EC2 shows of it yet."""
    is_off = record.state is not RecordState.STARTING and snapshot.costs_disk_only(record)
    return record.volume_usd_per_hour if is_off else record.reserved_usd_per_hour


def _count_what_has_no_record(situation: Situation, uses: list[Usage]) -> None:
    of_pool, pools = _by_pool(uses), situation.fleet.pools
    for intent in situation.snapshot.intents:
        for use in of_pool.get(intent.pool, uses[-1:]):
            use.count(missing_of(intent), intent.usd_per_hour)
    for instance in unrecorded(situation.snapshot):  # its own price is not written down
        for use in of_pool.get(instance.pool, uses[-1:]):
            use.count(1, _highest_usd_per_hour(pools.get(instance.pool)))


def _by_pool(uses: list[Usage]) -> dict[str, list[Usage]]:
    """The levels in which each pool counts, the narrow ones first."""
    return grouped((name, use) for use in uses for name in use.level.pools)


def _highest(offerings: Iterable[Offering]) -> float:
    return max([offering.reserved_usd_per_hour for offering in offerings], default=0.0)


def _more_usd(record: Record, otherwise: Iterable[Offering]) -> float:
    """How much more a stopped agent costs once it runs: its disk is reserved before."""
    return max(record.reserved_usd_per_hour - record.volume_usd_per_hour, _highest(otherwise))


def _highest_usd_per_hour(pool: Pool | None) -> float:
    return _highest(pool.offerings) if pool else 0.0


def _is_not_to_work_with(situation: Situation, record: Record) -> bool:
    """Tell whether an agent that runs is kept for inspection, marked by a monitor, or a person's."""
    past = situation.memory.agent(record.instance_id)
    return past.is_kept or past.mark is not None or record.reservation is not None


def _booting(situation: Situation) -> dict[str, int]:
    """Count the agents of each pool that were requested and never seen connected; not where nobody sees them connect or fail.

    What tries a new image is beside them: of the one that others are launched from it shows nothing.
    """
    counts, to_try = dict[str, int](), situation.to_try
    for agent in (agent for agent in situation.agents if not is_controller_left(situation, agent.record.controller)):
        mark = situation.past(agent).mark
        is_to_count = mark is not None and mark.at_once and not mark.is_counted  # as a boot that failed
        is_booting = agent.record.is_instance and (is_to_count or (not _has_booted(situation, agent) and _may_still_connect(agent)))
        tries_image = situation.version_of(agent) == to_try.get(agent.pool.name)
        if is_booting and not tries_image and not has_counted(situation, agent):
            counts[agent.pool.name] = counts.get(agent.pool.name, 0) + 1
    for intent in situation.snapshot.intents:
        if intent.version != to_try.get(intent.pool):
            counts[intent.pool] = counts.get(intent.pool, 0) + missing_of(intent)
    return counts


def _has_booted(situation: Situation, agent: Agent) -> bool:
    """Tell whether it is known that an agent has booted. Where few are tried, one that has just connected may go away again."""
    if closed(situation.memory, TrialOf.BOOT.scope(agent.pool.name)):
        return has_settled(situation.past(agent), agent.record, situation.now)
    return situation.memory.has_connected(agent.record.life_id)


def _connecting(situation: Situation) -> Counter[str]:
    """Count the agents of each controller that were requested and never seen connected, whatever became of the machine's boot.

    One of a pool whose boots fail tries that pool, not the controller: it may never connect, and other pools would wait for it.
    """
    memory = situation.memory
    broken = {name for name in situation.fleet.pools if closed(memory, TrialOf.BOOT.scope(name))}
    mine = (agent for agent in situation.agents if agent.record.is_instance and not memory.has_connected(agent.record.life_id))
    counts = Counter(agent.record.controller for agent in mine if _may_still_connect(agent) and agent.pool.name not in broken)
    for intent in situation.snapshot.intents:
        counts[intent.controller] += missing_of(intent) if intent.pool not in broken else 0
    return counts


def _may_still_connect(agent: Agent) -> bool:
    seen = agent.record.state is RecordState.REGISTERED and agent.record.reservation is not None  # it registered, and shows no more
    # A monitor marks only what has connected. A person's mark hides whether it connects, and may stay for days.
    is_lost = agent.is_of_monitor or agent.phase in {Phase.INTERRUPTED, Phase.SET_ASIDE}
    return agent.record.state.is_there and not agent.instance_ended and not seen and not is_lost
