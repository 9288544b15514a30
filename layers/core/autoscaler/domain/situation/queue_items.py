"""Which queue items a look asks about, to learn of builds that no look saw: they begin and end between two looks.

Jenkins numbers the items of its queue one after another, and tells for five minutes what became of one that left. A machine on which
every build fails at once takes an item within a second, and is idle again: nothing else tells of its builds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.runs import Graphs, Item, ItemState, SeenItems
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, ControllerView

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
