"""Usage of the limits: living agents, launches of the hour, dollars of the month."""

from dataclasses import replace
from datetime import UTC, datetime

from autoscaler.domain.facts.fleet import Fleet, Limits, Market
from autoscaler.domain.facts.memory import Memory, Month, SpotPrices
from autoscaler.domain.facts.snapshot import Instance, InstanceState, Intent, Record, RecordState, Snapshot

# EC2 bills a Linux instance by the second, for a minute at least.
MINIMUM_BILLED_SECONDS = 60.0
# Spot prices change gradually, a few times a day.
SPOT_PRICES_SECONDS = 600.0
HOUR_SECONDS = 3600.0
# EC2 bills no machine from the moment in which it is to stop: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html
_OFF = (InstanceState.STOPPING, InstanceState.STOPPED)


def unrecorded(snapshot: Snapshot) -> tuple[Instance, ...]:
    """Find instances with our tags that no record and no open launch accounts for: they cost money all the same."""
    known = {record.instance_id for record in snapshot.records}
    under_way = {intent.id for intent in snapshot.intents if intent.open}
    return tuple(i for i in snapshot.instances if i.id not in known and i.launch not in under_way and not i.state.ended)


def unread_elsewhere(snapshot: Snapshot) -> int:
    """Count unreadable records and launches that EC2 does not list, a launch as one agent."""
    listed, launches = {i.id for i in snapshot.instances}, {i.launch for i in snapshot.instances}
    return len(snapshot.unread_records - listed) + len(snapshot.unread_launches - launches)


def missing_of(intent: Intent) -> int:
    """Count the agents that an intent may still bring: none once it is settled."""
    return max(0, intent.count - len(intent.instances)) if intent.open else 0


def launched_lately(snapshot: Snapshot, memory: Memory) -> int:
    """Count the launches and starts of the last hour: of agents with a record, of those that had one, and open launches."""
    since = snapshot.taken_at - HOUR_SECONDS
    # Noted first, forgotten then: an agent may be known from both.
    unread = {instance.id: instance.launched_at for instance in snapshot.instances if instance.id in snapshot.unread_records}
    launches = {**memory.gone, **unread}
    for record in snapshot.records:
        launches |= launches_of(record)
    return sum(launched_at > since for launched_at in launches.values()) + sum(missing_of(intent) for intent in snapshot.intents)


def launches_of(record: Record) -> dict[str, float]:
    """When an agent was launched, and started again, by a name of each of these."""
    return {record.instance_id: record.launched_at} | {f"{record.instance_id}@{at:.0f}": at for at in record.starts}


def begin_again(record: Record, now: float) -> Record:
    """Note that a stopped agent starts: its next life, and a start that counts for an hour like a launch."""
    starts = (*(at for at in record.starts if now - at < HOUR_SECONDS), now)
    return replace(record.bound(node=record.node, life=record.life + 1), state=RecordState.STARTING, starts=starts, changed_at=now)


def month_name(at: float) -> str:
    """Name the calendar month (UTC) of an instant."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")


def next_spot_prices(known: SpotPrices, snapshot: Snapshot) -> SpotPrices:
    """Return the spot prices of this look, or the last ones known."""
    told = snapshot.spot_prices
    return known if told is None else SpotPrices(asked_at=snapshot.taken_at, usd_per_hour={**known.usd_per_hour, **told})


def paid_usd_per_hour(snapshot: Snapshot, fleet: Fleet, prices: SpotPrices) -> float:
    """Sum the price of all living agents: spot at EC2's price, or at its highest where EC2 never told one."""
    spot = {i.id: prices.usd_per_hour.get(i.priced_as) for i in snapshot.instances if i.market == Market.SPOT}
    total = 0.0
    for record in snapshot.living:
        if snapshot.states.get(record.instance_id) in _OFF:
            total += record.volume_usd_per_hour
            continue
        price, pool = spot.get(record.instance_id), fleet.pools.get(record.pool)
        volume = pool.offerings[0].volume_usd_per_hour if pool else 0.0
        total += record.reserved_usd_per_hour if price is None else price + volume
    return total


def meter(month: Month, rate: float, now: float) -> Month:
    """Add the cost since the last look at this many dollars an hour; a new month begins at zero."""
    usd = rate * max(0.0, now - month.metered_at) / HOUR_SECONDS if month.metered_at else 0.0
    if month.name != month_name(now):
        return Month(name=month_name(now), usd=0.0, metered_at=now)
    return Month(name=month.name, usd=month.usd + usd, metered_at=now)


def is_spent(month: Month, limits: Limits, now: float) -> bool:
    """Tell whether all of the month's money is spent."""
    return month.name == month_name(now) and month.usd >= limits.max_usd_per_month
