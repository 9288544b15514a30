"""Answers requests to the function URL, or to the HTTP API in its place, whose signature AWS has verified."""

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, create_model

from autoscaler import bootstrap
from autoscaler.control import registration
from autoscaler.control.granting import Connection
from autoscaler.control.registration import Heard
from autoscaler.domain.facts.telemetry import MOST_BUILDS, MOST_GPUS, BuildUse, Device, GpuUse, Telemetry, out_of_bounds
from autoscaler.domain.report.registration import (
    ASK_AGAIN_SECONDS,
    POLL_SECONDS,
    TOO_MANY_REQUESTS_WAIT_SECONDS,
    Asked,
    Caller,
    Refused,
    Status,
)
from autoscaler.domain.wording import shortened
from autoscaler.entry.events import checked
from autoscaler.errors import ConfigError, EventRefusedError
from autoscaler.telemetry import log

# Reads an agent's report about its machine. Anybody may have written it: it is bounded and checked, and nonsense is dropped.


_Amount = Annotated[float, Field(allow_inf_nan=False, strict=True)]  # its bounds: `out_of_bounds`
_Name = Annotated[str, StringConstraints(max_length=200)]
_Path = Annotated[str, StringConstraints(max_length=300, pattern=r"^job/")]
_Short = Annotated[str, StringConstraints(max_length=40)]


_KINDS: Mapping[Any, Any] = {float: _Amount, float | None: _Amount | None, bool: bool}


def _model_of(name: str, of: type[GpuUse | BuildUse | Telemetry | Device], **others: Any) -> Any:
    """Make the model that checks these facts: each figure is an amount. ``others``: what is no figure."""
    figures = [one for one in fields(of) if one.name != "told_at"]  # which no machine tells
    kinds = {one.name: others[one.name] if one.name in others else _KINDS[one.type] for one in figures}
    facts: dict[str, Any] = {one.name: (kinds[one.name], ... if one.default is MISSING else one.default) for one in figures}
    return create_model(name, __config__=ConfigDict(extra="ignore", frozen=True), **facts)  # a newer agent may tell more


_Gpu, _Build = _model_of("_Gpu", GpuUse), _model_of("_Build", BuildUse, node=_Name, executor=_Short, run=_Path)
_Report = _model_of(
    "_Report",
    Telemetry,
    gpus=Annotated[tuple[_Gpu, ...], Field(max_length=MOST_GPUS, fail_fast=True)],  # type: ignore[valid-type]
    builds=Annotated[tuple[_Build, ...], Field(max_length=MOST_BUILDS, fail_fast=True)],  # type: ignore[valid-type]
)


def read_telemetry(said: Any) -> Telemetry:
    """Check one report; `ConfigError` in one line, which never holds what was sent."""
    try:
        report = _Report.model_validate(said).model_dump()
    except ValidationError as error:
        [first, *_] = error.errors(include_input=False, include_url=False)
        place = shortened(".".join(str(part) for part in first["loc"]))
        raise ConfigError(f"telemetry {place}: {first['msg'][:200]}") from None
    gpus, builds = tuple(GpuUse(**gpu) for gpu in report.pop("gpus")), tuple(BuildUse(**build) for build in report.pop("builds"))
    telemetry = Telemetry(**report, gpus=gpus, builds=builds)
    if problem := out_of_bounds(telemetry):
        raise ConfigError(f"telemetry {problem}")
    return telemetry


# Answers requests for registration.


# What agents know our answers by: AWS answers a request that it denies with a 403 of its own, and a proxy may answer anything.
OURS = {"X-Autoscaler": "registration"}
_SIGNED = ("requestContext", "authorizer", "iam")


class _Caller(BaseModel):
    """The caller as AWS authenticated it. Only the body is read of what the caller itself sent; it identifies nobody.

    For that reason it is not Powertools' ``LambdaFunctionUrlModel``, which checks the caller's headers and body too, and demands a
    User-Agent: an instance that is refused here powers off.
    """

    model_config = ConfigDict(frozen=True)

    account: str = Field(validation_alias=AliasPath(*_SIGNED, "accountId"))
    arn: Annotated[str, StringConstraints(pattern=r"^arn:[a-z-]+:sts::[0-9]{12}:assumed-role/[^/]+/[^/]+$")] = Field(
        validation_alias=AliasPath(*_SIGNED, "userArn")
    )
    user: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]+:.+$")] = Field(validation_alias=AliasPath(*_SIGNED, "userId"))


_PROBLEM_CHARACTERS = 250
# An agent's own reports have 20 KB at the most. A build that has its keys may send 6 MB, which take seconds and a gigabyte to read.
MOST_BYTES = 65_536
_Text = Annotated[str, StringConstraints(max_length=300)]


_Device = _model_of("_Device", Device, id=_Text, kind=_Text, state=_Text, user=_Text)


