"""Jenkins' ``tree=``: keep the fields that are named, drop the rest silently."""

from functools import lru_cache
from typing import Any, TypeAlias

Tree: TypeAlias = dict[str, "Tree"]


class TreeSyntaxError(ValueError):
    """Jenkins answers 500 to this tree."""


@lru_cache(maxsize=64)
def parse_tree(text: str) -> Tree:
    """Read ``a,b[c,d[*]]``."""
    tree, rest = _fields(text)
    if rest:
        raise TreeSyntaxError(f"cannot read {rest[:20]!r}")
    return tree


def prune(body: Any, tree: Tree) -> Any:
    """Keep ``_class`` and what the tree names, in objects and in lists of them."""
    if isinstance(body, list):
        return [prune(entry, tree) for entry in body]
    if not isinstance(body, dict):
        return body
    kept: dict[str, Any] = {"_class": body["_class"]} if "_class" in body else {}
    for key in body if "*" in tree else tree:
        if key in body:
            below = tree.get(key, {})
            kept[key] = prune(body[key], below) if below or not isinstance(body[key], dict | list) else _shallow(body[key])
    return kept


def without_executors(body: dict[str, Any]) -> dict[str, Any]:
    """What ``depth=0`` shows: that there are executors, not what they do. Deeper than this the world has nothing more to show."""
    computers = [without_executors(computer) for computer in body.get("computer", [])]
    emptied: dict[str, list[Any]] = {key: [{}] * len(body[key]) for key in ("executors", "oneOffExecutors") if key in body}
    return body | emptied | ({"computer": computers} if computers else {})


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
        end = next((place for place, char in enumerate(text) if char in ",[]"), len(text))
        name, text = text[:end], text[end:]
        tree[name] = {}
        if text.startswith("["):
            tree[name], text = _fields(text[1:])
            if not text.startswith("]"):
                raise TreeSyntaxError("']' is missing")
            text = text[1:]
        text = text.removeprefix(",")
    return tree, text
