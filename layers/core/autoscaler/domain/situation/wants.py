"""Wants: the items that wait for an executor, and who may take each. Whoever asks that asks it here."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from autoscaler.domain.facts.fleet import EXCLUSIVE, Fleet, Pool
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Node, QueueItem
from autoscaler.domain.labels import LabelExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """An item that waits, the pools to launch for it in, and what nodes must have to take it.

    ``expression``: the label that it asks for; None: it asks for none, or Jenkins hides it, and names nodes in its place. ``nodes``: these;
    ``beacon_labels``: if it names a beacon of ours alone, the labels of that one: no other node satisfies the item.
    """

    item: QueueItem
    pools: tuple[Pool, ...]
    expression: LabelExpression | None
    nodes: frozenset[str] = frozenset()
    beacon_labels: frozenset[str] | None = None
    weight: int = 1  # executors that it takes; an agent that has fewer it takes alone
    refused_by: tuple[str, ...] = ()  # free nodes that do not take it: an agent is tried for it
    declined_by: frozenset[str] = frozenset()  # pools whose labels would do, and that decline its job

    @property
    def mature(self) -> bool:
        """It has waited long enough to count; an executor may have become free by itself until then."""
        return self.item.waiting_seconds >= min([pool.queue_maturity_seconds for pool in self.pools])

    @property
    def kind(self) -> tuple[object, ...]:
        """Items of the same kind may be taken by the same nodes."""
        if self.expression is not None:
            return self.expression.name, self.declined_by
        return self.nodes, self.beacon_labels, tuple([pool.name for pool in self.pools]), self.declined_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet(Want):
    """An item that no pool serves, and why."""

    reason: Reason
    detail: str


class Taker(NamedTuple):
    """What may take items: a node, or executors of several that are alike, which have no ``name``. ``pool``: whose agent it is, if ours."""

    labels: frozenset[str]
    pool: str | None = None
    name: str = ""


def taker_of(node: Node, pool: str | None) -> Taker:
    """Describe a node as one that may take items."""
    return Taker(node.labels, pool, node.name)


def may_take(want: Want, taker: Taker) -> bool:
    """Tell whether Jenkins would start an item there, once an executor is free.

    What an agent of a pool that declines the job takes all the same is Jenkins' business: nobody counts on it, and nobody misses it.
    """
    if taker.pool in want.declined_by:
        return False
    if want.expression is not None:
        return want.expression.matches(taker.labels)
    if want.beacon_labels is not None:
        return taker.labels - {taker.name} == want.beacon_labels
    if want.nodes and taker.name:
        return taker.name in want.nodes
    # What asks for no label is not taken in exclusive mode.
    return taker.labels.isdisjoint(EXCLUSIVE) and any(pool.name == taker.pool for pool in want.pools)


def home_of(want: Want) -> Pool:
    """Choose the pool that an item is counted for: the one with the fewest labels."""
    return min(want.pools, key=lambda pool: (len(pool.labels), pool.name))


# Which label of a waiting job another cloud serves (`ignore_labels`), also where Jenkins names a node in its place.


def ignored_label(fleet: Fleet, nodes: Mapping[str, Node], item: QueueItem) -> str:
    """Return the label that another cloud serves; "" if the job is ours. ``nodes``: of its controller, by name.

    If one node alone has the label, Jenkins names that node and no label: the node of the other cloud has the label then.
    """
    asked = item.asked_label
    if asked is not None:
        return asked if fleet.ignores(asked) else ""
    names = {*item.wait.nodes, *filter(None, [item.wait.named])}
    theirs = [nodes[name] for name in names if name in nodes and fleet.ownership_label not in nodes[name].labels]
    labels = [next((label for label in sorted(node.labels - {node.name}) if fleet.ignores(label)), "") for node in theirs]
    return labels[0] if labels and len(theirs) == len(names) and all(labels) else ""


# Why a pool does not serve a label expression.


# More labels than this to change is no explanation that anybody would read.
_FLIPS_TRIED = 3


def explain_match(pool: Pool, fleet: Fleet, expression: LabelExpression) -> str | None:
    """Say why this pool does not serve the expression: the fewest labels to add or remove; None when it does."""
    labels = pool.labels | {fleet.ownership_label}
    if expression.matches(labels):
        return None
    if pool.lent_labels and expression.matches(labels | pool.lent_labels):
        lent = sorted(expression.atoms & pool.lent_labels)
        return f"carries {', '.join(lent)} only while an agent is lent (lend: {pool.lend})"
    for size in range(1, _FLIPS_TRIED + 1):
        for flipped in combinations(sorted(expression.atoms), size):
            if expression.matches(labels ^ set(flipped)):
                lacks = [f"has no label {label}" for label in flipped if label not in labels]
                excluded = [f"has the label {label}" for label in flipped if label in labels]
                return ", ".join(lacks + excluded)
    return "has other labels than the expression asks for"
