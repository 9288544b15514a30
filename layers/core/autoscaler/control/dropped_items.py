"""Looks up what Jenkins says of items that have left its queue, on controllers that may drop them on their way to an agent."""

from collections.abc import Collection, Iterable

from autoscaler.build_ports import Builds, RerunStore
from autoscaler.control.lost_builds import is_ordered, origin_of
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.queued_items import QueuedItem, item_key
from autoscaler.domain.facts.reruns import ItemFacts, LostFacts, rerun_key
from autoscaler.domain.facts.runs import ItemState
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.repair.dropped_items import may_drop, to_follow
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports, StoredState

# A small request for each that has left the queue since the last look, most of them for builds that began; the others in the next looks.
ITEMS_ASKED_A_LOOK = 30


def look_up_items(ports: Ports, fleet: Fleet, stored: StoredState, views: Iterable[ControllerView]) -> dict[str, ItemFacts]:
    """Ask what new items were asked for with, and what became of those that were followed and are not in the queue."""
    found: dict[str, ItemFacts] = {}
    for view in views:
        if ports.reruns is None or view.name not in ports.builds or not may_drop(view, fleet, stored.memory.queued.values()):
            continue
        known = [one for one in stored.memory.queued.values() if (one.controller, one.session) == (view.name, view.session)]
        new = to_follow(view, fleet, stored.records).keys() - {one.item for one in known}
        try:
            found |= _asked_for(ports, view.name, new, fleet.rerun_parameter) if new else {}
            found |= _became(ports.builds[view.name], ports.reruns, _left(known, view), fleet.rerun_parameter)
        except AutoscalerError as error:
            ports.log("queue_items_not_read", controller=view.name, error=f"{type(error).__name__}: {error}")
    return found


def _asked_for(ports: Ports, controller: str, new: Collection[int], own: str) -> dict[str, ItemFacts]:
    waiting = ports.builds[controller].waiting()
    return {
        item_key(controller, item): ItemFacts(waiting=asked, is_ordered=is_ordered(ports, controller, asked.parameters, own, item=item))
        for item, asked in waiting.items()
        if item in new
    }


def _left(known: Iterable[QueuedItem], view: ControllerView) -> list[QueuedItem]:
    """Choose whom to ask for: what Jenkins will have forgotten first, or has, comes first."""
    listed = {item.id for item in view.items}
    left = sorted((one for one in known if one.item not in listed), key=lambda one: one.seen_at)
    return left[:ITEMS_ASKED_A_LOOK]


def _became(builds: Builds, store: RerunStore, left: Iterable[QueuedItem], own: str) -> dict[str, ItemFacts]:
    return {one.key: _became_of(builds, store, one, own) for one in left}


def _became_of(builds: Builds, store: RerunStore, one: QueuedItem, own: str) -> ItemFacts:
    item = builds.item(one.item)
    if item.state is not ItemState.UNKNOWN or one.missed_at is None:
        return ItemFacts(item=item)
    rerun = store.rerun(rerun_key(one.controller, one.path, one.at))
    if one.run:
        return ItemFacts(item=item, lost=LostFacts(run=builds.run(one.run), rerun=rerun))
    upstream = tuple(up for path in one.upstream if (up := builds.run(path)) is not None)
    origin = origin_of(store, one.controller, one.parameters or (), own)
    job = builds.job(one.job, one.at)
    return ItemFacts(item=item, lost=LostFacts(run=None, job=job, rerun=rerun, upstream=upstream, origin=origin))
