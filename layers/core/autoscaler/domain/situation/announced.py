"""Builds of orders that are on their way to the queue: an agent may boot for them before Jenkins shows that they wait.

A build of a pipeline begins on the controller, and asks for its agent only once its first steps are done; what was sent a moment ago may
not be in the queue yet.
"""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.snapshot import ControllerView, QueueItem, Wait
from autoscaler.domain.facts.started_builds import RunOrder, Target, Try
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.wants import Want

# A build that asks for no agent so long after it was started may never ask for one.
ANNOUNCED_SECONDS = 300.0
_NOBODY = -2_000_000  # ids of items that are not there yet begin here


def announced(situation: Situation, controller: str) -> list[Want]:
    """Return what is yet to come of the orders of one controller, each for the pool that was chosen for it."""
    view, pools = situation.snapshot.controllers[controller], situation.pools_of(controller)
    found: list[Want] = []
    for order in situation.snapshot.run_orders or ():
        unknown = _unknown_builds(order, view)
        for target, one in _coming(order, controller, situation.now):
            if target.pool not in pools or _is_seen(one, view) or _is_kept(situation, controller, target, order.job):
                continue
            if not one.run and unknown:
                unknown -= 1  # it has left the queue, and this may be it
                continue
            pool = pools[target.pool].spec
            found.append(Want(item=_made_up(order.job, pool, _NOBODY - len(found), situation.now - one.at), pools=(pool,), expression=None))
    return found


def _is_kept(situation: Situation, controller: str, target: Target, job: str) -> bool:
    """Tell whether a build will wait all the same: its pool declines it, or a person holds its label."""
    return bool(situation.fleet.declines(controller, target.pool, job) or situation.overrides.holds_on_label(target.label))


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
