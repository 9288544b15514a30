"""The published metrics of a snapshot and of a pass, for a pool, a controller, or the fleet."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from types import MappingProxyType

from autoscaler.domain.facts.fleet import Fleet, Lending
from autoscaler.domain.facts.nodes import Health, MarkClass
from autoscaler.domain.facts.plan import Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import BuildResult
from autoscaler.domain.facts.snapshot import ControllerView, RecordState
from autoscaler.domain.facts.telemetry import CONTROLLER, Reports, Telemetry
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.lessons import Lesson
from autoscaler.domain.report.datum import BYTES, COUNT, NONE, PERCENT, SECONDS, Datum, Dimensions, one, worst_of
from autoscaler.domain.report.limits import agents_used, in_trouble, measure_teams
from autoscaler.domain.report.machines import boots_of_images, count_lent, usd_per_hour_together
from autoscaler.domain.report.waiting import late_unmet
from autoscaler.domain.scale_in.replace import OVERDUE_FACTOR, times_over
from autoscaler.domain.situation.agents import Phase
from autoscaler.domain.situation.bets import TrialOf, failing
from autoscaler.domain.situation.builds import last_look_at
from autoscaler.domain.situation.left import reserved_now
from autoscaler.domain.situation.looks import build_remaining_seconds, elapsed_seconds
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.supply import free_executors

# Metrics of build results and machines: results, failures in a row, readings of the node monitors.


Healths = Mapping[str, Mapping[str, Health]]  # by controller, then by node; the built-in node is ""


def health_of_agents(pool: PoolView, healths: Healths, reports: Reports, dimensions: Dimensions) -> Iterator[Datum]:
    """Return the worst figure of each kind among the pool's connected agents, those that a monitor took offline among them.

    An agent that tells nothing has only the disk that Jenkins' monitor sees: its memory there is MemFree, of which a healthy machine has
    none left.
    """
    told = [
        (reports.get(agent.record.machine), healths.get(agent.record.controller, {}).get(agent.node.name, Health()))
        for agent in pool.agents
        if agent.node and (not agent.node.offline or agent.is_of_monitor)
    ]
    for name, unit, figure in _FIGURES:
        if known := [value for report, monitors in told if (value := figure(report, monitors)) is not None]:
            yield one(name, worst_of(name, known), unit, dimensions)


Figure = Callable[[Telemetry | None, Health], float | None]
_FIGURES: tuple[tuple[str, str, Figure], ...] = (
    ("AgentDiskFreeBytes", BYTES, lambda report, monitors: report.disk_free if report else monitors.disk_bytes),
    ("AgentMemoryAvailableBytes", BYTES, lambda report, _: report.memory_soon if report else None),
    ("AgentGpuMemoryFreeBytes", BYTES, lambda report, _: report.gpu_memory_free if report else None),
    ("AgentResponseSeconds", SECONDS, lambda _, monitors: monitors.response_seconds),
)
_FIGURES_OF_CONTROLLERS: tuple[tuple[str, str, Figure], ...] = (
    ("ControllerDiskFreeBytes", BYTES, lambda report, monitors: report.disk_free if report else monitors.disk_bytes),
    ("ControllerMemoryFreeBytes", BYTES, lambda report, monitors: report.memory_soon if report else monitors.memory_bytes),
    ("ControllerCpuPercent", PERCENT, lambda report, _: report.cpu_percent if report else None),
    ("ControllerSentBytesPerSecond", NONE, lambda report, _: (report.sent or 0.0) / max(1.0, report.seconds) if report else None),
)


# Of these the fleet's value is the worst of its pools and controllers; of all others it is their sum, or all their values.
_WORST = re.compile(
    "QueueWait|AgentsLimitUsedPercent|NodeFailureStreak|(Agent|Controller)(DiskFreeBytes|MemoryFreeBytes|MemoryAvailableBytes|GpuMemoryFreeBytes|ResponseSeconds|CpuPercent)"
)
# Who watches these takes none for no data.
_TOLD_WHEN_ANY = frozenset(
    {
        *(
            "AgentsInQuarantine",
            "AgentsReserved",
            "AgentsStuck",
            "BreakersOpen",
            "BuildsOverdue",
            "ControllersUnread",
            "ControllersWithoutJobs",
        ),
        "ControllerExecutorsBusy",
        *(
            "DrainsOverdue",
            "HoldsActive",
            "NodeFailureStreak",
            "OverridesActive",
            "QueueUnclear",
            "QueueUnservable",
            "StateUnread",
            "StepsFailing",
            "TeamsHeldBack",
            "HostsOffline",
        ),
    }
)


def measure(situation: Situation, lessons: Mapping[str, Lesson], healths: Healths, reports: Reports = MappingProxyType({})) -> list[Datum]:
    """Describe queue, executors, agents, builds and machines. ``lessons``: of this look, by controller; ``reports``: of machines."""
    parts: list[Datum] = []
    fresh = {machine: report for machine, report in reports.items() if report.is_fresh(situation.now)}
    for pool in situation.pools.values():
        parts += _pool_data(situation, pool, lessons.get(pool.controller), healths, fresh)
    for view in situation.snapshot.controllers.values():
        monitors = healths.get(view.name, {}).get("", Health())
        parts += _controller_data(situation, view, fresh.get(f"{CONTROLLER}{view.name}"), monitors)
    since = {view.name: _last_look_at(situation, view.name) for view in situation.snapshot.controllers.values() if view.complete}
    data = [
        *parts,
        *_fleet_totals(situation.fleet, [*(one(name, 0, COUNT, ()) for name in _COUNTED), *parts]),
        *_fleet_data(situation),
        *boots_of_images(situation, since),
    ]
    # A metric is billed by the hour it is sent in, and most counts are 0: these are sent of the fleet alone, and not all of them.
    silent = ((datum, datum.unit == COUNT and (len(datum.dimensions) > 1 or datum.name in _TOLD_WHEN_ANY)) for datum in data)
    return [datum for datum, is_silent in silent if (any(datum.values) if is_silent else datum.values)]


def _controller_data(situation: Situation, view: ControllerView, report: Telemetry | None, monitors: Health) -> Iterator[Datum]:
    """Describe the controller's queue, and its own machine as that reports itself, or else as Jenkins does."""
    dimensions = (("Fleet", situation.fleet.name), ("Controller", view.name))
    yield one("ControllerResponseSeconds", view.response_seconds, SECONDS, dimensions)
    for name, unit, figure in _FIGURES_OF_CONTROLLERS:
        if (value := figure(report, monitors)) is not None:
            yield one(name, value, unit, dimensions)
    if view.complete:
        counts = {
            "ControllerExecutorsBusy": sum(len(node.builds) for node in view.nodes if not node.agent),
            "QueueLength": len(view.items),
            "QueueUnclear": len(situation.demands[view.name].unknown),
            # What one node alone can take needs that node, and no pool: its message names the node.
            "QueueUnservable": sum(unmet.reason is not Reason.WAITS_FOR_NODE for unmet in late_unmet(situation, view.name)),
        }
        yield from (one(name, count, COUNT, dimensions) for name, count in counts.items())


