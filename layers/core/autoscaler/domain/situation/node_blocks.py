"""Node blocks of pipelines: which of them ran on which node, and how they ended there.

An executor shows the run of a block, and the stage or branch that encloses its steps; a look sees that anyway. How a block ended stands in
its run's flow graph, which is read once a block has left its executor. What both have in common is the name, so a block counts for a node
if its name fits one block alone. Numbers of steps rise with time: what ended before an executor still showed the block is another one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.runs import (
    BlockCounts,
    BlockEnd,
    Blocks,
    BuildResult,
    GoneBlock,
    Graphs,
    NodeBlock,
    ReadRun,
    RunGraph,
    Shown,
    job_name_of,
)
from autoscaler.domain.facts.snapshot import Build, ControllerView, Node, OfflineCause

# What nothing tells for so long counts for nobody: a run may wait for its node after a restart.
TOLD_WITHIN_SECONDS = 3600.0
# Of one run no more is read in the long run: 20 KB a minute.
BYTES_PER_SECOND = 20_000 / 60.0
# So long Jenkins tells what became of a queue item, twice over.
ITEM_SECONDS = 600.0
_MOST_GONE = 500
_MOST_SHOWN = 20  # names on one executor
_MOST_LARGE = 50  # runs that are too large to be read, so that they are not tried again
_MOST_COUNTED = 10_000.0
_FADES = 0.5
_NO_POOLS: Mapping[str, str] = MappingProxyType({})
Choice: TypeAlias = tuple[GoneBlock, list[NodeBlock]]  # what left an executor, and the blocks that it may have been


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLesson:
    """What a look taught of node blocks: ``ends`` of blocks that found their node."""

    blocks: Blocks
    ends: tuple[tuple[GoneBlock, BlockEnd], ...] = ()


def gone_blocks(before: Learned, view: ControllerView, now: float) -> tuple[GoneBlock, ...]:
    """List the blocks whose end is to be found out: those that left their executors since the last look, behind those of earlier looks.

    None of an incomplete view. Of too many the last are left out.
    """
    if not view.complete:
        return ()
    nodes = {node.name: node for node in view.nodes}
    shown = {build.key for node in view.nodes for build in node.builds}
    left = tuple(
        GoneBlock(
            job=sighting.job,
            pool=sighting.pool,
            node=sighting.node,
            run=sighting.run,
            since_at=sighting.since_at,
            gone_at=now,
            shown=before.blocks.running[key],
            is_lost=_is_away(nodes.get(sighting.node)),
        )
        for key, sighting in before.running.items()
        if key in before.blocks.running and key not in shown and sighting.run and sighting.node
    )
    return (*before.blocks.gone, *left)[:_MOST_GONE]


def _is_away(node: Node | None) -> bool:
    return node is not None and (node.is_deleted or (node.offline and node.cause is OfflineCause.LOST))


def runs_to_read(gone: Iterable[GoneBlock], known: Mapping[str, ReadRun], now: float) -> tuple[str, ...]:
    """Name the runs whose graphs are wanted: those that were asked about least, then those whose blocks left first.

    A large graph is read again only after a while: the blocks of a run seldom end together.
    """
    wanted = [block for block in gone if block.run not in known or _is_due(known[block.run], now)]
    return tuple(dict.fromkeys(block.run for block in sorted(wanted, key=lambda block: (block.tries, block.gone_at))))


def _is_due(known: ReadRun, now: float) -> bool:
    return not known.too_large and now - known.read_at >= known.size / BYTES_PER_SECOND


def learn_blocks(
    before: Learned, view: ControllerView, running: Iterable[str], graphs: Graphs, now: float, pools: Mapping[str, str] = _NO_POOLS
) -> BlockLesson:
    """Follow node blocks for one look.

    ``running``: keys of builds on our executors; ``graphs``: those that this look read; ``pools``: of our nodes.
    """
    gone, known = gone_blocks(before, view, now), before.blocks.runs
    of_run = _by_run(gone, graphs)
    builds = [build for node in view.nodes for build in node.builds if build.is_block]
    heard = _Heard(now=now, builds=builds, pools=pools)
    for run, blocks in of_run.items():
        _hear(heard, run, blocks, graphs, known.get(run))
    ours = set(running)
    now_running = {build.key: _shown(before, build) for build in builds if build.key in ours}
    counts = _counted(before.blocks.counts, (heard.counts, BlockCounts(assigned=float(len(heard.ends)))))
    runs = _still_known({**known, **heard.runs}, now, {build.run for build in builds} | {block.run for block in heard.waiting})
    return BlockLesson(blocks=Blocks(running=now_running, gone=tuple(heard.waiting), runs=runs, counts=counts), ends=tuple(heard.ends))


def _by_run(gone: Iterable[GoneBlock], graphs: Graphs) -> dict[str, list[GoneBlock]]:
    """Sort blocks by their run; none are there of a run that no look saw, and whose nodes were read."""
    unseen = [run for run, graph in graphs.read.items() if graph and any(block.node for block in graph.blocks)]
    of_run: dict[str, list[GoneBlock]] = {run: [] for run in unseen}
    for block in gone:
        of_run.setdefault(block.run, []).append(block)
    return of_run


@dataclass(slots=True, kw_only=True)
class _Heard:
    """What graphs told in one look."""

    now: float
    builds: list[Build]
    pools: Mapping[str, str]
    ends: list[tuple[GoneBlock, BlockEnd]] = field(default_factory=list)
    waiting: list[GoneBlock] = field(default_factory=list)
    runs: dict[str, ReadRun] = field(default_factory=dict)
    counts: BlockCounts = field(default_factory=BlockCounts)

    def count_for_nobody(self, why: str, blocks: int) -> None:
        """Count blocks that count for nobody."""
        self.counts = replace(self.counts, **{why: getattr(self.counts, why) + blocks})

    def wait(self, blocks: Iterable[GoneBlock], *, in_vain: bool) -> None:
        """Ask again in another look, for as long as that may tell anything."""
        for block in blocks:
            if self.now - block.gone_at >= TOLD_WITHIN_SECONDS:
                self.count_for_nobody("unmatched", 1)
            else:
                self.waiting.append(replace(block, tries=block.tries + in_vain))


def _hear(heard: _Heard, run: str, blocks: list[GoneBlock], graphs: Graphs, known: ReadRun | None) -> None:
    """Note what the graph of one run shows about the blocks that left."""
    if known is not None and known.too_large:
        heard.count_for_nobody("too_large", len(blocks))
        return
    if run not in graphs.read:
        heard.wait(blocks, in_vain=run in graphs.failed)
        return
    graph = graphs.read[run]
    if graph is None:
        heard.count_for_nobody("run_gone", len(blocks))
    elif graph.too_large:
        heard.count_for_nobody("too_large", len(blocks))
        heard.runs[run] = ReadRun(last=0, too_large=True)
    elif graph.cut:
        heard.wait(blocks, in_vain=False)
    elif not graph.shows_steps:
        _hear_end_alone(heard, blocks, graph)
    else:
        _assign(heard, run, blocks, graph, known)


def _hear_end_alone(heard: _Heard, blocks: list[GoneBlock], graph: RunGraph) -> None:
    """Take the end of the run for that of the blocks that left last, where Jenkins tells no more."""
    ends = {BuildResult.SUCCEEDED: BlockEnd.SUCCEEDED, BuildResult.FAILED: BlockEnd.FAILED}
    last = [block for block in blocks if block.gone_at == heard.now]
    if graph.end is None:
        heard.count_for_nobody("unmatched", len(blocks))
        return
    end = ends.get(graph.end.result, BlockEnd.ABORTED) if graph.end.result else BlockEnd.ABORTED
    heard.ends += [(block, _lost(block, end)) for block in last]
    heard.count_for_nobody("unmatched", len(blocks) - len(last))


def _assign(heard: _Heard, run: str, gone: list[GoneBlock], graph: RunGraph, known: ReadRun | None) -> None:
    """Find the block of each that left."""
    choices = _choices(heard, run, [part for block in gone for part in _parts(block, graph.blocks)], graph, known)
    assigned = _assigned(choices)
    heard.ends += [(part, _lost(part, block.end)) for part, block in assigned if block.end is not None]
    heard.count_for_nobody("ambiguous", len(choices) - len(assigned))
    taken = {block.ended_as for _, block in assigned}
    unseen = [block for block in _ended(graph, known) if _is_unseen(heard, run, block, taken)]
    heard.ends += [(_unseen(heard, run, block.node), block.end) for block in unseen if block.end]
    taken |= {block.ended_as for block in unseen}
    heard.runs[run] = ReadRun(last=graph.last, read_at=heard.now, size=graph.size, assigned=tuple(sorted({*taken, *_taken(known)})))


def _is_unseen(heard: _Heard, run: str, block: NodeBlock, taken: Collection[int]) -> bool:
    """Tell whether a block ran on a node of ours, as its log says, and neither counts for a node yet nor is shown by an executor."""
    is_shown = any(build.run == run and build.signature in block.names for build in heard.builds)
    return block.ended_as not in taken and block.node in heard.pools and not is_shown


def _unseen(heard: _Heard, run: str, node: str) -> GoneBlock:
    """Describe a block that began and ended between two looks."""
    return GoneBlock(job=job_name_of(run), pool=heard.pools[node], node=node, run=run, since_at=heard.now, gone_at=heard.now)


def _choices(heard: _Heard, run: str, parts: Iterable[GoneBlock], graph: RunGraph, known: ReadRun | None) -> list[Choice]:
    """Find the blocks that each may have been; note what may go on, and what has none."""
    ended, shown = _ended(graph, known), [build.signature for build in heard.builds if build.run == run]
    choices: list[Choice] = []
    for part in parts:
        may_run = [block for block in graph.blocks if block.end is None and _fits(part, block)]
        if len(may_run) > _shown_of(may_run, shown):
            # A block with its name goes on, and no executor shows it: after a restart it waits for its node.
            heard.wait([part], in_vain=True)
        elif choice := _fitting(part, ended):
            choices.append((part, choice))
        elif not may_run:  # if one goes on, and is shown: it came back on another executor
            heard.count_for_nobody("unmatched", 1)
    return choices


def _taken(known: ReadRun | None) -> frozenset[int]:
    return frozenset(known.assigned if known else ())


def _ended(graph: RunGraph, known: ReadRun | None) -> list[NodeBlock]:
    """Find the blocks that have ended, and that no node had before."""
    taken = _taken(known)
    return [block for block in graph.blocks if block.end is not None and block.ended_as not in taken]


def _shown_of(blocks: Sequence[NodeBlock], shown: Iterable[str]) -> int:
    """Count the executors that may show one of these blocks now."""
    return sum(any(not name or name in block.names for block in blocks) for name in shown)


def _parts(gone: GoneBlock, blocks: Sequence[NodeBlock]) -> list[GoneBlock]:
    """Part what followed each other on one executor: names that no block has together are of several blocks."""
    parts: list[tuple[Shown, ...]] = []
    for shown in gone.shown:
        together = (*parts[-1], shown) if parts else (shown,)
        if parts and any(_fits(replace(gone, shown=together), block) for block in blocks):
            parts[-1] = together
        else:
            parts.append((shown,))
    return [replace(gone, shown=part) for part in parts] or [gone]


def _fits(gone: GoneBlock, block: NodeBlock) -> bool:
    """Tell whether an executor may show these names for a block; where it shows none, that says nothing."""
    return block.node in ("", gone.node) and all(not shown.name or shown.name in block.names for shown in gone.shown)


def _fitting(gone: GoneBlock, ended: Iterable[NodeBlock]) -> list[NodeBlock]:
    """Find the blocks that an executor may have shown so, and that ended after it last did."""
    after = gone.shown[-1].after if gone.shown else 0
    return [block for block in ended if _fits(gone, block) and block.ended_as > after]


def _are_alike_in_turn(choice: list[NodeBlock]) -> bool:
    """Tell whether blocks ran one after another, and all ended in the same way."""
    choice.sort(key=lambda block: block.ended_as)
    in_turn = all(later.begun_as > earlier.ended_as for earlier, later in pairwise(choice))
    return len(choice) > 1 and in_turn and len({block.end for block in choice}) == 1


def _assigned(choices: Iterable[Choice]) -> list[tuple[GoneBlock, NodeBlock]]:
    """Assign what has one choice alone, as long as that leaves others with one. Two with the same one have none."""
    left, assigned = [(gone, list(choice)) for gone, choice in choices], list[tuple[GoneBlock, NodeBlock]]()
    while sure := _sure(left):
        assigned += sure
        found, taken = {id(gone) for gone, _ in sure}, {block.ended_as for _, block in sure}
        left = [(gone, [block for block in choice if block.ended_as not in taken]) for gone, choice in left if id(gone) not in found]
    # Attempts of a retry that ended alike say the same of a node, whichever of them it had.
    return assigned + [(gone, choice[-1]) for gone, choice in left if _are_alike_in_turn(choice)]


def _sure(choices: Iterable[Choice]) -> list[tuple[GoneBlock, NodeBlock]]:
    """Find what has one choice alone that is no other's only one."""
    claims: dict[int, list[tuple[GoneBlock, NodeBlock]]] = {}
    for gone, choice in choices:
        if len(choice) == 1:
            claims.setdefault(choice[0].ended_as, []).append((gone, choice[0]))
    return [claim[0] for claim in claims.values() if len(claim) == 1]


