"""Starts of stopped agents that fail. They count apart from boots: what only a first boot does is missing at a start.

After three failed starts in a row a pool stops no more agents and keeps none stopped; one at a time tries it again, at growing intervals.
Nor does it stop more than one agent of a template version before one of that version was seen to start.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from autoscaler.domain.facts.memory import Failing, Memory, Trial
from autoscaler.domain.facts.plan import BootFailure
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import START
from autoscaler.domain.situation.pool_view import STARTS_TAKE_SHARE, PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.trials import START_PAUSES, by_pool, failed_once_more, of_starts

# So many failed starts in a row are no accident of one machine.
FAILED_STARTS = 3
# A machine that EC2 refused to start so often is terminated.
MACHINE_REFUSALS = 3
# Nor is it asked for again so soon.
ASKED_AGAIN_SECONDS = 300.0
# Nobody waits longer for a start than for so many usual ones; what takes less than this is none of ours to judge.
USUAL_STARTS = 2.0
LEAST_LATE_SECONDS = 120.0
_FAILED_KEPT = 20
_NEVER_CONNECTED = "it did not connect in time"
_STARTS = (Phase.REQUESTED, Phase.CONNECTING, Phase.OVERDUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStart:
    """A start that EC2 refused, that ended stopped again, or whose agent did not connect in time. ``why``: in EC2's or its own words.

    ``of_all``: whatever the machine is, EC2 would have said the same. Else each machine counts once.
    """

    pool: str
    instance_id: str
    why: str
    of_all: bool = False


def refused_start(controller: str, instance_id: str) -> str:
    """Name a machine that EC2 refused to start, in what keeps failing."""
    return f"{START}/{controller}/{instance_id}"


def postponed_start(controller: str, instance_id: str) -> str:
    """Name a machine that EC2 had no room, or we no right, to start, in what keeps failing: nothing is wrong with it."""
    return f"{START}-later/{controller}/{instance_id}"


def refusals_of(memory: Memory, agent: Agent) -> Failing | None:
    """Return how often EC2 refused to start this machine, and why."""
    return memory.failing.get(refused_start(agent.record.controller, agent.record.instance_id))


def asked_lately(memory: Memory, agent: Agent, now: float) -> Failing | None:
    """Return why a machine did not start a moment ago: others go first."""
    name = postponed_start(agent.record.controller, agent.record.instance_id)
    failing = refusals_of(memory, agent) or memory.failing.get(name)
    return failing if failing and now - failing.tried_at < ASKED_AGAIN_SECONDS else None


def next_starts(memory: Memory, agents: Iterable[Agent], version_of: Mapping[str, str]) -> dict[str, Trial]:
    """Carry on the trials of starts: one that connected closes its pool's, and proves its version. ``version_of``: by instance id."""
    trials = {of_starts(pool): trial for pool, trial in by_pool(memory, of_starts).items()}
    for agent in agents:
        if agent.phase is Phase.READY and agent.record.life and agent.record.life_id not in memory.connected:
            scope, version = of_starts(agent.pool.name), version_of.get(agent.record.instance_id, "")
            at = agent.record.began_at
            trials[scope] = Trial(failures=0, since_at=at, failed_at=at, until_at=at, why="", version=version)
    return trials


def failed_starts(failures: Iterable[BootFailure]) -> Iterator[FailedStart]:
    """Name the starts among these failures."""
    starts = (failure for failure in failures if failure.of_start)
    return (FailedStart(pool=start.pool, instance_id=start.instance_id, why=start.why or _NEVER_CONNECTED) for start in starts)


def vain_starts(situation: Situation, failures: Iterable[BootFailure]) -> Iterator[tuple[str, float]]:
    """Say by pool how long jobs waited for each start that failed: until they were served otherwise, and for the boot that served them."""
    for failure in failures:
        pool = situation.pools.get((failure.controller, failure.pool))
        if failure.of_start and pool is not None:
            yield failure.pool, _late_seconds(pool) + pool.boot_seconds


def _late_seconds(pool: PoolView) -> float:
    """After how long a start takes too long. Where failed starts are most of those seen, what was believed before any was seen."""
    usual_seconds = pool.start_seconds if pool.start_seconds < pool.boot_seconds else STARTS_TAKE_SHARE * pool.boot_seconds
    return max(USUAL_STARTS * usual_seconds, LEAST_LATE_SECONDS)


def note_failed_starts(known: Mapping[str, Trial], failures: Iterable[FailedStart], now: float) -> dict[str, Trial]:
    """Count the starts that failed, each machine once."""
    pools: dict[str, list[FailedStart]] = {}
    for failure in failures:
        trial = known.get(of_starts(failure.pool))
        if failure.of_all or trial is None or failure.instance_id not in trial.failed:
            pools.setdefault(failure.pool, []).append(failure)
    return {**known, **{of_starts(pool): _failed(known.get(of_starts(pool)), mine, now) for pool, mine in pools.items()}}


def _failed(before: Trial | None, failures: list[FailedStart], now: float) -> Trial:
    trial = failed_once_more(before, START_PAUSES, failures[0].why, now)
    for failure in failures[1:]:
        trial = failed_once_more(trial, START_PAUSES, failure.why, now)
    return replace(trial, failed=(*trial.failed, *(failure.instance_id for failure in failures))[-_FAILED_KEPT:])


def is_tripped(trial: Trial | None) -> bool:
    """Tell whether so many starts failed that a pool stops its agents no more."""
    return trial is not None and trial.failures >= FAILED_STARTS


def most_stopped(memory: Memory, pool: str, now: float) -> float:
    """Say how many agents of a pool may be stopped as far as starts work: one that tries again, or none before its time."""
    trial = memory.trials.get(of_starts(pool))
    if trial is None or not is_tripped(trial):
        return inf
    return 1 if now >= trial.until_at else 0


def is_proven(memory: Memory, pool: str, version: str | None) -> bool:
    """Tell whether an agent of this template version was seen to start again; of a version that nobody knows it cannot be told."""
    trial = memory.trials.get(of_starts(pool))
    return not version or (trial is not None and trial.version == version)


def starts_late(situation: Situation, agent: Agent, pool: PoolView) -> bool:
    """Tell whether an agent that was started takes so much longer than usual that jobs are served otherwise."""
    record = agent.record
    if agent.phase not in _STARTS or not record.starts or not record.is_measured:
        return False
    return situation.seen_seconds(record.controller, record.began_at) > _late_seconds(pool)
