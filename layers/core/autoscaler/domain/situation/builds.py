"""Builds, node blocks and queue items from look to look: what began and ended, what to ask about, and whether orders may be open."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import LEFT_KEPT, Learned, LeftQueue, Memory, Sighting, patience_of
from autoscaler.domain.facts.runs import (
    BlockCounts,
    BlockEnd,
    Blocks,
    BuildResult,
    GoneBlock,
    Graphs,
    Item,
    ItemState,
    NodeBlock,
    ReadRun,
    RunGraph,
    SeenItems,
    Shown,
    job_name_of,
)
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, Build, ControllerView, Node, OfflineCause
from autoscaler.domain.forecast.job_patterns import Arrival, Present, presents
from autoscaler.domain.grouping import grouped
from autoscaler.domain.situation.situation import Look, Situation
from autoscaler.domain.situation.warm_pool import nodes_counted

# Compare the builds and queue items of this look with those of the last one: what began, what came, how long it waited.


# What began or ended while nobody looked for longer than this says nothing of how long builds take.
UNWATCHED_SECONDS = 600.0
Begun = list[tuple[Sighting, float | None]]  # builds that began, and how long each had waited; None: it was never seen waiting


def last_look_at(situation: Situation, controller: str) -> float | None:
    """Return when the look before this one was; None: nobody has looked before, and what is there may be of any age.

    A look that sees no build and no waiting item is not saved, except the first one: it notes the controller's session.
    """
    before = situation.snapshot.learned[controller]
    if before.running or before.waiting or before.runs:
        return before.seen_at
    return situation.now - situation.snapshot.look_every_seconds if before.seen_at else None


def builds_had(situation: Situation, controller: str, nodes: Iterable[str]) -> dict[str, int]:
    """Count the builds that began on nodes of pools that allow only so many, for as long as their agents are there, in all their lives."""
    known = situation.snapshot.learned[controller].builds
    had = {node: known.get(node, 0) for node in nodes_counted(situation, controller)}
    for node in nodes:
        if node in had:
            had[node] += 1
    return {node: count for node, count in had.items() if count}


def running_builds(situation: Situation, controller: str, before: Learned) -> tuple[dict[str, Sighting], dict[str, Sighting]]:
    """Find the builds on our executors: those that the last look did not see, and all."""
    running, last_at = dict[str, Sighting](), last_look_at(situation, controller)
    was_blind = last_at is None or situation.now - last_at > UNWATCHED_SECONDS
    agents = (agent for pool in situation.pools_of(controller).values() for agent in pool.agents)
    for node, pool in ((agent.node, agent.pool.name) for agent in agents if agent.node):
        for build in node.builds:
            sighting = Sighting(
                job=build.job,
                pool=pool,
                since_at=situation.now - (build.elapsed_seconds or 0.0),
                node=node.name,
                run=build.run,
                begin_unknown=was_blind and build.elapsed_seconds is None,
            )
            running[build.key] = before.running.get(build.key, sighting)
    return {key: sighting for key, sighting in running.items() if key not in before.running}, running


def runs_present(situation: Situation, controller: str) -> dict[str, Present]:
    """Find what every run has in the queue and on our executors."""
    wants = situation.demands[controller].wants
    items = [(want.item.run, want.item.job, want.item.id, want.pools[0].name) for want in wants if want.item.run]
    agents = [agent for pool in situation.pools_of(controller).values() for agent in pool.agents if agent.node]
    builds = [(b.run, b.job, b.key, agent.pool.name) for agent in agents if agent.node for b in agent.node.builds if b.run]
    return presents(items, builds)


def begun_builds(fresh: Iterable[Sighting], before: Learned, waiting: Mapping[str, float]) -> Begun:
    """Match each build that began to an item of its job that left the queue: how long that had waited; None: it was never seen waiting."""
    left = grouped((item.split("\n", 1)[1], waited) for item, waited in before.waiting.items() if item not in waiting)
    for waits in left.values():
        waits.sort()
    return [(sighting, left[sighting.job].pop() if left.get(sighting.job) else None) for sighting in fresh]


def arrivals_of(situation: Situation, controller: str, begun: Begun) -> list[Arrival]:
    """Find what was asked for since the last look: new items, builds never seen waiting, and of a pipeline its beginning."""
    before, now = situation.snapshot.learned[controller], situation.now
    if last_look_at(situation, controller) is None:
        return []
    arrived = {
        sighting.run: Arrival(job=sighting.job, pool=sighting.pool, at=sighting.since_at)
        for sighting, waited in begun
        if waited is None and sighting.run not in before.runs
    }
    for want in situation.demands[controller].wants:
        item = want.item
        # What does not wait for us, as a rule, is not foreseen.
        if f"{item.id}\n{item.job}" not in before.waiting and item.run not in before.runs and not want.patience_seconds:
            arrived[item.run or str(item.id)] = Arrival(job=item.job, pool=want.pools[0].name, at=now - item.waiting_seconds)
    return sorted(arrived.values(), key=lambda arrival: arrival.at)


def note_left(
    situation: Situation, before: Learned, view: ControllerView, answers: Mapping[int, Item], ours: Collection[str]
) -> dict[str, tuple[LeftQueue, ...]]:
    """Note how items left the queue since the last look, by label set. ``answers``: what Jenkins tells of them; ``ours``: nodes.

    Of those that others took, or nobody, one a look counts: a person may clear a queue.
    """
    served, lost = list[tuple[str, LeftQueue]](), dict[str, LeftQueue]()
    nodes = {(build.run, build.signature if build.is_block else None): node.name for node in view.nodes for build in node.builds}
    for key, label_set in before.label_sets.items():
        if answer := answers.get(int(key.partition("\n")[0])):
            node = nodes.get((answer.run, answer.block), "")
            if (node or answer.node) in ours:
                served.append((label_set, LeftQueue()))
            elif (node or answer.state is ItemState.CANCELLED) and _counts(situation, label_set, before.left_queue.get(label_set, ())):
                # It waited for so long at most: it left between the two looks.
                lost[label_set] = LeftQueue(waited_seconds=before.waiting[key] + situation.now - before.seen_at, node=node)
    return {
        **before.left_queue,
        **{name: (*before.left_queue.get(name, ()), *new)[-LEFT_KEPT:] for name, new in grouped((*served, *lost.items())).items()},
    }


def _counts(situation: Situation, label_set: str, left: Collection[LeftQueue]) -> bool:
    """Tell whether an item that was not served counts: an agent boots that may be for it, or none does since the last ones did not wait."""
    return patience_of(left) > 0 or any(
        agent.phase.boots and agent.pool.name in label_set.partition("\n")[0].split(", ") for agent in situation.agents
    )


def job_waits(situation: Situation, controller: str, begun: Begun) -> dict[str, tuple[float, ...]]:
    """Tell how long the builds that began had waited, by pool; one never seen waiting came and went between two looks."""
    last_at = last_look_at(situation, controller)
    if last_at is None:
        return {}
    half_gap = min(situation.now - last_at, MINUTE_SECONDS) / 2
    return {pool: tuple(waits) for pool, waits in grouped((began.pool, half_gap + (waited or 0.0)) for began, waited in begun).items()}


# Which queue items a look asks about, to learn of builds that no look saw: they begin and end between two looks.
#
# Jenkins numbers the items of its queue one after another, and tells for five minutes what became of one that left. A machine on which
# every build fails at once takes an item within a second, and is idle again: nothing else tells of its builds.


# One small request each. Of more than ten new items each next one asked about lies twice as far ahead, up to the newest: a sample, in which
# a machine that takes a few per cent of all builds is found within minutes.
ITEMS_ASKED_A_LOOK, _ASKED_IN_A_ROW = 20, 8
# Behind a number that Jenkins does not know others may follow: that item was dropped, or left more than five minutes ago. Each look tries
# the next one and another, which lies twice as far ahead as the minute before, up to 4,096, then near again.
_DOUBLED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedItems:
    """The items that a look asks about, the newest number that it saw, and the answers. ``ahead``: how far it tries behind an unknown one.

    ``shown``: runs and names of the node blocks that executors showed in this look and the last one, or that wait for their run's graph.
    """

    seen: SeenItems = field(default_factory=SeenItems)
    newest: int = 0
    ahead: int = 1
    shown: frozenset[tuple[str, str | None]] = frozenset()
    answers: dict[int, Item] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs of pipelines whose node blocks may have come and gone."""
        return tuple(dict.fromkeys(item.run for item in self.answers.values() if self._is_unseen(item)))

    def _is_unseen(self, item: Item) -> bool:
        return item.block is not None and (item.run, item.block) not in self.shown

    def knows(self, item: int) -> bool:
        """Tell whether Jenkins knew this item."""
        return item in self.answers and self.answers[item].state is not ItemState.UNKNOWN

    def to_ask(self) -> Iterator[int]:
        """Name the items, each once the one before is answered: those that left, then new ones until Jenkins knows none."""
        yield from self.seen.open
        item, step = self.seen.next, 1
        for count in range(ITEMS_ASKED_A_LOOK - len(self.seen.open)):
            yield item
            if self.knows(item):
                step *= 2 if count >= _ASKED_IN_A_ROW else 1
                item += step
            elif item < self.newest:
                item = self.newest
            else:
                break
        if item == self.seen.next and not self.knows(item):
            yield from (item + 1, item + self.ahead)

    def next(self, view: ControllerView, graphs: Graphs) -> SeenItems:
        """Carry on: the next look goes on behind the last known item, and asks again about those that may not have ended."""
        seen, runs = self.seen, [build.run for node in view.nodes for build in node.builds]
        left_open = [item for item in seen.open if item not in self.answers]
        left_open += [item for item, answer in self.answers.items() if self._is_open(answer, runs, graphs)]
        known = [item for item in self.answers if item >= seen.next and self.knows(item)]
        last = max(known, default=max(seen.next - 1, self.newest if seen.next in self.answers else 0))
        return replace(seen, next=last + 1, open=tuple(left_open))

    def _is_open(self, item: Item, runs: list[str], graphs: Graphs) -> bool:
        """Tell whether an item waits or what it began goes on, and no executor shows it."""
        if self._is_unseen(item):
            graph = graphs.read.get(item.run)
            return item.run not in graphs.read or (graph is not None and sum(b.end is None for b in graph.blocks) > runs.count(item.run))
        return item.state is ItemState.WAITING or (bool(item.node) and item.end is None and item.run not in runs)


