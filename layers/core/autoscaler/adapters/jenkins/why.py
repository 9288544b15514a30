"""Reads Jenkins' ``why`` of a queue item, in the wordings of every version since 1.312."""

import re
from collections.abc import Collection

from autoscaler.domain.facts.snapshot import Wait

_OPEN, _CLOSE = "[‘'\"“]?", "[’'\"”]?"
_LABEL = [
    re.compile(rf"There are no nodes with the label {_OPEN}(.+?){_CLOSE}"),
    re.compile(rf"All nodes of label {_OPEN}(.+?){_CLOSE} are offline"),
]
_NAMED = re.compile(rf"Waiting for next available executor on {_OPEN}(.+?){_CLOSE}")
_ANY = re.compile(r"Waiting for next available executor")
_NODE = re.compile(rf"{_OPEN}(.+?){_CLOSE} is (?:offline|not accepting tasks)")
_RESERVED = re.compile(rf"{_OPEN}(.+?){_CLOSE} is reserved for jobs (?:with matching label expression|tied to it)")
_IS_RESERVED = ("is reserved for jobs with matching label expression", "is reserved for jobs tied to it")
_MISSING = re.compile(rf"{_OPEN}(.+?){_CLOSE} doesn[’']t have label {_OPEN}(.+?){_CLOSE}")
# Only the start of a next cause of a node separates; a label may hold anything.
_SEPARATOR = re.compile(r"; (?=\S)")
_BETWEEN_WORDS = r"\s‘’“”'\";,:(){}\[\]"
_TIMES = re.compile(r" \(\d+ times\)$")
_QUIET_MODE = re.compile(r".*is about to shut down")
_NOT_AN_EXECUTOR = re.compile(
    r"In the quiet period|Finished waiting|Build .*is (already )?in progress|A build is already in progress|Blocked by "
    r"|.*is about to shut down|(Up|Down)stream project |No workspace is available|Awaiting build to get a workspace"
    r"|We need to schedule a new build to get a workspace|Executor slot already in use|Exception evaluating"
    r"|\?\?\?"
)


def read_why(why: str) -> Wait | None:
    """Read what an item waits for; None when the wording is unknown."""
    for pattern in _LABEL:
        if found := pattern.fullmatch(why):
            return Wait(for_executor=True, label=found[1])
    if found := _NAMED.fullmatch(why):
        return Wait(for_executor=True, named=found[1])
    if _ANY.fullmatch(why):
        return Wait(for_executor=True)
    if _NOT_AN_EXECUTOR.match(why):
        return Wait(for_executor=False)
    return _read_causes_of_nodes(why)


def waits_for_quiet_mode(why: str) -> bool:
    """Tell whether an item waits until quiet mode ends."""
    return _QUIET_MODE.match(why) is not None


def named_nodes(why: str, node_names: Collection[str]) -> tuple[str, ...]:
    """Find node names, with blanks or not, that stand in a text between other words: whatever it says, it may wait for them."""
    return tuple(sorted(name for name in filter(why.__contains__, node_names) if name and _stands_alone(name, why)))


def told_label(why: str) -> str | None:
    """Find the label that an item asks for beside causes of plugins: Jenkins names the nodes that do not have it."""
    causes = (_MISSING.fullmatch(_TIMES.sub("", part)) for part in _SEPARATOR.split(why))
    return next((cause[2] for cause in causes if cause), None)


def unknown_words(why: str) -> str:
    """Leave out what Jenkins itself says of other nodes; all of it is kept if nothing else is there."""
    causes = dict.fromkeys(_TIMES.sub("", part) for part in _SEPARATOR.split(why))
    unknown = [cause for cause in causes if not any(known.fullmatch(cause) for known in (_MISSING, _NODE, _RESERVED))]
    return "; ".join(unknown) or why


def _stands_alone(name: str, why: str) -> bool:
    # A full stop ends a sentence; within a word it is a part of it.
    return re.search(rf"(?<![^{_BETWEEN_WORDS}]){re.escape(name)}(?=\.?(?:[{_BETWEEN_WORDS}]|$))", why) is not None


def _read_causes_of_nodes(why: str) -> Wait | None:
    """Read one or several causes, a node each, as Jenkins joins them when it tried every node."""
    nodes: list[str] = []
    label: str | None = None
    for part in _SEPARATOR.split(why):
        cause = _TIMES.sub("", part) if part.endswith(" times)") else part
        # First, and before any pattern: Jenkins names all nodes of a large fleet so.
        if cause.endswith(_IS_RESERVED) and _RESERVED.fullmatch(cause):
            continue
        if found := _MISSING.fullmatch(cause):
            label = found[2]
        elif found := _NODE.fullmatch(cause):
            nodes.append(found[1])
        else:
            return None
    # A missing label is what the item asks for; the nodes beside it are those that would do.
    return Wait(for_executor=True, label=label, nodes=tuple(nodes))
