"""What the world does by chance, and how fast: every number with its source, every number to be set (``--physics KEY=VALUE``)."""

from enum import StrEnum
from random import Random
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from autoscaler.errors import ConfigError

_Seconds = Annotated[float, Field(ge=0, le=86_400)]
_Share = Annotated[float, Field(ge=0, le=0.9)]
_Factor = Annotated[float, Field(ge=0.1, le=10)]


class NodeChoice(StrEnum):
    """Which of the free nodes gets a build."""

    HASH = "hash"  # hudson.model.LoadBalancer.CONSISTENT_HASH: the same job tends to the same node
    LEAST_LOADED = "least-loaded"  # as the plugin Least Load does: the node with most free executors


class Physics(BaseModel):
    """One world's. The defaults are what a calm day in a large region is like; a description names the source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pending_from_seconds: _Seconds = Field(
        4.0, description="an instance is pending at least; 4.9 s in ec2-boot-bench (daemonology.net, 2021)"
    )
    pending_to_seconds: _Seconds = Field(18.0, description="and at most; 16.4 to 17.8 s in brevdev/ec2-coldboot-research (2026)")
    boot_from: _Factor = Field(0.75, description="the quickest boot, as a factor of the pool's boot_seconds; assumed, no series is public")
    boot_to: _Factor = Field(1.35, description="the slowest boot, likewise; assumed")
    connect_from_seconds: _Seconds = Field(
        3.0, description="from the end of the boot to a connected agent; recorded on Jenkins 2.504.3: 6 to 7 s"
    )
    connect_to_seconds: _Seconds = Field(9.0, description="and at most, likewise")
    scheduling_seconds: _Seconds = Field(
        0.0, description="until Jenkins hands out what became free; hudson.model.Queue: at once, 5 s at most"
    )
    node_choice: NodeChoice = Field(NodeChoice.HASH, description="hash (Jenkins' default) or least-loaded (the plugin of that name)")
    no_capacity: _Share = Field(
        0.0, description="share of the time that an offering cannot be had; what it is differs by type, zone and hour"
    )
    no_capacity_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        600.0, description="for how long at a time; EC2's advice is to wait a few minutes (troubleshooting-launch)"
    )
    interruptions_per_hour: Annotated[float, Field(ge=0, le=60)] = Field(
        0.0, description="of a spot instance; 0.00007 to 0.0003 in the bands of AWS' Spot advisor (under 5 % to over 20 % a month)"
    )
    failing_calls: _Share = Field(
        0.0, description="share of calls that fail, half of them after they took effect; a rival's call just fails, which is kind to it"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for low, high in (
            ("pending_from_seconds", "pending_to_seconds"),
            ("boot_from", "boot_to"),
            ("connect_from_seconds", "connect_to_seconds"),
        ):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} must be at most {high}")
        return self

    def pending_seconds(self, chance: Random) -> float:
        """Draw how long an instance is pending."""
        return chance.uniform(self.pending_from_seconds, self.pending_to_seconds)

    def boot_seconds(self, usual_seconds: float, chance: Random) -> float:
        """Draw how long a boot takes."""
        return usual_seconds * chance.uniform(self.boot_from, self.boot_to)

    def connects_in_seconds(self, chance: Random) -> float:
        """Draw how long a booted agent takes to connect."""
        return chance.uniform(self.connect_from_seconds, self.connect_to_seconds)

    def can_be_had(self, offering: str, now: float, seed: int) -> bool:
        """Tell whether EC2 has an offering now; the same for everybody who asks within the same spell."""
        if not self.no_capacity:
            return True
        spell = int(now // self.no_capacity_seconds)
        return Random(f"{seed}/{offering}/{spell}").random() >= self.no_capacity  # noqa: S311

    def told(self) -> dict[str, Any]:
        """What differs from the defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)


CALM = Physics()


def physics_of(settings: dict[str, Any]) -> Physics:
    """Check what was set. `ConfigError` names key, value and rule."""
    try:
        return Physics(**settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "its values"
        rule = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            rule = f"is none of {', '.join(Physics.model_fields)}"
        raise ConfigError(f"--physics {key}={settings.get(key, '')}: {rule}") from error