def items_of(before: Learned, view: ControllerView, counted: Iterable[int], now: float) -> AskedItems:
    """Begin a look's questions with what is known of this session's items. ``counted``: items of builds whose result is known."""
    waiting, counted = {item.id for item in view.items}, frozenset(counted)
    newest = max((*waiting, *counted), default=0)
    if before.items.session != view.session:
        return AskedItems(seen=SeenItems(session=view.session, next=newest + 1), newest=newest)
    left = [int(key.partition("\n")[0]) for key in before.waiting]
    candidates = dict.fromkeys(item for item in (*before.items.open, *left) if item not in waiting and item not in counted)
    seen = replace(before.items, open=tuple(candidates)[-(ITEMS_ASKED_A_LOOK // 2) :])
    ahead = 2 ** (1 + int(now // MINUTE_SECONDS) % _DOUBLED)
    return AskedItems(seen=seen, newest=newest, ahead=ahead, shown=_shown(before, view))


def _shown(before: Learned, view: ControllerView) -> frozenset[tuple[str, str | None]]:
    shown: set[tuple[str, str | None]] = {(build.run, build.signature) for node in view.nodes for build in node.builds}
    for key, names in before.blocks.running.items():
        shown |= {(before.running[key].run, name.name) for name in names if key in before.running}
    shown |= {(block.run, name.name) for block in before.blocks.gone for name in block.shown}
    return frozenset(shown)


# Node blocks of pipelines: which of them ran on which node, and how they ended there.
#
# An executor shows the run of a block, and the stage or branch that encloses its steps; a look sees that anyway. How a block ended stands
# in its run's flow graph, which is read once a block has left its executor. What both have in common is the name, so a block counts for a
# node if its name fits one block alone. Numbers of steps rise with time: what ended before an executor still showed the block is another
# one.


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
            is_lost=is_away(nodes.get(sighting.node)),
        )
        for key, sighting in before.running.items()
        if key in before.blocks.running and key not in shown and sighting.run and sighting.node
    )
    return (*before.blocks.gone, *left)[:_MOST_GONE]


def is_away(node: Node | None) -> bool:
    """Tell whether a node's agent was lost, and what ran on it with the agent."""
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
    now_running = {build.key: _shown_blocks(before, build) for build in builds if build.key in ours}
    counts = _counted(before.blocks.counts, (heard.counts, BlockCounts(assigned=float(len(heard.ends)))))
    runs = _still_known({**known, **heard.runs}, now, {build.run for build in builds} | {block.run for block in heard.waiting})
    return BlockLesson(blocks=Blocks(running=now_running, gone=tuple(heard.waiting), runs=runs, counts=counts), ends=tuple(heard.ends))


def _by_run(gone: Iterable[GoneBlock], graphs: Graphs) -> dict[str, list[GoneBlock]]:
    """Sort blocks by their run; none are there of a run that no look saw, and whose nodes were read."""
    unseen = [run for run, graph in graphs.read.items() if graph and any(block.node for block in graph.blocks)]
    blocks = grouped((block.run, block) for block in gone)
    return {run: blocks.get(run, []) for run in (*unseen, *blocks)}


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
    claims = grouped((choice[0].ended_as, (gone, choice[0])) for gone, choice in choices if len(choice) == 1)
    return [claim[0] for claim in claims.values() if len(claim) == 1]


def _lost(gone: GoneBlock, end: BlockEnd) -> BlockEnd:
    """Tell what ended with its agent from what failed, or was stopped."""
    return BlockEnd.LOST if gone.is_lost and end in (BlockEnd.FAILED, BlockEnd.ABORTED) else end


def _shown_blocks(before: Learned, build: Build) -> tuple[Shown, ...]:
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


# Whether orders of runs may be open: only then they are read, and carried on, though the key `runs` may have left the fleet file.


def may_have_orders(fleet: Fleet, memory: Memory) -> bool:
    """Tell whether orders may be open: people may order runs, or could when orders were last looked at, or some were open then."""
    return fleet.runs is not None or memory.fleet.may_have_orders


def next_may_have_orders(memory: Memory, look: Look) -> bool:
    """Remember whether a look without the key is to read orders. As long as they cannot be read, they may be there."""
    orders = look.snapshot.run_orders
    return may_have_orders(look.fleet, memory) if orders is None else look.fleet.runs is not None or bool(orders)
