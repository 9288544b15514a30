"""Results of node blocks for people: in the rows of their jobs and stages, and how many of a controller's blocks count for nobody."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.job_stats import JobRow, Subject
from autoscaler.domain.facts.runs import BlockCounts, BlockEnd, BuildResult, GoneBlock
from autoscaler.domain.forecast.durations import next_record, subjects_of

Ends = Iterable[tuple[GoneBlock, BlockEnd]]
Rows = Mapping[tuple[Subject, str], JobRow]  # by subject and pool


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFigures:
    """Node blocks of one controller's pipelines that left their executors lately.

    ``unassigned``: the share that counts for no node; the others: shares of these, by cause, as `facts.blocks.BlockCounts` has them.
    """

    controller: str
    blocks: int
    unassigned: float
    ambiguous: float
    unmatched: float
    run_gone: float
    too_large: float


def subjects_of_blocks(ends: Ends) -> frozenset[Subject]:
    """Return whose statistics these ends count in."""
    return frozenset(subject for block, end in ends if end.result for subject in subjects_of(block.job, block.run, block.signature))


def note_blocks(rows: Rows, ends: Ends) -> list[JobRow]:
    """Note in the rows that are there how blocks ended: they may have left their executors in an earlier look."""
    changed: dict[tuple[Subject, str], JobRow] = {}
    for block, end in ends:
        for subject in subjects_of(block.job, block.run, block.signature) if end.result else ():
            place = subject, block.pool
            if row := changed.get(place, rows.get(place)):
                changed[place] = replace(row, results=next_record(row.results, end.result is BuildResult.SUCCEEDED))
    return list(changed.values())


def figures_of(counts: Mapping[str, BlockCounts]) -> tuple[BlockFigures, ...]:
    """Describe the node blocks of each controller that has pipelines."""
    found = []
    for controller, known in sorted(counts.items()):
        if blocks := known.assigned + known.unassigned:
            shares = {name: getattr(known, name) / blocks for name in ("unassigned", "ambiguous", "unmatched", "run_gone", "too_large")}
            found.append(BlockFigures(controller=controller, blocks=round(blocks), **shares))
    return tuple(found)
