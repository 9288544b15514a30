"""Demand: waiting items, the pools that could serve them, and the nodes that items wait for by name."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import attrgetter

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.overrides import Hold, Overrides
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import ControllerView, Node, QueueItem, Record
from autoscaler.domain.labels import LabelExpression, LabelSyntaxError, one_label, parse

# A pipeline resumes minutes after a restart, and waits for its node by name then; what begins to wait later is no such pipeline.
RESUMED_WITHIN_SECONDS = 3600.0
# An item that waits for something unknown beside a free executor is not helped by another one; after so long one is tried again.
UNHELPED_SECONDS = 6 * 3600.0
# More labels than this to change is no explanation that anybody would read.
_FLIPS_TRIED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A starved item, and what may serve it: pools to launch in, and a test for nodes of no pool."""

    item: QueueItem
    pools: tuple[Pool, ...]
    expression: LabelExpression | None  # None: it names a node, or no label at all
    weight: int = 1  # executors that it takes; an agent that has fewer it takes alone

    @property
    def mature(self) -> bool:
        """It has waited long enough to count; an executor may have become free by itself until then."""
        return self.item.waiting_seconds >= min(pool.queue_maturity_seconds for pool in self.pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """A starved item that no pool can serve, and why."""

    item: QueueItem
    reason: Reason
    detail: str
    expression: LabelExpression | None = None  # where it is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """An item that has waited too long for something unknown. ``free``: an executor that could take it is idle."""

    item: QueueItem
    free: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The demand on one controller, in queue order; items that wait too long for something unknown come first."""

    wants: tuple[Want, ...]
    unmet: tuple[Unmet, ...]
    pins: frozenset[str]  # nodes that some item waits for by name
    held: tuple[tuple[QueueItem, Hold], ...] = ()  # items that an operator holds by their label: no demand
    unclear: tuple[Unclear, ...] = ()  # where an executor may help, the first of each label is a want, too
    blocked: tuple[QueueItem, ...] = ()  # by something unknown, for too long: no executor helps

    @property
    def unknown(self) -> tuple[QueueItem, ...]:
        """The items that wait too long for something unknown, free to run or not."""
        return (*(one.item for one in self.unclear), *self.blocked)

    def waits_for(self, pool: str) -> tuple[float, ...]:
        """How long each item has waited that a pool may serve, in seconds."""
        return tuple(want.item.waiting_seconds for want in self.wants if any(one.name == pool for one in want.pools))


def read_demand(
    view: ControllerView,
    fleet: Fleet,
    records: Iterable[Record],
    overrides: Overrides,
    *,
    recovering: bool,
    unhelped: Collection[str] = (),
) -> Demand:
    """Resolve the queue of one controller. ``recovering``: it restarted lately, items that name a node wait for that node.

    ``unhelped``: items, as controller/id, beside which an executor stood free already.
    """
    resolver = _Resolver(view, fleet, records)
    unclear = resolver.unclear()
    held: list[tuple[QueueItem, Hold]] = []
    resolved: list[Want | Unmet] = []
    if not recovering:
        resolved += _first_of_each_label(resolver.unclear(unhelped), resolver, overrides)
    for item in filter(attrgetter("starved"), view.items):
        if hold := overrides.hold_on_label(item.asked_label):
            held.append((item, hold))
        elif not (recovering and resolver.names_a_node(item)):
            resolved.append(resolver.resolve(item))
    return Demand(
        wants=tuple(one for one in resolved if isinstance(one, Want)),
        unmet=tuple(one for one in resolved if isinstance(one, Unmet)),
        pins=resolver.pins(),
        held=tuple(held),
        unclear=tuple(Unclear(item=want.item, free=resolver.is_free(want)) for want in unclear),
        blocked=resolver.blocked(),
    )


def _first_of_each_label(wants: Iterable[Want], resolver: "_Resolver", overrides: Overrides) -> Iterator[Want]:
    """Choose the items that another executor may help: the first of each label that pools serve, none is idle for and nobody holds."""
    helped: set[str | None] = set()
    for want in wants:
        label = want.item.asked_label
        if want.pools and label not in helped and not (resolver.is_free(want) or overrides.hold_on_label(label)):
            helped.add(label)
            yield want


def note_unhelped(known: Mapping[str, float], demands: Mapping[str, Demand], now: float) -> dict[str, float]:
    """Remember the unclear items beside which an executor stood free: another one would not help them either."""
    unclear = {f"{name}/{one.item.id}": one for name, demand in demands.items() for one in demand.unclear}
    kept = {key: at for key, at in known.items() if key in unclear and now - at < UNHELPED_SECONDS}
    return {key: now for key, one in unclear.items() if one.free} | kept


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


def starved_by_pool(demand: Demand) -> dict[str, int]:
    """Count starved items, mature or not, each for one pool: the one with the fewest labels."""
    return dict(Counter(_home(want).name for want in demand.wants))


def executors_by_pool(demand: Demand) -> dict[str, int]:
    """Count the executors that starved items want, likewise; of a pool's agent none wants more than it has."""
    wanted: dict[str, int] = {}
    for want in demand.wants:
        home = _home(want)
        wanted[home.name] = wanted.get(home.name, 0) + min(want.weight, home.executors)
    return wanted


def homes(view: ControllerView, fleet: Fleet, records: Iterable[Record]) -> Iterator[tuple[QueueItem, Pool]]:
    """Say for which pool each item of the queue is, whatever state it is in; of those that no pool can serve nothing."""
    resolver = _Resolver(view, fleet, records)
    for item in view.items:
        want = resolver.resolve(item)
        if isinstance(want, Want):
            yield item, _home(want)


def _home(want: Want) -> Pool:
    """Choose the pool that an item is counted for: the one with the fewest labels."""
    return min(want.pools, key=lambda pool: (len(pool.labels), pool.name))


def pins_of_begun(view: ControllerView, pins: frozenset[str], since_at: float, now: float) -> frozenset[str]:
    """Keep those pinned nodes that a begun pipeline may need to end.

    Jenkins names the node also to a job that asks for a label which only this node has: that one is to begin. ``since_at``: of the
    controller's present life; a part of a pipeline that waits since then may have run before.
    """
    running = {build.run for node in view.nodes if node.agent for build in node.builds}
    begun = (item for item in view.items if item.run in running or now - item.waiting_seconds < since_at + RESUMED_WITHIN_SECONDS)
    return pins & {name for item in begun if item.run for name in (*item.wait.nodes, item.wait.named)}


class _Resolver:
    """From what an item tells of its label to pools, once per distinct text."""

    def __init__(self, view: ControllerView, fleet: Fleet, records: Iterable[Record]) -> None:
        self._view = view
        self._fleet = fleet
        self._pools = fleet.pools_of(view.name)
        self._records = records
        self._by_text: dict[str, tuple[LabelExpression, tuple[Pool, ...]]] = {}
        self._by_node: dict[str, tuple[Pool, ...]] = {}
        self._anything = tuple(pool for pool in self._pools if not pool.exclusive)

    @cached_property
    def _nodes(self) -> Mapping[str, Node]:
        return {node.name: node for node in self._view.nodes}

    @cached_property
    def _known_labels(self) -> set[str]:
        labels = {label for pool in self._pools for label in pool.labels}
        return labels | {label for node in self._view.nodes for label in node.labels}

    @cached_property
    def _pool_of_node(self) -> Mapping[str, Pool]:
        pools, here = self._fleet.pools, [record for record in self._records if record.controller == self._view.name]
        return {record.node: pools[record.pool] for record in here if record.node and record.pool in pools}

    def pins(self) -> frozenset[str]:
        return frozenset(name for item in self._view.items for name in self._named_nodes(item))

    def names_a_node(self, item: QueueItem) -> bool:
        return item.label is None and bool(self._named_nodes(item))

    def resolve(self, item: QueueItem) -> Want | Unmet:
        label = item.asked_label
        named = self._named_nodes(item)
        if label is None and item.wait.named is not None and not named:
            label = item.wait.named
        if label is not None and label not in self._nodes:
            expression, pools = self._expression(label)
            if pools:
                return self._want(item, pools, expression)
            detail = f"no pool of {self._view.name} serves {label}"
            return Unmet(item=item, reason=Reason.UNSERVABLE, detail=detail, expression=expression)
        names = (label,) if label is not None else named
        if names:
            return self._by_names(item, names)
        return self._without_label(item)

    def unclear(self, without: Collection[str] = ()) -> list[Want]:
        items = (item for item in self._view.items if item.unclear and f"{self._view.name}/{item.id}" not in without)
        return [want for item in items if (want := self.waits_too_long(item))]

    def blocked(self) -> tuple[QueueItem, ...]:
        """The items that are not free to run, for too long, in words that are not Jenkins' own."""
        items = (item for item in self._view.items if item.wait.unclear and not item.buildable)
        return tuple(item for item in items if self.waits_too_long(item))

    def waits_too_long(self, item: QueueItem) -> Want | None:
        """What may serve an unclear item, by the label that its job tells; None where it has not waited longer than anybody should."""
        text = item.asked_label
        known = text is not None and text not in self._nodes
        expression, pools = self._expression(text) if known and text is not None else (None, ())
        longest = min((pool.max_wait_seconds for pool in pools or self._pools), default=0.0)
        return self._want(item, pools, expression) if item.waiting_seconds >= longest else None

    def is_free(self, want: Want) -> bool:
        """Tell whether an executor that could take it is idle."""
        free = (node for node in self._view.nodes if not node.offline and len(node.builds) < node.executors)
        return want.expression is not None and any(want.expression.matches(node.labels) for node in free)

    def _want(self, item: QueueItem, pools: tuple[Pool, ...], expression: LabelExpression | None) -> Want:
        return Want(item=item, pools=pools, expression=expression, weight=self._fleet.weights.of(item.job))

    def _by_names(self, item: QueueItem, names: tuple[str, ...]) -> Want | Unmet:
        found: dict[str, Pool] = {}
        for name in names:
            found |= {pool.name: pool for pool in self._pools_of_node(name)}
        if found:
            return self._want(item, tuple(found.values()), None)
        if self._fleet.beacon in names:
            detail = "it waits for what only the beacon satisfies: a label expression that excludes, which Jenkins does not show"
            return Unmet(item=item, reason=Reason.LABEL_UNKNOWN, detail=detail)
        return Unmet(item=item, reason=Reason.UNSERVABLE, detail=f"it waits for {', '.join(names)}, which no pool is like")

    def _without_label(self, item: QueueItem) -> Want | Unmet:
        if not item.labelless and self._fleet.beacon not in self._nodes:
            detail = "Jenkins names no label while it has no agent node; the beacon will make it"
            return Unmet(item=item, reason=Reason.LABEL_UNKNOWN, detail=detail)
        if self._anything:
            return self._want(item, self._anything, None)
        detail = "it asks for no label, and every pool takes only jobs that ask for one (exclusive)"
        return Unmet(item=item, reason=Reason.UNSERVABLE, detail=detail)

    def _expression(self, text: str) -> tuple[LabelExpression, tuple[Pool, ...]]:
        if text not in self._by_text:
            expression = _read(text, self._known_labels)
            pools = tuple(pool for pool in self._pools if expression.matches(pool.labels | {self._fleet.ownership_label}))
            self._by_text[text] = expression, pools
        return self._by_text[text]

    def _pools_of_node(self, name: str) -> tuple[Pool, ...]:
        if name not in self._by_node:
            self._by_node[name] = self._look_up_node(name)
        return self._by_node[name]

    def _look_up_node(self, name: str) -> tuple[Pool, ...]:
        if name in self._pool_of_node:
            return (self._pool_of_node[name],)
        node = self._nodes.get(name)
        if node is None or not node.agent:
            return ()
        slot_of = self._fleet.pool_of_slot(self._view.name, node.labels)
        if slot_of is not None:
            return (slot_of,)
        # Not ours: the item's own label is hidden behind the node's name, so serve it as the pools most like that node do.
        likeness = {pool.name: len(pool.labels & node.labels) for pool in self._pools}
        most = max(likeness.values(), default=0)
        return tuple(pool for pool in self._pools if most and likeness[pool.name] == most)

    def _named_nodes(self, item: QueueItem) -> tuple[str, ...]:
        named = item.wait.named
        return (*item.wait.nodes, *((named,) if named is not None and named in self._nodes else ()))


def _read(text: str, known_labels: set[str]) -> LabelExpression:
    """Parse a label as Jenkins tells it: a lone label is not quoted, whatever characters it contains."""
    if text in known_labels:
        return one_label(text)
    try:
        return parse(text)
    except LabelSyntaxError:
        return one_label(text)
