"""The ceilings: how much room is left for launches, and which limit is the one that is hit."""

from collections.abc import Iterable
from datetime import UTC, datetime

from autoscaler.domain.memory import Memory, Month
from autoscaler.domain.model import Fleet, Offering, Pool
from autoscaler.domain.numbers import MONTH_RESERVE_SECONDS
from autoscaler.domain.reasons import Reason
from autoscaler.domain.snapshot import InstanceState, Intent, Record, RecordState, Snapshot

HOUR_SECONDS = 3600.0


def living_records(snapshot: Snapshot) -> tuple[Record, ...]:
    """Every record whose instance may still cost money."""
    states = dict(snapshot.fates) | {instance.id: instance.state for instance in snapshot.instances}
    return tuple(
        record
        for record in snapshot.records
        if record.state is not RecordState.GONE and not states.get(record.instance_id, InstanceState.PENDING).ended
    )


def missing_of(intent: Intent) -> int:
    """How many agents an intent may still bring: none once it is settled."""
    return max(0, intent.count - len(intent.instances)) if intent.open else 0


def launched_lately(snapshot: Snapshot, memory: Memory) -> int:
    """Count the launches of the last hour: agents that have a record, those that had one, and those still asked for."""
    since = snapshot.taken_at - HOUR_SECONDS
    recorded = sum(record.launched_at > since for record in snapshot.records)
    gone = sum(launched_at > since for launched_at in memory.launches_gone)
    return recorded + gone + sum(missing_of(intent) for intent in snapshot.intents)


def month_name(at: float) -> str:
    """The calendar month (UTC) of an instant."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")


def meter(month: Month, records: Iterable[Record], now: float) -> Month:
    """Add what ran since the last look; a new month begins at nothing."""
    rate = sum(record.usd_per_hour for record in records)
    usd = rate * max(0.0, now - month.metered_at) / HOUR_SECONDS if month.metered_at else 0.0
    if month.name != month_name(now):
        return Month(name=month_name(now), usd=0.0, metered_at=now)
    return Month(name=month.name, usd=month.usd + usd, metered_at=now)


class Room:
    """What the limits still allow; taking from it is how a plan reserves."""

    def __init__(self, snapshot: Snapshot, fleet: Fleet, memory: Memory) -> None:
        """Count what lives and what was asked for, open launches included."""
        self._limits = fleet.limits
        records = living_records(snapshot)
        open_intents = [intent for intent in snapshot.intents if intent.open]
        self._in_pool: dict[str, int] = {}
        for name in fleet.pools:
            of_records = sum(record.pool == name for record in records)
            self._in_pool[name] = of_records + sum(missing_of(i) for i in open_intents if i.pool == name)
        self.agents = len(records) + sum(missing_of(intent) for intent in open_intents)
        self.launched = launched_lately(snapshot, memory)
        self._rate = sum(record.usd_per_hour for record in records)
        self._rate += sum(missing_of(intent) * intent.usd_per_hour for intent in open_intents)
        self._month = memory.month.usd + self._rate * MONTH_RESERVE_SECONDS / HOUR_SECONDS

    def agents_in(self, pool: str) -> int:
        """Agents of a pool, on all controllers, launches under way included."""
        return self._in_pool[pool]

    def refusal(self, pool: Pool, offerings: Iterable[Offering]) -> tuple[Reason, str] | None:
        """Name the limit that forbids one more agent at the dearest of these prices; None when there is room."""
        usd = max(offering.usd_per_hour for offering in offerings)
        limits, month = self._limits, self._month + usd * MONTH_RESERVE_SECONDS / HOUR_SECONDS
        checks = (
            (Reason.MAX_AGENTS, self._in_pool[pool.name] + 1, pool.max_agents, "agents in the pool"),
            (Reason.FLEET_MAX_AGENTS, self.agents + 1, limits.max_agents, "agents in the fleet"),
            (Reason.LAUNCH_RATE, self.launched + 1, limits.max_launches_per_hour, "launches within the hour"),
            (Reason.USD_PER_HOUR, self._rate + usd, limits.max_usd_per_hour, "dollars per hour"),
            (Reason.USD_PER_MONTH, month, limits.max_usd_per_month, "dollars in the month"),
        )
        for reason, would_be, limit, unit in checks:
            if would_be > limit + 1e-9:
                return reason, f"one more would make {would_be:g} {unit}, the limit is {limit:g}"
        return None

    def take(self, pool: Pool, offerings: Iterable[Offering]) -> None:
        """Reserve one agent."""
        usd = max(offering.usd_per_hour for offering in offerings)
        self._in_pool[pool.name] += 1
        self.agents += 1
        self.launched += 1
        self._rate += usd
        self._month += usd * MONTH_RESERVE_SECONDS / HOUR_SECONDS