def heartbeat(fleet: str, function: str) -> Datum:
    """Report a completed pass of this function."""
    return one("Heartbeat", 1, COUNT, (("Fleet", fleet), ("Function", function)))


def scaling(fleet: str, counts: Mapping[str, int]) -> list[Datum]:
    """Describe the steps of a pass, such as Launches, LaunchesHeld, Terminations, StartsFailed."""
    return [one(name, count, COUNT, (("Fleet", fleet),)) for name, count in counts.items() if count]


def held_by_teams(fleet: Fleet, held: Iterable[Held]) -> list[Datum]:
    """Count the pools that launched less than was wanted for a limit of their team."""
    pools = {(one.limit_of, one.controller, one.pool) for one in held}
    found = {team.name: sum(whose == team.text for whose, _, _ in pools) for team in fleet.teams.values()}
    return [one("LaunchesHeld", count, COUNT, (("Fleet", fleet.name), ("Team", name))) for name, count in found.items() if count]


def _pool_data(situation: Situation, pool: PoolView, lesson: Lesson | None, healths: Healths, reports: Reports) -> Iterator[Datum]:
    controller, name = pool.key
    dimensions = (("Fleet", situation.fleet.name), ("Controller", controller), ("Pool", name))
    yield Datum(name="JobWaitSeconds", values=lesson.job_waits.get(name, ()) if lesson else (), unit=SECONDS, dimensions=dimensions)
    tally: Mapping[BuildResult, int] = lesson.tallies.get(name, {}) if lesson else {}  # of the builds that ended since the last look
    ended = {"BuildsSucceeded": tally.get(BuildResult.SUCCEEDED), "BuildsFailed": tally.get(BuildResult.FAILED)}
    yield from (one(metric, count, COUNT, dimensions) for metric, count in ended.items() if count)
    if not situation.snapshot.controllers[controller].complete:
        return
    yield one("QueueStarved", situation.starved[controller].get(name, 0), COUNT, dimensions)
    yield one("ExecutorsTotal", pool.ready_executors, COUNT, dimensions)
    yield one("AgentsOnline", len(pool.ready), COUNT, dimensions)
    yield Datum(name="QueueWait", values=situation.demands[controller].waits_for(name), unit=SECONDS, dimensions=dimensions)
    if pool.spec.warm_pool or pool.stopped:
        yield from _stopping_data(situation, pool, dimensions)
    if pool.spec.lend is not Lending.NEVER:
        yield one("AgentsLent", count_lent(pool), COUNT, dimensions)
    if by_others := failing(situation.memory, TrialOf.ENDED.scope(pool.name)):
        yield one("AgentsEndedByOthers", by_others.failures, COUNT, dimensions)
    if pool.agents:  # each metric costs money by the hour it is sent in; an empty pool has told all there is to tell
        yield from _agent_data(situation, pool, dimensions)
        yield from _build_data(situation, pool, dimensions)
        streaks = lesson.learned.streaks if lesson else {}
        failures = [streaks[agent.node.name].failures for agent in pool.agents if agent.node and agent.node.name in streaks]
        yield one("NodeFailureStreak", max(failures, default=0), COUNT, dimensions)
        yield from health_of_agents(pool, healths, reports, dimensions)


