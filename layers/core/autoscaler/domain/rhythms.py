"""Jobs that come at the same time every hour, day or week, as cron makes them: an agent can be there when they do."""

from collections.abc import Iterator

from autoscaler.domain.durations import Arrivals, Expected
from autoscaler.domain.outlook import Outlook

_PERIODS_SECONDS = (3600.0, 86_400.0, 7 * 86_400.0)
_PERIODS_BACK = 4
_PERIODS_TO_TRUST = 2
# Jenkins starts what its cron asks for within a minute; the look that sees it may come as late.
_TOLERANCE_SECONDS = 120.0
# A job that is there so large a share of the time is not there at a certain time.
_BY_CHANCE = 0.1
# One that did not come, as on a Saturday, may come a period later: less likely each time, and not thought of below the least share.
_FADES, _LEAST_SHARE = 0.7, 0.2


def expect(known: Arrivals, at: float) -> tuple[Expected, ...]:
    """What an arrival makes of what was expected of its job: this one has come, and where its like came before, the next one is due."""
    expected = [e for e in known.expected if abs(e.at - at) > _TOLERANCE_SECONDS]
    for period in _PERIODS_SECONDS:
        share = _share(known.times, at, period)
        if share is not None and all(abs(e.at - at - period) > _TOLERANCE_SECONDS for e in expected):
            expected.append(Expected(at=at + period, period_seconds=period, share=share))
    return tuple(expected)


def roll_on(known: Arrivals, now: float) -> tuple[Expected, ...]:
    """Put off by a period what has not come."""
    if not known.expected or now <= min(e.at for e in known.expected) + _TOLERANCE_SECONDS:
        return known.expected
    return tuple(late for e in known.expected for late in _put_off(e, now))


def outlooks(known: Arrivals, now: float) -> Iterator[Outlook]:
    """When a job may come next."""
    for expected in known.expected:
        late = expected.at - now
        yield Outlook(soon=late - _TOLERANCE_SECONDS / 4, late=late, ends=late + _TOLERANCE_SECONDS, share=expected.share)


def _put_off(expected: Expected, now: float) -> Iterator[Expected]:
    if now <= expected.at + _TOLERANCE_SECONDS:
        yield expected
    elif expected.share * _FADES >= _LEAST_SHARE:
        later = expected.at + expected.period_seconds
        yield Expected(at=later, period_seconds=expected.period_seconds, share=expected.share * _FADES)


def _share(times: tuple[float, ...], at: float, period: float) -> float | None:
    """How often the job came a period ago, two periods ago, ...; None where too few are known, or it comes at any time."""
    if len(times) * 2 * _TOLERANCE_SECONDS > _BY_CHANCE * (at - times[0]):
        return None
    earlier = [at - back * period for back in range(1, _PERIODS_BACK + 1) if at - back * period >= times[0] - _TOLERANCE_SECONDS]
    came = sum(any(abs(time - then) <= _TOLERANCE_SECONDS for time in times) for then in earlier)
    return (came + 1) / (len(earlier) + 2) if came >= _PERIODS_TO_TRUST else None
