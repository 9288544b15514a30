"""The budget: how many more launches the limits allow at their highest price, and which limit forbids one."""

from collections import Counter
from collections.abc import Collection, Iterable

from autoscaler.domain.facts.fleet import Offering, Pool
from autoscaler.domain.facts.metering import HOUR_SECONDS, launched_lately, missing_of, unread_elsewhere, unrecorded
from autoscaler.domain.facts.plan import Launch, Start
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.canary import why_one_at_a_time
from autoscaler.domain.situation.image_canary import to_begin
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided

# Within the month's limit an agent is reserved for this long: a build that has begun is never cut short to save money.
MONTH_RESERVE_SECONDS = 3600.0
_CONNECT = (RecordState.REQUESTED, RecordState.STARTING, RecordState.REGISTERED)
_SHARED = {Reason.FLEET_MAX_AGENTS, Reason.LAUNCH_RATE, Reason.USD_PER_HOUR}


class Budget:
    """The room that the limits still allow; a plan reserves by taking from it."""

    def __init__(self, situation: Situation, without: Collection[str] = (), decided: Decided = ()) -> None:
        """Count living and requested agents, open launches included.

        ``without``: instances that are taken to have left. ``decided``: what this pass launches already.
        """
        snapshot, fleet, memory = situation.snapshot, situation.fleet, situation.memory
        self._limits = fleet.limits
        self._situation = situation
        self._booting, self._to_begin = _booting(situation), to_begin(situation)
        living = [record for record in snapshot.living if record.instance_id not in without]
        records = [record for record in living if not snapshot.is_off(record)]
        self._kept = Counter(record.pool for record in records if record.instance_id in memory.kept)
        self._in_pool = Counter(record.pool for record in records)
        self._of_any_pool = unread_elsewhere(snapshot)  # nobody knows which: each pool leaves them room
        self.agents = len(records) + self._of_any_pool
        self.launched = launched_lately(snapshot, memory)
        self._rate = sum(record.volume_usd_per_hour if snapshot.is_off(record) else record.reserved_usd_per_hour for record in living)
        self._rate += self._of_any_pool * max(map(_highest_usd_per_hour, fleet.pools.values()), default=0.0)
        for intent in snapshot.intents:
            self._count(intent.pool, missing_of(intent), intent.usd_per_hour)
        for instance in unrecorded(snapshot):  # its own price is not written down
            self._count(instance.pool, 1, _highest_usd_per_hour(fleet.pools.get(instance.pool)))
        self._month = memory.month.usd + self._rate * MONTH_RESERVE_SECONDS / HOUR_SECONDS
        self._take_decided(decided)

    def _take_decided(self, decided: Decided) -> None:
        """Reserve what this pass launches and starts already."""
        pools, records = self._situation.fleet.pools, {record.instance_id: record for record in self._situation.snapshot.records}
        for step in decided:
            if isinstance(step, Launch):
                self.take(pools[step.pool], step.offerings, step.count, tries=step.tries)
            elif isinstance(step, Start):
                for instance_id in step.instance_ids:
                    self.take_start(pools[step.pool], records[instance_id], step.otherwise.offerings if step.otherwise else ())

    def _count(self, pool: str, agents: int, usd_per_hour: float) -> None:
        self.agents += agents
        self._in_pool[pool] += agents
        self._rate += agents * usd_per_hour

    @property
    def usd_per_hour(self) -> float:
        """The highest price of all of it, an hour."""
        return self._rate

    def agents_in(self, pool: str) -> int:
        """Count the agents of a pool on all controllers, open launches included."""
        return self._in_pool[pool]

    def agents_to_work_with(self, pool: str) -> int:
        """Count the agents of a pool that are not held for inspection."""
        return self._in_pool[pool] - self._kept[pool]

    def refusal(self, pool: Pool, offerings: Iterable[Offering]) -> tuple[Reason, str] | None:
        """Name the limit that forbids one more agent at the highest of these prices; None if there is room."""
        return self._over_limit(pool, _highest(offerings)) or (None if self.tries(pool) else self._one_at_a_time(pool))

    def tries(self, pool: Pool) -> bool:
        """Tell whether one more agent of a pool is to try its new image: beside the others, whatever is wrong with those."""
        return pool.name in self._to_begin

    def refusal_of_start(self, pool: Pool, record: Record, otherwise: Iterable[Offering]) -> tuple[Reason, str] | None:
        """Name what forbids that a stopped agent starts, or that one of these offerings is launched instead; None if there is room."""
        refusal = self._one_at_a_time(pool)
        # What it starts has booted before: it is no canary.
        return self._over_limit(pool, _more_usd(record, otherwise)) or (refusal if refusal and refusal[0] is Reason.ONE_TRIAL else None)

    def _over_limit(self, pool: Pool, usd_per_hour: float) -> tuple[Reason, str] | None:
        for reason, would_be, limit, unit in self._with_more(pool, usd_per_hour):
            if would_be > limit + 1e-9:
                return reason, f"one more would make {would_be:g} {unit}, the limit is {limit:g}"
        return None

    def _one_at_a_time(self, pool: Pool) -> tuple[Reason, str] | None:
        return why_one_at_a_time(self._situation, pool.name) if self._booting.get(pool.name) else None

    def is_ample(self, pool: Pool, offerings: Iterable[Offering]) -> bool:
        """Tell whether one more agent would leave two thirds of each limit."""
        return self._uses_one_part(3, {*_SHARED, Reason.MAX_AGENTS}, pool, offerings)

    def is_ample_for_others(self, pool: Pool, offerings: Iterable[Offering]) -> bool:
        """Tell whether one more agent would leave half of each shared limit."""
        return self._uses_one_part(2, _SHARED if len(pool.controllers) == 1 else {*_SHARED, Reason.MAX_AGENTS}, pool, offerings)

    def _uses_one_part(self, parts: int, limits: set[Reason], pool: Pool, offerings: Iterable[Offering]) -> bool:
        """Tell whether one more agent would use at most one of so many parts; the month only fills, and does not count."""
        more = self._with_more(pool, _highest(offerings))
        return all(parts * would_be <= limit for reason, would_be, limit, _ in more if reason in limits)

    def has_room_for(self, agents: int, pool: Pool) -> bool:
        """Tell whether so many more agents of a pool, at its highest price, fit within every limit."""
        return all(would_be <= limit for _, would_be, limit, _ in self._with_more(pool, _highest(pool.offerings), agents))

    def _with_more(self, pool: Pool, usd_per_hour: float, agents: int = 1) -> tuple[tuple[Reason, float, float, str], ...]:
        """Project the use of each limit after so many more agents at this price."""
        limits, usd = self._limits, agents * usd_per_hour
        month = self._month + usd * MONTH_RESERVE_SECONDS / HOUR_SECONDS
        return (
            (Reason.MAX_AGENTS, self._in_pool[pool.name] + self._of_any_pool + agents, pool.max_agents, "agents in the pool"),
            (Reason.FLEET_MAX_AGENTS, self.agents + agents, limits.max_agents, "agents in the fleet"),
            (Reason.LAUNCH_RATE, self.launched + agents, limits.max_launches_per_hour, "launches within the hour"),
            (Reason.USD_PER_HOUR, self._rate + usd, limits.max_usd_per_hour, "dollars per hour"),
            (Reason.USD_PER_MONTH, month, limits.max_usd_per_month, "dollars in the month"),
        )

    def take(self, pool: Pool, offerings: Iterable[Offering], agents: int = 1, *, tries: bool = False) -> None:
        """Reserve agents of one pool, at the highest of these prices. ``tries``: one that tries a new image, as no other will then."""
        self._to_begin -= {pool.name} if tries else set()
        self._take(pool, agents * _highest(offerings), agents)

    def take_start(self, pool: Pool, record: Record, otherwise: Iterable[Offering]) -> None:
        """Reserve a stopped agent that starts, or what is launched instead."""
        self._take(pool, _more_usd(record, otherwise), 1)

    def _take(self, pool: Pool, usd: float, agents: int) -> None:
        self._in_pool[pool.name] += agents
        self._booting[pool.name] = self._booting.get(pool.name, 0) + agents
        self.agents += agents
        self.launched += agents
        self._rate += usd
        self._month += usd * MONTH_RESERVE_SECONDS / HOUR_SECONDS


def _highest(offerings: Iterable[Offering]) -> float:
    return max((offering.reserved_usd_per_hour for offering in offerings), default=0.0)


def _more_usd(record: Record, otherwise: Iterable[Offering]) -> float:
    """How much more a stopped agent costs once it runs: its disk is reserved before."""
    return max(record.reserved_usd_per_hour - record.volume_usd_per_hour, _highest(otherwise))


def _highest_usd_per_hour(pool: Pool | None) -> float:
    return _highest(pool.offerings) if pool else 0.0


def _booting(situation: Situation) -> dict[str, int]:
    """Count the agents of each pool that were requested and never seen connected."""
    counts: dict[str, int] = {}
    connected = situation.memory.connected
    for agent in situation.agents:
        if agent.record.life_id not in connected and _may_still_connect(agent):
            counts[agent.pool.name] = counts.get(agent.pool.name, 0) + 1
    for intent in situation.snapshot.intents:
        counts[intent.pool] = counts.get(intent.pool, 0) + missing_of(intent)
    return counts


def _may_still_connect(agent: Agent) -> bool:
    return agent.record.state in _CONNECT and not agent.instance_ended