def _agent_data(situation: Situation, pool: PoolView, dimensions: Dimensions) -> Iterator[Datum]:
    yield one("ExecutorsBusy", sum(agent.busy_executors for agent in pool.agents), COUNT, dimensions)
    yield one("ExecutorsFree", sum(free_executors(situation, agent) for agent in pool.ready), COUNT, dimensions)
    idle = [agent for agent in pool.ready if all(side.idle for side in situation.sides.get(agent.record.machine, (agent,)))]
    yield one("IdleUsdPerHour", usd_per_hour_together(situation, (agent.record for agent in idle)), NONE, dimensions)
    of_monitor = [agent for agent in pool.agents if agent.is_of_monitor]
    for metric, phases in _AGENT_METRICS.items():
        # What a monitor took offline is offline for it until it ends, though our own mark is there by then.
        offline = sum(agent.phase not in phases for agent in of_monitor) if Phase.MARKED in phases else 0
        yield one(metric, sum(agent.phase in phases for agent in pool.agents) + offline, COUNT, dimensions)
    boots = tuple(seconds for life, seconds in _registered_since(situation, pool) if not life)
    yield Datum(name="BootSeconds", values=boots, unit=SECONDS, dimensions=dimensions)


def _stopping_data(situation: Situation, pool: PoolView, dimensions: Dimensions) -> Iterator[Datum]:
    """Describe the stopped agents of a pool, and those that start. Only pools that stop agents pay for it."""
    yield one("AgentsStopped", sum(situation.snapshot.is_off(agent.record) for agent in pool.stopped), COUNT, dimensions)
    yield one("AgentsStarting", sum(agent.record.state is RecordState.STARTING for agent in pool.agents), COUNT, dimensions)
    starts = tuple(seconds for life, seconds in _registered_since(situation, pool) if life)
    yield Datum(name="StartSeconds", values=starts, unit=SECONDS, dimensions=dimensions)


def _registered_since(situation: Situation, pool: PoolView) -> list[tuple[int, float]]:
    """List the agents that registered since the last look: in which life, and how long after it began."""
    since = _last_look_at(situation, pool.controller)
    records = [agent.record for agent in pool.agents if agent.record.is_measured]
    return [(r.life, r.registered_at - r.began_at) for r in records if r.registered_at and r.registered_at > since]


