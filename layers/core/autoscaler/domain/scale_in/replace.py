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

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.domain.facts.fleet import Quarantine
from autoscaler.domain.facts.memory import Learned, Sighting
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import BlockEnd, BuildResult, CountedEnds, GoneBlock, Item, PoolResults, Streak, job_name_of
from autoscaler.domain.facts.snapshot import Build, ControllerView
from autoscaler.domain.forecast.durations import job_key
from autoscaler.domain.forecast.job_patterns import project_of
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.turns import may_be_refused
from autoscaler.domain.scale_in.surplus import held_in, least_missed
from autoscaler.domain.situation.agents import MARKED_SECONDS, Agent
from autoscaler.domain.situation.bets import TrialOf, failing
from autoscaler.domain.situation.canary import is_canary, why_replaced
from autoscaler.domain.situation.looks import elapsed_seconds, is_no_fault_of_its_machine
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Decided, Situation, cordon, leaving
from autoscaler.domain.wording import duration, durations_apart

# Results of builds that ran in the last look and are gone now: by pool, and failures in a row by node.


# How builds ended is asked for no longer than this a look: a slow controller must not keep it from saving what it saw, or the next look
# would ask for the same again.
RESULTS_SECONDS = 10.0
# One request each; what ends beyond that in one look stays unknown.
_ASKED_AT_ONCE = 50
_NAMED = 20
_FAILING = 500  # jobs
DAY_SECONDS = 86_400.0
# Results of a pool that are remembered, before older ones fade.
_MOST_COUNTED, _FADES = 200.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A build, or a node block of a pipeline, and what its end says of its node; None: nothing."""

    node: str
    pool: str
    run: str
    since_at: float
    result: BuildResult | None

    @property
    def job(self) -> str:
        """The job whose code ran: the configurations of a matrix are one."""
        return job_name_of(self.run)


def gone_since(before: Learned, view: ControllerView) -> list[Sighting]:
    """List the builds that ran in the last look and are gone, up to the number asked about; none of an incomplete view.

    Without node blocks of pipelines, whose ends stand in the graphs of their runs (`situation.builds`).
    """
    return [sighting for key, sighting in _gone(before, view).items() if key not in before.blocks.running][:_ASKED_AT_ONCE]


def _gone(before: Learned, view: ControllerView) -> dict[str, Sighting]:
    if not view.complete:
        return {}
    running = {build.key for node in view.nodes for build in node.builds}
    return {key: sighting for key, sighting in before.running.items() if key not in running and sighting.run and sighting.node}


def count_ends(before: Learned, view: ControllerView, tallies: Mapping[str, Counter[BuildResult]], unseen: int, now: float) -> CountedEnds:
    """Carry on the day's count of builds that left their agents, and of those whose result was counted. ``unseen``: by looks."""
    ended, counted = len(_gone(before, view)) + unseen, sum(counts.total() for counts in tallies.values())
    if not (ended or counted):
        return before.ends
    today = before.ends if before.ends.day_at == midnight_before(now) else CountedEnds(day_at=midnight_before(now))
    return replace(today, ended=today.ended + ended, counted=today.counted + counted)


def midnight_before(now: float) -> float:
    """Return when the day began, in UTC."""
    return now - now % DAY_SECONDS


def came_and_went(before: Learned, view: ControllerView, answers: Iterable[Item], pools: Mapping[str, str], now: float) -> list[Ended]:
    """List the builds that began and ended on our nodes between two looks. ``answers``: about items that left the queue."""
    seen = {sighting.run for sighting in before.running.values()} | {build.run for node in view.nodes for build in node.builds}
    builds = {item.run: item for item in answers if item.node in pools and item.run not in seen}
    ended = [(run, item.node, item.end) for run, item in builds.items() if item.end]
    return [Ended(node=node, pool=pools[node], run=run, since_at=now, result=end.result) for run, node, end in ended]


