"""The AWS CLI, as far as the pages use it: its words become a call of boto3 by the same description of the service."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ParamValidationError
from botocore.model import Shape
from botocore.validate import validate_parameters

# What the AWS CLI takes with every command, and whether a value follows.
EVERYWHERE = {"query": True, "output": True, "region": True, "profile": True, "cli-binary-format": True, "no-cli-pager": False}
# Commands of the AWS CLI alone, which no service has: their options, and whether a value follows.
ITS_OWN = {
    ("cloudformation", "deploy"): {"stack-name": True, "template-file": True, "parameter-overrides": True},
    ("configure", "list"): {},
    ("configure", "sso"): {},
    ("configure", "list-profiles"): {},
}
_FLAG = "AttributeBooleanValue"  # of EC2, a structure that the AWS CLI shows as a flag
_POSITIONAL = {("lambda", "invoke"): 1}


@dataclass(frozen=True, slots=True)
class AwsCall:
    """One call of a service. ``waits``: it asks again until something is so."""

    service: str
    operation: str
    parameters: dict[str, Any]
    waits: bool = False


class NoSuchCommandError(Exception):
    """The AWS CLI would refuse it."""


@cache
def _session() -> botocore.session.Session:
    return botocore.session.Session()


@cache
def _model(service: str) -> Any:
    try:
        return _session().get_service_model(service)
    except Exception as error:
        raise NoSuchCommandError(f"there is no service {service}") from error


def read_call(words: Sequence[str]) -> AwsCall | None:
    """The call that these words make; None where the command is the AWS CLI's own."""
    service, operation, *rest = words
    if (service, operation) in ITS_OWN:
        _options(rest, EVERYWHERE | ITS_OWN[service, operation], 0)
        return None
    waits = operation == "wait"
    if waits:
        name, *rest = rest
        waiters = _session().get_waiter_model(service)
        found = [w for w in waiters.waiter_names if xform_name(w, "-") == name]
        if not found:
            raise NoSuchCommandError(f"aws {service} wait has no {name}")
        operation = xform_name(waiters.get_waiter(found[0]).operation, "-")
    shape = _input(service, operation)
    return AwsCall(service, operation.replace("-", "_"), _parameters(shape, rest, (service, operation)), waits)


def _input(service: str, operation: str) -> Shape | None:
    model = _model(service)
    named = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in named:
        raise NoSuchCommandError(f"aws {service} has no {operation}")
    shape: Shape | None = model.operation_model(named[operation]).input_shape
    return shape


def _parameters(shape: Shape | None, words: Sequence[str], command: tuple[str, str]) -> dict[str, Any]:
    members = {xform_name(name, "-"): (name, member) for name, member in (shape.members if shape else {}).items()}
    flags = {name: not _is_flag(member) for name, (_, member) in members.items()}
    negated = {f"no-{name}": False for name, takes in flags.items() if not takes}
    given = _options(words, EVERYWHERE | flags | negated, _POSITIONAL.get(command, 0))
    parameters: dict[str, Any] = {}
    for option, values in given.items():
        if option in members:
            name, member = members[option]
            parameters[name] = _value(member, values)
        elif option in negated and option not in EVERYWHERE:
            name, member = members[option.removeprefix("no-")]
            parameters[name] = _flag(member, on=False)
    if command == ("ec2", "run-instances"):  # the AWS CLI asks for one where nothing else is said
        parameters = {"MinCount": 1, "MaxCount": 1} | parameters
    # And makes the token by itself that lets a call be sent twice.
    parameters |= {
        name: "a" * 36 for name, member in members.values() if member.metadata.get("idempotencyToken") and name not in parameters
    }
    if shape:
        try:
            validate_parameters(parameters, shape)
        except ParamValidationError as error:
            raise NoSuchCommandError(str(error)) from error
    return parameters


def _is_flag(shape: Any) -> bool:
    return bool(shape.type_name == "boolean" or shape.name == _FLAG)


def _flag(shape: Any, *, on: bool) -> Any:
    return {"Value": on} if shape.name == _FLAG else on


def _options(words: Sequence[str], known: dict[str, bool], positional: int) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    last = None
    for word in words:
        if word.startswith("--"):
            last = word[2:]
            if last not in known:
                raise NoSuchCommandError(f"there is no option {word}")
            given[last] = []
        elif last is not None and known[last]:
            given[last].append(word)
        elif positional:
            positional -= 1
        else:
            raise NoSuchCommandError(f"{word} belongs to no option")
    for name, values in given.items():
        if known[name] and not values:
            raise NoSuchCommandError(f"--{name} lacks its value")
    return given


def _value(shape: Any, words: list[str]) -> Any:
    if _is_flag(shape):
        return _flag(shape, on=words != ["false"])
    match shape.type_name:
        case "integer" | "long":
            return int(words[0])
        case "list":
            return [_value(shape.member, [word]) for word in _listed(words)]
        case "structure":
            return _structure(shape, words[0])
        case "blob":
            return words[0].encode()
        case "timestamp":
            return datetime.fromisoformat(words[0])
        case _:
            if shape.enum and words[0] not in shape.enum:
                raise NoSuchCommandError(f"{words[0]} is none of {', '.join(shape.enum)}")
            return words[0]


def _listed(words: list[str]) -> list[str]:
    if len(words) == 1 and words[0].startswith("["):
        return [item if isinstance(item, str) else json.dumps(item) for item in json.loads(words[0])]
    return words


def _structure(shape: Any, word: str) -> dict[str, Any]:
    """JSON, or the AWS CLI's shorthand: Name=tag:x,Values=a,b."""
    if word.startswith("{"):
        told: dict[str, Any] = json.loads(word)
        return told
    parts: dict[str, list[str]] = {}
    for part in re.split(r",(?=\w+=)", word):
        name, _, value = part.partition("=")
        if name not in shape.members:
            raise NoSuchCommandError(f"{word}: {shape.name} has no {name}")
        parts[name] = value.split(",")
    return {name: _value(shape.members[name], values) for name, values in parts.items()}
