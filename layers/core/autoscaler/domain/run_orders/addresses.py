"""The label expression by which Jenkins gives a build to the agents of one pool, and to nobody else."""

from collections.abc import Iterable, Iterator
from itertools import combinations

from autoscaler.domain.facts.fleet import HELD_LABEL, Fleet, Pool
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.labels import parse, quoted

_FEW = 2


def address_of(pool: Pool, fleet: Fleet, view: ControllerView) -> str | None:
    """Return the shortest expression that nodes of this pool alone satisfy; None where another pool's cannot be told from them.

    Nodes that are none of ours are kept out by the label that all of ours carry.
    """
    others = [labels for other in fleet.pools_of(view.name) if other.name != pool.name for labels in _may_carry(other, fleet)]
    label = _alone(pool.labels, others)
    if label is None:
        return None
    foreign = [node.labels | {node.name} for node in view.nodes if node.agent and fleet.ownership_label not in node.labels]
    return _joined([label, quoted(fleet.ownership_label)]) if _satisfied(label, foreign) else label


def _may_carry(pool: Pool, fleet: Fleet) -> Iterator[frozenset[str]]:
    """Yield a pool's labels, those of its agents while they are lent, and those that they have while people hold some."""
    yield from (pool.labels, pool.labels | pool.lent_labels)
    if pool.labels & fleet.held_labels:
        yield pool.labels - fleet.held_labels | {HELD_LABEL}


def _alone(labels: Iterable[str], others: list[frozenset[str]]) -> str | None:
    """Find an expression of these labels that no other set satisfies, with labels that others have excluded where it must be so."""
    mine = sorted(labels)
    some = (chosen for size in range(1, _FEW + 1) for chosen in combinations(mine, size))
    for chosen in (*some, tuple(mine)):
        expression = _joined(map(quoted, chosen))
        if not _satisfied(expression, others):
            return expression
    alike = [other for other in others if other >= set(mine)]
    excluded = sorted({min(other - set(mine), default="") for other in alike})
    return None if "" in excluded else _joined([*map(quoted, mine), *(f"!{quoted(label)}" for label in excluded)])


def _satisfied(expression: str, by: Iterable[frozenset[str]]) -> bool:
    parsed = parse(expression)
    return any(parsed.matches(labels) for labels in by)


def _joined(parts: Iterable[str]) -> str:
    return "&&".join(parts)
