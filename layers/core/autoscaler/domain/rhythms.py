"""Jobs that come at the same time every hour, day or week, as cron makes them: an agent can be there when they do."""

from collections.abc import Iterable, Iterator, Mapping

from autoscaler.domain.durations import Arrivals, Borne, Expected
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
# Whether guesses came true is judged by the last fifty or so of their kind.
_BORNE_FADES = 0.98


def expect(known: Arrivals, at: float, borne: Mapping[str, Borne]) -> tuple[Expected, ...]:
    """What an arrival makes of what was expected of its job: this one has come, and where its like came before, the next one is due."""
    expected = [e for e in known.expected if not _is_it(e, at)]
    for period in _PERIODS_SECONDS:
        came, periods = _came(known.times, at, period)
        if came >= _PERIODS_TO_TRUST and not any(_is_it(e, at + period) for e in expected):
            kind = f"{period:.0f} {came}/{periods}"
            expected.append(
                Expected(at=at + period, period_seconds=period, share=_share(came, periods, borne.get(kind, Borne())), kind=kind)
            )
    return tuple(expected)


def come_true(known: Arrivals, at: float) -> list[str]:
    """The kinds of the guesses that an arrival bears out."""
    return [e.kind for e in known.expected if e.kind and _is_it(e, at)]


def come_to_nothing(known: Arrivals, now: float) -> list[str]:
    """The kinds of the guesses that nothing has come of."""
    return [e.kind for e in known.expected if e.kind and now > e.at + _TOLERANCE_SECONDS]


def note_borne(borne: Mapping[str, Borne], kinds: Iterable[str], *, came: bool) -> dict[str, Borne]:
    """Note whether guesses came true: where jobs come by the clock most do, where people's pushes only look like it, hardly any."""
    noted = dict(borne)
    for kind in kinds:
        before = noted.get(kind, Borne())
        noted[kind] = Borne(true=before.true * _BORNE_FADES + came, false=before.false * _BORNE_FADES + (not came))
    return noted


def roll_on(known: Arrivals, now: float) -> tuple[Expected, ...]:
    """Put off by a period what has not come; that is no new guess."""
    if not known.expected or now <= min(e.at for e in known.expected) + _TOLERANCE_SECONDS:
        return known.expected
    return tuple(late for e in known.expected for late in _put_off(e, now))


def outlooks_by_time(known: Arrivals, now: float) -> Iterator[Outlook]:
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


def _is_it(expected: Expected, at: float) -> bool:
    return abs(expected.at - at) <= _TOLERANCE_SECONDS


def _share(came: int, periods: int, borne: Borne) -> float:
    """How likely a job is to come that came so often: by its own periods, and by what has come of other guesses like this one."""
    return (came + 1 + borne.true) / (periods + 2 + borne.true + borne.false)


def _came(times: tuple[float, ...], at: float, period: float) -> tuple[int, int]:
    """How often the job came a period ago, two periods ago, ..., and of how many that is known; never where it comes at any time."""
    if len(times) * 2 * _TOLERANCE_SECONDS > _BY_CHANCE * (at - times[0]):
        return 0, 0
    earlier = [at - back * period for back in range(1, _PERIODS_BACK + 1) if at - back * period >= times[0] - _TOLERANCE_SECONDS]
    return sum(any(abs(time - then) <= _TOLERANCE_SECONDS for time in times) for then in earlier), len(earlier)
