"""What a person may ask `operate` for (design 6.5), checked: what is wrong is refused with the field and the rule, and does nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import DrainNodes, DrainSome, Purge, Resume
from autoscaler.domain.facts.overrides import Hold, Overrides, PoolOverride, Scope, hold, override_pool
from autoscaler.errors import ConfigError
from autoscaler.events import Manual, RequestId, Text, checked, known_pool, read_scale_down

_Minutes = Annotated[float, Field(gt=0, le=10_080)]  # a week
_Count = Annotated[int, Field(ge=0, le=10_000)]
_REASON_CHARACTERS = 300
_SOMEBODY = "somebody who did not say who"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Of what stands, as seen at that moment."""

    of: Callable[[Overrides], Overrides]


@dataclass(frozen=True, slots=True)
class LookAhead:
    """What would be done now."""


@dataclass(frozen=True, slots=True)
class LookAround:
    """How the fleet stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Why something is as it is: a job, a node or a pool."""

    subject: str


@dataclass(frozen=True, slots=True)
class Examine:
    """Whether the functions can reach and do all that they need."""


Operation = Change | Resume | DrainSome | DrainNodes | Purge | LookAhead | LookAround | Ask | Examine


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A checked event of ``operate``."""

    action: str
    operation: Operation
    by: str
    reason: str
    dry_run: bool
    request_id: str | None


class _Order(Manual):
    by: Text = _SOMEBODY


class _Scoped(_Order):
    """On one pool, controller or label; on none of them: on the whole fleet."""

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
            return Scope.POOL, known_pool(fleet, self.pool)
        if self.controller is not None:
            return Scope.CONTROLLER, _known_controller(fleet, self.controller)
        return (Scope.LABEL, self.label) if self.label is not None else (Scope.FLEET, "")


class _Hold(_Scoped):
    action: Literal["hold"]
    minutes: _Minutes = 60.0
    until_resumed: bool = False
    freeze: bool = False


class _Resume(_Scoped):
    action: Literal["resume"]
    nodes: Annotated[list[Text], Field(max_length=1000, default_factory=list)]


class _Set(_Order):
    action: Literal["set"]
    pool: Text
    minutes: _Minutes = 60.0
    min_agents: _Count | None = None
    max_agents: _Count | None = None
    warm_executors: _Count | None = None


class _Drain(_Order):
    action: Literal["drain"]
    pool: Text | None = None
    count: int | None = None
    controller: Text | None = None
    nodes: list[Text] | None = None


class _Purge(_Order):
    action: Literal["purge"]
    label: Text
    controller: Text | None = None


class _Plan(_Order):
    action: Literal["plan"]


class _Status(_Order):
    action: Literal["status"]


class _Doctor(_Order):
    action: Literal["doctor"]


class _Why(_Order):
    action: Literal["why"]
    subject: Text


class _Message(BaseModel):
    """What SNS tells of a message; what it says is for people."""

    model_config = ConfigDict(extra="ignore")
    MessageId: RequestId
    Subject: str | None = None


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")
    EventSource: Literal["aws:sns"]
    Sns: _Message


class _Messages(BaseModel):
    Records: Annotated[list[_Record], Field(min_length=1, max_length=1)]  # SNS never sends more


class _Action(BaseModel):
    action: Literal["hold", "resume", "set", "drain", "purge", "plan", "status", "why", "doctor"]


def read_operation(event: Any, fleet: Fleet, now: float) -> Asked:
    """Read an event of ``operate``."""
    event = _of_budget(event) if isinstance(event, dict) and "Records" in event else event
    action = checked(_Action, event).action
    return _READERS[action](event, fleet, now)


def _of_budget(event: Any) -> dict[str, Any]:
    """Read a message of the AWS budget: launches are on hold until somebody resumes. Sent again, it is the same request."""
    message = checked(_Messages, event).Records[0].Sns
    return {
        "action": "hold",
        "until_resumed": True,
        "by": "aws-budget",
        "reason": " ".join((message.Subject or "the AWS budget is spent").split())[:_REASON_CHARACTERS],
        "request_id": message.MessageId,
    }


def _read_hold(event: Any, fleet: Fleet, now: float) -> Asked:
    asked = checked(_Hold, event)
    scope, name = asked.place(fleet)
    if asked.freeze and scope is Scope.LABEL:
        raise ConfigError("event refused: freeze (true): a label can be held, not frozen: items are not touched")
    until_at = None if asked.until_resumed else now + asked.minutes * 60.0
    new = Hold(scope=scope, name=name, since_at=now, until_at=until_at, by=asked.by, reason=asked.reason, freeze=asked.freeze)
    return _asked(asked.action, asked, Change(of=partial(hold, new=new)))


def _read_resume(event: Any, fleet: Fleet, _now: float) -> Asked:
    asked = checked(_Resume, event)
    scope, name = asked.place(fleet)
    return _asked(asked.action, asked, Resume(scope=scope, name=name, nodes=tuple(asked.nodes), reason=asked.reason))


def _read_set(event: Any, fleet: Fleet, now: float) -> Asked:
    asked = checked(_Set, event)
    pool = fleet.pools[known_pool(fleet, asked.pool)]
    least, most = (given if given is not None else known for given, known in _pairs(asked, pool))
    if least > most:
        raise ConfigError(f"event refused: min_agents ({least}): must be at most max_agents ({most})")
    new = PoolOverride(
        pool=asked.pool,
        since_at=now,
        until_at=now + asked.minutes * 60.0,
        by=asked.by,
        reason=asked.reason,
        min_agents=asked.min_agents,
        max_agents=asked.max_agents,
        warm_executors=asked.warm_executors,
    )
    return _asked(asked.action, asked, Change(of=partial(override_pool, new=new)))


def _read_drain(event: Any, fleet: Fleet, _now: float) -> Asked:
    asked = checked(_Drain, event)
    plain = asked.model_dump(exclude={"action", "by"}, exclude_unset=True)
    order = read_scale_down(plain, fleet).order
    if not isinstance(order, DrainSome | DrainNodes):
        raise ConfigError("event refused: nodes: missing, and so are pool and count")
    return _asked(asked.action, asked, order)


def _read_purge(event: Any, fleet: Fleet, _now: float) -> Asked:
    asked = checked(_Purge, event)
    controller = None if asked.controller is None else _known_controller(fleet, asked.controller)
    return _asked(asked.action, asked, Purge(label=asked.label, controller=controller, reason=asked.reason))


def _read_plan(event: Any, _fleet: Fleet, _now: float) -> Asked:
    asked = checked(_Plan, event)
    return _asked(asked.action, asked, LookAhead())


def _read_status(event: Any, _fleet: Fleet, _now: float) -> Asked:
    asked = checked(_Status, event)
    return _asked(asked.action, asked, LookAround())


def _read_why(event: Any, _fleet: Fleet, _now: float) -> Asked:
    asked = checked(_Why, event)
    return _asked(asked.action, asked, Ask(subject=asked.subject))


def _read_doctor(event: Any, _fleet: Fleet, _now: float) -> Asked:
    asked = checked(_Doctor, event)
    return _asked(asked.action, asked, Examine())


_READERS: dict[str, Callable[[Any, Fleet, float], Asked]] = {
    "hold": _read_hold,
    "resume": _read_resume,
    "set": _read_set,
    "drain": _read_drain,
    "purge": _read_purge,
    "plan": _read_plan,
    "status": _read_status,
    "why": _read_why,
    "doctor": _read_doctor,
}


def _asked(action: str, order: _Order, operation: Operation) -> Asked:
    return Asked(action=action, operation=operation, by=order.by, reason=order.reason, dry_run=order.dry_run, request_id=order.request_id)


def _pairs(asked: _Set, pool: Any) -> tuple[tuple[int | None, int], tuple[int | None, int]]:
    return (asked.min_agents, pool.min_agents), (asked.max_agents, pool.max_agents)


def _known_controller(fleet: Fleet, controller: str) -> str:
    if controller not in fleet.controllers:
        raise ConfigError(f"event refused: controller ({controller}): is not one of the controllers ({', '.join(fleet.controllers)})")
    return controller
