"""Branches that no case can take, and why: each was checked where its function is called."""

import ast
from functools import cache

from corpus.branches import Arc
from corpus.case import LAYER

_GUARD = "raise ValueError("  # for the type checker
# By function: how the line begins that the branch leads to ("": out of the function), and why.
_IMPOSSIBLE = {
    "_keep": (_GUARD, "an agent is in the phase reserved by its reservation alone"),
    "_lend": (_GUARD, "what is lent is ready, and what is ready has a node"),
    "_seal": (_GUARD, "both callers ask by_labels, which needs mark and node"),
    "_taken_back": (_GUARD, "the loans that end are those of agents with a node"),
    "_to_drain": ("", "the orders of a drain are three"),
    "reserve": (
        _GUARD,
        "a pool's agent is ready, and a named one without a node was refused before",
    ),
    "stop": (_GUARD, "what is stopped is drained, by our mark, or was asked for its mark"),
}


def why_impossible(arc: Arc) -> str:
    """Say why no case can take a branch; "" if one can."""
    file, start, end = arc
    begins, why = _IMPOSSIBLE.get(_function(file, start), (None, ""))
    lines = _lines(file)
    line = lines[end - 1].strip() if end > 0 else ""
    return why if begins is not None and line[: len(begins) or None] == begins else ""


@cache
def _lines(file: str) -> list[str]:
    return (LAYER / file).read_text(encoding="utf-8").splitlines()


@cache
def _function(file: str, line: int) -> str:
    """Name the innermost function that a line is in."""
    around = (
        node
        for node in ast.walk(ast.parse("\n".join(_lines(file))))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    )
    return max(around, key=lambda node: node.lineno).name
