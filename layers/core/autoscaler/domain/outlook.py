"""What may come, and whether an agent is worth having for it before it is there."""

from dataclasses import dataclass

from autoscaler.domain.numbers import PASS_SECONDS
from autoscaler.domain.pools import PoolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Seconds from now: when it may come (a quarter came sooner), when it comes on average, and when one knows that it does not."""

    soon: float
    late: float
    ends: float
    share: float  # how often it comes


def is_worth(outlook: Outlook, pool: PoolView, jobs: int) -> bool:
    """Tell whether it is time, and the waiting of these jobs that is saved is worth more than the idling that is risked."""
    if outlook.soon > pool.boot_seconds + PASS_SECONDS:
        return False
    filled = min(jobs, pool.pool.executors)
    saved = outlook.share * pool.pool.wait_usd_per_hour * (pool.boot_seconds + PASS_SECONDS / 2) * filled
    idle = outlook.share * max(0.0, outlook.late - pool.boot_seconds) + (1 - outlook.share) * (outlook.ends + PASS_SECONDS)
    return saved > pool.usd_per_hour * idle
