"""Jenkins' ``tree=``: keep the fields that are named, drop the rest silently."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

Tree: TypeAlias = dict[str, "Branch"]
_HOLDERS = (dict, list)
_RANGE = re.compile(r"\{(?P<first>\d*)(?P<comma>,?)(?P<last>\d*)\}")


@dataclass(frozen=True, slots=True)
class Branch:
    """What to keep below a field, and of a list which elements: from the first, up to and without the last."""

    below: Tree = field(default_factory=dict)
    first: int = 0
    last: int | None = None

    def of(self, value: Any) -> Any:
        """The elements of a list; anything else as it is."""
        return value[self.first : self.last] if isinstance(value, list) else value


_NOTHING_BELOW = Branch()


class Keyed(dict[str, Any]):
    """A map, not an object: its keys are data, and a tree names fields of its values."""


class TreeSyntaxError(ValueError):
    """Jenkins answers 500 to this tree."""


@lru_cache(maxsize=64)
def parse_tree(text: str) -> Tree:
    """Read ``a,b[c,d[*]]{0,10}``."""
    tree, rest = _fields(text)
    if rest:
        raise TreeSyntaxError(f"cannot read {rest[:20]!r}")
    return tree


def prune(body: Any, tree: Tree) -> Any:
    """Keep ``_class`` and what the tree names, in an object or a list of them."""
    if isinstance(body, list):
        return [prune(entry, tree) if isinstance(entry, _HOLDERS) else entry for entry in body]
    if isinstance(body, Keyed):
        return {key: prune(value, tree) if isinstance(value, _HOLDERS) else value for key, value in body.items()}
    kept: dict[str, Any] = {"_class": body["_class"]} if "_class" in body else {}
    for key in body if "*" in tree else tree:
        if key not in body:
            continue
        value = kept[key] = body[key]
        if isinstance(value, _HOLDERS):
            branch = tree.get(key, _NOTHING_BELOW)
            kept[key] = prune(branch.of(value), branch.below) if branch.below else _shallow(branch.of(value))
    return kept


def without_executors(body: dict[str, Any]) -> dict[str, Any]:
    """Hide what executors do, as ``depth=0`` does. The world has nothing deeper to show."""
    computers = [without_executors(computer) for computer in body.get("computer", [])]
    emptied: dict[str, list[Any]] = {key: [{}] * len(body[key]) for key in ("executors", "oneOffExecutors") if key in body}
    return body | emptied | ({"computer": computers} if computers else {})


def _ranged(below: Tree, text: str) -> tuple[Branch, str]:
    """Read ``{M,N}``, ``{M,}``, ``{,N}`` or ``{N}`` behind a field."""
    if not text.startswith("{"):
        return Branch(below), text
    found = _RANGE.match(text)
    if found is None:
        raise TreeSyntaxError("'}' is missing")
    first = int(found["first"] or 0)
    alone = first + 1 if not found["comma"] else None
    return Branch(below, first, int(found["last"]) if found["last"] else alone), text[found.end() :]


def _shallow(value: Any) -> Any:
    """What stands there when nothing below is asked for: empty objects, with their class."""
    if isinstance(value, list):
        return [_shallow(entry) for entry in value]
    if isinstance(value, dict):
        return {"_class": value["_class"]} if "_class" in value else {}
    return value


def _fields(text: str) -> tuple[Tree, str]:
    tree: Tree = {}
    while text and text[0] != "]":
        end = next((place for place, char in enumerate(text) if char in ",[]{"), len(text))
        name, text = text[:end], text[end:]
        below: Tree = {}
        if text.startswith("["):
            below, text = _fields(text[1:])
            if not text.startswith("]"):
                raise TreeSyntaxError("']' is missing")
            text = text[1:]
        tree[name], text = _ranged(below, text)
        text = text.removeprefix(",")
    return tree, text
