"""Demand that comes back comes in bursts: which agents a burst needs again, and what waiting they would have spared, had they been kept.

A burst begins with the look that sees more agents needed than the one before, and goes on for as long as a boot takes: an agent that is
asked for when its first job comes boots while the next ones do, and they wait for it, too. So what is learned of a burst is the same
however often the schedule looks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf

from autoscaler.domain.memory import Burst, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Executors that are needed now: by jobs that run or wait, and by stages that are foreseen, whose agents boot before they come.

    ``guessed``: those that are worth having for jobs that may come. Agents are launched for them; they are not needed.
    """

    present: int
    foreseen: int = 0
    guessed: int = 0

    def agents(self, executors: int) -> int:
        """How many agents that takes, if packed."""
        return ceil((self.present + self.foreseen) / executors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """An agent that was needed again: after how many seconds (infinite: not remembered), and the waits for a boot it would have spared."""

    number: int
    seconds: float
    waits: float


def follow_burst(window: Window | None, needed: Needed, now: float, *, executors: int, boot_seconds: float) -> Burst | None:
    """Follow demand that rises. ``window``: before this look; ``executors``: of one agent."""
    if window is None or not window.peaks:
        return None
    burst = None if window.burst is None or is_burst_over(window.burst, now, boot_seconds) else window.burst
    peaks, rises, so_far = (burst.peaks, burst.rises, burst.rises[-1][1]) if burst else (window.peaks, (), 0)
    there = peaks[-1][1] * executors
    beyond = needed.present + needed.foreseen - there
    if beyond <= so_far:
        return burst
    unexpected = max(0.0, needed.present - there - so_far - window.guessed)
    return Burst(peaks=peaks, rises=(*rises, (now, beyond, unexpected)))


def is_burst_over(burst: Burst, now: float, boot_seconds: float) -> bool:
    """Tell whether an agent that was asked for when it began would be there by now."""
    return now - burst.rises[0][0] >= boot_seconds


def agents_missed(burst: Burst, *, executors: int, boot_seconds: float) -> Iterator[Missed]:
    """Name the agents that a burst needed again, each with the waits of the jobs that would have run on its executors."""
    boot_seconds, there = max(boot_seconds, 1.0), burst.peaks[-1][1]
    came = list(_came(burst))
    for more, first in enumerate(range(0, len(came), executors), start=1):
        its_own, at = came[first : first + executors], came[first][0]
        waits = sum(max(0.0, 1.0 - (later - at) / boot_seconds) for later, alone in its_own if alone)
        yield Missed(number=there + more, seconds=_seconds_since(burst.peaks, there + more, at), waits=waits)


def _came(burst: Burst) -> Iterator[tuple[float, bool]]:
    """When each executor was first needed beyond the agents that were, and whether by a job that nobody expected."""
    so_far = 0
    for at, beyond, unexpected in burst.rises:
        alone = min(round(unexpected), beyond - so_far)
        yield from [(at, True)] * alone
        yield from [(at, False)] * (beyond - so_far - alone)
        so_far = beyond


def guessed_in_time(window: Window | None, needed: Needed, boot_seconds: float, now: float) -> float:
    """Executors launched for guesses, as far as their agents have had the time to boot: all of them a boot after they were guessed at.

    A job that they await would not have waited, whether or not an agent was kept for it.
    """
    if window is None or not needed.guessed:
        return 0.0
    return min(float(needed.guessed), window.guessed + needed.guessed * (now - window.seen_at) / max(boot_seconds, 1.0))


def _seconds_since(peaks: tuple[tuple[float, int], ...], number: int, at: float) -> float:
    return next((at - peak for peak, needed in reversed(peaks) if needed >= number), inf)
