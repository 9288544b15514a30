"""Where runs take place that a person orders: pools that satisfy what was asked, ranked, and as many of them as differ as was asked."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from math import inf
from statistics import fmean

from autoscaler.domain.facts.fleet import HELD_LABEL, Fleet, Pool
from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject
from autoscaler.domain.facts.runs import Job
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.facts.started_builds import Part, RunOrder, Target, Until
from autoscaler.domain.forecast.durations import best_row, duration_of
from autoscaler.domain.grouping import grouped
from autoscaler.domain.labels import LabelExpression, parse, quoted
from autoscaler.domain.launch.queue import BareStart, WaitsFor
from autoscaler.domain.report.tracking import if_queued, starts_of
from autoscaler.domain.run_orders.criteria import Condition, unmet, values_of
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.wants import explain_match
from autoscaler.domain.wording import duration

# What builds of a job would come to in one pool: when each would start, how long they take there, and what one costs.


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """Seconds from now until each build would start; those are left out that nobody knows to start. ``takes``: None: none was seen.

    ``usd``: of one build, what its machine costs to boot for it included.
    """

    starts: tuple[float, ...]
    takes: float | None
    usd: float | None

    def ends(self, number: int, assumed: float) -> float | None:
        """When the build of this number would end; ``assumed``: how long it takes, where that is not known."""
        if number >= len(self.starts):
            return None
        return self.starts[number] + (assumed if self.takes is None else self.takes)


def prospect(situation: Situation, pool: PoolView, job: str, count: int, tracker: JobTracker, rows: Iterable[JobRow]) -> Prospect:
    """Predict so many builds of a job that would be queued now for a pool alone, after all that waits already."""
    mine = [row for row in rows if row.subject == Subject(job)]
    # By builds in this pool, or else by those elsewhere.
    rows_seen = (best_row(some, tracker.skills) for some in ([row for row in mine if row.pool == pool.name], mine))
    takes = next((estimate.mid for row in rows_seen if (estimate := duration_of(row, tracker))), None)
    queued, wants = if_queued(situation, pool, job, count)
    by_item = starts_of(queued, pool.controller, tracker, {want.item.id: takes for want in wants if takes is not None})
    starts = [by_item[want.item.id] for want in wants if want.item.id in by_item]
    return Prospect(starts=tuple(sorted(one.seconds for one in starts)), takes=takes, usd=_usd(pool, takes, starts))


def _usd(pool: PoolView, takes: float | None, starts: list[BareStart]) -> float | None:
    """Price a build: its share of a machine, and the boot of one where that has to be launched for the first of them."""
    if takes is None or not pool.spec.offerings:
        return None
    per_second = min(offering.billed_usd_per_hour for offering in pool.spec.offerings) / 3600.0
    first = min(starts, key=lambda one: one.seconds, default=None)
    boots = pool.boot_seconds if first is not None and first.waits_for is WaitsFor.LAUNCH else 0.0
    return per_second * (takes / pool.spec.executors + boots)


# The label expression by which Jenkins gives a build to the agents of one pool, and to nobody else.


_FEW = 2


def address_of(pool: Pool, fleet: Fleet, view: ControllerView) -> str | None:
    """Return the shortest expression that nodes of this pool alone satisfy; None where another pool's cannot be told from them.

    Nodes that are none of ours are kept out by the label that all of ours carry.
    """
    others = [labels for other in fleet.pools_of(view.name) if other.name != pool.name for labels in _may_carry(other, fleet)]
    label = _alone(pool.labels, others)
    if label is None:
        return None
    foreign = [node.labels | {node.name} for node in view.nodes if node.agent and fleet.ownership_label not in node.labels]
    return "&&".join([label, quoted(fleet.ownership_label)]) if _satisfied(label, foreign) else label


def _may_carry(pool: Pool, fleet: Fleet) -> Iterator[frozenset[str]]:
    """Yield a pool's labels, those of its agents while they are lent, and those that they have while people hold some."""
    yield from (pool.labels, pool.labels | pool.lent_labels)
    if pool.labels & fleet.held_labels:
        yield pool.labels - fleet.held_labels | {HELD_LABEL}


def _alone(labels: Iterable[str], others: list[frozenset[str]]) -> str | None:
    """Find an expression of these labels that no other set satisfies, with labels that others have excluded where it must be so."""
    mine = sorted(labels)
    some = (chosen for size in range(1, _FEW + 1) for chosen in combinations(mine, size))
    for chosen in (*some, tuple(mine)):
        expression = "&&".join(map(quoted, chosen))
        if not _satisfied(expression, others):
            return expression
    alike = [other for other in others if other >= set(mine)]
    excluded = sorted({min(other - set(mine), default="") for other in alike})
    return None if "" in excluded else "&&".join([*map(quoted, mine), *(f"!{quoted(label)}" for label in excluded)])


def _satisfied(expression: str, by: Iterable[frozenset[str]]) -> bool:
    parsed = parse(expression)
    return any(parsed.matches(labels) for labels in by)


