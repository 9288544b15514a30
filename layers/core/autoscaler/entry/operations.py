"""Reads the events of ``operate``, from a person or the AWS budget: one model an action."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter, model_validator

from autoscaler.config.sections import PARAMETER_NAME, Usd
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import (
    BUDGET,
    POOL_NUMBERS,
    TEAM_NUMBERS,
    CloseBreaker,
    DrainAll,
    DrainNodes,
    DrainSome,
    EndInstance,
    Hold,
    PoolOverride,
    Purge,
    Release,
    Reserve,
    Resume,
    ResumeBudget,
    Scope,
    TeamOverride,
)
from autoscaler.domain.facts.pools import pool_at
from autoscaler.domain.facts.started_builds import Until
from autoscaler.domain.labels import LabelSyntaxError, parse
from autoscaler.domain.report.costs import By
from autoscaler.domain.run_orders.choice import Asked, CancelRun, Choose, OrderRuns, Vary
from autoscaler.domain.run_orders.criteria import ConditionError, read_condition
from autoscaler.domain.wording import shortened
from autoscaler.entry.events import SCALE_DOWN, Manual, RequestId, Text, checked, known, read_trigger, served_controller
from autoscaler.errors import EventRefusedError

T = TypeVar("T")

# What every event of ``operate`` is: an order, which it makes for the domain, or a question.


_OfAgents = DrainSome | DrainNodes | DrainAll | Reserve | Release | EndInstance
FleetOrder = Hold | Resume | ResumeBudget | CloseBreaker | PoolOverride | TeamOverride | Purge | _OfAgents
Order = FleetOrder | OrderRuns | CancelRun


class Operation(Manual):
    """The fields that every action accepts; ``order`` makes one for the domain, and a question has none."""

    action: str
    by: Text = "somebody who did not say who"

    @property
    def is_order(self) -> bool:
        """Tell whether it orders something, whatever the fleet file says to that."""
        return type(self).order is not Operation.order

    def order(self, _fleet: Fleet, _now: float) -> Order | None:
        """Check what the fleet file must know, and translate."""
        return None


# Reads the events of ``operate`` about runs that people order.


_RunCount = Annotated[int, Field(ge=0, le=100)]
_Name = Annotated[str, Field(pattern=PARAMETER_NAME)]


class Run(Operation):
    """Order builds of a job on machines that are chosen for them."""

    action: Literal["run"]
    job: Text
    parameters: Annotated[dict[_Name, Annotated[str, Field(max_length=10_000)]], Field(max_length=100, default_factory=dict)]
    on: Annotated[str, Field(max_length=1000)] | None = None
    where: Annotated[list[Text], Field(max_length=20, default_factory=list)]
    runs: Annotated[int, Field(ge=1, le=100)] = 1
    vary: Vary | None = Field(None, strict=False)
    same: bool = False
    strict: bool = False
    choose: Choose = Field(Choose.SOONEST, strict=False)
    until: Until = Field(Until.EACH, strict=False)
    resubmit: _RunCount = 1
    replace: _RunCount | None = None
    controller: Text | None = None

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.same and self.vary is not None:
            raise ValueError("only one of same and vary can be given")
        if self.strict and self.vary is None:
            raise ValueError("strict (true): needs vary, which says in what runs differ")
        if self.replace is not None and self.until is Until.EACH:
            raise ValueError("replace: is of gangs only, whose until is all or first-success")
        return self

    def order(self, fleet: Fleet, _now: float) -> OrderRuns:
        """Check what the fleet file must know, and translate."""
        return OrderRuns(
            asked=Asked(
                controller=_known_controller(fleet, self.controller),
                job=self.job.strip("/"),
                runs=self.runs,
                expression=_read("on", self.on, parse) if self.on and self.on.strip() else None,
                conditions=tuple(_read("where", text, read_condition) for text in self.where),
                vary=self.vary,
                same=self.same,
                strict=self.strict,
                choose=self.choose,
            ),
            parameters=tuple(sorted(self.parameters.items())),
            until=self.until,
            resubmit=self.resubmit,
            replace=self.replace,
            by=self.by,
            reason=self.reason,
            request_id=self.request_id or "",
        )


class CancelsRun(Operation):
    """End an order."""

    action: Literal["cancel-run"]
    id: Text

    def order(self, _fleet: Fleet, _now: float) -> CancelRun:
        """Translate."""
        return CancelRun(id=self.id, by=self.by, reason=self.reason)


class Runs(Operation):
    """The question what has become of the runs that were ordered; of all, or of one."""

    action: Literal["runs"]
    id: Text | None = None
    most: Annotated[int, Field(ge=1, le=500)] = 50


def _read(field: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except (LabelSyntaxError, ConditionError) as error:
        raise EventRefusedError(f"event refused: {field} ({shortened(text)}): {error}") from error


# Reads orders and questions about agents, pools and the fleet.


_Minutes = Annotated[float, Field(gt=0, le=10_080)]  # a week
_Count = Annotated[int, Field(ge=0, le=10_000)]
_REASON_CHARACTERS = 300


class _Scoped(Operation):
    """An action on one pool, controller or label; without any, on the whole fleet."""

    pool: Text | None = None
    controller: Text | None = None
    label: Text | None = None

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        if sum(name is not None for name in (self.pool, self.controller, self.label)) > 1:
            raise ValueError("only one of pool, controller and label can be given")
        return self

    def place(self, fleet: Fleet) -> tuple[Scope, str]:
        if self.pool is not None:
            return Scope.POOL, known("pool", self.pool, fleet.pools)
        if self.controller is not None:
            return Scope.CONTROLLER, known("controller", self.controller, fleet.controllers)
        return (Scope.LABEL, self.label) if self.label is not None else (Scope.FLEET, "")


class _Hold(_Scoped):
    action: Literal["hold"]
    minutes: _Minutes = 60.0
    until_resumed: bool = False
    freeze: bool = False

    def order(self, fleet: Fleet, now: float) -> Hold:
        scope, name = self.place(fleet)
        if self.freeze and scope is Scope.LABEL:
            raise EventRefusedError("event refused: freeze (true): a label can be held, not frozen: items are not touched")
        until_at = None if self.until_resumed else now + self.minutes * 60.0
        return Hold(scope=scope, name=name, since_at=now, until_at=until_at, by=self.by, reason=self.reason, freeze=self.freeze)


class _Resume(_Scoped):
    action: Literal["resume"]
    nodes: Annotated[list[Text], Field(max_length=1000, default_factory=list)]
    breaker: Text | None = None
    budget: bool = False

    @model_validator(mode="after")
    def _given_alone(self) -> Self:
        others = self.nodes or self.pool or self.controller or self.label
        if self.breaker is not None and (others or self.budget):
            raise ValueError("breaker names a pool, and is given alone")
        if self.budget and others:
            raise ValueError("budget is about the AWS budget's hold, and is given alone")
        return self

    def order(self, fleet: Fleet, _now: float) -> Resume | ResumeBudget | CloseBreaker:
        if self.budget:
            return ResumeBudget()
        if self.breaker is not None:
            return CloseBreaker(pool=known("breaker", self.breaker, fleet.pools, "pool"))
        scope, name = self.place(fleet)
        return Resume(scope=scope, name=name, nodes=tuple(self.nodes), reason=self.reason)


class _Set(Operation):
    action: Literal["set"]
    pool: Text | None = None
    team: Text | None = None
    minutes: _Minutes = 60.0
    min_agents: _Count | None = None
    max_agents: _Count | None = None
    warm_executors: _Count | None = None
    max_stopped: _Count | None = None
    max_launches_per_hour: _Count | None = None
    max_usd_per_hour: Usd | None = None
    max_usd_per_month: Usd | None = None

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if (self.pool is None) is (self.team is None):
            raise ValueError("pool: missing, and so is team" if self.pool is None else "only one of pool and team can be given")
        its, others = (POOL_NUMBERS, TEAM_NUMBERS) if self.team is None else (TEAM_NUMBERS, POOL_NUMBERS)
        if wrong := [name for name in others if name not in its and getattr(self, name) is not None]:
            raise ValueError(f"{wrong[0]}: can be set of a {'team' if self.team is None else 'pool'} only")
        return self

    def order(self, fleet: Fleet, now: float) -> PoolOverride | TeamOverride:
        until_at = now + self.minutes * 60.0
        if self.team is not None:
            if not fleet.teams:
                raise EventRefusedError(f"event refused: team ({shortened(self.team)}): is not a team, the fleet file has none")
            known("team", self.team, fleet.teams)
            return TeamOverride(since_at=now, until_at=until_at, **self.model_dump(include={"team", "by", "reason", *TEAM_NUMBERS}))
        pool = pool_at(fleet.pools[known("pool", self.pool or "", fleet.pools)], now)
        least = pool.min_agents if self.min_agents is None else self.min_agents
        most = pool.max_agents if self.max_agents is None else self.max_agents
        if least > most:
            raise EventRefusedError(f"event refused: min_agents ({least}): must be at most max_agents ({most})")
        return PoolOverride(since_at=now, until_at=until_at, **self.model_dump(include={"pool", "by", "reason", *POOL_NUMBERS}))


class _Drain(Operation):
    action: Literal["drain"]
    pool: Text | None = None
    count: int | None = None
    controller: Text | None = None
    nodes: list[Text] | None = None
    fleet: bool = False

    def order(self, fleet: Fleet, _now: float) -> DrainSome | DrainNodes | DrainAll:
        is_of_place = self.pool is not None or self.controller is not None
        is_of_agents = self.nodes is not None or self.count is not None
        if self.fleet and (is_of_place or is_of_agents):
            raise EventRefusedError("event refused: fleet (true): is the whole fleet, and is given alone")
        if (self.fleet or is_of_place) and not is_of_agents:
            return DrainAll(
                pool=None if self.pool is None else known("pool", self.pool, fleet.pools),
                controller=_known_controller(fleet, self.controller),
                reason=self.reason,
                request_id=self.request_id,
            )
        order = read_trigger(SCALE_DOWN, self.model_dump(exclude={"action", "by", "fleet"}, exclude_unset=True), fleet).order
        if not isinstance(order, DrainSome | DrainNodes):
            raise EventRefusedError("event refused: nodes: missing, and so are pool, controller and fleet")
        return order


class _Purge(Operation):
    action: Literal["purge"]
    label: Text
    controller: Text | None = None

    def order(self, fleet: Fleet, _now: float) -> Purge:
        return Purge(label=self.label, controller=_known_controller(fleet, self.controller), reason=self.reason)


class _Reserve(Operation):
    action: Literal["reserve"]
    target: Text
    hours: Annotated[float, Field(gt=0, le=168)] = 4.0
    person: Text
    controller: Text | None = None

    def order(self, fleet: Fleet, _now: float) -> Reserve:
        if self.target in fleet.pools:
            served_controller(fleet, self.target, self.controller, one=False)
        return Reserve(
            target=self.target,
            controller=self.controller,
            seconds=self.hours * 3600.0,
            person=self.person,
            by=self.by,
            reason=self.reason,
            request_id=self.request_id or "",
        )


class _Release(Operation):
    action: Literal["release"]
    target: Text
    person: Text | None = None

    def order(self, _fleet: Fleet, _now: float) -> Release:
        return Release(target=self.target, reason=self.reason, person=self.person)


class _End(Operation):
    action: Literal["end"]
    target: Text

    def order(self, _fleet: Fleet, _now: float) -> EndInstance:
        return EndInstance(target=self.target, reason=self.reason)


class _Look(Operation):
    """The question what there is, or what would be done: who has which agent, too."""

    action: Literal["plan", "status", "agents", "queue", "names", "overview", "reservations"]


class Doctor(Operation):
    """The question whether the functions can reach and do all that they need."""

    action: Literal["doctor"]


class About(Operation):
    """The question why a job, a node or a pool is as it is; or when a job's builds, or an item of the queue, will start and end."""

    action: Literal["why", "eta"]
    subject: Text


