"""Demand: waiting items, the pools that could serve them, which of these each is counted for, and nodes waited for by name."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import TypeVar

from autoscaler.domain.facts.fleet import EMPTIED, Fleet, Pool, labels_given
from autoscaler.domain.facts.nodes import beacon_specs
from autoscaler.domain.facts.orders import Hold, Overrides
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import ControllerView, Node, QueueItem, Record, Snapshot, Wait
from autoscaler.domain.facts.started_builds import RunOrder, Target, Try
from autoscaler.domain.grouping import grouped
from autoscaler.domain.labels import LabelExpression, as_told
from autoscaler.domain.situation.distrust import NO_DISTRUST, Distrust, Refused, ration, refusers
from autoscaler.domain.situation.looks import Resumption
from autoscaler.domain.situation.wants import Taker, Unmet, Want, home_of, ignored_label, label_of, may_take, taker_of
from autoscaler.domain.wording import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The demand on one controller, in queue order; items that wait too long for something unknown come first."""

    wants: tuple[Want, ...]
    unmet: tuple[Unmet, ...]
    pins: frozenset[str]  # nodes that some item is bound to, since it asks for them by name
    resumes: frozenset[str] = frozenset()  # of these, those that parts of pipelines ask for: what began there may go on
    held: tuple[tuple[QueueItem, tuple[Hold, ...]], ...] = ()  # items that are on hold by their label, no demand, and all their holds
    unclear: tuple[QueueItem, ...] = ()  # free to run; the first of each label is a want if no executor is free for it
    blocked: tuple[QueueItem, ...] = ()  # by something unknown, for too long: no executor helps
    refused: tuple[Refused, ...] = ()  # by executors that are free: no demand
    announced: tuple[Want, ...] = ()  # that orders are about to bring
    runnable: tuple[Want, ...] = ()  # all items that a free executor should take, in words that we know or not

    @property
    def unknown(self) -> tuple[QueueItem, ...]:
        """The items that wait too long for something unknown, free to run or not."""
        return (*self.unclear, *self.blocked)

    @property
    def waiting(self) -> tuple[Want, ...]:
        """The items that wait for an executor, whether a pool serves them or not."""
        return (*self.wants, *self.unmet)

    def waits_for(self, pool: str) -> tuple[float, ...]:
        """How long each item has waited that a pool may serve, in seconds."""
        return tuple(want.item.waiting_seconds for want in self.wants if any(one.name == pool for one in want.pools))


NOTHING_WAITS = Demand(wants=(), unmet=(), pins=frozenset())


def read_demand(
    view: ControllerView,
    fleet: Fleet,
    records: Iterable[Record],
    overrides: Overrides,
    *,
    resumption: Resumption,
    distrust: Distrust = NO_DISTRUST,
) -> Demand:
    """Resolve the queue of one controller. While it recovers from a restart, items that name a node wait for that node."""
    resolver = _Resolver(view, fleet, records, distrust)
    unclear = [] if resumption.recovering else [want for want in resolver.unclear() if not resolver.holds_on(want.item, overrides)]
    held, starved, unmet = _starved(view, resolver, overrides, recovering=resumption.recovering)
    unclear, kept_off = _without_kept_off(unclear, resolver)
    starved, unmet = [*starved, *_only(Want, kept_off)], (*unmet, *_only(Unmet, kept_off))
    overdue = [want for want in unclear if resolver.waits_too_long(want) or refusers(want, distrust, resolver.refusing)]
    bound = [item for item in view.items if resolver.bound_to(item, resumption)]
    rationed = list(ration([*_first_of_each_label(overdue, resolver, overrides, distrust), *starved], distrust, resolver.refusing, view))
    return Demand(
        wants=_only(Want, rationed),
        unmet=unmet,
        pins=resolver.all_named(bound),
        resumes=resolver.all_named(item for item in bound if item.run),
        held=held,
        unclear=tuple(want.item for want in overdue),
        blocked=resolver.blocked(),
        refused=_only(Refused, rationed),
        runnable=(*unclear, *starved),
    )


# Items that ask for a beacon by its name. Jenkins uses the same words if the beacon is the only node that satisfies a label. But if another
# beacon has the same labels, or an agent with them is idle and Jenkins does not give it the item, no label is meant. A busy agent proves
# nothing: a job may exclude it by its name. What was found out about an item is remembered while it waits.


