"""Distrust: which nodes do not count for which jobs, since they stood free beside them.

A lock, a permission, a throttle, a suspended agent or a plugin can keep a free executor from a job; Jenkins' API seldom says so.
A job that free executors refuse is no demand. Agents are launched for it one after another, ever more rarely while none takes it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.memory import FreeNode, Memory, Ration
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS, Build, ControllerView, Node
from autoscaler.domain.situation.wants import Taker, Want, may_take, was_launched_for

# Distrust of nodes that refuse jobs.


# A promise is broken if an executor that may take a job stood free beside it for so long, and in so many looks. If Jenkins hands executors
# out slowly, it is broken later, as soon as so many hand-outs show it: but no slow Jenkins needs more than the most.
BROKEN_SECONDS, _MOST_PATIENCE_SECONDS, BROKEN_LOOKS, _FEWEST_HAND_OUTS = 180.0, 900.0, 3, 3
# Some agents take no build for minutes after they connected. So the second that is tried is kept for twice as long as the first, the
# third for twice as long as the second; then it is enough, and so is the most that a slow Jenkins needs.
_MOST_PATIENCE_DOUBLINGS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Distrust:
    """The nodes of one controller that refuse jobs. ``began_at``: when a build was last seen to begin there."""

    nodes: Mapping[str, FreeNode] = field(default_factory=dict)
    rations: Mapping[str, Ration] = field(default_factory=dict)  # by label; "" for the whole controller
    began_at: float = 0.0
    now: float = 0.0
    patience_seconds: float = BROKEN_SECONDS

    def refuses(self, node: str, job: str) -> bool:
        """Tell whether a node does not count for a job."""
        free_node = self.nodes.get(node)
        return free_node is not None and (free_node.is_useless or job in free_node.refused)

    def is_tried(self, node: str, builds: Iterable[Build] = ()) -> bool:
        """Tell whether a node refuses jobs, and may still take one: it runs such a job, or was the last one that was tried for them.

        Under a throttle of each node it takes the next one once that build has ended. The first that is tried is given up as soon as it
        refuses. If each were, jobs whose agents need four minutes would wait for ever. ``builds``: what runs on it.
        """
        free_node = self.nodes.get(node)
        if free_node is None or not free_node.looks or self.now - free_node.seen_at > LOOK_GAP_SECONDS:
            return False
        rations = [ration for ration in self.rations.values() if not free_node.refused.keys().isdisjoint(ration.jobs)]
        if any(build.job in ration.jobs for ration in rations for build in builds):
            return True
        # A win does not show that agents take work soon.
        losses = (ration.failures + any(ration.outcomes.values()) for ration in rations if free_node.since_at <= ration.failed_at)
        tries = max(losses, default=1)
        most_seconds = min(self.patience_seconds * 2 ** min(tries - 1, _MOST_PATIENCE_DOUBLINGS), _MOST_PATIENCE_SECONDS)
        return tries > 1 and self.now - free_node.since_at < most_seconds

    def counts_less(self, pool: str, node: Node | None) -> bool:
        """Tell whether an agent counts for fewer jobs than its pool's others."""
        return node is not None and (node.name in self.nodes or bool(self.takes_next(pool, node)))

    def takes_next(self, pool: str, node: Node | None) -> frozenset[str]:
        """Name the refused jobs whose next one a full agent takes by itself, since it runs one: a try is an agent beside it.

        Else the item that may be tried would wait for that executor where builds end sooner than agents boot, and none were tried.
        """
        running = {build.job for build in node.builds} if node and len(node.builds) >= node.executors else set()
        closed = (ration.jobs for ration in self.rations.values() if ration.is_closed and pool in ration.pools)
        return frozenset(job for jobs in closed if not running.isdisjoint(jobs) for job in jobs)

    def scope(self, want: Want, refusers: Collection[str]) -> str:
        """Name the label that launches are rationed for; "" for the whole controller, if no build began since these nodes are free.

        A job whose label is closed stays in the label's ration. The controller's ration would start fresh and launch at once.
        """
        since_at, name = min((self.nodes[node].since_at for node in refusers), default=0.0), self.name_of(want)
        return name if self.began_at >= since_at or name in dict(self._closed_for(want)) else ""

    def name_of(self, want: Want) -> str:
        """Name the ration of an item as it was named first: Jenkins tells the label of a pipeline in one look, and a node in the next."""
        pools = {pool.name for pool in want.pools}
        known = (scope for scope, limit in self.rations.items() if want.item.job in limit.jobs and not pools.isdisjoint(limit.pools))
        return next(filter(None, known), want.item.asked_label or f"pools {', '.join(pool.name for pool in want.pools)}")

    def limit(self, want: Want, scope: str) -> tuple[float, float]:
        """Say for how many items of a scope agents may be tried at once, and from when on: its label's pause and the controller's count."""
        ration, pauses = self.rations.get(scope), (limit.until_at for _, limit in self._closed_for(want))
        return max(1.0, ration.width(self.now)) if ration else 1.0, max(pauses, default=self.now)

    def scope_without_nodes(self, want: Want) -> str | None:
        """Name the label of a job whose refusing nodes have gone: as long as no try is won, what comes next may fare the same."""
        return next((scope for scope, _ in self._closed_for(want)), None)

    def _closed_for(self, want: Want) -> Iterator[tuple[str, Ration]]:
        """Return the scopes that are closed for an item, with their rations: of its label, and of the whole controller."""
        rations = ((scope, self.rations.get(scope)) for scope in (self.name_of(want), ""))
        return ((scope, limit) for scope, limit in rations if limit and limit.is_closed and want.item.job in limit.jobs)


