"""Replace agents that are outdated, too old, or suspect, at most a share of a pool in an hour.

Outdated agents were launched from another version of their launch template than would be launched now, or are too old. They go first
where agents are surplus, and a share of them an hour where none is: cordoned for good, drained, replaced by demand. Of a version that
never booted one agent is tried first, before more than one of the old ones is taken for it. None is taken while its pool can launch
no replacement.

An agent on which builds fail, or never end, is quarantined: it takes no more of them; the builds on it go on. Blamed is the machine
only where it is likelier than the code: other agents of its pool succeed meanwhile, or a build runs many times longer than its job
ever does. What is cordoned is replaced by demand, and given up when idle, unless its operator wants it kept.

Demand replaces an agent that a monitor of Jenkins took offline at once. After ten minutes our mark takes the place of the monitor's, and
the agent ends once it was idle in two looks. If the monitor takes its mark back first, the agent is used again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Quarantine
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import PoolResults, Streak
from autoscaler.domain.facts.snapshot import Build
from autoscaler.domain.forecast.durations import job_key
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.turns import may_be_refused
from autoscaler.domain.scale_in.build_results import causes, chance_of_streak
from autoscaler.domain.scale_in.surplus import least_missed
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.canary import is_canary, why_replaced
from autoscaler.domain.situation.ended_builds import is_no_fault_of_its_machine
from autoscaler.domain.situation.marks import MARKED_SECONDS
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.remaining import elapsed_seconds
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving
from autoscaler.domain.situation.trials import of_boot, of_image, open_trial
from autoscaler.domain.wording import duration, durations_apart

# The disruption budget: agents replaced for their machine, template or age, at most this share of a pool an hour.
TAKEN_SHARE = 0.2
TAKEN_AT_LEAST = 1
# Jobs that fail in a row and make a machine suspect, where others of its pool succeed: of builds that fail one time in four by
# themselves, one in a thousand such rows. If builds of the pool fail less often, three or four are as unlikely.
QUARANTINE_FAILURES, QUARANTINE_FAILURES_AT_LEAST = 5, 3
QUARANTINE_CHANCE = 0.001
# A build is overdue at 3 times, hung at 10 times the longest run of its job, if the job was seen 5 times; never hung within an hour.
OVERDUE_FACTOR = 3.0
OVERDUE_SAMPLES = 5
FAR_OVERDUE_FACTOR = 10.0
FAR_OVERDUE_AT_LEAST_SECONDS = 3600.0
_PACED = (MarkClass.OUTDATED, MarkClass.QUARANTINE, MarkClass.REFUSES, MarkClass.MONITOR)
# These follow from an earlier cordon, or from the end of a machine.
_NOT_TAKEN = (Reason.LABELS_TAKEN, Reason.SLOT_LEFT_OFFLINE)
PACE = f"at most {TAKEN_SHARE:.0%} of a pool, or one agent, are taken in an hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """Why agents are taken: the class of their mark, what is wrong with one (None: nothing), and how many may go now.

    ``candidates``: the agents of a pool that may be wrong.
    """

    kind: MarkClass
    adjective: str
    reason: Reason  # of what is held back
    wrong_with: Callable[[Agent], tuple[Reason, str] | None]
    allowed: Callable[[str, list[Agent]], int]  # of a pool, with all its agents
    pace: Callable[[str], str]
    candidates: Callable[[PoolView], list[Agent]] = lambda pool: pool.ready

    def of(self, situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
        """Cordon agents of one controller, as many as are allowed beside those that this pass takes already."""
        taken = leaving(decided, controller)
        for pool in situation.pools_of(controller).values():
            staying = [agent for agent in self.candidates(pool) if agent.record.node not in taken]
            wrong = self._wrong(situation, staying)
            if wrong and pool.on_hold:
                yield self._held(pool, Reason.HELD, f"{len(wrong)} {self.adjective} agents; {pool.paused_detail}")
            elif wrong:
                chosen = least_missed(situation, [agent for agent in staying if agent.record.instance_id in wrong])
                allowed = self._left(situation, pool.name, decided)
                yield from (cordon(situation, agent, self.kind, *wrong[agent.record.instance_id]) for agent in chosen[:allowed])
                if left := len(chosen[allowed:]):
                    yield self._held(pool, self.reason, f"{left} more agents are {self.adjective}; {self.pace(pool.name)}")

    def _wrong(self, situation: Situation, agents: Iterable[Agent]) -> dict[str, tuple[Reason, str]]:
        """What is wrong with each of these agents that no build may be bound to, by instance id."""
        wrong = ((agent, why) for agent in agents if (why := self.wrong_with(agent)))
        return {agent.record.instance_id: why for agent, why in wrong if not situation.protected(agent)}

    def _held(self, pool: PoolView, reason: Reason, detail: str) -> Held:
        return Held(pool=pool.name, controller=pool.controller, reason=reason, detail=detail)

    def _left(self, situation: Situation, pool: str, decided: Decided) -> int:
        """How many more agents of a pool may be taken, beside those that this pass has taken on other controllers."""
        now = sum(isinstance(step, Cordon) and step.pool == pool and step.mark.kind is self.kind for step in decided)
        return max(0, self.allowed(pool, [agent for agent in situation.agents if agent.pool.name == pool]) - now)


def left_this_hour(situation: Situation, kind: MarkClass, pool: str, agents: int) -> int:
    """Return how many agents of a pool of this size may still be replaced within the hour."""
    taken = situation.memory.taken.get(_key(kind, pool), ())
    return max(0, max(TAKEN_AT_LEAST, int(TAKEN_SHARE * agents)) - sum(situation.now - at < HOUR_SECONDS for at in taken))


def note_taken(known: Mapping[str, tuple[float, ...]], decided: Decided, now: float) -> dict[str, tuple[float, ...]]:
    """Remember when agents were cordoned for replacement, as long as they count in the hour's share."""
    taken = {key: tuple(at for at in instants if now - at < HOUR_SECONDS) for key, instants in known.items()}
    for step in decided:
        if isinstance(step, Cordon) and step.mark.kind in _PACED and step.reason not in _NOT_TAKEN:
            key = _key(step.mark.kind, step.pool)
            taken[key] = (*taken.get(key, ()), now)
    return {key: instants for key, instants in taken.items() if instants}


