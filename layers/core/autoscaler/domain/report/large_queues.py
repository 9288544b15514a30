"""Queues that are too large to be read in one answer: people are told, since nothing is scaled in on their controllers."""

from collections.abc import Iterator

from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.situation import Situation


def large_queues_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the controllers whose queue was read in parts, each with its message."""
    for view in situation.views():
        if view.in_parts:
            then = (
                "Agents are launched for jobs as ever. None is taken out of use, stopped or terminated until the queue fits in one answer."
            )
            text = f"Jenkins' queue on {view.name} does not fit in one answer: {view.in_parts}.\n{then}"
            title = f"the queue of {view.name} is too large to be read at once"
            yield f"queue/{view.name}", Seen(title, text, "operations.md#large-queues", "autoscaler queue")