NO_DISTRUST = Distrust()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An item that free executors refuse. ``nodes``: whose, as far as they are there; ``until_at``: no agent is launched before.

    ``may_begin``: since tries were won, or some of its kind run, it may take what boots for others.
    """

    want: Want
    nodes: tuple[str, ...]
    scope: str
    until_at: float
    may_begin: bool


def distrust_of(memory: Memory, controller: str, now: float) -> Distrust:
    """Find what is remembered of the nodes of one controller that refuse jobs."""
    past, life = memory.controller(controller), memory.sessions.get(controller)
    return Distrust(
        nodes={name: node for name, node in past.free_nodes.items() if node.refused or node.is_useless},
        rations=past.rations,
        began_at=life.began_at if life else 0.0,
        now=now,
        patience_seconds=patience_of(past.hand_outs),
    )


def refusers(want: Want, distrust: Distrust, refusing: Iterable[Taker]) -> tuple[str, ...]:
    """Name the nodes that should take an item and that refuse its job. ``refusing``: free nodes that refuse any job."""
    since_at, job = distrust.now - want.item.waiting_seconds, want.item.job
    should = (taker for taker in refusing if may_take(want, taker) or was_launched_for(want, taker, since_at))
    return tuple(taker.name for taker in should if distrust.refuses(taker.name, job))


def is_on_trial(free_node: FreeNode, distrust: Distrust) -> bool:
    """Tell whether a node stands free beside a job, and not yet for so long that it is known to refuse it."""
    if not free_node.looks or free_node.refused or free_node.is_useless:
        return False
    return distrust.now - free_node.seen_at <= LOOK_GAP_SECONDS and not is_broken(free_node, distrust.now, distrust.patience_seconds)


def is_broken(free_node: FreeNode, now: float, patience_seconds: float) -> bool:
    """Tell whether a node has been free beside a job for so long that it should have taken it."""
    return now - free_node.since_at >= patience_seconds and free_node.looks >= BROKEN_LOOKS


def patience_of(hand_outs: Collection[float]) -> float:
    """Return for how many seconds an executor may stand free beside a job: half as long again as Jenkins usually takes to hand one out."""
    return min(
        max(BROKEN_SECONDS, 1.5 * sorted(hand_outs)[len(hand_outs) // 2] if len(hand_outs) >= _FEWEST_HAND_OUTS else 0.0),
        _MOST_PATIENCE_SECONDS,
    )


def ration(wants: Iterable[Want], distrust: Distrust, refusing: Collection[Taker], view: ControllerView) -> Iterator[Want | Refused]:
    """Let through what no free executor refuses, and of the rest as many items as agents may be tried for now."""
    if not (refusing or distrust.rations):  # mostly nothing refuses anything
        yield from wants
        return
    passed, running = dict[str, int](), {build.job for node in view.nodes for build in node.builds}
    for want in wants:
        names = refusers(want, distrust, refusing)
        scope = distrust.scope(want, names) if names else distrust.scope_without_nodes(want)
        if scope is None:
            yield want
            continue
        most, until_at = distrust.limit(want, scope)
        if distrust.now < until_at or passed.get(scope, 0) >= most:
            limit = distrust.rations.get(scope)
            may_begin = (distrust.now >= until_at and most > 1) or (limit is not None and not running.isdisjoint(limit.jobs))
            yield Refused(want=want, nodes=names, scope=scope, until_at=until_at, may_begin=may_begin)
        else:
            passed[scope] = passed.get(scope, 0) + 1
            yield replace(want, refused_by=names)
