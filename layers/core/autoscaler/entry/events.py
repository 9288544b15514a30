"""Reads the events of scheduled functions: a tick, or a person's. Others are refused in one line, and nothing is done."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Protocol, TypeVar

from aws_lambda_powertools.utilities.parser.models import EventBridgeModel
from pydantic import AwareDatetime, BaseModel, ConfigDict, Discriminator, Field, Json, StringConstraints, Tag, TypeAdapter, ValidationError

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import DrainNodes, DrainSome, LaunchSome
from autoscaler.domain.wording import shortened
from autoscaler.errors import EventRefusedError
from autoscaler.telemetry import log

# The world has moved on since a tick as old as this, and the next one is on its way.
STALE_TICK_SECONDS = 90.0

RequestId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
# Logs, plans and terminals show it: no line breaks, no control characters.
Text = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\p{Cc}\p{Zl}\p{Zp}]+$")]
Order = LaunchSome | DrainSome | DrainNodes
T = TypeVar("T")


class _Tick(EventBridgeModel):
    """A tick of the schedule."""

    time: AwareDatetime


class Manual(BaseModel):
    """The fields that every manual event accepts."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    dry_run: bool = False
    request_id: RequestId | None = None
    reason: Text = "asked for by a person"


class _Pass(Manual):
    """An ordinary pass, now."""

    def order(self, _fleet: Fleet) -> Order | None:
        return None


class _SomeOfPool(_Pass):
    pool: Text
    count: Annotated[int, Field(ge=1, le=1000)]
    controller: Text | None = None

    def _facts(self, fleet: Fleet, *, one_controller: bool) -> dict[str, Any]:
        pool = known("pool", self.pool, fleet.pools)
        controller = served_controller(fleet, pool, self.controller, one=one_controller)
        return {"pool": pool, "count": self.count, "controller": controller, "reason": self.reason, "request_id": self.request_id}


class _Launch(_SomeOfPool):
    keep_minutes: Annotated[float, Field(ge=0, le=10_080)] = 0.0

    def order(self, fleet: Fleet) -> LaunchSome:
        return LaunchSome(keep_seconds=self.keep_minutes * 60.0, **self._facts(fleet, one_controller=True))


class _DrainSome(_SomeOfPool):
    def order(self, fleet: Fleet) -> DrainSome:
        return DrainSome(**self._facts(fleet, one_controller=False))


class _DrainNodes(_Pass):
    nodes: Annotated[list[Text], Field(min_length=1, max_length=1000)]

    def order(self, _fleet: Fleet) -> DrainNodes:
        return DrainNodes(nodes=tuple(self.nodes), reason=self.reason, request_id=self.request_id)


def _by_key(**tags: str) -> Discriminator:
    """Tell the shapes of an event apart: a tick, or by the first of these keys that the event has, or an ordinary pass."""

    def tag_of(event: Any) -> str:
        if not isinstance(event, Mapping):
            return "pass"
        if event.get("detail-type") == "Scheduled Event":
            return "tick"
        return next((tag for key, tag in tags.items() if key in event), "pass")

    return Discriminator(tag_of)


# Importing Powertools' EventBridgeModel takes 5 ms of processor time of 430 ms for a handler
# (python -X importtime; make bench ONLY=cold for the whole start).
Shapes = TypeAdapter[_Tick | _Pass]
_TickOrPass = Annotated[_Tick, Tag("tick")] | Annotated[_Pass, Tag("pass")]
TICK: Shapes = TypeAdapter(Annotated[_TickOrPass, _by_key()])
SCALE_UP: Shapes = TypeAdapter(Annotated[_TickOrPass | Annotated[_Launch, Tag("launch")], _by_key(pool="launch", count="launch")])
SCALE_DOWN: Shapes = TypeAdapter(
    Annotated[
        _TickOrPass | Annotated[_DrainNodes, Tag("nodes")] | Annotated[_DrainSome, Tag("some")],
        _by_key(nodes="nodes", pool="some", count="some"),
    ]
)


