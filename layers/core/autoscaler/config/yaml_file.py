"""Parses the fleet file's YAML, and finds the lines of its problems."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import yaml

from autoscaler.config.problems import FleetFileError, Place, Problem
from autoscaler.config.sections import DIGITS, LongNumber

# Reads YAML 1.2 with bounds: no file, however it is written, costs more than its size, or ends in anything but a problem with a line.


_LEVELS = 50  # a fleet file has eight
_REPEATED = 200_000  # values that aliases may repeat: a few lines can repeat billions of them
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map")}


class Loader(yaml.SafeLoader):
    """Reads YAML 1.2, as editors do, and refuses a key written twice; YAML would silently keep the last.

    YAML 1.1 takes ``off`` and ``no`` for booleans, ``12:30`` for 750 and ``1e3`` for a text.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        letter: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in {"bool", "int", "float", "timestamp"}]
        for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: bytes | str) -> None:
        """Nothing was read yet."""
        super().__init__(stream)
        self._level = 0
        self._repeated = 0
        self._sizes: dict[int, tuple[int, int]] = {}  # values and levels within each node, aliases included

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read a node and all within it; too many levels, and aliases that repeat too much, are refused before they are read out."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        at = event.start_mark.line + 1, event.start_mark.column + 1
        self._level += 1
        if self._level > _LEVELS:
            raise _refused(f"is nested more than {_LEVELS} levels deep", at)
        node = super().compose_node(parent, index)
        self._level -= 1
        if node is None:
            return None
        # Count what is within it, and refuse what is too much.
        if not isinstance(event, yaml.AliasEvent):
            parts = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
            sizes = [] if isinstance(node, yaml.ScalarNode) else [self._sizes[id(part)] for part in parts]
            self._sizes[id(node)] = (1 + sum(values for values, _ in sizes), 1 + max((levels for _, levels in sizes), default=0))
        elif id(node) not in self._sizes:
            raise _refused("an alias (*) stands within what it repeats", at)
        else:
            self._repeated += self._sizes[id(node)][0]
        if self._repeated > _REPEATED:
            raise _refused(f"aliases (*) repeat more than {_REPEATED:,} values", at)
        if self._level + self._sizes[id(node)][1] > _LEVELS:
            raise _refused(f"is nested more than {_LEVELS} levels deep", at)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - as PyYAML calls it
        """Read a value; a tag (!!) that makes something of it that no fleet file holds is refused."""
        if node.tag not in _TAGS:
            merge = node.tag.endswith(":merge")
            raise _refused("<< is not read here, write the keys out" if merge else f"the tag {node.tag} is not read here", at_of(node))
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            raise _refused(f"is no {node.tag.rpartition(':')[2]}, as its tag says", at_of(node)) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as PyYAML calls it
        """Read a mapping; a key that occurs twice is an error."""
        keys: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str | int | float) and key in keys:
                raise _refused(f"{key} is written twice", at_of(key_node))
            keys |= {key} if isinstance(key, str | int | float) else set()
        return super().construct_mapping(node, deep)

    def whole_number(self, node: yaml.ScalarNode) -> int:
        """Read a whole number: exactly, or cut off."""
        text = str(node.value)
        return int(text) if len(text) <= DIGITS else LongNumber(text)


Loader.add_constructor("tag:yaml.org,2002:int", Loader.whole_number)
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^([-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"),
    list("-+.0123456789"),
)


def at_of(node: yaml.Node) -> tuple[int, int]:
    """Return the line and the column of a node."""
    return node.start_mark.line + 1, node.start_mark.column + 1


def _refused(text: str, at: tuple[int, int]) -> FleetFileError:
    return FleetFileError("", [Problem(place=(), text=text, at=at)])


# Finds the line of each problem.


_START = (1, 1)
_Children = dict[int, dict[str, tuple[yaml.Node, yaml.Node]]]


def parse(raw: bytes | str) -> object:
    """Parse YAML; `FleetFileError` names the line of what is none. Nobody changes what it returns: the last text is parsed once."""
    try:
        return _read(raw)[1]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        said = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
        if "'\\t'" in said:
            said = "a tab stands here, YAML is indented by spaces"
        at = (mark.line + 1, mark.column + 1) if mark else _START
        raise FleetFileError("", [Problem(place=(), text=f"is not YAML ({' '.join(said.split())})", at=at)]) from None


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