def with_beacons_asked(snapshot: Snapshot, fleet: Fleet) -> Snapshot:
    """Give items that ask for a beacon by its name that name as their label."""
    views = {**snapshot.controllers}
    for name, view in snapshot.controllers.items():
        beacons = {node.name: node.labels - {node.name} for node in view.nodes if fleet.is_beacon(node.name)}
        if named := {item.id: beacon for item in view.items if item.label is None and (beacon := _named_alone(item)) in beacons}:
            remembered, proofs = snapshot.memory.controller(name).beacon_items, _shared_labels(beacons) | _idle_labels(view, snapshot)
            beacon_of = {number: beacon for number, beacon in named.items() if number in remembered or beacons[beacon] in proofs}
            items = (replace(item, label=beacon_of[item.id]) if item.id in beacon_of else item for item in view.items)
            views[name] = replace(view, items=tuple(items)) if beacon_of else view
    return replace(snapshot, controllers=views) if views != snapshot.controllers else snapshot


def _shared_labels(beacons: Mapping[str, frozenset[str]]) -> set[frozenset[str]]:
    return {labels for labels, times in Counter(beacons.values()).items() if times > 1}


def _idle_labels(view: ControllerView, snapshot: Snapshot) -> set[frozenset[str]]:
    """List the labels of idle agents that an earlier look saw connected: they were there when Jenkins was asked for the queue."""
    records = (record for record in snapshot.records if record.controller == view.name)
    connected = {record.node for record in records if snapshot.memory.has_connected(record.life_id)}
    return {node.labels - {node.name} for node in view.nodes if node.name in connected and node.idle and not node.offline}


def _named_alone(item: QueueItem) -> str:
    """Return the one node that Jenkins names as that which an item waits for; "" if it names none, or several."""
    names = item.wait.nodes or (item.wait.named or "",)
    return names[0] if len(names) == 1 else ""


def beacon_items(view: ControllerView, fleet: Fleet) -> frozenset[int]:
    """List the ids of items that ask for a beacon by its name."""
    return frozenset(item.id for item in view.items if item.label is not None and fleet.is_beacon(item.label))


def _starved(
    view: ControllerView, resolver: "_Resolver", overrides: Overrides, *, recovering: bool
) -> tuple[tuple[tuple[QueueItem, tuple[Hold, ...]], ...], list[Want], tuple[Unmet, ...]]:
    """Resolve the items that wait for an executor: those that an operator holds, those that pools may serve, and the others."""
    held: list[tuple[QueueItem, tuple[Hold, ...]]] = []
    resolved: list[Want | Unmet] = []
    for item in view.items:
        if not (item.starved or item.unclear) or resolver.is_ignored(item):
            continue
        if holds := resolver.holds_on(item, overrides):
            held.append((item, (*holds, *overrides.holds_on(view.name, ""))))
        elif item.starved and not (recovering and item.label is None and resolver.named_nodes(item)):
            resolved.append(resolver.resolve(item))
    return tuple(held), list(_only(Want, resolved)), _only(Unmet, resolved)


def _without_kept_off(wants: list[Want], resolver: "_Resolver") -> tuple[list[Want], list[Want | Unmet]]:
    """Part items that wait for something unknown from those that only agents which decline them are free for: these are demand."""
    kept_off = [want for want in wants if resolver.is_kept_off(want)]
    ids = {want.item.id for want in kept_off}
    return [want for want in wants if want.item.id not in ids], [want if want.pools else _declined(want) for want in kept_off]


_Kind = TypeVar("_Kind")


def _only(kind: type[_Kind], resolved: Iterable[object]) -> tuple[_Kind, ...]:
    return tuple([one for one in resolved if type(one) is kind])


def _first_of_each_label(wants: Iterable[Want], resolver: "_Resolver", overrides: Overrides, distrust: Distrust) -> Iterator[Want]:
    """Choose items that another executor may help, that pools serve, none is idle for and nobody holds: the first of each label.

    After some that began on agents tried for them, as under a throttle of each node: as many as agents may be tried for.
    """
    helped = Counter[str | None]()
    for want in wants:
        label, most = want.item.asked_label, distrust.limit(want, distrust.name_of(want))[0]
        if want.pools and helped[label] < most and not (resolver.is_free(want) or resolver.holds_on(want.item, overrides)):
            helped[label] += 1
            yield want


