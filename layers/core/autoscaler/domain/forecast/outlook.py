"""What may come, and whether an agent is worth having for it before it is there."""

from dataclasses import dataclass

from autoscaler.domain.situation.pool_view import PoolView

# What is to come is launched for this much before its boot must begin: another look later it would come too late.
PASS_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Seconds from now: when it may come (a quarter came sooner), when it comes on average, and when one knows that it does not."""

    soon: float
    late: float
    ends: float
    share: float  # how often it comes


def is_worth_keeping(outlook: Outlook, pool: PoolView, jobs: int) -> bool:
    """Tell whether it is time, and an agent that is there spares these jobs more of waiting for a boot than its idling costs."""
    if outlook.soon > pool.boot_seconds + PASS_SECONDS:
        return False
    idle = outlook.share * max(0.0, outlook.late - pool.boot_seconds) + (1 - outlook.share) * (outlook.ends + PASS_SECONDS)
    return _spared_usd(outlook, pool, jobs, pool.boot_seconds) > pool.usd_per_hour * idle / 3600.0


def is_worth_launching(outlook: Outlook, pool: PoolView, jobs: int) -> bool:
    """Tell the same of one that is launched now: it spares no more than the time until they come, and is paid for until it has booted."""
    if not is_worth_keeping(outlook, pool, jobs):
        return False
    idle = outlook.share * max(0.0, outlook.late - pool.boot_seconds)
    in_vain = (1 - outlook.share) * (max(outlook.ends, pool.boot_seconds) + PASS_SECONDS)
    spared_seconds = min(pool.boot_seconds, max(0.0, outlook.late))
    return _spared_usd(outlook, pool, jobs, spared_seconds) > pool.usd_per_hour * (idle + in_vain) / 3600.0


def _spared_usd(outlook: Outlook, pool: PoolView, jobs: int, seconds: float) -> float:
    """What so many seconds of waiting are worth, and half a look until the jobs would have been seen."""
    filled = min(jobs, pool.pool.executors)
    return outlook.share * pool.pool.wait_usd_per_hour * (seconds + PASS_SECONDS / 2) * filled / 3600.0
