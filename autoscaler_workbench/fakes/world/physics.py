"""How fast and how randomly the world behaves: each number with its source, and settable (``--physics KEY=VALUE``)."""

from dataclasses import dataclass, fields
from enum import StrEnum
from random import Random
from typing import Annotated, Any

from annotated_types import Ge, Le

_Seconds = Annotated[float, Ge(0), Le(86_400)]
_Share = Annotated[float, Ge(0), Le(0.9)]
_Factor = Annotated[float, Ge(0.1), Le(10)]


class NodeChoice(StrEnum):
    """Which of the free nodes gets a build."""

    HASH = "hash"  # hudson.model.LoadBalancer.CONSISTENT_HASH: the same job tends to the same node
    LEAST_LOADED = "least-loaded"  # as the plugin Least Load does: the node with most free executors


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """The physics of one world; the defaults are a calm day in a large region."""

    # How long an instance is pending: 4.9 s (daemonology.net, ec2-boot-bench, 2021), 16.4 to 17.8 s (brevdev/ec2-coldboot-research, 2026).
    pending_from_seconds: _Seconds = 4.0
    pending_to_seconds: _Seconds = 18.0
    # The quickest and the slowest boot, as factors of the pool's boot_seconds. Assumed: no series of GPU or Windows boots is public.
    boot_from: _Factor = 0.75
    boot_to: _Factor = 1.35
    # From the end of the boot to a connected agent. Recorded on Jenkins 2.504.3: agents are back within 6 to 7 s.
    connect_from_seconds: _Seconds = 3.0
    connect_to_seconds: _Seconds = 9.0
    # How long an instance takes to stop. Assumed: the operating system's own shutdown; no series is public.
    stop_from_seconds: _Seconds = 10.0
    stop_to_seconds: _Seconds = 60.0
    # How long one that is started again is pending. Assumed a little less than a new one, whose disk and network are made first.
    start_pending_from_seconds: _Seconds = 3.0
    start_pending_to_seconds: _Seconds = 15.0
    # The share of a boot that a start takes, drawn anew each time: on Linux 13 s from stopped against 70 s (Karpenter, issue 3798), 10 to
    # 30 s against 2 to 5 min (github-aws-runners, pull request 5204). With a baked image it may gain nothing: 70 s either way
    # (terraform-provider-namecheap, issue 327), which is 0.9 to 1.1 here.
    start_from: _Factor = 0.15
    start_to: _Factor = 0.5
    # From a controller's restart until a pipeline asks for its node again. Recorded on Jenkins 2.504.3 with few jobs: a second. Builds that
    # are loaded in the background (workflow-api-plugin, pull request 368) may take minutes.
    resume_from_seconds: _Seconds = 1.0
    resume_to_seconds: _Seconds = 1.0
    # Until Jenkins hands out what became free. hudson.model.Queue looks at once when something changes, and every 5 s.
    scheduling_seconds: _Seconds = 0.0
    node_choice: NodeChoice = NodeChoice.HASH
    # The share of the time that an offering cannot be had, and for how long at a time. What it is differs by type, zone and hour; to wait
    # a few minutes is EC2's own advice (docs.aws.amazon.com: troubleshooting-launch, InsufficientInstanceCapacity).
    no_capacity: _Share = 0.0
    no_capacity_seconds: Annotated[float, Ge(1), Le(86_400)] = 600.0
    # Of a spot instance. AWS' Spot advisor has bands from under 5 % to over 20 % a month: 0.00007 to 0.0003 an hour; a bad hour is worse.
    interruptions_per_hour: Annotated[float, Ge(0), Le(60)] = 0.0
    # How far spot prices move up and down around what is expected, as a share of it, from hour to hour. Assumed.
    spot_swing: _Share = 0.0
    # The share of calls that fail, half of them after they took effect. A rival's call just fails, which is kind to it.
    failing_calls: _Share = 0.0

    def __post_init__(self) -> None:
        """Refuse a lower end above its upper end."""
        for low, high in (
            ("pending_from_seconds", "pending_to_seconds"),
            ("boot_from", "boot_to"),
            ("stop_from_seconds", "stop_to_seconds"),
            ("start_pending_from_seconds", "start_pending_to_seconds"),
            ("start_from", "start_to"),
            ("connect_from_seconds", "connect_to_seconds"),
            ("resume_from_seconds", "resume_to_seconds"),
        ):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} must be at most {high}")

    def pending_seconds(self, chance: Random) -> float:
        """Draw how long an instance is pending."""
        return chance.uniform(self.pending_from_seconds, self.pending_to_seconds)

    def boot_seconds(self, usual_seconds: float, chance: Random) -> float:
        """Draw how long a boot takes."""
        return usual_seconds * chance.uniform(self.boot_from, self.boot_to)

    def stop_seconds(self, chance: Random) -> float:
        """Draw how long an instance takes to stop."""
        return chance.uniform(self.stop_from_seconds, self.stop_to_seconds)

    def start_pending_seconds(self, chance: Random) -> float:
        """Draw how long an instance that is started again is pending."""
        return chance.uniform(self.start_pending_from_seconds, self.start_pending_to_seconds)

    def start_share(self, chance: Random) -> float:
        """Draw the share of a boot that a start takes."""
        return chance.uniform(self.start_from, self.start_to)

    def connects_in_seconds(self, chance: Random) -> float:
        """Draw how long a booted agent takes to connect."""
        return chance.uniform(self.connect_from_seconds, self.connect_to_seconds)

    def resumes_in_seconds(self, chance: Random) -> float:
        """Draw how long a pipeline takes to ask for its node again after a restart."""
        return chance.uniform(self.resume_from_seconds, self.resume_to_seconds)

    def can_be_had(self, offering: str, now: float, seed: int) -> bool:
        """Tell whether EC2 has an offering now; the same for everybody who asks within the same spell."""
        if not self.no_capacity:
            return True
        spell = int(now // self.no_capacity_seconds)
        return Random(f"{seed}/{offering}/{spell}").random() >= self.no_capacity  # noqa: S311

    def told(self) -> dict[str, Any]:
        """What differs from the defaults."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}


CALM = Physics()
