"""Orders of a person."""

from dataclasses import dataclass

from autoscaler.domain.facts.overrides import Scope

# A person's launch is named after the request, so that the same request launches once.
MANUAL_PREFIX = "manual-"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSome:
    """Launch ``count`` more agents of a pool, kept for ``keep_seconds``."""

    pool: str
    count: int
    controller: str | None
    keep_seconds: float
    reason: str
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSome:
    """Drain ``count`` agents of a pool, least work left first."""

    pool: str
    count: int
    controller: str | None
    reason: str
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainAll:
    """Drain all agents: those of a pool, of a controller, or of the fleet."""

    pool: str | None
    controller: str | None
    reason: str
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNodes:
    """Drain these nodes."""

    nodes: tuple[str, ...]
    reason: str
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Give a person an agent for ``seconds``. ``target``: a pool, of which any idle one will do, or a node or an instance."""

    target: str
    controller: str | None
    seconds: float
    person: str
    by: str
    reason: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """End the reservation of an agent, named by its node or its instance. ``person``: whose it is; nobody else's ends."""

    target: str
    reason: str
    person: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndInstance:
    """Terminate an instance whose controller left the fleet file, named by its id or its node, whatever runs on it."""

    target: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Lift people's holds of a scope and the operator and quarantine cordons there; or only those of these ``nodes``."""

    scope: Scope
    name: str
    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ResumeBudget:
    """Lift the AWS budget's hold alone. Holds and cordons of people stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseBreaker:
    """Launch in a pool again as if none of its boots had failed."""

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Cancel the queue items that ask for a label; ``controller`` None: on all of them."""

    label: str
    controller: str | None
    reason: str