def ended_on(
    gone: Iterable[Sighting], results: Mapping[str, BuildResult], blocks: Iterable[tuple[GoneBlock, BlockEnd]]
) -> tuple[Ended, ...]:
    """Gather what ended, what began first first. ``results``: of builds, by run, without unknown ones."""
    builds = [
        Ended(node=build.node, pool=build.pool, run=build.run, since_at=build.since_at, result=results.get(build.run)) for build in gone
    ]
    of_runs = [Ended(node=block.node, pool=block.pool, run=block.run, since_at=block.since_at, result=end.result) for block, end in blocks]
    return tuple(sorted((*builds, *of_runs), key=lambda end: end.since_at))


def tally(ended: Iterable[Ended]) -> dict[str, Counter[BuildResult]]:
    """Count results of builds that ended since the last look, by pool."""
    results = grouped((end.pool, end.result) for end in ended if end.result is not None)
    return {pool: Counter(of_pool) for pool, of_pool in results.items()}


def note_streaks(before: Learned, ended: Iterable[Ended], view: ControllerView, now: float) -> Learned:
    """Carry on the failure streaks of present nodes, when builds last succeeded by pool, and which jobs last failed where."""
    streaks, succeeded_at, failing = dict(before.streaks), dict(before.succeeded_at), dict(before.failing)
    for end in ended:
        if end.result is BuildResult.SUCCEEDED:
            streaks.pop(end.node, None)
            succeeded_at[end.pool] = now
            failing.pop(end.job, None)
            streaks = {node: _passed(streak, end) for node, streak in streaks.items()}
        elif end.result is BuildResult.FAILED:
            is_alone = failing.pop(end.job, end.node) == end.node
            failing[end.job] = end.node if is_alone else ""
            if not is_alone:  # its code fails, and no machine
                streaks = {node: _without(streak, end.job) for node, streak in streaks.items()}
            streaks[end.node] = _longer(streaks.get(end.node) or Streak(failures=0, since_at=now, jobs=()), end, is_alone=is_alone)
    there = {node.name for node in view.nodes}
    streaks = {node: streak for node, streak in streaks.items() if node in there}
    return replace(before, streaks=streaks, succeeded_at=succeeded_at, failing=dict(list(failing.items())[-_FAILING:]))


def _without(streak: Streak, failing: str) -> Streak:
    return replace(streak, jobs=tuple(job for job in streak.jobs if job != failing))


def _longer(streak: Streak, failed: Ended, *, is_alone: bool) -> Streak:
    """Add a failure. ``is_alone``: its job failed on no other node since it last succeeded."""
    jobs = (*streak.jobs, failed.job)[-_NAMED:] if is_alone and failed.job not in streak.jobs else streak.jobs
    return replace(streak, failures=streak.failures + 1, jobs=jobs, pool=failed.pool)


def _passed(streak: Streak, succeeded: Ended) -> Streak:
    """Note that something of a project succeeded elsewhere: the failures of its jobs count one by one from now on."""
    project = project_of(succeeded.job)
    is_news = streak.pool == succeeded.pool and project in map(project_of, streak.jobs) and project not in streak.passed
    return replace(streak, passed=(*streak.passed, project)[-_NAMED:]) if is_news else streak


def note_pool_results(before: Mapping[str, PoolResults], ended: Iterable[Ended]) -> dict[str, PoolResults]:
    """Count how builds of each pool end; old ones fade."""
    counted = dict(before)
    for pool, counts in tally(ended).items():
        known = counted.get(pool, PoolResults())
        fading = _FADES if known.succeeded + known.failed > _MOST_COUNTED else 1.0
        counted[pool] = PoolResults(
            succeeded=known.succeeded * fading + counts[BuildResult.SUCCEEDED], failed=known.failed * fading + counts[BuildResult.FAILED]
        )
    return counted


def causes(streak: Streak) -> int:
    """Count the causes that these failures have if it is not the machine.

    A job is one, however often it fails. The jobs of a project (branches of a repository) are one until something of it succeeds elsewhere.
    """
    return len({job if project_of(job) in streak.passed else project_of(job) for job in streak.jobs})


def chance_of_streak(streak: Streak, results: PoolResults) -> float:
    """Return how likely these failures are without any fault of their machine, by how often builds of its pool fail elsewhere."""
    failed = max(0.0, results.failed - streak.failures)
    return float(((failed + 1.0) / (failed + results.succeeded + 2.0)) ** causes(streak))


