"""The conditions that need a person, as the function judges them at `MetricsLevel: essential`; at `full` an alarm each does."""

from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.report.pass_notes import MISSED_SECONDS


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
        match self.comparison:
            case Comparison.OVER:
                return value > self.threshold
            case Comparison.AT_LEAST:
                return value >= self.threshold
            case Comparison.BELOW:
                return value < self.threshold


_POOL, _CONTROLLER, _FUNCTION = ("Controller", "Pool"), ("Controller",), ("Function",)
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
        told_by=("lasts/ends/",),
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
        told_by=("breaker/", "image/"),
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
    Rule(name="sweeps-stopped", metric="SweepsStopped", says="Repairs found more to remove than they may at once.", threshold=1),
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
        says="A scheduled function has not completed a pass for five minutes.",
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
    ),
    Rule(name="lease-held", metric="LeaseHeld", says="The functions often find the lease taken.", threshold=9),
    Rule(name="state-unread", metric="StateUnread", says="The state table has something that this version cannot read."),
)
