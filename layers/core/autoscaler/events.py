"""What triggers a function: a tick of the schedule, or what a person asked for. Anything else is refused, and does nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from autoscaler.config import one_line
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import DrainNodes, DrainSome, LaunchSome
from autoscaler.domain.repair.interruption import Announced, InstanceEvent
from autoscaler.domain.report.registration import Caller
from autoscaler.errors import ConfigError

# A schedule tick older than this tells of a world that is gone; the next one is on its way.
STALE_TICK_SECONDS = 90.0

RequestId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
# It stands in logs, plans and terminals: no line breaks, no control characters.
Text = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\p{Cc}\p{Zl}\p{Zp}]+$")]
Order = LaunchSome | DrainSome | DrainNodes
Model = TypeVar("Model", bound=BaseModel)


class Manual(BaseModel):
    """What every manual event accepts."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dry_run: bool = False
    request_id: RequestId | None = None
    reason: Text = "asked for by a person"


class _Now(Manual):
    """A pass, now."""


class _Launch(Manual):
    pool: Text
    count: Annotated[int, Field(ge=1, le=1000)]
    controller: Text | None = None
    keep_minutes: Annotated[float, Field(ge=0, le=10_080)] = 0.0


class _Doctor(Manual):
    action: Literal["doctor"]


class _DrainSome(Manual):
    pool: Text
    count: Annotated[int, Field(ge=1, le=1000)]
    controller: Text | None = None


class _DrainNodes(Manual):
    nodes: Annotated[list[Text], Field(min_length=1, max_length=1000)]


class _Tick(BaseModel):
    """EventBridge's scheduled event."""

    model_config = ConfigDict(extra="ignore")

    time: datetime


class _Iam(BaseModel):
    """Whom AWS authenticated on a function URL. What the caller itself sent, its body above all, is not even read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    accountId: str  # noqa: N815 - AWS' spelling, here and below
    userArn: Annotated[str, StringConstraints(pattern=r"^arn:[a-z-]+:sts::[0-9]{12}:assumed-role/[^/]+/[^/]+$")]  # noqa: N815
    userId: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]+:.+$")]  # noqa: N815


class _Authorizer(BaseModel):
    iam: _Iam


class _RequestContext(BaseModel):
    authorizer: _Authorizer


class _UrlRequest(BaseModel):
    requestContext: _RequestContext  # noqa: N815


class _Detail(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    instance_id: Annotated[str, Field(alias="instance-id", pattern=r"^i-[0-9a-f]{8,17}$")]


class _Announcement(BaseModel):
    """EventBridge's event of one instance."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    detail_type: Annotated[str, Field(alias="detail-type")]
    detail: _Detail


