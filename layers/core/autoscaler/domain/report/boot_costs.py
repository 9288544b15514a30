"""Note what first boots cost: dollars of the agents, and hours that jobs waited meanwhile. Each day's costs keep the sums by pool."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from autoscaler.domain.facts.costs import Boots, CostBatch
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.snapshot import Record, Snapshot
from autoscaler.domain.report.job_costs import CostLook, rate_of
from autoscaler.domain.situation.builds import begun_builds


def note_boots(batch: CostBatch, look: CostLook) -> CostBatch:
    """Add the first boots that have ended since the last look, and how long jobs that have begun since then had waited for one."""
    boots = dict(batch.boots)
    for pool, more in (*_ended(look, batch.seen_at), *_waits(look)):
        boots[pool] = boots.get(pool, Boots()).plus(more)
    return replace(batch, boots=boots)


def _ended(look: CostLook, since: float) -> Iterator[tuple[str, Boots]]:
    ended = [r for r in look.snapshot.living if since < (r.registered_at or 0.0) <= look.snapshot.taken_at and _is_first(r)]
    agents = Counter(r.pool for r in look.snapshot.living if not look.snapshot.costs_disk_only(r)) if ended else {}
    for record in ended:
        hours = ((record.registered_at or 0.0) - record.launched_at) / HOUR_SECONDS
        usd = hours * rate_of(record, look.snapshot.memory.spot_prices)
        yield record.pool, Boots(number=1, usd=usd, agents=agents[record.pool])


def _waits(look: CostLook) -> Iterator[tuple[str, Boots]]:
    """Say how much of each job's waiting was while the agent booted that then ran it."""
    for controller, after in look.learned.items():
        before = look.snapshot.learned[controller]
        fresh = [sighting for key, sighting in after.running.items() if key not in before.running]
        begun = begun_builds(fresh, before, after.waiting) if before.waiting else []
        booted = _booted_nodes(look.snapshot, controller) if begun else {}
        for record, waited in ((booted.get(sighting.node), waited) for sighting, waited in begun):
            if record is not None and waited is not None:
                seconds = (record.registered_at or 0.0) - max(before.seen_at - waited, record.launched_at)
                yield record.pool, Boots(wait_hours=max(0.0, seconds) / HOUR_SECONDS)


def _booted_nodes(snapshot: Snapshot, controller: str) -> dict[str | None, Record]:
    return {record.node: record for record in snapshot.living if record.controller == controller and _is_first(record)}


def _is_first(record: Record) -> bool:
    """Tell whether an agent is in its first life: what went before it was a boot, no start."""
    return not record.life and (record.registered_at or 0.0) > record.launched_at
