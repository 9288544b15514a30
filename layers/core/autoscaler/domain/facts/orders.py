"""Orders of a person: what is launched, drained or reserved, holds, and limits that hold for a while."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from typing import Any

from autoscaler.domain.facts.fleet import Fleet, Pool, WarmPool
from autoscaler.domain.labels import LabelSyntaxError, parse
from autoscaler.domain.wording import duration

# Holds, and overrides of pools' and teams' limits, by operators. Each says who ordered it and why, and expires automatically.


# The author of the AWS budget's hold; no person may order under this name.
BUDGET = "aws-budget"
BUDGET_PAUSES = "nothing is launched, and idle agents end"
# The author of the hold that takes the place of orders which cannot be read.
_NOBODY = "autoscaler"

POOL_NUMBERS = ("min_agents", "max_agents", "warm_executors", "max_stopped")
TEAM_NUMBERS = ("max_agents", "max_launches_per_hour", "max_usd_per_hour", "max_usd_per_month")


class Scope(StrEnum):
    """What a hold is on."""

    FLEET = "fleet"
    CONTROLLER = "controller"
    POOL = "pool"
    LABEL = "label"  # of queue items: those that ask for it are no demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Pause launches, uncordons and scaling in; with ``freeze`` every step. ``name``: of the pool, controller or label.

    The AWS budget's pauses launches alone: it is to save money, so what is idle ends, and no pool keeps agents without demand.
    Holds of different authors, and a hold and a freeze, stand side by side in one place. Each ends by itself.
    """

    scope: Scope
    name: str
    since_at: float
    until_at: float | None  # None: until somebody resumes; the budget's until the month ends, too
    by: str
    reason: str
    freeze: bool = False

    @property
    def is_budget(self) -> bool:
        """Tell whether the AWS budget ordered it."""
        return self.by == BUDGET

    @property
    def ends_at(self) -> float | None:
        """When it ends by itself. The budget's ends with the month (UTC): then the budget begins anew."""
        return _month_end(self.since_at) if self.is_budget else self.until_at

    @property
    def place(self) -> tuple[Scope, str]:
        """What it is on."""
        return self.scope, self.name

    def text(self, now: float) -> str:
        """Say which scope is on hold, until when, by whom and why."""
        what = f"{self.scope} {self.name}".strip()
        until = "until somebody resumes it" if self.ends_at is None else f"for another {duration(self.ends_at - now)}"
        if self.is_budget:
            return f"{what} is on hold until the month ends, {until}, by {self.by}: {self.reason}; {BUDGET_PAUSES}"
        return f"{what} is {'frozen' if self.freeze else 'on hold'} {until} by {self.by}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Override:
    """Temporary limits of a pool or a team; None: as in the fleet file."""

    since_at: float
    until_at: float
    by: str
    reason: str

    @property
    def given(self) -> dict[str, Any]:
        """The numbers that differ from the fleet file."""
        return {name: number for name in (*POOL_NUMBERS, *TEAM_NUMBERS) if (number := getattr(self, name, None)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOverride(_Override):
    """Temporary limits of a pool. The fleet's own limits still apply."""

    pool: str
    min_agents: int | None = None
    max_agents: int | None = None
    warm_executors: int | None = None
    max_stopped: int | None = None  # agents; none may be kept stopped where the fleet file has no warm_pool


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamOverride(_Override):
    """Temporary limits of a team. The limits of its pools and of the fleet still apply."""

    team: str
    max_agents: int | None = None
    max_launches_per_hour: int | None = None
    max_usd_per_hour: float | None = None
    max_usd_per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """All active holds and overrides."""

    version: int = 0
    holds: tuple[Hold, ...] = ()
    numbers: tuple[PoolOverride, ...] = ()
    teams: tuple[TeamOverride, ...] = ()

    def at(self, now: float) -> "Overrides":
        """The holds and overrides that have not expired by then."""
        return replace(
            self,
            holds=tuple(hold for hold in self.holds if hold.ends_at is None or now < hold.ends_at),
            numbers=tuple(numbers for numbers in self.numbers if now < numbers.until_at),
            teams=tuple(numbers for numbers in self.teams if now < numbers.until_at),
        )

    def holds_on(self, controller: str, pool: str) -> tuple[Hold, ...]:
        """All holds that a pool is under on a controller: freezes first, and what lasts longest first."""
        places = {(Scope.FLEET, ""), (Scope.CONTROLLER, controller), (Scope.POOL, pool)}
        return _by_weight(hold for hold in self.holds if hold.place in places)

    def holds_of_people_on(self, controller: str, pool: str) -> tuple[Hold, ...]:
        """The holds that pause more than launches there: all but the AWS budget's."""
        return tuple(hold for hold in self.holds_on(controller, pool) if not hold.is_budget)

    @property
    def are_unknown(self) -> bool:
        """Tell whether nobody knows what people ordered: the stored orders cannot be read."""
        return any(hold.since_at == 0.0 and hold.by == _NOBODY for hold in self.holds)

    @property
    def held_labels(self) -> frozenset[str]:
        """The labels that Jenkins can be kept from handing out: those of holds on one label."""
        return frozenset(label for hold in self.holds if hold.scope is Scope.LABEL and (label := single_label(hold.name)) is not None)

    def holds_of(self, labels: Collection[str]) -> tuple[Hold, ...]:
        """All holds on one of these labels."""
        return _by_weight(hold for hold in self.holds if hold.scope is Scope.LABEL and single_label(hold.name) in labels)

    def holds_on_label(self, label: str | None) -> tuple[Hold, ...]:
        """All holds on an item with this label expression: on the expression itself, or on a label that it requires."""
        return _by_weight(hold for hold in self.holds if hold.scope is Scope.LABEL and asks_for(label, hold.name))


def _by_weight(holds: Iterable[Hold]) -> tuple[Hold, ...]:
    return tuple(sorted(holds, key=lambda hold: (not hold.freeze, -inf if hold.ends_at is None else -hold.ends_at)))


def _month_end(at: float) -> float:
    """Return when the month of a moment ends, in UTC as AWS' budgets count it."""
    day = datetime.fromtimestamp(at, UTC)
    return datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC).timestamp()


def text_of(holds: Iterable[Hold], now: float) -> str:
    """Say of each hold which scope it is on, until when, by whom and why."""
    return "; ".join(hold.text(now) for hold in holds)


def unknown_orders(version: int) -> Overrides:
    """Replace unreadable orders by a hold on the fleet until somebody resumes: nobody knows what was on hold."""
    reason = "what operators have ordered cannot be read; resume the fleet, and order anew what should stand"
    everything = Hold(scope=Scope.FLEET, name="", since_at=0.0, until_at=None, by=_NOBODY, reason=reason)
    return Overrides(version=version, holds=(everything,))


def asks_for(expression: str | None, label: str) -> bool:
    """Tell whether an expression is this label or expression, or requires the label."""
    if expression is None:
        return False
    try:
        parsed, wanted = parse(expression), parse(label)
    except LabelSyntaxError:
        return expression in {label, single_label(label)}
    only = single_label(label)
    # A label that is only excluded is not asked for: a node without any other label would do.
    return parsed.name == wanted.name or (only in parsed.atoms and not parsed.matches(parsed.atoms - {only}))


def single_label(text: str) -> str | None:
    """Read the one label that a text names; None if it is an expression of several, or of what a node must not have."""
    try:
        parsed = parse(text)
    except LabelSyntaxError:
        return text  # as Jenkins takes it
    label, *others = parsed.atoms
    return None if others or not parsed.matches({label}) or parsed.matches(()) else label


def hold(overrides: Overrides, new: Hold) -> Overrides:
    """Add a hold, in place of the one of the same kind that its author has there. Those of others stay."""
    kept = tuple(hold for hold in overrides.holds if (hold.place, hold.by, hold.freeze) != (new.place, new.by, new.freeze))
    return replace(overrides, holds=(*kept, new))


def resume(overrides: Overrides, scope: Scope, name: str) -> Overrides:
    """Lift all holds of people there. Holds elsewhere stay, and so does the budget's."""
    return replace(overrides, holds=tuple(hold for hold in overrides.holds if hold.is_budget or hold.place != (scope, name)))


def resume_budget(overrides: Overrides) -> Overrides:
    """Lift the AWS budget's hold alone."""
    return replace(overrides, holds=tuple(hold for hold in overrides.holds if not hold.is_budget))


def override_pool(overrides: Overrides, new: PoolOverride) -> Overrides:
    """Add overrides of a pool, in place of earlier ones; without numbers, restore the fleet file's."""
    kept = tuple(known for known in overrides.numbers if known.pool != new.pool)
    return replace(overrides, numbers=(*kept, new) if new.given else kept)


def override_team(overrides: Overrides, new: TeamOverride) -> Overrides:
    """Add overrides of a team, in place of earlier ones; without numbers, restore the fleet file's."""
    kept = tuple(known for known in overrides.teams if known.team != new.team)
    return replace(overrides, teams=(*kept, new) if new.given else kept)


def in_force(fleet: Fleet, overrides: Overrides) -> Fleet:
    """Return the fleet with the active overrides. While the AWS budget is spent, no pool keeps agents without demand."""
    pools = {numbers.pool: _with(fleet.pools[numbers.pool], numbers) for numbers in overrides.numbers if numbers.pool in fleet.pools}
    teams = {
        numbers.team: replace(team, ceilings=replace(team.ceilings, **numbers.given))
        for numbers in overrides.teams
        if (team := fleet.teams.get(numbers.team))
    }
    if any(hold.is_budget for hold in overrides.holds):
        pools = {name: replace(pool, min_agents=0, warm_executors=0, warm_pool=None) for name, pool in {**fleet.pools, **pools}.items()}
    fleet = with_held_labels(fleet, overrides)
    if not pools and not teams:
        return fleet
    return replace(fleet, pools={**fleet.pools, **pools}, teams={**fleet.teams, **teams})


def with_held_labels(fleet: Fleet, overrides: Overrides) -> Fleet:
    """Return the fleet with the labels that people hold. The label by which we know our nodes stays."""
    held = overrides.held_labels - {fleet.ownership_label} if overrides.holds else frozenset[str]()
    return fleet if held == fleet.held_labels else replace(fleet, held_labels=held)


def _with(pool: Pool, numbers: PoolOverride) -> Pool:
    given = numbers.given
    return replace(
        pool,
        min_agents=given.get("min_agents", pool.min_agents),
        max_agents=given.get("max_agents", pool.max_agents),
        warm_executors=given.get("warm_executors", pool.warm_executors),
        warm_pool=_stopped_at_most(pool.warm_pool, given.get("max_stopped")),
    )


def _stopped_at_most(warm: WarmPool | None, most: int | None) -> WarmPool | None:
    """Return a warm pool of so many agents at most; None: it keeps none."""
    if warm is None or most is None:
        return warm
    return replace(warm, max_agents=most, min_agents=min(warm.min_agents, most)) if most else None


# Orders of a person.


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
