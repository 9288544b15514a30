"""Launches that were lost, and how many of them the pauses allow: read off the world, whatever the functions remember."""

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.simulate.result import pool_of
from support.hostile.drawn import MINUTE
from support.hostile.life import Launched, Life, Stand
from support.hostile.of_the_queue import STAGES
from support.hostile.verdict import Verdict, at

_HOUR = 3600.0
IN_FIRST_HOUR, IN_LATER_HOUR = 6, 3
CLOSED_BY = 3  # boots may fail by chance: fewer that failed show nothing, and as many follow as jobs need
_TWO_LOOKS = 2 * MINUTE
_PASS = 5 * MINUTE  # at the most, where answers are slow
_HANDED_OUT_WITHIN = 15 * MINUTE  # at the latest, where Jenkins is slow
# The pool, if its machines do not boot; the controller and the label expression, if free agents do not get its jobs; or some of them.
Scope: TypeAlias = tuple[str, ...]
Wins: TypeAlias = dict[str, list[float]]  # when something worked, by offering; of jobs that are refused by ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A launch that was lost. ``known_at``: anybody could know it then; ``offering``: "" if its agent has connected.

    ``jobs``: that its free agent did not get.
    """

    scope: Scope
    machine: str
    launched_at: float
    known_at: float
    offering: str = ""
    jobs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """Losses of one hour in which pauses were due. ``number``: 0 is the hour of the first try after enough losses were known."""

    number: int
    losses: tuple[Loss, ...]

    @property
    def allowed(self) -> int:
        """How many there may be for one cause."""
        return IN_LATER_HOUR if self.number else IN_FIRST_HOUR


def loses_few_launches(life: Life, verdict: Verdict) -> None:
    """Judge each scope. Several causes at once may each cost as many."""
    machines = _by_node(life)
    every_loss = (loss for instance in life.world.ec2.instances.values() if (loss := _loss_of(life, machines, instance)))
    losses = list(_without_guesses(life, every_loss))
    verdict.oblige(life, "F", count=len(life.world.ec2.instances))
    for scope in dict.fromkeys(loss.scope for loss in losses):
        mine = [loss for loss in losses if loss.scope == scope]
        wins = _refusal_wins(life, scope) if len(scope) > 1 else _boot_wins(life, scope[0])
        wins |= {offering: sorted([*wins.get(offering, []), *_forgotten(life)]) for offering in {loss.offering for loss in mine}}
        grace = _HANDED_OUT_WITHIN if len(scope) > 1 and _is_slow(life, scope[0]) else _TWO_LOOKS
        for hour in hours_of(mine, wins, grace, closed_by=1 if len(scope) > 1 else CLOSED_BY):
            causes = _count_causes(life, scope, hour)
            if len(hour.losses) > hour.allowed * causes:
                _tell(verdict, life, scope, hour, causes)


def _without_guesses(life: Life, losses: Iterable[Loss]) -> Iterator[Loss]:
    """Leave out as many refused agents of each launch as were launched for other jobs, which are yet to come."""
    left_out = Counter[int]()
    for loss in losses:
        launch = _launch_of(life, life.world.ec2.instances[loss.machine])
        others = sum(count for job, count in launch.guesses.items() if job not in loss.jobs)
        if loss.offering or left_out[id(launch)] >= others:
            yield loss
        else:
            left_out[id(launch)] += 1


def _launch_of(life: Life, instance: Instance) -> Launched:
    """Find the launch of a machine: the next one for its controller and pool that a pass had told of by its end."""
    of = instance.tags.get("autoscaler:controller", ""), instance.tags["autoscaler:pool"]
    told = [when for *whose, when in life.notes.launches if (*whose,) == of and 0 <= when - instance.launched_at < _PASS]
    return life.notes.launches[*of, min(told)] if told else Launched()


def _forgotten(life: Life) -> Iterator[float]:
    """Return when all that was remembered of losses was lost, which is as good as a win: nobody can know of them any more.

    A table is restored half a minute before the end of its span, between two passes.
    """
    return (one.until_at - MINUTE / 2 for one in life.unkind if one.switch in {"state-lost", "state-restored"})


def _tell(verdict: Verdict, life: Life, scope: Scope, hour: Hour, causes: int) -> None:
    what = f"jobs for {scope[1]} on {scope[0]}" if len(scope) > 1 else f"machines of {scope[0]} that did not connect"
    times = f"{at(life, hour.losses[0].launched_at)} to {at(life, hour.losses[-1].launched_at)}"
    which = "first hour" if hour.number == 0 else f"hour {hour.number + 1}"
    verdict.breaks(
        "F", f"{what}: {len(hour.losses)} launches were lost from {times}, {hour.allowed * causes} at the most in the {which} of it"
    )


def hours_of(losses: Iterable[Loss], wins: Wins, grace_seconds: float = _TWO_LOOKS, *, closed_by: int = 1) -> list[Hour]:
    """Put the losses of one scope into hours of pauses. ``closed_by``: pauses are due once so many losses could be known.

    Launches before that are in no hour. The count begins anew once a launch of the kind has worked, or if an hour has passed
    without any loss.
    """
    hours: list[Hour] = []
    counted: dict[int, list[Loss]] = defaultdict(list)
    known_at, last = list[float](), None  # when losses could be known after which no pause was due yet

    def close() -> None:
        hours.extend(Hour(number=number, losses=tuple(found)) for number, found in sorted(counted.items()))
        counted.clear()

    for loss in sorted(losses, key=lambda loss: loss.launched_at):
        if last is None or _begins_anew(last, loss, wins):
            close()
            known_at.clear()
        closed_at = known_at[closed_by - 1] if len(known_at) >= closed_by else inf
        if loss.launched_at > closed_at + grace_seconds:
            # Pauses grow from try to try: while no job waits for one, they do not.
            tried_at = counted[0][0].launched_at if counted else loss.launched_at
            counted[int((loss.launched_at - tried_at) // _HOUR)].append(loss)
        else:
            insort(known_at, loss.known_at)
        last = loss
    close()
    return hours


def _begins_anew(last: Loss, loss: Loss, wins: Wins) -> bool:
    times = wins.get(loss.offering, [])
    has_worked = bisect_right(times, loss.launched_at) > bisect_right(times, last.launched_at)
    return has_worked or loss.launched_at - last.known_at > _HOUR


# What is a loss


def _loss_of(life: Life, machines: dict[str, Instance], instance: Instance) -> Loss | None:
    node, pool = instance.tags.get("autoscaler:node", ""), pool_of(life.world, instance)
    reserved = {machine for machine, _, _ in life.wanted.reserved}
    is_taken = instance.interrupted or instance.id in reserved
    if is_taken or _has_floor(pool) or any(build.node == node for build in life.builds() if build.started_at is not None):
        return None
    connected_at = min((time for at in life.jenkins.values() for time in at.connections.get(node, ())), default=inf)
    if connected_at <= instance.launched_at + pool.boot_timeout_seconds:
        return _refusal(life, machines, instance)
    return _failed_boot(life, pool, instance)


def _has_floor(pool: Pool) -> bool:
    """Tell whether a pool keeps agents without jobs: there nobody can see which of them are launched for one."""
    return bool(pool.min_agents or pool.warm_executors or (pool.warm_pool and pool.warm_pool.min_agents))


def _failed_boot(life: Life, pool: Pool, instance: Instance) -> Loss | None:
    """It did not connect in time. One that was ended sooner is lost only if a job waited that it could have served."""
    deadline, ended_at = instance.launched_at + pool.boot_timeout_seconds, instance.ended_at or inf
    known_at = min(deadline, ended_at)
    serves = life.served_by(pool)
    waits = any(serves(build) and build.buildable_at < known_at < _left_at(build) for build in life.builds())
    if known_at > life.world.timeline.now or (ended_at < deadline and not waits):
        return None
    offering = _offering_of(instance)
    return Loss(scope=(pool.name,), machine=instance.id, launched_at=instance.launched_at, known_at=known_at, offering=offering)


def _offering_of(instance: Instance) -> str:
    return f"{instance.instance_type}/{instance.subnet}/{instance.market}"


def _left_at(build: Build) -> float:
    """When a build left the queue."""
    return min(build.started_at or inf, build.ended_at or inf)


def _refusal(life: Life, machines: dict[str, Instance], instance: Instance) -> Loss | None:
    """It stood free beside a job for three minutes, and did not get it."""
    stands = life.notes.stands.get(instance.tags.get("autoscaler:node", ""), {})
    missed = [stand for build, stand in stands.items() if stand.known_at is not None and _is_missed(machines, instance, build, stand)]
    if not missed:
        return None
    # Other jobs waited beside it, too. It was launched for the job that the launch names, or for the last one that came.
    named = _launch_of(life, instance).named
    first = min(missed, key=lambda stand: (stand.build.job != named, -stand.build.buildable_at, stand.known_at))
    return Loss(
        scope=_scope_of(first.build),
        machine=instance.id,
        launched_at=instance.launched_at,
        known_at=first.known_at,
        jobs=frozenset(stand.build.job for stand in missed),
    )


def _scope_of(build: Build) -> Scope:
    """Name what refuses a job. Stages that a permission keeps from a label are another cause than what holds the other jobs there."""
    return build.controller, build.asks_for, *([build.job] if build.job == STAGES else [])


def _is_missed(machines: dict[str, Instance], instance: Instance, build: Build, stand: Stand) -> bool:
    """Tell whether the job still waited when the agent was free for it no longer, or went to a younger one."""
    if _left_at(build) > stand.last_at + _TWO_LOOKS:
        return True
    taker = machines.get(build.node or "") if build.started_at is not None else None
    return taker is not None and taker.launched_at > instance.launched_at


# What worked


def _by_node(life: Life) -> dict[str, Instance]:
    return {node: instance for instance in life.world.ec2.instances.values() if (node := instance.tags.get("autoscaler:node"))}


def _boot_wins(life: Life, pool: str) -> Wins:
    """Return when machines of a pool connected, by offering."""
    wins: Wins = defaultdict(list)
    for instance in life.world.ec2.instances.values():
        if instance.tags.get("autoscaler:pool") == pool:
            node = instance.tags.get("autoscaler:node", "")
            wins[_offering_of(instance)] += [time for at in life.jenkins.values() for time in at.connections.get(node, ())]
    return {offering: sorted(times) for offering, times in wins.items()}


def _refusal_wins(life: Life, scope: Scope) -> Wins:
    """Return when more of the jobs ran at once than ever since they were refused first.

    That builds of theirs begin where others have ended proves nothing: a throttle lets them do so all day.
    """
    stands = [(build, stand) for stood in life.notes.stands.values() for build, stand in stood.items() if stand.known_at is not None]
    refused = [(build.job, stand.since_at) for build, stand in stands if _scope_of(build) == scope]
    jobs, since = {job for job, _ in refused}, min((time for _, time in refused), default=inf)
    changes = sorted(_changes(build for build in life.builds() if _scope_of(build) == scope and build.job in jobs))
    running, most, wins = 0, 0, list[float]()
    for when, change in changes:
        running += change
        if running > most and when > since:
            wins.append(when)
        most = max(most, running) if when > since else running
    return {"": wins}


def _changes(builds: Iterable[Build]) -> Iterator[tuple[float, int]]:
    """Return when one more of these builds runs, and when one less. Of the same instant an end comes first."""
    for build in builds:
        if build.started_at is not None:
            yield build.started_at, 1
            if build.ended_at is not None:
                yield build.ended_at, -1


# How much is allowed


def _is_slow(life: Life, controller: str) -> bool:
    """Tell whether a controller hands out executors late, so that it is known late that it hands out none.

    One build at a time of several jobs looks like that, too: each waits beside free executors until the one before it has ended.
    """
    builds = life.world.controllers[controller].builds
    by_jenkins = any(one.switch == "slow-hand-outs" and one.whom.startswith(controller) for one in life.unkind)
    return by_jenkins or any(one.switch == "throttled-over-folders" and any(map(one.touches, builds)) for one in life.unkind)


def _count_causes(life: Life, scope: Scope, hour: Hour) -> int:
    """Count what may have lost some of these launches: each costs as many."""
    begin, end = hour.losses[0].launched_at - _HOUR, hour.losses[-1].known_at
    machines = [life.world.ec2.instances[loss.machine] for loss in hour.losses]
    builds = [build for build in life.builds() if _is_of(life, scope, build)]
    overlapping = [one for one in life.unkind if one.overlaps(begin, end)]
    causes = [one for one in overlapping if one.is_noise or any(map(one.strikes, machines)) or any(map(one.touches, builds))]
    return max(1, Counter(one.switch for one in causes).total())


def _is_of(life: Life, scope: Scope, build: Build) -> bool:
    if len(scope) > 1:
        return _scope_of(build) == scope
    return any(pool.name == scope[0] for pool in life.pools_serving(build))
