"""Parses the fleet file's YAML, and finds the lines of its problems."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import yaml

from autoscaler.config.problems import FleetFileError, Place, Problem
from autoscaler.config.yaml_loader import Loader, at_of

_START = (1, 1)
_Children = dict[int, dict[str, tuple[yaml.Node, yaml.Node]]]


def parse(raw: bytes | str) -> object:
    """Parse YAML; `FleetFileError` names the line of what is none. Nobody changes what it returns: the last text is parsed once."""
    try:
        return _read(raw)[1]
    except yaml.YAMLError as error:
        raise FleetFileError("", [_syntax(error)]) from None


def located(problems: Iterable[Problem], raw: bytes) -> list[Problem]:
    """Give each problem its line and column, in the order in which they stand in the file."""
    given = list(problems)
    try:
        root = _read(raw)[0] if any(problem.at is None for problem in given) else None
    except (yaml.YAMLError, FleetFileError):
        root = None
    children: _Children = {}
    placed = [problem if problem.at else replace(problem, at=_find(root, problem, children)) for problem in given]
    return sorted(placed, key=lambda problem: problem.at or _START)


@lru_cache(maxsize=1)
def _read(raw: bytes | str) -> tuple[yaml.Node | None, object]:
    """Read the nodes of a text, with their lines, and what they say."""
    loader = Loader(raw)
    try:
        root = loader.get_single_node()
        return root, None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _find(root: yaml.Node | None, problem: Problem, children: _Children) -> tuple[int, int]:
    """Return where the last key on the way to a problem stands, or its value where that is what is wrong."""
    node, at = root, _START
    for number, part in enumerate(problem.place):
        pair = _child(node, part, children)
        if pair is None:
            break
        key, node = pair
        last = number == len(problem.place) - 1
        at = at_of(node if last and not problem.on_key and isinstance(node, yaml.ScalarNode) else key)
    return at


def _child(node: yaml.Node | None, part: Place | str | int, children: _Children) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    if isinstance(node, yaml.MappingNode):
        if id(node) not in children:  # of a key that is merged (<<) and written here, too, the one here counts: it comes last
            children[id(node)] = {str(key.value): (key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        return children[id(node)].get(str(part))
    return None


def _syntax(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    if "'\\t'" in said:
        said = "a tab stands here, YAML is indented by spaces"
    return Problem(place=(), text=f"is not YAML ({' '.join(said.split())})", at=(mark.line + 1, mark.column + 1) if mark else _START)
