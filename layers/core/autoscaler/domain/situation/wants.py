"""Wants: the items that wait for an executor, and who may take each. Whoever asks that asks it here."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import NamedTuple

from autoscaler.domain.facts.fleet import EMPTIED, EXCLUSIVE, Fleet, Pool
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Node, QueueItem, Record
from autoscaler.domain.labels import LabelExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """An item that waits, the pools to launch for it in, and what nodes must have to take it.

    ``expression``: the label that it asks for; None: it asks for none, or Jenkins hides it, and names nodes in its place. ``nodes``: these;
    ``beacon_labels``: if it names a beacon of ours alone, the labels of that one: no other node satisfies the item.
    """

    item: QueueItem
    pools: tuple[Pool, ...] = ()
    expression: LabelExpression | None = None
    nodes: frozenset[str] = frozenset()
    beacon_labels: frozenset[str] | None = None
    weight: int = 1  # executors that it takes; an agent that has fewer it takes alone
    refused_by: tuple[str, ...] = ()  # free nodes that do not take it: an agent is tried for it
    declined_by: frozenset[str] = frozenset()  # pools whose labels would do, and that decline its job
    patience_seconds: float = 0.0  # it counts once it has waited so long: the last ones of its label set did not

    @property
    def mature(self) -> bool:
        """It has waited long enough to count; until then an executor may have become free by itself, or the job have left the queue."""
        return self.item.waiting_seconds >= self.matures_after_seconds

    @property
    def matures_after_seconds(self) -> float:
        """How long it must have waited to count."""
        return max(min([pool.queue_maturity_seconds for pool in self.pools], default=0.0), self.patience_seconds)

    @property
    def label_set(self) -> str:
        """Name the pools that may serve it, and in a line of its own the label that it asks for."""
        return f"{', '.join([pool.name for pool in self.pools])}\n{self.expression.name if self.expression else ''}"

    @property
    def kind(self) -> tuple[object, ...]:
        """Items of the same kind may be taken by the same nodes."""
        if self.expression is not None:
            return self.expression.name, self.declined_by
        return self.nodes, self.beacon_labels, tuple([pool.name for pool in self.pools]), self.declined_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet(Want):
    """An item that no pool serves, and why: it is counted for none, and nothing is launched for it."""

    reason: Reason
    detail: str


class Taker(NamedTuple):
    """What may take items: a node, or executors of several that are alike, which have no ``name``.

    ``pool``: whose agent it is, if ours; ``launched_at``: when that was launched, or started.
    """

    labels: frozenset[str]
    pool: str | None = None
    name: str = ""
    launched_at: float = -inf


def taker_of(node: Node, agent: Record | None) -> Taker:
    """Describe a node as one that may take items. ``agent``: its record, if it is ours."""
    return Taker(node.labels, agent.pool, node.name, agent.began_at) if agent else Taker(node.labels, name=node.name)


def may_take(want: Want, taker: Taker) -> bool:
    """Tell whether Jenkins would start an item there, once an executor is free, as far as the item and the node tell that.

    What an agent of a pool that declines the job takes all the same is Jenkins' business: nobody counts on it, and nobody misses it. Nor
    does anybody know which nodes of others take jobs without a label.
    """
    if taker.pool in want.declined_by:
        return False
    if want.expression is not None:
        return want.expression.matches(taker.labels)
    if want.beacon_labels is not None:
        return taker.labels - {taker.name} == want.beacon_labels
    if want.nodes:
        return taker.name in want.nodes
    # What asks for no label is not taken in exclusive mode.
    return taker.labels.isdisjoint(EXCLUSIVE) and any(pool.name == taker.pool for pool in want.pools)


def was_launched_for(want: Want, taker: Taker, since_at: float) -> bool:
    """Tell whether an agent was launched for items of this kind, which have waited since then.

    If something gives each new agent other labels, none may take them; each was launched for them all the same.
    """
    # What we took the labels from takes nothing meanwhile.
    return taker.launched_at >= since_at and taker.labels.isdisjoint(EMPTIED) and any(pool.name == taker.pool for pool in want.pools)


def home_of(want: Want) -> Pool:
    """Choose the pool that an item is counted for: the one with the fewest labels."""
    return min(want.pools, key=lambda pool: (len(pool.labels), pool.name))


# Which label a waiting job asks for, and whether another cloud serves it (`ignore_labels`), also where Jenkins names a node in its place.


def label_of(nodes: Mapping[str, Node], item: QueueItem) -> str | None:
    """Read the label that an item asks for. While all nodes that have it are busy, Jenkins names it where it else names a node."""
    named = item.wait.named if item.wait.named not in nodes else None
    return item.asked_label if item.asked_label is not None else named


def ignored_label(fleet: Fleet, nodes: Mapping[str, Node], item: QueueItem) -> str:
    """Return the label that another cloud serves; "" if the job is ours. ``nodes``: of its controller, by name.

    If one node alone has the label, Jenkins names that node and no label: the node of the other cloud has the label then.
    """
    asked = label_of(nodes, item)
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