def _last_look_at(situation: Situation, controller: str) -> float:
    """When the look before this one was taken; before the first one, what one interval ago was news is told."""
    last_at = last_look_at(situation, controller)
    return situation.now - situation.snapshot.look_every_seconds if last_at is None else last_at


_AGENT_METRICS = {
    "AgentsBooting": {Phase.REQUESTED, Phase.CONNECTING},
    "AgentsRequested": {Phase.REQUESTED},
    "AgentsDraining": {Phase.RETIRING, Phase.DRAINING, Phase.STOPPING, Phase.INTERRUPTED},
    "AgentsOffline": {Phase.SET_ASIDE, Phase.MARKED, Phase.LOST},
    "AgentsReserved": {Phase.RESERVED},
}


def _build_data(situation: Situation, pool: PoolView, dimensions: Dimensions) -> Iterator[Datum]:
    controller, name = pool.key
    learned = situation.snapshot.learned[controller]
    builds = [build for agent in pool.agents if agent.node for build in agent.node.builds]
    lefts = ((build, build_remaining_seconds(build, name, learned, situation.now, frozenset())) for build in builds)
    known = [(left, left + elapsed_seconds(build, learned, situation.now)) for build, left in lefts if left < inf]
    percent = tuple(100.0 * left / in_all if in_all > 0 else 0.0 for left, in_all in known)
    yield Datum(name="RemainingSeconds", values=tuple(left for left, _ in known), unit=SECONDS, dimensions=dimensions)
    yield Datum(name="RemainingPercent", values=percent, unit=PERCENT, dimensions=dimensions)
    overdue = sum(times_over(build, name, learned, situation.now)[0] > OVERDUE_FACTOR for build in builds)
    yield one("BuildsOverdue", overdue, COUNT, dimensions)


_COUNTED = (
    *(
        "QueueStarved",
        "ExecutorsTotal",
        "ExecutorsBusy",
        "ExecutorsFree",
        "IdleUsdPerHour",
        "BuildsOverdue",
        "AgentsOnline",
        "NodeFailureStreak",
    ),
    *_AGENT_METRICS,
)


def _fleet_data(situation: Situation) -> Iterator[Datum]:
    fleet, limits = situation.fleet, situation.fleet.limits
    room = Budget(situation)
    dimensions = (("Fleet", fleet.name),)
    usd = {
        "UsdPerHour": usd_per_hour_together(situation, situation.snapshot.living),
        "UsdMonth": situation.memory.month.usd,
    }
    percent = {
        "UsdPerHourUsedPercent": 100.0 * room.fleet.usd_per_hour / limits.max_usd_per_hour,
        "UsdMonthUsedPercent": 100.0 * situation.memory.month.usd / limits.max_usd_per_month,
        "AgentsLimitUsedPercent": max(percent for _, percent in agents_used(situation, room)),
        "LaunchRateUsedPercent": 100.0 * room.fleet.launched / limits.max_launches_per_hour,
    }
    counts = {
        "HoldsActive": len(situation.overrides.holds),
        "OverridesActive": len(situation.overrides.numbers) + len(situation.overrides.teams),
        "AgentsInQuarantine": sum(agent.mark is not None and agent.mark.kind is MarkClass.QUARANTINE for agent in situation.agents),
        **{name: len(places) for name, places in in_trouble(situation).items()},
    }
    for unit, values in ((NONE, usd), (PERCENT, percent), (COUNT, counts)):
        yield from (one(name, value, unit, dimensions) for name, value in values.items())
    left = [reservation.until_at - situation.now for _, reservation in reserved_now(situation)]
    yield Datum(name="ReservationEndsSeconds", values=(min(left),) if left else (), unit=SECONDS, dimensions=dimensions)
    yield from measure_teams(situation, room)


def _fleet_totals(fleet: Fleet, data: Iterable[Datum]) -> Iterator[Datum]:
    for name, parts in grouped((datum.name, datum) for datum in data).items():
        values = tuple(value for part in parts for value in part.values)
        if not values:
            continue
        if _WORST.fullmatch(name):
            values = (worst_of(name, list(values)),)
        elif all(len(part.values) == 1 for part in parts) and parts[0].unit == COUNT:
            values = (sum(values),)
        yield Datum(name=name, values=values, unit=parts[0].unit, dimensions=(("Fleet", fleet.name),))