def homes(view: ControllerView, fleet: Fleet, records: Iterable[Record]) -> Iterator[tuple[QueueItem, Pool]]:
    """Say for which pool each item of the queue is, whatever state it is in; of those that no pool can serve nothing.

    What a pool declines is its own here all the same: Jenkins may start it there.
    """
    resolver = _Resolver(view, replace(fleet, declined=None, held_labels=frozenset()), records)
    for item in view.items:
        want = None if resolver.is_ignored(item) else resolver.resolve(item)
        if want is not None and want.pools:
            yield item, home_of(want)


class _Resolver:
    """From an item's text about its label to pools, once per distinct text."""

    def __init__(self, view: ControllerView, fleet: Fleet, records: Iterable[Record], distrust: Distrust = NO_DISTRUST) -> None:
        self._view = view
        self._distrust = distrust
        self._fleet = fleet
        self._pools = fleet.pools_of(view.name)
        self._records = records
        self._by_text: dict[str, tuple[LabelExpression, tuple[Pool, ...]]] = {}
        self._anything = tuple(pool for pool in self._pools if not pool.exclusive)

    @cached_property
    def _nodes(self) -> Mapping[str, Node]:
        return {node.name: node for node in self._view.nodes}

    @cached_property
    def _known_labels(self) -> set[str]:
        labels = {label for pool in self._pools for label in pool.labels}
        return labels | {label for node in self._view.nodes for label in node.labels}

    @cached_property
    def _agents(self) -> Mapping[str, Record]:
        return {record.node: record for record in self._records if record.controller == self._view.name and record.node}

    @cached_property
    def _pool_of_node(self) -> Mapping[str, Pool]:
        """Name the pool of each agent here. A pool that does not serve this controller any more is none: it wants no agent here."""
        pools = {pool.name: pool for pool in self._pools}
        return {name: pools[record.pool] for name, record in self._agents.items() if record.pool in pools}

    def bound_to(self, item: QueueItem, resumption: Resumption) -> bool:
        """Tell whether an item can start on the one node that it names and on no other, so that this node must not end.

        Jenkins names the only node that satisfies a label, too. If a beacon carries the same labels as the node, there are two.
        A list of nodes names all that would do.
        """
        names = self.named_nodes(item)
        if len(names) != 1:
            return False
        (name,) = names
        node = self._nodes.get(name)
        if item.label is not None:
            expression, pools = self._expression(item.label)
            is_alone = not pools and self._takers(expression) == [name]
            return node is not None and (is_alone or not expression.matches(node.labels - {name}))
        return self._is_alone(name) or resumption.may_wait_for(name, item.waiting_seconds)

    def _is_alone(self, name: str) -> bool:
        """Tell whether an agent that Jenkins names in place of a label is all that can take the item: a beacon has the labels of its pool.

        So the item asks for it by its name, or for a label that somebody gave it alone. If we took its labels, no job asks for those left.
        """
        node, pool = self._nodes.get(name), self._pool_of_node.get(name)
        if node is None or not node.labels.isdisjoint(EMPTIED):
            return node is not None
        given = {frozenset(labels_given(self._fleet, pool))} if pool else set()
        return not self._labels_of_beacons.isdisjoint({node.labels - {name}, *given})

    @cached_property
    def _labels_of_beacons(self) -> set[frozenset[str]]:
        return {node.labels - {name} for name, node in self._nodes.items() if self._fleet.is_beacon(name)}

    def resolve(self, item: QueueItem) -> Want | Unmet:
        resolved = self._by_labels(item)
        return _declined(resolved) if type(resolved) is Want and not resolved.pools else resolved

    def _by_labels(self, item: QueueItem) -> Want | Unmet:
        """Find what may serve an item. A want without a pool: each pool that has the labels declines the job."""
        label = label_of(self._nodes, item)
        if label is not None:
            expression, pools = self._expression(label)
            if pools:
                return self._want(item, pools, expression)
            if len(takers := self._takers(expression)) == 1:
                return self._waits_for_a_node(item, takers[0], expression)
            return Unmet(item=item, reason=Reason.UNSERVABLE, detail=f"no pool of {self._view.name} serves {label}", expression=expression)
        names = self.named_nodes(item)
        return self._by_names(item, names) if names else self._without_label(item)

    def _takers(self, expression: LabelExpression) -> list[str]:
        """Name the nodes that satisfy a label expression now."""
        return [name for name, node in self._nodes.items() if expression.matches(node.labels)]

    def holds_on(self, item: QueueItem, overrides: Overrides) -> tuple[Hold, ...]:
        """Find the holds on an item: on its label, or on labels without which no agent of ours would take it."""
        if not overrides.holds:
            return ()
        label = label_of(self._nodes, item)
        holds = overrides.holds_on_label(label)
        return holds if holds or not self._fleet.held_labels else overrides.holds_of(self._held_for(item, label))

    def _held_for(self, item: QueueItem, label: str | None) -> frozenset[str]:
        """Name the held labels that an item needs. One that a beacon alone satisfies needs those: another beacon is without them."""
        held, ownership = self._fleet.held_labels, self._fleet.ownership_label
        if label is not None and label not in self._nodes:
            expression, pools = self._expression(label)
            is_held = not pools and any(expression.matches(pool.labels | {ownership}) for pool in self._pools)
            return expression.atoms & held if is_held else frozenset()
        named = self.named_nodes(item)
        if label is None and len(named) == 1 and self._is_beacon(named[0]):
            return self._nodes[named[0]].labels & held
        return frozenset()

    def unclear(self) -> list[Want]:
        """The items that are free to run and wait for something unknown, with what may serve them."""
        return [self._by_told_label(item) for item in self._view.items if item.unclear and not self.is_ignored(item)]

    def is_ignored(self, item: QueueItem) -> bool:
        """Tell whether another cloud serves the label of an item, as the fleet file says."""
        return bool(self._fleet.ignored_labels) and bool(ignored_label(self._fleet, self._nodes, item))

    def blocked(self) -> tuple[QueueItem, ...]:
        """The items that are not free to run, for too long, in words that are not Jenkins' own."""
        items = (item for item in self._view.items if item.wait.unclear and not (item.buildable or self.is_ignored(item)))
        return tuple(item for item in items if self.waits_too_long(self._by_told_label(item)))

    def waits_too_long(self, want: Want) -> bool:
        """Tell whether an item has waited longer than anybody should."""
        longest = min((pool.max_wait_seconds for pool in want.pools or self._pools), default=0.0)
        return want.item.waiting_seconds >= longest

    def _by_told_label(self, item: QueueItem) -> Want:
        """Find what may serve an item by the label that its job tells, if any; nothing else that it says is understood."""
        expression, pools = self._expression(item.asked_label) if item.asked_label is not None else (None, ())
        return self._want(item, pools, expression)

    @cached_property
    def free(self) -> list[Taker]:
        """The nodes that have a free executor."""
        nodes = (node for node in self._view.nodes if not node.offline and len(node.builds) < node.executors)
        return [taker_of(node, self._agents.get(node.name)) for node in nodes]

    @cached_property
    def refusing(self) -> list[Taker]:
        """Those of them that refuse any job; mostly there are none."""
        return [taker for taker in self.free if taker.name in self._distrust.nodes] if self._distrust.nodes else []

    def is_free(self, want: Want) -> bool:
        """Tell whether an executor that should take it is idle."""
        free = (taker for taker in self.free if not self._distrust.refuses(taker.name, want.item.job))
        return any(may_take(want, taker) for taker in free)

    def is_kept_off(self, want: Want) -> bool:
        """Tell whether the only free executors with the labels of an item are of pools that decline its job.

        If Jenkins keeps the job from them by a plugin, as the operator may want, it gives that as the reason why the item waits.
        """
        if not want.declined_by or self.is_free(want):
            return False
        willing = replace(want, declined_by=frozenset())
        return any(taker.pool in want.declined_by and may_take(willing, taker) for taker in self.free)

    def _want(
        self,
        item: QueueItem,
        pools: tuple[Pool, ...],
        expression: LabelExpression | None,
        *,
        nodes: Iterable[str] = (),
        beacon_labels: frozenset[str] | None = None,
    ) -> Want:
        declined_by = self._declined_by(item, pools)
        return Want(
            item=item,
            pools=tuple(pool for pool in pools if pool.name not in declined_by) if declined_by else pools,
            expression=expression,
            nodes=frozenset(nodes),
            beacon_labels=beacon_labels,
            weight=self._fleet.weights.of(item.job),
            declined_by=declined_by,
        )

    def _declined_by(self, item: QueueItem, pools: tuple[Pool, ...]) -> frozenset[str]:
        """Name the pools that decline the job of an item, of all that its labels would do for."""
        if self._fleet.declined is None:
            return frozenset()
        why = partial(self._fleet.declines, self._view.name, job=item.job, of_pipeline=bool(item.run))
        return frozenset(pool.name for pool in pools if why(pool.name))

    def _by_names(self, item: QueueItem, names: tuple[str, ...]) -> Want | Unmet:
        name = names[0] if len(names) == 1 else ""
        if name and self._is_beacon(name):
            return self._by_beacon(item, name)
        if name and (self._is_alone(name) or self._pool_at(name) is None):
            return self._waits_for_a_node(item, name)
        if pools := {pool.name: pool for name in names if (pool := self._pool_at(name))}:
            return self._want(item, tuple(pools.values()), None, nodes=names)
        return Unmet(
            item=item,
            reason=Reason.UNSERVABLE,
            detail=f"it waits for {', '.join(names)}, which are of no pool",
            nodes=frozenset(names),
        )

    def _is_beacon(self, name: str) -> bool:
        """Tell whether a node is a beacon of ours. The queue is read at another moment than the nodes: it may be gone."""
        return name in self._nodes and self._fleet.is_beacon(name)

    def _by_beacon(self, item: QueueItem, name: str) -> Want | Unmet:
        """Find the pools that give the labels of a beacon: they alone satisfy what the item asks for, and Jenkins does not show it."""
        labels = self._nodes[name].labels - {name}
        pools = tuple(pool for pool in self._pools if labels == {*labels_given(self._fleet, pool)})
        if pools:
            return self._want(item, pools, None, beacon_labels=labels)
        detail = "it waits for what only a beacon satisfies: a label expression that excludes, which Jenkins does not show"
        return Unmet(item=item, reason=Reason.LABEL_UNKNOWN, detail=detail, nodes=frozenset((name,)))

    def _waits_for_a_node(self, item: QueueItem, name: str, expression: LabelExpression | None = None) -> Unmet:
        """Say that one node alone can take an item: it asks for it by name, or for a label that no other node has, and no pool gives."""
        if item.label is None and not all(spec.name in self._nodes for spec in beacon_specs(self._fleet, self._view.name)):
            detail = f"Jenkins names {name} in place of a label; the beacons will make it show the label"
            return Unmet(item=item, reason=Reason.LABEL_UNKNOWN, detail=detail, nodes=frozenset((name,)))
        node = self._nodes.get(name)
        state = "is not there" if node is None else "is offline" if node.offline else "is busy"
        if self._fleet.is_beacon(name):
            state = "takes no builds: it is a beacon of the autoscaler; ask for a label that agents have"
        return Unmet(
            item=item,
            reason=Reason.WAITS_FOR_NODE,
            detail=f"{name} alone can take it, and {state}",
            expression=expression,
            nodes=frozenset((name,)),
        )

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
            expression = as_told(text, self._known_labels)
            pools = tuple(pool for pool in self._pools if expression.matches(pool.labels | {self._fleet.ownership_label}))
            if self._fleet.held_labels:
                pools = tuple(pool for pool in pools if expression.matches({*labels_given(self._fleet, pool)} - self._fleet.held_labels))
            self._by_text[text] = expression, pools
        return self._by_text[text]

    def _pool_at(self, name: str) -> Pool | None:
        """Find the pool of a node: that of the agent there, or the one that takes this static node."""
        node = self._nodes.get(name)
        if name in self._pool_of_node or node is None or not node.agent:
            return self._pool_of_node.get(name)
        return self._fleet.pool_of_slot(self._view.name, node.labels)

    def all_named(self, items: Iterable[QueueItem]) -> frozenset[str]:
        """Name the nodes that any of these items names."""
        return frozenset(name for item in items for name in self.named_nodes(item))

    def named_nodes(self, item: QueueItem) -> tuple[str, ...]:
        named = item.wait.named
        lone = (named,) if named is not None and named in self._nodes else ()
        return tuple(dict.fromkeys((*item.wait.nodes, *lone))) if item.wait.nodes else lone


