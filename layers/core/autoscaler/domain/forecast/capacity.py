"""Expected delay beyond a boot because EC2 lacks machines of a pool, learned from past launches.

The mean is learned, not the median: the rare hour without any capacity costs, not the usual launch that gets what it asks for.
"""

from dataclasses import replace

from autoscaler.domain.facts.memory import CapacityDelay

# What was refused and is still wanted is asked for again within this time; launches within it are of one burst, and tell nothing new.
_ONE_ASK_SECONDS = 600.0
# Each ask makes those before it count a little less: the last hundred or so decide.
_FADES = 0.99
# Before anything was asked, so many asks are believed to have been answered at once.
_BELIEVED_ASKS = 2.0
# While machines are short some bursts go on growing, others were over at once: of the jobs that steady demand would bring meanwhile so many
# are believed to come. By trial on traces: a half kept too much where machines are short for ten minutes, none too little for an hour.
_GOES_ON_SHARE = 0.25


def note_refused(known: CapacityDelay | None, now: float) -> CapacityDelay:
    """Note that a launch of a pool was refused for want of capacity."""
    known = known or CapacityDelay()
    if known.since_at is not None and now - known.asked_at > _ONE_ASK_SECONDS:
        known = _asked(known, _lasts(known, now))
    return replace(known, asked_at=now, since_at=now if known.since_at is None else known.since_at)


def note_had(known: CapacityDelay | None, now: float) -> CapacityDelay:
    """Note that an agent was launched."""
    known = known or CapacityDelay()
    if known.since_at is None and now - known.asked_at <= _ONE_ASK_SECONDS:
        return known
    return replace(_asked(known, _lasts(known, now)), asked_at=now)


def expected_seconds(known: CapacityDelay | None, now: float, boot_seconds: float) -> float:
    """Return the expected wait beyond a boot of a job that finds no agent.

    Those that come later, while machines are still short, wait as well: they count as if these waited for them.
    """
    if known is None:
        return 0.0
    if known.since_at is not None:
        known = _asked(known, _lasts(known, now))
    return (known.seconds + _GOES_ON_SHARE * known.squares / max(boot_seconds, 1.0)) / (known.asks + _BELIEVED_ASKS)


def _lasts(known: CapacityDelay, now: float) -> float:
    """Return how long a shortage has lasted; if nobody asks any more, until it was last confirmed."""
    if known.since_at is None:
        return 0.0
    return (now if now - known.asked_at <= _ONE_ASK_SECONDS else known.asked_at) - known.since_at


def _asked(known: CapacityDelay, seconds: float) -> CapacityDelay:
    """Count one more request that waited this long."""
    return replace(
        known,
        asks=known.asks * _FADES + 1.0,
        seconds=known.seconds * _FADES + seconds,
        squares=known.squares * _FADES + seconds**2,
        since_at=None,
    )