class _Body(BaseModel):
    """What an agent says of itself. It is bounded, and whatever else it holds is not read."""

    connected: Annotated[tuple[_Text, ...], Field(max_length=50, fail_fast=True)] = ()
    problem: Any = ""
    devices: Annotated[tuple[_Device, ...], Field(max_length=64, fail_fast=True)] = ()  # type: ignore[valid-type]
    waiting: Annotated[int, Field(ge=0, le=10_000)] = 0
    telemetry: Any = None


def register(event: Any) -> dict[str, Any]:
    """Answer an instance that asks who it is. Neither the log nor a refusal ever holds a secret."""
    wired = bootstrap.runtime()
    try:
        caller = read_caller(event)
    except ConfigError as error:
        log("registration_refused", status=int(Status.FORBIDDEN), reason=str(error))
        return _url_answer(Status.FORBIDDEN, {"message": "the request is not signed by an instance"})
    answer = registration.register(wired.ports, wired.fleet, caller, bootstrap.trust(), read_body(event, caller))
    if isinstance(answer, Refused):
        log("registration_refused", instance_id=caller.session, status=int(answer.status), reason=answer.reason)
        # An instance is told what to do, not what broke here: builds may read it, and the log has it.
        return _url_answer(answer.status, {"message": "not now: ask again" if answer.status is Status.UNAVAILABLE else answer.reason})
    if isinstance(answer, Heard):
        return _url_answer(Status.REGISTERED, {"controller": answer.controller, "connections": [], "poll_seconds": POLL_SECONDS})
    for one in answer.connections:
        if one.secret is not None:
            log("registered", instance_id=caller.session, node=one.spec.name, controller=one.controller)
    spec = answer.connections[0].spec
    told = {
        "node": spec.name,
        "connections": [_connection_json(one) for one in answer.connections],
        "executors": spec.executors,
        "labels": list(spec.labels),
        "remote_dir": spec.remote_dir,
        "poll_seconds": answer.poll_seconds,
    } | ({"people": [{"person": one.person, "until": one.until_at} for one in answer.people]} if answer.people else {})
    return _url_answer(Status.REGISTERED, told)


def read_caller(event: Any) -> Caller:
    """Read the caller: its role by the unique id, its session as both of AWS' fields have it."""
    caller = checked(TypeAdapter(_Caller), event)
    role_id, _, session = caller.user.partition(":")
    if caller.arn.rpartition("/")[2] != session:
        raise EventRefusedError("event refused: userArn and userId name different sessions")
    return Caller(account=caller.account, role_id=role_id, session=session)


def read_body(event: Any, caller: Caller) -> Asked:
    """Read what an agent says of itself; nothing where it says nothing, or what cannot be read: it is told who it is all the same."""
    body, is_encoded = event.get("body"), event.get("isBase64Encoded")
    most_bytes = 4 * -(-MOST_BYTES // 3) if is_encoded else MOST_BYTES
    # It is told so without reading more of it than that.
    if isinstance(body, str) and len(body[: most_bytes + 1].encode(errors="surrogatepass")) > most_bytes:
        log("report_too_large", machine=caller.session, characters=len(body), most_bytes=MOST_BYTES)
        return registration.NOTHING_SAID
    try:
        said = _Body.model_validate_json(b64decode(body) if is_encoded else body)
    except (TypeError, ValueError):
        return registration.NOTHING_SAID
    # People read a line of it, in the machine's own words, in messages and on screens.
    words = " ".join(said.problem.split()) if isinstance(said.problem, str) else ""
    return Asked(
        connected=said.connected,
        problem="".join(letter for letter in words if letter.isprintable())[:_PROBLEM_CHARACTERS],
        devices=tuple(Device(**device) for device in said.model_dump(include={"devices"})["devices"]),
        waiting=said.waiting,
        telemetry=_telemetry(said.telemetry, caller),
    )


def _telemetry(said: Any, caller: Caller) -> Telemetry | None:
    """Read its report. One that makes no sense is dropped: the machine is told who it is all the same."""
    if said is None:
        return None
    try:
        return read_telemetry(said)
    except ConfigError as error:
        log("telemetry_refused", machine=caller.session, problem=str(error))
        return None


def _connection_json(told: Connection) -> dict[str, Any]:
    connection = {"controller": told.controller, "url": told.url, "name": told.spec.name, "life": told.life, "web_socket": True}
    secret = {} if told.secret is None else {"secret": told.secret}
    return connection | secret | ({"user": told.user, "remote_dir": told.spec.remote_dir} if told.user else {})


_ASKS_AGAIN_AFTER = {
    **dict.fromkeys((Status.TOO_EARLY, Status.NO_SLOT, Status.UNAVAILABLE), ASK_AGAIN_SECONDS),
    Status.TOO_MANY: TOO_MANY_REQUESTS_WAIT_SECONDS,
}


def _url_answer(status: Status, body: dict[str, Any]) -> dict[str, Any]:
    again = {"Retry-After": str(_ASKS_AGAIN_AFTER[status])} if status in _ASKS_AGAIN_AFTER else {}
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"} | OURS | again
    return {"statusCode": int(status), "headers": headers, "body": json.dumps(body)}
