"""Tell whether an agent is worth launching for a job that may come."""

from dataclasses import dataclass

# So long before its boot must begin an agent is launched for what is to come, however often one looks: boots are uneven, and one that
# comes late costs a wait. What that is worth: docs/experiments.md.
LEAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCosts:
    """What an agent of a pool costs and what it spares, as forecasts reckon with it; ``vain_seconds``: paid for one that nobody takes."""

    executors: int
    boot_seconds: float
    vain_seconds: float
    usd_per_hour: float
    wait_usd_per_hour: float  # of one job
    look_seconds: float  # from one look to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalForecast:
    """Seconds from now: when it may come (a quarter came sooner), when it comes on average, and when one knows that it does not."""

    soon: float
    late: float
    ends: float
    share: float  # how often it comes


def is_worth_keeping(arrival: ArrivalForecast, costs: AgentCosts, jobs: int) -> bool:
    """Tell whether it is time, and an agent that is there spares these jobs more of waiting for a boot than its idling costs."""
    if arrival.soon > costs.boot_seconds + LEAD_SECONDS:
        return False
    idle = arrival.share * max(0.0, arrival.late - costs.boot_seconds) + (1 - arrival.share) * (arrival.ends + costs.look_seconds)
    return _spared_usd(arrival, costs, jobs, costs.boot_seconds) > costs.usd_per_hour * idle / 3600.0


def is_worth_launching(arrival: ArrivalForecast, costs: AgentCosts, jobs: int) -> bool:
    """Tell the same of one that is launched now: it spares no more than the time until they come, and is paid for until it has booted."""
    if not is_worth_keeping(arrival, costs, jobs):
        return False
    idle = arrival.share * max(0.0, arrival.late - costs.boot_seconds)
    in_vain = (1 - arrival.share) * (max(arrival.ends, costs.boot_seconds) + costs.look_seconds)
    spared_seconds = min(costs.boot_seconds, max(0.0, arrival.late))
    return _spared_usd(arrival, costs, jobs, spared_seconds) > costs.usd_per_hour * (idle + in_vain) / 3600.0


def _spared_usd(arrival: ArrivalForecast, costs: AgentCosts, jobs: int, seconds: float) -> float:
    """What so many seconds of waiting are worth, and half a look until the jobs would have been seen."""
    filled = min(jobs, costs.executors)
    return arrival.share * costs.wait_usd_per_hour * (seconds + costs.look_seconds / 2) * filled / 3600.0
