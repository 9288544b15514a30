"""Parses the fleet file's YAML, and finds the lines of its problems."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import yaml

from autoscaler.config.problems import FleetFileError, Place, Problem

_START = (1, 1)


class Loader(yaml.SafeLoader):
    """Reads YAML 1.2, as editors do, and refuses a key written twice; YAML would silently keep the last.

    YAML 1.1 takes ``off`` and ``no`` for booleans, ``12:30`` for 750 and ``1e3`` for a text.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        letter: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in {"bool", "int", "float", "timestamp"}]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as PyYAML calls it
        """Read a mapping; a key that stands in it twice is an error."""
        keys: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str | int | float) and key in keys:
                raise FleetFileError("", [Problem(place=(), text=f"{key} is written twice", at=_at(key_node))])
            keys |= {key} if isinstance(key, str | int | float) else set()
        return super().construct_mapping(node, deep)


Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^([-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"),
    list("-+.0123456789"),
)


def parse(raw: bytes | str) -> object:
    """Parse YAML; `FleetFileError` names the line of what is none."""
    try:
        return yaml.load(raw, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise FleetFileError("", [_syntax(error)]) from None


def located(problems: Iterable[Problem], raw: bytes) -> list[Problem]:
    """Give each problem its line and column, in the order in which they stand in the file."""
    try:
        root = yaml.compose(raw, Loader)
    except yaml.YAMLError:
        root = None
    found = [problem if problem.at else replace(problem, at=_find(root, problem)) for problem in problems]
    return sorted(found, key=lambda problem: problem.at or _START)


def _find(root: yaml.Node | None, problem: Problem) -> tuple[int, int]:
    """Return where the last key on the way to a problem stands, or its value where that is what is wrong."""
    node, at = root, _START
    for number, part in enumerate(problem.place):
        pair = _child(node, part)
        if pair is None:
            break
        key, node = pair
        last = number == len(problem.place) - 1
        at = _at(node if last and not problem.on_key and isinstance(node, yaml.ScalarNode) else key)
    return at


def _child(node: yaml.Node | None, part: Place | str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    return None


def _at(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _syntax(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    if "'\\t'" in said:
        said = "a tab stands here, YAML is indented by spaces"
    return Problem(place=(), text=f"is not YAML ({' '.join(said.split())})", at=(mark.line + 1, mark.column + 1) if mark else _START)
