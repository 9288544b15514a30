"""Series made by hand, of what ends of builds and arrivals of jobs teach."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.runs import BuildResult
from autoscaler.domain.facts.snapshot import Build, Snapshot
from corpus.case import Answers, Asks, Look
from corpus.hand import HOUR, MINUTE, long_known, look
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_pool,
    a_snapshot,
    a_view,
    an_agent,
    an_item,
    an_offering,
)

_TWO = a_fleet(a_pool(min_agents=2))
_GOOD, _BAD = BuildResult.SUCCEEDED, BuildResult.FAILED
_DAY = 24 * HOUR


def configurations_of_a_matrix_fail_on_one_machine() -> Iterator[Look]:
    """They are one job, for which no machine is blamed, though another one succeeds elsewhere."""
    failing = [_configuration(name, 120.0) for name in "abc"]
    yield from _results(failing, _configuration("d", 1.0))


def one_job_fails_again_and_again_on_one_machine() -> Iterator[Look]:
    """It is one cause, however often it fails."""
    failing = [
        a_build("broken", run=f"job/broken/{number}", key=f"{number}", elapsed_seconds=120.0)
        for number in range(6)
    ]
    yield from _results(failing, a_build("fine", elapsed_seconds=1.0))


def _results(failing: Sequence[Build], other: Build) -> Iterator[Look]:
    """Builds fail on one agent, many succeed on another, and one more does so later."""
    many = [a_build(f"b{number}", elapsed_seconds=60.0) for number in range(20)]
    ends = dict.fromkeys([one.run for one in failing], _BAD)
    ends |= dict.fromkeys([one.run for one in many], _GOOD)
    yield from long_known(_TWO)
    yield _learn(_TWO, NOW, _with_agents(failing, many))
    yield _learn(_TWO, NOW + MINUTE, _with_agents((), (other,)), ends)
    yield _learn(_TWO, NOW + 2 * MINUTE, _with_agents(), {other.run: _GOOD})
    yield look(Asks.DOWN, _TWO, _with_agents(), NOW + 2 * MINUTE + 1.0)


def _configuration(name: str, seconds: float) -> Build:
    configuration = f"os={name},gpu=yes"
    return a_build(
        f"team/app/{configuration}",
        run=f"job/team/job/app/{configuration}/1",
        elapsed_seconds=seconds,
    )


def _with_agents(*builds: Sequence[Build]) -> Snapshot:
    """Two agents with their builds."""
    first, second = builds or ((), ())
    agents = [an_agent(1, builds=tuple(first)), an_agent(2, builds=tuple(second))]
    view = a_view(*(node for _, node in agents))
    return a_snapshot(view, records=tuple(record for record, _ in agents))


def _learn(
    fleet: Fleet, at: float, seen: Snapshot, results: Mapping[str, BuildResult] | None = None
) -> Look:
    answers = {"main": Answers(results=results or {})}
    return look(Asks.LEARN, fleet, seen, at, answers=answers)


def a_job_that_is_always_there() -> Iterator[Look]:
    """It comes every ten minutes: nothing tells when it comes next."""
    fleet = a_fleet()
    yield from _come(fleet, [("busy", number * 600.0) for number in range(20)])
    yield from _wanted(fleet, 19 * 600.0 + HOUR)


def a_job_comes_a_second_time_a_day_later() -> Iterator[Look]:
    """It is expected on the third day, and comes then."""
    fleet = a_fleet()
    yield from _come(fleet, [("nightly", 0.0), ("nightly", _DAY)])
    yield from _wanted(fleet, 2 * _DAY)
    for minute in range(6):
        seen = _waiting("nightly") if minute > 1 else a_snapshot()
        yield look(Asks.DOWN, fleet, seen, NOW + 2 * _DAY + (minute - 1) * MINUTE)
    yield look(Asks.DOWN, fleet, _with_agents(), NOW + 2 * _DAY + 6 * MINUTE)


def waiting_becomes_dear_in_the_fleet_file() -> Iterator[Look]:
    """Only then an agent is worth launching for a job that is expected."""
    fleet, cheap = a_fleet(), a_fleet(a_pool(wait_usd_per_hour=0.01))
    yield from _come(fleet, [("nightly", 0.0), ("nightly", _DAY)])
    yield look(Asks.UP, cheap, a_snapshot(), NOW + 2 * _DAY - 225.0)
    yield look(Asks.UP, fleet, a_snapshot(), NOW + 2 * _DAY - 220.0)


def guesses_by_the_clock_come_to_nothing() -> Iterator[Look]:
    """Eight jobs came for three hours, and no more: a ninth that has done so is not believed."""
    dear = a_fleet(a_pool(offerings=(an_offering(usd_per_hour=13.0),)))
    eight = [f"push-{number}" for number in range(8)]
    yield from _come(dear, [(job, hour * HOUR) for hour in range(3) for job in eight])
    yield from _come(dear, [("ninth", hour * HOUR) for hour in range(5, 8)])
    yield from _wanted(dear, 8 * HOUR)


def a_build_begins_at_once_after_a_quiet_while() -> Iterator[Look]:
    """The look before it saw nothing, and was not saved."""
    often = {"look_every_seconds": 10.0}
    fleet = a_fleet()
    yield _learn(fleet, NOW, replace(a_snapshot(), **often))
    yield _learn(fleet, NOW + HOUR, replace(_with_agents((a_build(),), ()), **often))


def demand_comes_back_in_bursts() -> Iterator[Look]:
    """Jobs come minute after minute while an agent would boot for the first of them."""
    fleet = a_fleet(a_pool(executors=2))
    yield from long_known(fleet)
    for burst in range(6):
        for minute, waiting in enumerate((0, 1, 3, 4, 4, 0)):
            jobs = [f"job-{number}" for number in range(waiting)]
            at = NOW + (22 * burst + minute) * MINUTE
            yield look(Asks.DOWN, fleet, _waiting(*jobs), at)
    for minute in (133, 134):
        yield look(Asks.DOWN, fleet, _with_agents(), NOW + minute * MINUTE)


def _come(fleet: Fleet, times: Sequence[tuple[str, float]]) -> Iterator[Look]:
    """A look at each instant at which jobs come, and one a minute before and after it."""
    instants = dict.fromkeys(seconds for _, seconds in times)
    around = ((s - MINUTE, ()) for s in instants)
    jobs = {s: tuple(job for job, at in times if at == s) for s in instants}
    for seconds, waiting in sorted(
        chain(around, jobs.items(), ((s + 200.0, ()) for s in instants))
    ):
        yield _learn(fleet, NOW + seconds, _waiting(*waiting, number=int(seconds)))


def _waiting(*jobs: str, number: int = 0) -> Snapshot:
    items = [
        an_item(number + place, label="cpu", job=job, waiting_seconds=1.0)
        for place, job in enumerate(jobs)
    ]
    return a_snapshot(a_view(items=tuple(items)))


def _wanted(fleet: Fleet, seconds: float) -> Iterator[Look]:
    """What is launched as long before an instant as an agent boots."""
    for before in (300.0, 220.0):
        yield look(Asks.UP, fleet, a_snapshot(), NOW + seconds - before)


TAUGHT = (
    *(configurations_of_a_matrix_fail_on_one_machine, one_job_fails_again_and_again_on_one_machine),
    *(a_job_that_is_always_there, a_job_comes_a_second_time_a_day_later),
    *(a_build_begins_at_once_after_a_quiet_while, waiting_becomes_dear_in_the_fleet_file),
    *(guesses_by_the_clock_come_to_nothing, demand_comes_back_in_bursts),
)