# Suspect, marked and outdated agents, and how many of them are replaced in an hour.


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
    wrong_with: Callable[[Situation, Agent], tuple[Reason, str] | None]
    allowed: Callable[[Situation, PoolView, list[Agent]], int]  # of a pool, with all its agents
    pace: Callable[[Situation, PoolView], str] = lambda _situation, _pool: PACE
    candidates: Callable[[PoolView], list[Agent]] = lambda pool: pool.ready

    def of(self, situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
        """Cordon agents of one controller, as many as are allowed beside those that this pass takes already."""
        taken = leaving(decided, controller)
        for pool in situation.pools_of(controller).values():
            staying = [agent for agent in self.candidates(pool) if agent.record.node not in taken]
            faults = ((agent, why) for agent in staying if (why := self.wrong_with(situation, agent)))
            wrong = {agent.record.instance_id: why for agent, why in faults if not situation.protected(agent)}
            if wrong and pool.on_hold:
                yield held_in(pool, Reason.HELD, f"{len(wrong)} {self.adjective} agents; {pool.paused_detail}")
            elif wrong:
                chosen = least_missed(situation, [agent for agent in staying if agent.record.instance_id in wrong])
                allowed = self._left(situation, pool, decided)
                yield from (cordon(situation, agent, self.kind, *wrong[agent.record.instance_id]) for agent in chosen[:allowed])
                if left := len(chosen[allowed:]):
                    yield held_in(pool, self.reason, f"{left} more agents are {self.adjective}; {self.pace(situation, pool)}")

    def _left(self, situation: Situation, pool: PoolView, decided: Decided) -> int:
        """How many more agents of a pool may be taken, beside those that this pass has taken on other controllers."""
        now = sum(isinstance(step, Cordon) and step.pool == pool.name and step.mark.kind is self.kind for step in decided)
        mine = [agent for agent in situation.agents if agent.pool.name == pool.name]
        return max(0, self.allowed(situation, pool, mine) - now)


def left_this_hour(situation: Situation, kind: MarkClass, pool: str, agents: int) -> int:
    """Return how many agents of a pool of this size may still be replaced within the hour."""
    taken = situation.memory.pool(pool).taken.get(kind, ())
    return max(0, max(TAKEN_AT_LEAST, int(TAKEN_SHARE * agents)) - sum(situation.now - at < HOUR_SECONDS for at in taken))


def cordoned_by_kind(decided: Decided) -> dict[str, list[str]]:
    """Name the classes in which agents are cordoned for replacement, by pool, each as often as that is done."""
    cordons = [step for step in decided if isinstance(step, Cordon)]
    return grouped((step.pool, step.mark.kind) for step in cordons if step.mark.kind in _PACED and step.reason not in _NOT_TAKEN)


def note_taken(known: Mapping[str, tuple[float, ...]], kinds: Sequence[str], now: float) -> dict[str, tuple[float, ...]]:
    """Remember when agents of a pool were cordoned for replacement, by class, as long as they count in the hour's share."""
    taken = {key: tuple(at for at in instants if now - at < HOUR_SECONDS) for key, instants in known.items()}
    taken |= {kind: (*taken.get(kind, ()), *(now,) * kinds.count(kind)) for kind in kinds}
    return {key: instants for key, instants in taken.items() if instants}


_SUSPECTED = {Reason.FAILURE_STREAK, Reason.FAR_OVERDUE}


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
        if is_no_fault_of_its_machine(situation.memory, controller, build) or _is_overdue_elsewhere(situation, agent, build):
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


def _why_marked(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say what a monitor has against an agent; None while it may still bring it back, or where the agents are not to blame."""
    mark, pool = situation.past(agent).mark, situation.pools[agent.key]
    if mark is None or situation.now - mark.since_at < MARKED_SECONDS or not _may_end(situation, agent, pool):
        return None
    return Reason.MARKED_BY_MONITOR, f"a monitor took it offline {duration(situation.now - mark.since_at)} ago: {mark.words}"


def _may_end(situation: Situation, agent: Agent, pool: PoolView) -> bool:
    """Tell whether a marked agent may end though most of its controller are marked.

    A trial that failed may, and after an hour what no job waits for, and what leaves the next trial no room.
    """
    if pool.doubt is None or agent.record.began_at > pool.doubt.since_at:
        return True
    if situation.now - pool.doubt.since_at < HOUR_SECONDS:
        return False
    waits = situation.starved[pool.controller].get(pool.name, 0) > 0
    return not waits or not Budget(situation).has_room_for(1, pool.spec)


def _allowed_marked(situation: Situation, pool: PoolView, mine: list[Agent]) -> int:
    """Return how many marked agents may go now: those of the hour, and as many as jobs wait for that limits have no room for."""
    left = left_this_hour(situation, MarkClass.MONITOR, pool.name, len(mine))
    if pool.doubt is not None:
        return min(left, TAKEN_AT_LEAST)
    waiting = sum(want.mature for demand in situation.demands.values() for want in demand.wants)
    return max(left, waiting) if may_be_refused(situation) else left


def note_kept(situation: Situation, decided: Decided) -> frozenset[str]:
    """Remember the suspect agents that their operator wants to inspect, as long as they are cordoned for it."""
    wanted = {agent.record.node: agent.record.instance_id for agent in situation.agents if agent.pool.quarantine is Quarantine.KEEP}
    marked = {a.record.instance_id for a in situation.agents if situation.is_kept(a)}
    fresh = {wanted[step.node] for step in decided if isinstance(step, Cordon) and step.reason in _SUSPECTED and step.node in wanted}
    return frozenset(marked | fresh)


def times_over(build: Build, pool: str, learned: Learned, now: float) -> tuple[float, float]:
    """Return how many times the longest of its job's last builds it has run, and that longest time; 0 for rare jobs."""
    samples = learned.samples.get(job_key(build.job, pool), ())
    if len(samples) < OVERDUE_SAMPLES:
        return 0.0, 0.0
    longest = max(*samples, 1.0)
    return elapsed_seconds(build, learned, now) / longest, longest


def _allowed(situation: Situation, pool: PoolView, mine: list[Agent]) -> int:
    if not (pool.may_launch and is_canary(situation, pool.name)):
        return left_this_hour(situation, MarkClass.OUTDATED, pool.name, len(mine)) if pool.may_launch else 0
    # One makes room for the first agent of the new version; the others stay until that one has connected.
    under_way = any(
        (agent.mark is not None and agent.mark.kind is MarkClass.OUTDATED) or not situation.memory.has_connected(agent.record.life_id)
        for agent in mine
    )
    return 0 if under_way or _has_failed(situation, pool.name) else left_this_hour(situation, MarkClass.OUTDATED, pool.name, 1)


def _has_failed(situation: Situation, pool: str) -> bool:
    """Tell whether the new version failed to boot; a new image is tried again later, and then room is made again."""
    if pool in situation.to_try:
        canary = failing(situation.memory, TrialOf.IMAGE.scope(pool))
        return canary is not None and situation.now < canary.until_at
    return failing(situation.memory, TrialOf.BOOT.scope(pool)) is not None


def _pace(situation: Situation, pool: PoolView) -> str:
    if not pool.may_launch:
        return "no replacement can be launched now"
    return "the new version has not been seen to boot yet" if is_canary(situation, pool.name) else PACE


# Agents whose executors show builds that have ended take no others there: they are drained, and replaced by demand.
#
# Those on which nothing else runs are drained at once. Of those whose other executors are at work a share of the pool drains at a time.


def free_from_ended(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
    """Cordon the agents of one controller that builds keep which have ended. Hosts stay: a person restarts Jenkins for them."""
    taken = leaving(decided, controller)
    for pool in situation.pools_of(controller).values():
        kept = [agent for agent in _kept(situation, pool) if agent.record.node not in taken]
        if kept and pool.on_hold:
            yield held_in(pool, Reason.HELD, f"{told_ended(kept[0])}; {pool.paused_detail}")
        elif kept:
            at_work = [agent for agent in kept if agent.executors]
            for agent in (*(agent for agent in kept if not agent.executors), *at_work[: _places(pool)]):
                yield cordon(situation, agent, MarkClass.USED_UP, Reason.BUILD_HAS_ENDED, told_ended(agent))


def _kept(situation: Situation, pool: PoolView) -> list[Agent]:
    ended = (agent for agent in pool.ready if agent.node and agent.node.ended)
    return [agent for agent in ended if agent.record.is_instance and not situation.protected(agent)]


def told_ended(agent: Agent) -> str:
    """Say which runs keep an agent though they have ended."""
    runs = ", ".join(sorted({build.run for build in agent.node.ended})) if agent.node else ""
    return f"Jenkins shows {runs} on {agent.record.node}, and the run itself says that it has ended"


def _places(pool: PoolView) -> int:
    """How many more agents that work beside such a build may drain now."""
    drain = sum(bool(agent.mark and agent.node and agent.node.ended) for agent in pool.agents)
    return max(0, max(TAKEN_AT_LEAST, int(TAKEN_SHARE * len(pool.agents))) - drain)


# Agents that refuse: what stands free beside waiting jobs and takes none of them is replaced, one at a time in a pool.
#
# The next goes once the replacement of the last one has taken a build, or after an hour: whatever makes agents refuse may be
# nothing that another agent cures. If no build has begun on the controller meanwhile, the controller is the cause, and no agent goes.


def _why_refusing(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    distrust = situation.distrust[agent.record.controller]
    free_node = distrust.nodes.get(agent.node.name) if agent.node and agent.idle and agent.makes_room else None
    if free_node is None or not free_node.is_useless or distrust.began_at < free_node.since_at:
        return None
    jobs = ", ".join(sorted(free_node.refused))
    return Reason.REFUSES_ALL, f"it has been free for {duration(situation.now - free_node.since_at)}, and took none of {jobs}"


def _allowed_refusing(situation: Situation, pool: PoolView, mine: list[Agent]) -> int:
    if any(agent.mark is not None and agent.mark.kind is MarkClass.REFUSES for agent in mine):
        return 0
    last = max(situation.memory.pool(pool.name).taken.get(MarkClass.REFUSES, ()), default=None)
    works = last is None or any(agent.record.began_at > last and agent.busy_executors for agent in mine)
    return 1 if works else left_this_hour(situation, MarkClass.REFUSES, pool.name, 1)


# A second reason to replace agents is a second entry. What comes first is taken first.
_BUDGETS = (
    DisruptionBudget(
        kind=MarkClass.QUARANTINE,
        adjective="suspect",
        reason=Reason.FAILURE_STREAK,
        wrong_with=why_suspect,
        allowed=lambda situation, pool, mine: left_this_hour(situation, MarkClass.QUARANTINE, pool.name, len(mine)),
    ),
    DisruptionBudget(
        kind=MarkClass.REFUSES,
        adjective="free and take no builds",
        reason=Reason.REFUSES_ALL,
        wrong_with=_why_refusing,
        allowed=_allowed_refusing,
        pace=lambda _situation, _pool: "the next is replaced once the last replacement has taken a build, or after an hour",
    ),
    DisruptionBudget(
        kind=MarkClass.MONITOR,
        adjective="marked",
        reason=Reason.MARKED_BY_MONITOR,
        wrong_with=_why_marked,
        allowed=_allowed_marked,
        candidates=lambda pool: [agent for agent in pool.marked if not agent.record.is_host],  # hosts are their owners' to see to
    ),
    DisruptionBudget(
        kind=MarkClass.OUTDATED, adjective="outdated", reason=Reason.OUTDATED, wrong_with=why_replaced, allowed=_allowed, pace=_pace
    ),
)


def replace_agents(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
    """Cordon agents of one controller that are suspect, refuse builds, are marked by a monitor or outdated, as many as may go now."""
    taken = [*decided]
    for budget in _BUDGETS:
        steps = [*budget.of(situation, controller, taken)]
        taken += steps
        yield from steps