class Events(Operation):
    """The question what was done lately, and why; everywhere, or in one pool."""

    action: Literal["events"]
    hours: Annotated[float, Field(gt=0, le=336)] = 12.0
    pool: Text | None = None


class Jobs(Operation):
    """The question what is known of jobs, or what they need of their machines: those whose names match, or have this in them."""

    action: Literal["jobs", "needs"]
    pattern: Annotated[str, Field(max_length=500)] = "*"
    most: Annotated[int, Field(ge=1, le=2000)] = 200


class Costs(Operation):
    """The question what jobs cost in a month, in the last days, or on one day."""

    action: Literal["costs"]
    by: By = Field(By.JOB, strict=False)
    month: Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")] | None = None
    days: Annotated[int, Field(ge=1, le=62)] | None = None
    day: Annotated[str, Field(pattern=r"^(yesterday|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))$")] | None = None

    @model_validator(mode="after")
    def _of_one_span(self) -> Self:
        if sum(span is not None for span in (self.month, self.days, self.day)) > 1:
            raise ValueError("only one of month, days and day can be given")
        return self


_OPERATION: TypeAdapter[Operation] = TypeAdapter(
    Annotated[
        _Hold
        | _Resume
        | _Set
        | _Drain
        | _Purge
        | _Reserve
        | _Release
        | _Look
        | About
        | Events
        | Doctor
        | Jobs
        | Costs
        | _End
        | Run
        | Runs
        | CancelsRun,
        Field(discriminator="action"),
    ]
)


