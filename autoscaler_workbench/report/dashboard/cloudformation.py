"""Reads template.yaml, and resolves as much of CloudFormation as it takes to see its resources."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

try:  # libyaml reads the template in an eighth of the time
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

from autoscaler.errors import ConfigError

_PLACE = re.compile(r"\$\{([^!}]+)\}")
_NOTHING = {"Ref": "AWS::NoValue"}
# The parameters of a stack that publishes all that a demo or a run does.
FULL = {"MetricsLevel": "full"}


class Loader(SafeLoader):
    """Reads CloudFormation's short tags as plain values."""


def _tagged(loader: Loader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return {suffix: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    if isinstance(node, yaml.MappingNode):
        return {suffix: loader.construct_mapping(node, deep=True)}
    raise TypeError(f"!{suffix} on {type(node).__name__}")


Loader.add_multi_constructor("!", _tagged)


def read_template(file: Path) -> dict[str, Any]:
    """Read a template; its short tags as plain values."""
    try:
        template: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), Loader)  # noqa: S506 - a SafeLoader
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: cannot be read ({error})") from error
    return template


def essential_environment(template: dict[str, Any]) -> dict[str, str]:
    """The environment of `publish_metrics` at `MetricsLevel: essential`, with the template's own thresholds, as it hands them on."""
    variables = template["Resources"]["PublishMetricsFunction"]["Properties"]["Environment"]["Variables"]
    parameters = {name: parameter.get("Default") for name, parameter in template["Parameters"].items()}
    handed_on = {
        name: parameters[value["Ref"]] for name, value in variables.items() if isinstance(value, dict) and value["Ref"] in parameters
    }
    return {"METRICS_LEVEL": "essential"} | {name: str(value) for name, value in handed_on.items()}


def defaults_of(template: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that have a default, with it; a list is written with commas."""
    parameters = template["Parameters"]
    return {name: _given(parameter, parameter["Default"]) for name, parameter in parameters.items() if "Default" in parameter}


def _given(parameter: Mapping[str, Any], value: Any) -> Any:
    return str(value).split(",") if parameter["Type"] == "CommaDelimitedList" else value


def made_by(template: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The resources that the template makes with these parameters, conditions applied."""
    known = {"Conditions": template.get("Conditions", {}), "Mappings": template.get("Mappings", {}), **given}
    made = {
        name: resource
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or _holds(resource["Condition"], known)
    }
    return {name: resolved({key: value for key, value in resource.items() if key != "Condition"}, known) for name, resource in made.items()}


def resolved(value: Any, given: Mapping[str, Any]) -> Any:
    """Resolve the references in a value as far as they are ``given``; others stay."""
    match value:
        case dict() if len(value) == 1:
            [(function, argument)] = value.items()
            return _computed(function.removeprefix("Fn::"), argument, value, given)
        case dict():
            return {key: put_in for key, below in value.items() if (put_in := resolved(below, given)) != _NOTHING}
        case list():
            return [put_in for below in value if (put_in := resolved(below, given)) != _NOTHING]
        case _:
            return value


def _computed(function: str, argument: Any, value: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    match function, argument:
        case "Join", [separator, parts]:
            return _joined(separator, resolved(parts, given), value)
        case "Sub", [str(text), dict(more)]:
            return _substituted(text, {**given, **resolved(more, given)})
        case "Sub", str(text):
            return _substituted(text, given)
        case "Ref" | "GetAtt", _:
            name = argument if isinstance(argument, str) else ".".join(argument)
            return given.get(name, value)
        case _:
            return _chosen(function, argument, value, given)


def _chosen(function: str, argument: Any, value: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """Resolve conditions and mappings; of any other function, its arguments."""
    match function, argument:
        case "If", [name, yes, no] if name in given.get("Conditions", {}):
            return resolved(yes if _holds(name, given) else no, given)
        case "FindInMap", [table, first, second] if table in given.get("Mappings", {}):
            return given["Mappings"][table][resolved(first, given)][second]
        case _:
            below = resolved(argument, given)
            return {} if below == _NOTHING else {next(iter(value)): below}


def _joined(separator: str, parts: Any, value: Mapping[str, Any]) -> Any:
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        return separator.join(parts)
    return value


def _substituted(text: str, given: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda found: str(given[found[1]]) if found[1] in given else found[0], text)


def _holds(condition: Any, given: Mapping[str, Any]) -> bool:
    """Tell whether a condition holds: the name of one, or one as it is written."""
    if isinstance(condition, str):
        return _holds(given["Conditions"][condition], given)
    [(function, argument)] = condition.items()
    match function.removeprefix("Fn::"):
        case "Equals":
            first, second = (resolved(side, given) for side in argument)
            return str(first) == str(second)
        case "Not":
            return not _holds(argument[0], given)
        case "And":
            return all(_holds(one, given) for one in argument)
        case "Or":
            return any(_holds(one, given) for one in argument)
        case "Condition":
            return _holds(argument, given)
    raise ConfigError(f"template.yaml: the condition {function} is not known here")