class Vary(StrEnum):
    """In what runs differ."""

    POOL = "pool"
    INSTANCE_TYPE = "instance_type"
    KIND = "kind"
    ZONE = "zone"
    CONTROLLER = "controller"


class Choose(StrEnum):
    """Which of several pools is preferred: where a build would end first, or where it costs least."""

    SOONEST = "soonest"
    CHEAPEST = "cheapest"


class ChoiceError(ValueError):
    """Nothing can be chosen; the text says why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asked for. ``same``: all on one pool; ``strict``: fewer different ones than ``runs`` are an error."""

    job: str
    runs: int = 1
    expression: LabelExpression | None = None
    conditions: tuple[Condition, ...] = ()
    vary: Vary | None = None
    same: bool = False
    strict: bool = False
    choose: Choose = Choose.SOONEST
    controller: str | None = None


# What is known of a job, by controller.
Statistics = Mapping[str, tuple[JobTracker, tuple[JobRow, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Where each run takes place, and why, for people."""

    targets: tuple[Target, ...]
    ranking: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class _Candidate:
    """A pool that satisfies what was asked. ``chosen``: how many runs it has so far."""

    target: Target
    prospect: Prospect
    assumed: float  # seconds a build takes, where none was seen there
    choose: Choose
    chosen: int = 0

    @property
    def score(self) -> tuple[float, float, str]:
        """What the next run would come to there: the lower, the better."""
        return self.score_of(self.chosen)

    def score_of(self, number: int) -> tuple[float, float, str]:
        """What the run of this number would come to there."""
        ends, usd = self.prospect.ends(number, self.assumed), self.prospect.usd
        by_time, by_money = inf if ends is None else ends, inf if usd is None else usd
        first, second = (by_time, by_money) if self.choose is Choose.SOONEST else (by_money, by_time)
        if ends is None:  # nobody knows when it would start: last, whatever it costs
            first = inf
        return first, second, f"{self.target.controller}/{self.target.pool}"

    def take(self) -> Target:
        """Give it one more run."""
        self.chosen += 1
        return self.target


def choose(situation: Situation, asked: Asked, statistics: Statistics) -> Chosen:
    """Choose where each run takes place; raise `ChoiceError` where there is no such pool, or too few different ones."""
    controllers, candidates, left_out = situation.snapshot.controllers, list[_Candidate](), list[str]()
    for controller in [asked.controller] if asked.controller else list(controllers):
        if not controllers[controller].complete:
            left_out.append(f"{controller}: {controllers[controller].problem}")
            continue
        fitting: list[tuple[Target, Prospect]] = []
        tracker, rows = statistics.get(controller, (JobTracker(), ()))
        for pool in situation.pools_of(controller).values():
            target = _target(situation, pool, asked)
            if isinstance(target, str):
                where = f"{pool.name} on {controller}" if len(controllers) > 1 else pool.name
                left_out.append(f"{where}: {target}")
            else:
                fitting.append((target, prospect(situation, pool, asked.job, asked.runs, tracker, rows)))
        durations = [one.takes for _, one in fitting if one.takes is not None]
        assumed = fmean(durations) if durations else 0.0
        candidates += [_Candidate(target=target, prospect=one, assumed=assumed, choose=asked.choose) for target, one in fitting]
    if not candidates:
        raise ChoiceError("no pool satisfies it: " + ("; ".join(left_out) or "the fleet has none there"))
    targets = _distribute(candidates, asked, left_out)
    return Chosen(targets=tuple(targets), ranking=tuple(_ranking(candidates, asked, left_out)))


def _target(situation: Situation, pool: PoolView, asked: Asked) -> Target | str:
    """Say where a run in a pool takes place, or why it cannot."""
    spec, fleet = pool.spec, situation.fleet
    if asked.expression and (why := explain_match(spec, fleet, asked.expression)):
        return why
    if why := unmet(asked.conditions, spec, fleet):
        return why
    if decline := fleet.declines(pool.controller, spec.name, asked.job):
        return f"a build takes {duration(decline.seconds)}, and it takes jobs of up to {duration(decline.most_seconds)} (max_job_seconds)"
    value = _value(spec, fleet, pool.controller, asked.vary)
    if not value:
        return _NO_VALUE[asked.vary or Vary.POOL](spec)
    label = address_of(spec, fleet, situation.snapshot.controllers[pool.controller])
    if label is None:
        return "another pool has all of its labels, so that no label expression names its agents alone: give it a label of its own"
    return Target(controller=pool.controller, pool=pool.name, label=label, value=value)


def _value(pool: Pool, fleet: Fleet, controller: str, vary: Vary | None) -> str:
    """By what a pool differs from others; "" where that is not one thing."""
    values = {
        Vary.INSTANCE_TYPE: _only(values_of("instance_type", pool, fleet)),
        Vary.ZONE: _only(values_of("subnet", pool, fleet)),
        Vary.KIND: pool.kind,
        Vary.CONTROLLER: controller,
    }
    return values.get(vary or Vary.POOL, pool.name)


def _only(values: Iterable[object]) -> str:
    known = [str(value) for value in values]
    return known[0] if len(known) == 1 else ""


_NO_VALUE: Mapping[Vary, Callable[[Pool], str]] = {
    Vary.POOL: lambda _: "",
    Vary.CONTROLLER: lambda _: "",
    Vary.INSTANCE_TYPE: lambda pool: (
        "its machines are hosts"
        if pool.of_hosts
        else f"it launches {' or '.join(dict.fromkeys(one.instance_type for one in pool.offerings))}: a pool for each type tells them apart"
    ),
    Vary.ZONE: lambda _: "it has not one subnet (subnets): a pool for each zone tells them apart",
    Vary.KIND: lambda _: "it is of no kind (kind)",
}


def _distribute(candidates: list[_Candidate], asked: Asked, left_out: list[str]) -> list[Target]:
    """Give each run its place."""
    if asked.same:
        best = min(candidates, key=lambda one: one.score_of(asked.runs - 1))
        return [best.take() for _ in range(asked.runs)]
    # Of those that do not differ in what was asked, the best group first; they are one group if nothing was asked.
    best_first = sorted(candidates, key=lambda one: one.score)
    groups = grouped((candidate.target.value if asked.vary else "", candidate) for candidate in best_first)
    if asked.vary and asked.strict and len(groups) < asked.runs:
        of = {"zone": "zones", "kind": "kinds"}.get(asked.vary, f"{asked.vary.replace('_', ' ')}s")
        others = f"; left out: {'; '.join(left_out)}" if left_out else ""
        raise ChoiceError(f"only {len(groups)} different {of} satisfy it ({', '.join(groups)}){others}")
    values = list(groups)
    # Each group in turn, and anew where there are fewer groups than runs.
    return [min(groups[values[number % len(values)]], key=lambda one: one.score).take() for number in range(asked.runs)]


def _ranking(candidates: list[_Candidate], asked: Asked, left_out: list[str]) -> Iterator[str]:
    """Say of each pool what it would come to, and what became of it."""
    for candidate in sorted(candidates, key=lambda one: (-one.chosen, one.score)):
        place = candidate.target
        name = place.pool if len({one.target.controller for one in candidates}) == 1 else f"{place.pool} on {place.controller}"
        varied = f" ({place.value})" if asked.vary and place.value not in {place.pool, place.controller} else ""
        taken = f"{candidate.chosen} of {asked.runs} runs" if candidate.chosen else "not chosen"
        one, told = candidate.prospect, "nobody knows when a build would start there"
        if one.starts:
            starts = "a build would start at once" if one.starts[0] < 1.0 else f"a build would start in {duration(one.starts[0])}"
            takes = f"takes {duration(one.takes)}" if one.takes is not None else "nobody has seen how long it takes"
            told = f"{starts}, {takes}" + (f", costs ${one.usd:.2f}" if one.usd is not None else "")
        yield f"{name}{varied}: {taken}; {told}"
    yield from (f"{line}; left out" for line in left_out)


# What a person asks for when ordering runs, and the order that comes of it.


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRuns:
    """Order builds of a job. ``request_id``: the same one orders them once; ``replace`` None: as many as there are runs."""

    asked: Asked
    parameters: tuple[tuple[str, str], ...]
    until: Until
    resubmit: int
    replace: int | None
    by: str
    reason: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """End an order: what waits is cancelled, what runs is stopped."""

    id: str
    by: str
    reason: str


def new_order(request: OrderRuns, order_id: str, chosen: Chosen, fleet: Fleet, now: float) -> RunOrder:
    """Make the order. Only gangs replace workers that fail."""
    asked, gang_replaces = request.asked, request.asked.runs if request.replace is None else request.replace
    return RunOrder(
        id=order_id,
        job=asked.job,
        parameters=request.parameters,
        label_parameter=fleet.runs.label_parameter if fleet.runs else "",
        run_parameter=fleet.rerun_parameter,
        by=request.by,
        reason=request.reason,
        created_at=now,
        parts=tuple(Part(target=target) for target in chosen.targets),
        until=request.until,
        resubmit=request.resubmit,
        replace=0 if request.until is Until.EACH else gang_replaces,
        vary=str(asked.vary or ""),
        ranking=chosen.ranking,
    )


def refusal_of(job: Job | None, order: RunOrder, target: Target) -> str | None:
    """Say why a job cannot be ordered on a controller; None when it can."""
    if job is None:
        return f"job ({order.job}): {target.controller} shows no such job"
    if not job.buildable:
        return f"job ({order.job}): it is disabled on {target.controller}"
    needs = {order.label_parameter: "by which it is told where to run", order.run_parameter: "by which its builds are found again"}
    for name, what in needs.items():
        if name not in job.declares:
            return f"job ({order.job}): it declares no parameter {name} on {target.controller}, {what}"
    if unknown := [name for name, _ in order.parameters if name not in job.declares]:
        return f"parameters ({unknown[0]}): {order.job} declares no such parameter on {target.controller}"
    if own := [name for name, _ in order.parameters if name in needs]:
        return f"parameters ({own[0]}): is set by the autoscaler"
    return None