_ANNOUNCED = {
    "EC2 Spot Instance Interruption Warning": Announced.INTERRUPTION,
    "EC2 Instance Rebalance Recommendation": Announced.REBALANCE,
    "EC2 Instance State-change Notification": Announced.STATE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A checked event. ``order`` None: one ordinary pass. ``tick_at``: when the schedule meant it; None: by a person."""

    order: Order | None
    dry_run: bool
    tick_at: float | None

    @property
    def by_a_person(self) -> bool:
        """Somebody waits for the answer."""
        return self.tick_at is None

    def stale(self, now: float) -> bool:
        """Tell whether this tick comes from a past that is gone."""
        return self.tick_at is not None and now - self.tick_at > STALE_TICK_SECONDS


def read_doctor(event: Any) -> bool:
    """Read what the doctor asks of ``scale_up``; whether it is a dry run, which this always is."""
    return checked(_Doctor, event).dry_run


def read_tick(event: Any, _fleet: Fleet) -> Command:
    """Read an event of a function that knows no manual events but a pass now."""
    return _scheduled(event) or _plain(checked(_Now, event))


def read_scale_up(event: Any, fleet: Fleet) -> Command:
    """Read an event of ``scale_up``."""
    if tick := _scheduled(event):
        return tick
    if not _has(event, "pool", "count"):
        return _plain(checked(_Now, event))
    asked = checked(_Launch, event)
    order = LaunchSome(
        pool=known_pool(fleet, asked.pool),
        count=asked.count,
        controller=known_controller(fleet, asked.pool, asked.controller, required=True),
        keep_seconds=asked.keep_minutes * 60.0,
        reason=asked.reason,
        request_id=asked.request_id,
    )
    return Command(order=order, dry_run=asked.dry_run, tick_at=None)


def read_scale_down(event: Any, fleet: Fleet) -> Command:
    """Read an event of ``scale_down``."""
    if tick := _scheduled(event):
        return tick
    if _has(event, "nodes"):
        nodes = checked(_DrainNodes, event)
        order: Order = DrainNodes(nodes=tuple(nodes.nodes), reason=nodes.reason, request_id=nodes.request_id)
        return Command(order=order, dry_run=nodes.dry_run, tick_at=None)
    if not _has(event, "pool", "count"):
        return _plain(checked(_Now, event))
    some = checked(_DrainSome, event)
    order = DrainSome(
        pool=known_pool(fleet, some.pool),
        count=some.count,
        controller=known_controller(fleet, some.pool, some.controller, required=False),
        reason=some.reason,
        request_id=some.request_id,
    )
    return Command(order=order, dry_run=some.dry_run, tick_at=None)


def read_instance_event(event: Any) -> InstanceEvent:
    """Read an announcement of EC2."""
    announcement = checked(_Announcement, event)
    kind = _ANNOUNCED.get(announcement.detail_type)
    if kind is None:
        raise ConfigError(f"event refused: detail-type ({announcement.detail_type}): must be one of {', '.join(_ANNOUNCED)}")
    return InstanceEvent(kind=kind, instance_id=announcement.detail.instance_id)


def read_caller(event: Any) -> Caller:
    """Read who calls the function URL: the role by its unique id, the session as both of AWS' fields have it."""
    iam = checked(_UrlRequest, event).requestContext.authorizer.iam
    role_id, _, session = iam.userId.partition(":")
    if iam.userArn.rpartition("/")[2] != session:
        raise ConfigError("event refused: userArn and userId name different sessions")
    return Caller(account=iam.accountId, role_id=role_id, session=session)


def _scheduled(event: Any) -> Command | None:
    if not _has(event, "detail-type") or event["detail-type"] != "Scheduled Event":
        return None
    return Command(order=None, dry_run=False, tick_at=checked(_Tick, event).time.timestamp())


def _plain(now: Manual) -> Command:
    return Command(order=None, dry_run=now.dry_run, tick_at=None)


def _has(event: Any, *keys: str) -> bool:
    return isinstance(event, Mapping) and any(key in event for key in keys)


def checked(model: type[Model], event: Any) -> Model:
    """Check an event's shape; `ConfigError` names the field, the value and the rule."""
    try:
        return TypeAdapter(model).validate_python({} if event is None else event)
    except ValidationError as error:
        raise ConfigError(f"event refused: {one_line(error)}") from None


def known_pool(fleet: Fleet, pool: str) -> str:
    """The pool, if there is one of this name."""
    if pool not in fleet.pools:
        raise ConfigError(f"event refused: pool ({pool}): is not one of the pools ({', '.join(fleet.pools)})")
    return pool


def known_controller(fleet: Fleet, pool: str, controller: str | None, *, required: bool) -> str | None:
    """The controller, if the pool serves it; None is fine where there is no choice to make, or none has to be made."""
    serves = fleet.pools[pool].controllers
    if controller is not None and controller not in serves:
        raise ConfigError(f"event refused: controller ({controller}): pool {pool} serves {', '.join(serves)}")
    if controller is None and required and len(serves) > 1:
        raise ConfigError(f"event refused: controller: missing, and pool {pool} serves {', '.join(serves)}")
    return controller
