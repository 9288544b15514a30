"""template.yaml, read; and the little of CloudFormation that it takes to see what it would make."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from autoscaler.errors import ConfigError


class Loader(yaml.SafeLoader):
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


def defaults_of(template: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that have a default, with it."""
    return {name: parameter["Default"] for name, parameter in template["Parameters"].items() if "Default" in parameter}


def resolved(value: Any, given: Mapping[str, Any]) -> Any:
    """A value with what it refers to put in, as far as it is ``given``; what is not stays."""
    match value:
        case {"Join": [separator, parts]}:
            return separator.join(resolved(part, given) for part in parts)
        case {"Sub": text}:
            for name, known in given.items():
                text = text.replace(f"${{{name}}}", str(known))
            return text
        case {"Ref": name} | {"GetAtt": name} if name in given:
            return given[name]
        case dict():
            return {key: resolved(below, given) for key, below in value.items()}
        case list():
            return [resolved(below, given) for below in value]
        case _:
            return value
