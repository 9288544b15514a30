"""Branches that no case can take, and why: each was checked where its function is called."""

import ast
from functools import cache

from corpus.branches import Arc
from corpus.case import LAYER

_GUARD = "raise ValueError("  # for the type checker
# By function: how the line begins that the branch leads to ("": out of the function), and why.
_IMPOSSIBLE = {
    "_gone": ("return {}", "nothing is learned from an incomplete view"),
    "_lend": (_GUARD, "what is lent is ready, and what is ready has a node"),
    "_let_go_of_host": ("return", "a host is lost or overdue only once it is wanted no more"),
    "_seal": (_GUARD, "both callers ask by_labels, which needs mark and node"),
    "_taken_back": (_GUARD, "the loans that end are those of agents with a node"),
    "_to_drain": ("", "the orders of a drain are three"),
    "answered": ("for one in", "what is answered is left, or has an item of the queue"),
    "begun_since": ("return {}", "a controller is believed only in a session that is known"),
    "cordon": (_GUARD, "each caller has an agent of a phase that a node shows, or asks for it"),
    "gone_blocks": ("return ()", "nothing is learned from an incomplete view"),
    "join_agents": (
        "continue",
        "each record tells its pool, and what records tell is known as left",
    ),
    "labels_wanted": (
        "return frozenset((",
        "the decision asks for records without a cordon; only who writes labels tells of weight",
    ),
    "leave_slot": ("return", "what has ended is seen to have only while it has a node"),
    "read_description": ('return beacon["fleet"]', "what describes an agent describes no beacon"),
    "reserve": (
        _GUARD,
        "a pool's agent is ready, and a named one without a node was refused before",
    ),
    "rotate": ("return hold_back", "it goes back before, if no other controller waits for it"),
    "spent_levels": ("return ()", "the look has metered the month before"),
    "stop": (_GUARD, "what is stopped is drained, by our mark, or was asked for its mark"),
    "told_refused": ("return f", "what is in the way of launches has a next try"),
    "why_it_stays": (
        "return pool.paused_detail",
        "who decides asks of no pool on hold; `why` does",
    ),
    "uncordon": (_GUARD, "what comes back has our mark, and a node that shows it"),
}


def why_impossible(arc: Arc) -> str:
    """Say why no case can take a branch; "" if one can."""
    file, start, end = arc
    begins, why = _IMPOSSIBLE.get(function_at(file, start), (None, ""))
    lines = _lines(file)
    line = lines[end - 1].strip() if end > 0 else ""
    return why if begins is not None and line[: len(begins) or None] == begins else ""


@cache
def _lines(file: str) -> list[str]:
    return (LAYER / file).read_text(encoding="utf-8").splitlines()


@cache
def function_at(file: str, line: int) -> str:
    """Name the innermost function that a line is in."""
    around = (
        node
        for node in ast.walk(ast.parse("\n".join(_lines(file))))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    )
    return max(around, key=lambda node: node.lineno).name