def _declined(want: Want) -> Unmet:
    """Say that no pool takes an item, since each pool that its labels would do for declines its job."""
    names = sorted(want.declined_by)
    detail = f"{listed(names)} would have its labels, and {'takes' if len(names) == 1 else 'take'} only shorter jobs (max_job_seconds)"
    return Unmet(item=want.item, reason=Reason.JOB_TOO_LONG, detail=detail, expression=want.expression, declined_by=want.declined_by)


# Builds of orders that are on their way to the queue: an agent may boot for them before Jenkins shows that they wait.
#
# A build of a pipeline begins on the controller, and asks for its agent only once its first steps are done; what was sent a moment ago may
# not be in the queue yet.


# A build that asks for no agent so long after it was started may never ask for one.
ANNOUNCED_SECONDS = 300.0
_NOBODY = -2_000_000  # ids of items that are not there yet begin here


def announced(view: ControllerView, orders: Iterable[RunOrder], fleet: Fleet, overrides: Overrides, now: float) -> Iterator[Want]:
    """Return what is yet to come of the orders of one controller, each for the pool that was chosen for it."""
    pools, number = {pool.name: pool for pool in fleet.pools_of(view.name)}, count(_NOBODY, -1)
    for order in orders:
        unknown = _unknown_builds(order, view)
        for target, last in _coming(order, view.name, now):
            is_kept = fleet.declines(view.name, target.pool, order.job) or overrides.holds_on_label(target.label)
            if target.pool not in pools or _is_seen(last, view) or is_kept:
                continue  # its pool declines it, or a person holds its label
            if not last.run and unknown:
                unknown -= 1  # it has left the queue, and this may be it
                continue
            pool = pools[target.pool]
            expression = as_told(target.label) if target.label else None
            yield Want(item=_made_up(order.job, pool, next(number), now - last.at), pools=(pool,), expression=expression)