class Woken(BaseModel):
    """What a message of the queue says: whose turn it is to look, and when it was to come."""

    slot: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,8}#[0-9]{1,12}$")]
    at: Annotated[float, Field(allow_inf_nan=False)]


class _Message(BaseModel):
    body: Json[Woken]


class _Messages(BaseModel):
    records: Annotated[list[_Message], Field(alias="Records", min_length=1, max_length=1)]


def read_woken(event: Any) -> Woken:
    """Read the one message of an event of SQS."""
    [message] = checked(TypeAdapter(_Messages), event).records
    return message.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A checked event. ``order`` None: an ordinary pass; ``tick_at``: the schedule's time, None for a person's event."""

    order: Order | None
    dry_run: bool
    tick_at: float | None

    @property
    def by_a_person(self) -> bool:
        """Tell whether somebody waits for the answer."""
        return self.tick_at is None

    def stale(self, now: float) -> bool:
        """Tell whether the tick is too old to act on."""
        return self.tick_at is not None and now - self.tick_at > STALE_TICK_SECONDS


def read_trigger(shapes: Shapes, event: Any, fleet: Fleet) -> Trigger:
    """Read an event of a scheduled function as one of the shapes that it takes."""
    read = checked(shapes, event, tags=1)
    if isinstance(read, _Tick):
        return Trigger(order=None, dry_run=False, tick_at=read.time.timestamp())
    return Trigger(order=read.order(fleet), dry_run=read.dry_run, tick_at=None)


def checked(shape: TypeAdapter[T], event: Any, *, tags: int = 0) -> T:
    """Check an event's shape; `ConfigError` names the field, the value and the rule. ``tags``: how many precede a field's name."""
    try:
        return shape.validate_python({} if event is None else event)
    except ValidationError as error:
        from autoscaler.config.findings import one_line  # noqa: PLC0415 - for an error only

        raise EventRefusedError(f"event refused: {one_line(error, tags)}") from None
    except RecursionError:
        raise EventRefusedError("event refused: its lists and objects are nested too deeply") from None


def known(field: str, name: str, names: Collection[str], what: str = "") -> str:
    """Return a name if the fleet file has it. ``what``: the kind of these names, if the field has another name than that."""
    if name not in names:
        raise EventRefusedError(f"event refused: {field} ({shortened(name)}): is not one of the {what or field}s ({', '.join(names)})")
    return name


def served_controller(fleet: Fleet, pool: str, controller: str | None, *, one: bool) -> str | None:
    """Return the controller, if the pool serves it. ``one``: None is refused where the pool serves several."""
    serves = fleet.pools[pool].controllers
    if controller is not None and controller not in serves:
        raise EventRefusedError(f"event refused: controller ({shortened(controller)}): pool {pool} serves {', '.join(serves)}")
    if controller is None and one and len(serves) > 1:
        raise EventRefusedError(f"event refused: controller: missing, and pool {pool} serves {', '.join(serves)}")
    return controller


# The context that Lambda hands to a handler.


class Context(Protocol):
    """The part of Lambda's context that is used."""

    @property
    def aws_request_id(self) -> str:
        """Return the id of the invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda cuts the invocation off."""


# Answers who sent an event that is refused. It is no error of the function: errors ring an alarm, and a typo shall not.


Handler = Callable[[Any, Context], dict[str, Any]]


def answers_refusals(handle: Handler) -> Handler:
    """Let a handler answer ``{"refused": line}`` to a person. What AWS itself sends and we cannot read stays an error."""

    @wraps(handle)
    def answered(event: Any, context: Context) -> dict[str, Any]:
        try:
            return handle(event, context)
        except EventRefusedError as refusal:
            # EventBridge, SQS and SNS: each of their events has one of these keys.
            if isinstance(event, Mapping) and ("detail-type" in event or "Records" in event):
                raise
            log("event_refused", error=str(refusal))
            return {"refused": str(refusal)}

    return answered