class _Sns(BaseModel):
    """The part of a message of SNS that is read. Powertools' model of it fails with a TypeError where this is not an object."""

    id: Annotated[RequestId, Field(alias="MessageId")]
    subject: Annotated[str | None, Field(alias="Subject")] = None
    sent: Annotated[AwareDatetime, Field(alias="Timestamp")]


class _SnsRecord(BaseModel):
    source: Annotated[Literal["aws:sns"], Field(alias="EventSource")]
    sns: Annotated[_Sns, Field(alias="Sns")]


class _BudgetMessage(BaseModel):
    records: Annotated[list[_SnsRecord], Field(alias="Records", min_length=1, max_length=1)]  # SNS never sends more


# SNS delivers within minutes. An older message is a sample that somebody sends by hand.
_BUDGET_MESSAGE_SECONDS = 86_400.0


class _BudgetSpent(Operation):
    """The AWS budget's order: hold launches until its month ends."""

    sent_at: float

    def order(self, _fleet: Fleet, now: float) -> Hold:
        # A message that is delivered after midnight is still about the month in which it was sent.
        since_at = self.sent_at if 0.0 <= now - self.sent_at < _BUDGET_MESSAGE_SECONDS else now
        return Hold(scope=Scope.FLEET, name="", since_at=since_at, until_at=None, by=self.by, reason=self.reason)


def read_operation(event: Any) -> Operation:
    """Read an event of ``operate``."""
    if isinstance(event, dict) and "Records" in event:
        return _budget_spent(event)
    operation = checked(_OPERATION, event, tags=1)
    if operation.by == BUDGET:
        raise EventRefusedError(f"event refused: by ({BUDGET}): only the AWS budget orders under this name")
    return operation


def _budget_spent(event: Any) -> "_BudgetSpent":
    """Read a message of the AWS budget as a hold on launches. The message id makes a repeated delivery the same request."""
    message = checked(TypeAdapter(_BudgetMessage), event).records[0].sns
    return _BudgetSpent(
        action="hold",
        by=BUDGET,
        # Whatever its subject is: launches are held.
        reason=shortened(" ".join((message.subject or "").split()), _REASON_CHARACTERS) or "the AWS budget is spent",
        request_id=message.id,
        sent_at=message.sent.timestamp(),
    )


def _known_controller(fleet: Fleet, controller: str | None) -> str | None:
    return None if controller is None else known("controller", controller, fleet.controllers)