def _coming(order: RunOrder, controller: str, now: float) -> Iterator[tuple[Target, Try]]:
    for part in order.parts:
        last = part.last
        if part.target.controller != controller or last is None or not last.is_open or order.is_over:
            continue
        if last.ended_at is None and now - last.at < ANNOUNCED_SECONDS:
            yield part.target, last


def _unknown_builds(order: RunOrder, view: ControllerView) -> int:
    """Count the builds of the job, on agents or waiting for one, of which the order does not know yet whether they are its own."""
    known = order.runs_on(view.name)
    on_agents = (build.run for node in view.nodes if node.agent for build in node.builds if build.job == order.job)
    waiting = (item.run for item in view.items if item.job == order.job and item.run)
    return len({*on_agents, *waiting} - known)


def _is_seen(one: Try, view: ControllerView) -> bool:
    """Tell whether Jenkins shows what a build waits for, or where it runs."""
    if one.node or any(item.id == one.item or (one.run and item.run == one.run) for item in view.items):
        return True
    return bool(one.run) and any(build.run == one.run for node in view.nodes if node.agent for build in node.builds)


def _made_up(job: str, pool: Pool, number: int, waiting_seconds: float) -> QueueItem:
    """Make the item that is to come. It counts at once: somebody ordered it."""
    wait = Wait(for_executor=True)
    seconds = max(waiting_seconds, pool.queue_maturity_seconds)
    return QueueItem(id=number, job=job, run="", label=None, labelless=False, wait=wait, buildable=True, waiting_seconds=seconds)


# Demand by pool: each item that waits is counted for one of the pools that could serve it.


def executors_by_pool(demand: Demand, left: Mapping[str, Collection[int]]) -> dict[str, int]:
    """Count the executors that starved items want, each for one of its pools; of a pool's agent none wants more than it has.

    An item that free executors refuse wants an agent of its own. ``left``: how many executors each agent has beside its builds, by pool.
    Where they are too few for the heaviest item they are as good as taken, unless lighter ones take them.
    """
    wanted: dict[str, int] = {}
    for name, wants in grouped((home_of(want).name, want) for want in demand.wants).items():
        most = home_of(wants[0]).executors
        weights = [min(want.weight, most) for want in wants]
        useless = sum(executors for executors in left[name] if executors < max(weights))
        lighter = sum(weight for weight in weights if weight < max(weights))
        own = sum(most if want.refused_by else weight for want, weight in zip(wants, weights, strict=True))
        wanted[name] = own + max(0, useless - lighter)
    return wanted
