"""Why a pool does not serve a label expression."""

from itertools import combinations

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.labels import LabelExpression

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