def _key(kind: MarkClass, pool: str) -> str:
    return f"{kind}/{pool}"


_SUSPECTED = {Reason.FAILURE_STREAK, Reason.FAR_OVERDUE}


def quarantine(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
    """Cordon suspect agents of one controller, as many as the hour's share still allows."""
    budget = DisruptionBudget(
        kind=MarkClass.QUARANTINE,
        adjective="suspect",
        reason=Reason.FAILURE_STREAK,
        wrong_with=lambda agent: why_suspect(situation, agent),
        allowed=lambda pool, mine: left_this_hour(situation, MarkClass.QUARANTINE, pool, len(mine)),
        pace=lambda _pool: PACE,
    )
    yield from budget.of(situation, controller, decided)


def why_suspect(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why an agent is suspect; None where it is not, or its operator wants no quarantine."""
    if agent.pool.quarantine is Quarantine.OFF or agent.node is None:
        return None
    learned = situation.snapshot.learned[agent.record.controller]
    streak = learned.streaks.get(agent.node.name)
    # A build that succeeded on this node would have ended its streak: a later success in the pool is another agent's.
    if (
        streak
        and _is_no_chance(streak, learned.results.get(agent.pool.name))
        and learned.succeeded_at.get(agent.pool.name, 0.0) > streak.since_at
    ):
        lasted, jobs = duration(situation.now - streak.since_at), len(streak.jobs)
        failed = f"{streak.failures} builds failed in a row on it within {lasted}"
        return Reason.FAILURE_STREAK, f"{failed}, of {jobs} jobs that fail on no other; others of its pool succeeded"
    return next(_far_overdue(situation, agent, agent.node.builds, learned), None)


def _is_no_chance(streak: Streak, results: PoolResults | None) -> bool:
    """Tell whether so many failures in a row point to the machine."""
    if (count := causes(streak)) >= QUARANTINE_FAILURES:
        return True
    return results is not None and count >= QUARANTINE_FAILURES_AT_LEAST and chance_of_streak(streak, results) <= QUARANTINE_CHANCE


def _far_overdue(situation: Situation, agent: Agent, builds: Iterable[Build], learned: Learned) -> Iterator[tuple[Reason, str]]:
    """Say which builds of an agent run for so long that its machine is suspect.

    None is that waits for a person, or has ended; nor one whose job is overdue on another agent, too: then it waits for a lock or a
    service, or the code hangs. Time in which nobody could see does not count.
    """
    controller, now = agent.record.controller, situation.now
    for build in builds:
        times, longest = times_over(build, agent.pool.name, learned, now)
        seconds = situation.seen_seconds(controller, now - times * longest)
        if seconds <= max(FAR_OVERDUE_FACTOR * longest, FAR_OVERDUE_AT_LEAST_SECONDS) or not times:
            continue
        if is_no_fault_of_its_machine(situation.memory.asked, controller, build) or _is_overdue_elsewhere(situation, agent, build):
            continue
        ran, took = durations_apart(times * longest, longest)
        yield Reason.FAR_OVERDUE, f"{build.job} has run on it for {ran}; the longest of its last builds took {took}"


def _is_overdue_elsewhere(situation: Situation, agent: Agent, build: Build) -> bool:
    """Tell whether a build of the same job is overdue on another agent, too."""
    learned = situation.snapshot.learned[agent.record.controller]
    return any(
        other.job == build.job and times_over(other, one.pool.name, learned, situation.now)[0] > OVERDUE_FACTOR
        for one in situation.agents
        if one is not agent and one.node is not None and one.record.controller == agent.record.controller
        for other in one.node.builds
    )


def marked(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
    """Take the agents of one controller that monitors took offline out of use for good; hosts are their owners' to see to."""
    budget = DisruptionBudget(
        kind=MarkClass.MONITOR,
        adjective="marked",
        reason=Reason.MARKED_BY_MONITOR,
        wrong_with=lambda agent: _why_marked(situation, agent),
        allowed=lambda pool, mine: _allowed_marked(situation, situation.pools[controller, pool], mine),
        pace=lambda _pool: PACE,
        candidates=lambda pool: [agent for agent in pool.marked if not agent.record.is_host],
    )
    yield from budget.of(situation, controller, decided)


def _why_marked(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say what a monitor has against an agent; None while it may still bring it back, or where the agents are not to blame."""
    mark, pool = situation.memory.marks[agent.record.instance_id], situation.pools[agent.key]
    if situation.now - mark.since_at < MARKED_SECONDS or not _may_end(situation, agent, pool):
        return None
    return Reason.MARKED_BY_MONITOR, f"a monitor took it offline {duration(situation.now - mark.since_at)} ago: {mark.words}"


def _may_end(situation: Situation, agent: Agent, pool: PoolView) -> bool:
    """Tell whether a marked agent may end though most of its controller are marked.

    A trial that failed may, and after an hour what no job waits for, and what leaves the next trial no room.
    """
    if pool.doubt is None:
        return True
    if agent.record.began_at > pool.doubt.since_at:
        return True
    if situation.now - pool.doubt.since_at < HOUR_SECONDS:
        return False
    waits = situation.starved_by_pool(pool.controller).get(pool.name, 0) > 0
    return not waits or not Budget(situation).has_room_for(1, pool.spec)


def _allowed_marked(situation: Situation, pool: PoolView, mine: list[Agent]) -> int:
    """Return how many marked agents may go now: those of the hour, and as many as jobs wait for that limits have no room for."""
    left = left_this_hour(situation, MarkClass.MONITOR, pool.name, len(mine))
    if pool.doubt is not None:
        return min(left, TAKEN_AT_LEAST)
    waiting = sum(want.mature for demand in situation.demands.values() for want in demand.wants)
    return max(left, waiting) if may_be_refused(situation, Budget(situation)) else left


def note_kept(situation: Situation, decided: Decided) -> frozenset[str]:
    """Remember the suspect agents that their operator wants to inspect, as long as they are cordoned for it."""
    wanted = {agent.record.node: agent.record.instance_id for agent in situation.agents if agent.pool.quarantine is Quarantine.KEEP}
    marked = {a.record.instance_id for a in situation.agents if a.mark and a.mark.kind is MarkClass.QUARANTINE}
    fresh = {wanted[step.node] for step in decided if isinstance(step, Cordon) and step.reason in _SUSPECTED and step.node in wanted}
    return (situation.memory.kept & marked) | fresh


def is_kept(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent in quarantine is held for inspection."""
    return agent.record.instance_id in situation.memory.kept and agent.mark is not None and agent.mark.kind is MarkClass.QUARANTINE


def times_over(build: Build, pool: str, learned: Learned, now: float) -> tuple[float, float]:
    """Return how many times the longest of its job's last builds it has run, and that longest time; 0 for rare jobs."""
    samples = learned.samples.get(job_key(build.job, pool), ())
    if len(samples) < OVERDUE_SAMPLES:
        return 0.0, 0.0
    longest = max(*samples, 1.0)
    return elapsed_seconds(build, learned, now) / longest, longest


def outdated(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
    """Cordon outdated agents of one controller, as many as the hour's share still allows."""
    budget = DisruptionBudget(
        kind=MarkClass.OUTDATED,
        adjective="outdated",
        reason=Reason.OUTDATED,
        wrong_with=lambda agent: why_replaced(situation, agent),
        allowed=lambda pool, mine: _allowed(situation, pool, mine) if situation.pools[controller, pool].may_launch else 0,
        pace=lambda pool: _pace(situation, situation.pools[controller, pool]),
    )
    yield from budget.of(situation, controller, decided)


def _allowed(situation: Situation, pool: str, mine: list[Agent]) -> int:
    if not is_canary(situation, pool):
        return left_this_hour(situation, MarkClass.OUTDATED, pool, len(mine))
    # One makes room for the first agent of the new version; the others stay until that one has connected.
    under_way = any(_makes_room(agent) or agent.record.life_id not in situation.memory.connected for agent in mine)
    return 0 if under_way or _has_failed(situation, pool) else left_this_hour(situation, MarkClass.OUTDATED, pool, 1)


def _has_failed(situation: Situation, pool: str) -> bool:
    """Tell whether the new version failed to boot; a new image is tried again later, and then room is made again."""
    if pool in situation.to_try:
        canary = open_trial(situation.memory, of_image(pool))
        return canary is not None and situation.now < canary.until_at
    return open_trial(situation.memory, of_boot(pool)) is not None


def _pace(situation: Situation, pool: PoolView) -> str:
    if not pool.may_launch:
        return "no replacement can be launched now"
    return "the new version has not been seen to boot yet" if is_canary(situation, pool.name) else PACE


def _makes_room(agent: Agent) -> bool:
    return agent.mark is not None and agent.mark.kind is MarkClass.OUTDATED