def _lost(gone: GoneBlock, end: BlockEnd) -> BlockEnd:
    """Tell what ended with its agent from what failed, or was stopped."""
    return BlockEnd.LOST if gone.is_lost and end in (BlockEnd.FAILED, BlockEnd.ABORTED) else end


def _shown(before: Learned, build: Build) -> tuple[Shown, ...]:
    """Add what an executor shows for a block now to what it showed before."""
    run = before.blocks.runs.get(build.run)
    shown, now = before.blocks.running.get(build.key, ()), Shown(build.signature, run.last if run else 0)
    if shown and (not now.name or shown[-1].name in ("", now.name)):
        return (*shown[:-1], now) if now.name or not shown[-1].name else shown
    return (*shown, now)[-_MOST_SHOWN:]


def _counted(before: BlockCounts, more: Iterable[BlockCounts]) -> BlockCounts:
    """Add counts, and let old ones fade."""
    names = tuple(BlockCounts.__dataclass_fields__)
    totals = {name: sum(getattr(counts, name) for counts in (before, *more)) for name in names}
    fading = _FADES if sum(totals.values()) > _MOST_COUNTED else 1.0
    return BlockCounts(**{name: total * fading for name, total in totals.items()})


def _still_known(known: Mapping[str, ReadRun], now: float, present: Iterable[str]) -> dict[str, ReadRun]:
    """Keep what was read of runs that go on or may have another item, and which runs are too large."""
    there = set(present)
    large = [run for run, read in known.items() if read.too_large and run not in there][-_MOST_LARGE:]
    return {run: read for run, read in known.items() if run in there or run in large or now - read.read_at < ITEM_SECONDS}
