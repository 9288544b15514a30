"""Which conditions need a person now, since when, and where: judged at each look, remembered in what people were told."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import ge, gt, lt

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.report.datum import COUNT, MISSED_SECONDS, Datum, one
from autoscaler.domain.report.told import Seen, Span, Told, told_by_now
from autoscaler.domain.wording import dollars, duration, listed

# The conditions that need a person, as the function judges them at `MetricsLevel: essential`; at `full` an alarm each does.


class Comparison(StrEnum):
    """How a value is held against a threshold."""

    OVER = "over"
    AT_LEAST = "at or over"
    BELOW = "below"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The numbers of the stack's parameters. Of memory 0 is none."""

    job_wait_seconds: float
    idle_usd_per_hour: float
    failure_streak: float
    agent_disk_bytes: float
    agent_memory_bytes: float
    agent_gpu_memory_bytes: float
    controller_disk_bytes: float
    controller_memory_bytes: float
    controller_response_seconds: float
    controller_cpu_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One condition on one metric. ``name``: also the ``heading`` of its entry in the runbook, but for one that has another's.

    ``by``: the dimensions beside the fleet's. ``given``: the field of `Thresholds` that is its threshold; ``setting``: the parameter.

    ``seconds``: how long it must have been so. ``strict``: one look that sees otherwise ends it; else it takes two in a row.
    ``stays``: where a look has no value, it is as it was. ``told_by``: what messages of their own that say the same begin with,
    ``{controller}``: where it is.
    ``lingers``: it counts what happened within the last hour. If a message of its own has told that, it is told no more after its end.
    ``has_alarm``: an alarm of its own rings for it, so that it is no problem more.
    """

    name: str
    metric: str
    says: str
    heading: str = ""
    by: tuple[str, ...] = ()
    threshold: float = 0.0
    given: str = ""
    setting: str = ""
    comparison: Comparison = Comparison.OVER
    seconds: float = 0.0
    strict: bool = False
    stays: bool = False
    told_by: tuple[str, ...] = ()
    lingers: bool = False
    has_alarm: bool = False

    def breached_by(self, value: float) -> bool:
        """Hold a value against the threshold."""
        return _BREACHED[self.comparison](value, self.threshold)


_BREACHED: Mapping[Comparison, Callable[[float, float], bool]] = {Comparison.OVER: gt, Comparison.AT_LEAST: ge, Comparison.BELOW: lt}
_POOL, _CONTROLLER, _FUNCTION = ("Controller", "Pool"), ("Controller",), ("Function",)
# How a place is called, by its dimensions; the fleet has no name there.
_PLACES = {(): "", _POOL: "pool {Pool} of {Controller}", _CONTROLLER: "controller {Controller}", _FUNCTION: "{Function}"}
# Looks come once a minute: what four or five of them see in a row has been so for three or four minutes.
_FOUR_LOOKS, _FIVE_LOOKS, _QUARTER = 170.0, 230.0, 830.0


def rules(at: Thresholds) -> tuple[Rule, ...]:
    """List the conditions with these thresholds."""
    found = (replace(rule, threshold=getattr(at, rule.given)) if rule.given else rule for rule in _RULES)
    return tuple(rule for rule in found if rule.threshold or rule.given not in _OFF_AT_ZERO)


_OFF_AT_ZERO = {"agent_memory_bytes", "agent_gpu_memory_bytes", "controller_memory_bytes"}
_RULES = (
    Rule(
        name="agent-disk-low",
        metric="AgentDiskFreeBytes",
        says="An agent has little disk left.",
        by=_POOL,
        given="agent_disk_bytes",
        setting="AgentDiskAlarmBytes",
        comparison=Comparison.BELOW,
        seconds=_FOUR_LOOKS,
    ),
    Rule(
        name="agent-memory-low",
        metric="AgentMemoryAvailableBytes",
        says="An agent has little memory left, or will have within three minutes.",
        by=_POOL,
        given="agent_memory_bytes",
        setting="AgentMemoryAlarmBytes",
        comparison=Comparison.BELOW,
    ),
    Rule(
        name="agent-gpu-memory-low",
        metric="AgentGpuMemoryFreeBytes",
        says="A graphics card of an agent has little memory left.",
        by=_POOL,
        given="agent_gpu_memory_bytes",
        setting="AgentGpuMemoryAlarmBytes",
        comparison=Comparison.BELOW,
        seconds=_FOUR_LOOKS,
    ),
    Rule(
        name="node-failure-streak",
        metric="NodeFailureStreak",
        says="Many builds in a row have failed on one agent.",
        by=_POOL,
        given="failure_streak",
        setting="FailureStreakAlarm",
        comparison=Comparison.AT_LEAST,
    ),
    Rule(
        name="drains-overdue",
        metric="DrainsOverdue",
        says="An agent drains for longer than drain_timeout_seconds; its builds go on.",
        told_by=("lasts/drains/",),
    ),
    Rule(
        name="agents-stuck",
        metric="AgentsStuck",
        says="EC2 does not let an instance be terminated; it goes on costing money.",
        seconds=_QUARTER,
        told_by=("lasts/refused/",),
    ),
    Rule(
        name="breakers-open",
        metric="BreakersOpen",
        says="The agents of a pool do not boot; one agent at a time is tried, at growing intervals.",
        told_by=("breaker/", "image/", "connect/"),
    ),
    Rule(
        name="boot-failures",
        metric="BootFailures",
        says="Three boots have failed within the hour.",
        threshold=2,
        told_by=("breaker/", "image/", "place/"),
        lingers=True,
    ),
    Rule(
        name="starts-failed",
        metric="StartsFailed",
        says="Three stopped agents did not start within the hour.",
        threshold=2,
        told_by=("starts/",),
        lingers=True,
    ),
    Rule(
        name="builds-left",
        metric="BuildsLeft",
        says="A build was lost with its agent and is not run again: a person must see to it.",
        told_by=("lost/",),
    ),
    Rule(name="quarantine", metric="Quarantines", says="An agent was put in quarantine.", told_by=("breaker/", "image/", "connect/")),
    Rule(
        name="builds-overdue",
        metric="BuildsOverdue",
        says="A build has run for more than three times the longest of its job's last ones, for half an hour.",
        by=_POOL,
        seconds=1500.0,
    ),
    Rule(name="ec2-disagrees", metric="Ec2Disagrees", says="EC2 shows no instance of many agents that are connected.", threshold=2),
    Rule(
        name="sweeps-stopped",
        metric="SweepsStopped",
        says="Repairs found more to remove than they may at once.",
        threshold=1,
        told_by=("breaker/", "image/", "connect/", "place/"),
    ),
    Rule(
        name="controller-disk-low",
        metric="ControllerDiskFreeBytes",
        says="A controller has little disk left.",
        by=_CONTROLLER,
        given="controller_disk_bytes",
        setting="ControllerDiskAlarmBytes",
        comparison=Comparison.BELOW,
        seconds=_FIVE_LOOKS,
        stays=True,
    ),
    Rule(
        name="controller-memory-low",
        metric="ControllerMemoryFreeBytes",
        says="A controller has little memory left.",
        by=_CONTROLLER,
        given="controller_memory_bytes",
        setting="ControllerMemoryAlarmBytes",
        comparison=Comparison.BELOW,
        seconds=_FIVE_LOOKS,
        stays=True,
    ),
    Rule(
        name="controller-slow",
        metric="ControllerResponseSeconds",
        says="A controller answers slowly, or not at all.",
        by=_CONTROLLER,
        given="controller_response_seconds",
        setting="ControllerResponseAlarmSeconds",
        seconds=_FIVE_LOOKS,
        stays=True,
    ),
    Rule(
        name="controller-cpu",
        metric="ControllerCpuPercent",
        says="A controller's machine is busy all the time.",
        by=_CONTROLLER,
        given="controller_cpu_percent",
        setting="ControllerCpuAlarmPercent",
        seconds=_QUARTER,
    ),
    Rule(
        name="controller-unread",
        metric="ControllersUnread",
        says="A controller cannot be read; nothing is launched or scaled in there.",
        seconds=_FOUR_LOOKS,
        told_by=("unread/",),
    ),
    Rule(
        name="no-jobs-shown",
        metric="ControllersWithoutJobs",
        says="A controller shows not a single job: it has none, or our account lacks Job/Read.",
        seconds=3300.0,
        strict=True,
    ),
    Rule(name="steps-failing", metric="StepsFailing", says="A step in Jenkins fails each time it is tried."),
    Rule(
        name="job-waits",
        metric="QueueWait",
        says="A job waits too long for its executor.",
        by=_POOL,
        given="job_wait_seconds",
        setting="JobWaitAlarmSeconds",
        seconds=_FOUR_LOOKS,
        told_by=(
            "waits/{controller}/",
            "refused/{controller}/",
            "quiet/{controller}",
            "breaker/",
            "launches/",
            "connect/{controller}",
            "most-marked/{controller}",
        ),
        has_alarm=True,
    ),
    Rule(
        name="queue-unservable",
        metric="QueueUnservable",
        says="A queue item has waited for max_wait_seconds, and no pool can ever serve it.",
        by=_CONTROLLER,
        seconds=_FOUR_LOOKS,
        told_by=("waits/{controller}/unservable", "waits/{controller}/label-unknown", "too-long/{controller}/:"),
    ),
    Rule(
        name="idle-agents",
        metric="IdleUsdPerHour",
        says="Idle agents have cost much for two hours.",
        given="idle_usd_per_hour",
        setting="IdleUsdAlarm",
        seconds=6900.0,
        strict=True,
        stays=True,
    ),
    Rule(
        name="agents-limit",
        metric="AgentsLimitUsedPercent",
        says="A limit on agents has kept jobs waiting for a quarter of an hour.",
        threshold=100,
        comparison=Comparison.AT_LEAST,
        seconds=_QUARTER,
        stays=True,
        told_by=("limit/agents",),
    ),
    Rule(
        name="team-limits",
        metric="TeamsHeldBack",
        says="A limit of a team has kept its jobs waiting for a quarter of an hour.",
        seconds=_QUARTER,
        told_by=("limit/",),
    ),
    Rule(
        name="launch-rate",
        metric="LaunchRateUsedPercent",
        says="Agents are launched nearly as fast as max_launches_per_hour allows.",
        threshold=80,
        comparison=Comparison.AT_LEAST,
        stays=True,
        told_by=("limit/launch-rate",),
    ),
    Rule(
        name="usd-per-hour",
        metric="UsdPerHourUsedPercent",
        says="The agents cost nearly as much an hour as max_usd_per_hour allows.",
        threshold=90,
        comparison=Comparison.AT_LEAST,
        seconds=_QUARTER,
        stays=True,
        told_by=("limit/usd-per-hour",),
    ),
    Rule(
        name="autoscaler-down",
        metric="SecondsSincePass",
        says="A scheduled function has completed no pass for minutes.",
        by=_FUNCTION,
        threshold=MISSED_SECONDS,
        seconds=170.0,
    ),
    Rule(
        name="autoscaler-fails",
        metric="PassesMissed",
        says="A scheduled function fails now and then.",
        heading="autoscaler-down",
        by=_FUNCTION,
        threshold=1,
        told_by=("looks-late",),
    ),
    Rule(name="lease-held", metric="LeaseHeld", says="The functions often find the lease taken.", threshold=9),
    Rule(name="state-unread", metric="StateUnread", says="The state table has something that this version cannot read."),
)


# A look that sees otherwise ends nothing by itself: looks come a minute apart, and the next one has until then.
_ONE_LOOK_SECONDS = 90.0
# What was not seen for so long, since nobody looked, begins anew.
FORGOTTEN_SECONDS = 3600.0
_NAMES = 5
PROBLEM = "problem/"

Places = Mapping[str, Sequence[str]]  # by metric, where the fleet's value comes from


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A value that is beyond its threshold at this look. ``place``: "" for the fleet."""

    rule: Rule
    place: str
    value: float

    @property
    def name(self) -> str:
        """The name under which it is remembered."""
        return f"{PROBLEM}{self.rule.name}/{self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A condition that has been so for long enough."""

    breach: Breach
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one look found: the problems that are there, and what is remembered of those that may become one.

    ``began``: those that were none yet at the look before.
    """

    problems: tuple[Problem, ...]
    began: tuple[Problem, ...]
    spans: Mapping[str, Span]

    @property
    def ringing(self) -> int:
        """How many of them have no alarm of their own."""
        return sum(not problem.breach.rule.has_alarm for problem in self.problems)


def judge(told: Told, rules: Iterable[Rule], data: Sequence[Datum], places: Places, now: float) -> Judged:
    """Hold the data of one look against the rules, and against what earlier looks saw."""
    by_rule, told = {rule.name: rule for rule in rules}, told_by_now(told, now)
    measured = dict(_values(by_rule.values(), data))
    breaches = {breach.name: breach for breach in measured.values() if breach.rule.breached_by(breach.value)}
    spans = {name: span for name, span in told.spans.items() if _stays(by_rule, name, span, now, name in measured)}
    spans |= {name: Span(since_at=_since(told.spans.get(name), now), seen_at=now) for name in breaches}
    lasting = [breach for name, breach in breaches.items() if now - spans[name].since_at >= breach.rule.seconds]
    problems = tuple(Problem(breach=breach, seen=_seen(breach, places)) for breach in lasting)
    began = tuple(problem for problem in problems if not _lasted(problem.breach, told.spans.get(problem.breach.name), now))
    return Judged(problems=problems, began=began, spans=spans)


def problems_datum(fleet: str, judged: Judged) -> Datum:
    """Count the problems that have no alarm of their own."""
    return one("Problems", judged.ringing, COUNT, (("Fleet", fleet),))


def facts_of(problem: Problem) -> dict[str, str | float]:
    """Describe a problem as a log line does."""
    rule = problem.breach.rule
    return {
        "problem": rule.name,
        "place": problem.breach.place,
        "metric": rule.metric,
        "value": problem.breach.value,
        "threshold": rule.threshold,
        "setting": rule.setting,
        "says": problem.seen.text,
    }


def _lasted(breach: Breach, before: Span | None, now: float) -> bool:
    """Tell whether the look before this one found it to be a problem already."""
    return before is not None and _since(before, now) == before.since_at and before.seen_at - before.since_at >= breach.rule.seconds


def _since(span: Span | None, now: float) -> float:
    return span.since_at if span is not None and now - span.seen_at < FORGOTTEN_SECONDS else now


def _stays(rules: Mapping[str, Rule], name: str, span: Span, now: float, is_measured: bool) -> bool:  # noqa: FBT001
    """Tell whether what this look did not see is remembered. Spans of other messages are theirs to forget."""
    if not name.startswith(PROBLEM):
        return True
    rule, age = rules.get(name.split("/")[1]), now - span.seen_at
    if rule is not None and rule.stays and not is_measured:
        return age < FORGOTTEN_SECONDS
    return rule is not None and not rule.strict and age <= _ONE_LOOK_SECONDS


def _values(rules: Iterable[Rule], data: Sequence[Datum]) -> Iterator[tuple[str, Breach]]:
    """Each rule with each value that it is about; of several values of one place the worst."""
    for rule in rules:
        for datum in data:
            names = tuple(name for name, _ in datum.dimensions[1:])
            if datum.name == rule.metric and names == rule.by and datum.values:
                worst = min(datum.values) if rule.comparison is Comparison.BELOW else max(datum.values)
                breach = Breach(rule=rule, place=_PLACES[names].format(**dict(datum.dimensions)), value=worst)
                yield breach.name, breach


def _seen(breach: Breach, places: Places) -> Seen:
    rule = breach.rule
    known = list(places.get(rule.metric, ())) if not breach.place else []
    more = f" and {len(known) - _NAMES} more" if len(known) > _NAMES else ""
    where = breach.place or ", ".join(known[:_NAMES]) + more
    title = rule.name.replace("-", " ") + (f": {breach.place or ', '.join(known[:2])}" if where else "")
    limit = f"{rule.comparison} {_number(rule.metric, rule.threshold)}" + (f" ({rule.setting})" if rule.setting else "")
    text = f"{rule.says}\n{rule.metric}{f' of {where}' if where else ''}: {_number(rule.metric, breach.value)}, which is {limit}."
    return Seen(title, text, f"operations.md#{rule.heading or rule.name}", "autoscaler status")


def _number(metric: str, value: float) -> str:
    if metric.endswith("Bytes"):
        return f"{value / 2**30:.2f} GiB"
    if metric == "IdleUsdPerHour":
        return dollars(value)
    if "Seconds" in metric or metric == "QueueWait":
        return duration(value)
    return f"{value:,.0f} %" if metric.endswith("Percent") else f"{value:,g}"


# Who gets alarms and messages, and what to do if nobody does.


_CURE = "set AlarmEmail and deploy, or subscribe to the stack's output Alarms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """An address that is to get alarms and messages. ``confirmed``: its owner agreed, so that it does."""

    address: str
    confirmed: bool


def nobody_is_told(subscriptions: Sequence[Subscription]) -> str:
    """Say that alarms reach nobody, and what to do about it; "" if at least one subscription is confirmed."""
    if any(subscription.confirmed for subscription in subscriptions):
        return ""
    if not subscriptions:
        return f"nobody receives the alarms: {_CURE}"
    addresses = ", ".join(sorted({subscription.address for subscription in subscriptions}))
    return f"nobody receives the alarms: open the link in the mail that AWS sent to {addresses}; without such a mail, {_CURE}"


# Whether Jenkins may start long jobs on free executors of a pool that declines them, as far as the fleet file tells.


CURE = "give the jobs that may run there a label that no other pool has"


def jobs_without_label(pool: Pool, fleet: Fleet) -> tuple[bool | None, str]:
    """Tell whether jobs without a label stay off a pool's nodes, and if not, why; None: nobody knows."""
    if not pool.exclusive:
        return False, "exclusive: false, so Jenkins starts jobs without a label there, however long they take: set exclusive: true"
    if slots := sorted(fleet.slot_controllers & set(pool.controllers)):
        only = "Usage: Only build jobs with label expressions matching this node"
        return None, f"{listed(slots)} has static nodes (nodes: slots), and Jenkins' API does not show their mode: each should have {only}"
    return True, ""


def labels_of_others(pool: Pool, fleet: Fleet) -> dict[str, list[str]]:
    """Find the labels that other pools on the same controllers have, too, and name those: jobs may start on either."""
    others = [other for other in fleet.pools.values() if other.name != pool.name and set(other.controllers) & set(pool.controllers)]
    names = {label: [other.name for other in others if label in other.labels] for label in sorted(pool.labels)}
    return {label: having for label, having in names.items() if having}
