"""When each item starts that waits, as far as anybody can tell; for people alone: no decision depends on it.

Agents are bought as the next passes will buy them. Then the items take executors in the order of the queue, with the durations that are
predicted for these very builds, where decisions count on what a job took on the whole.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil

from autoscaler.domain.forecast.durations import quantiles_of
from autoscaler.domain.launch.placement import QueuePlacement
from autoscaler.domain.launch.queue import queue_as_placed
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.supply import ExecutorSlot, Supply
from autoscaler.domain.situation.wants import Want


class WaitsFor(StrEnum):
    """What an item waits for."""

    JENKINS = "Jenkins"  # an executor is free
    BOOT = "a boot"
    LAUNCH = "a launch"  # that is yet to be decided or begun, and its boot
    BUILD = "a build"  # that runs there now
    QUEUE = "the queue"  # builds that wait themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class BareStart:
    """A predicted start, before it is corrected by what came of others.

    ``server``: the pool whose executor it takes, or another node's; ``is_guess``: a build runs there, and nobody knows when it ends;
    ``bought``: its agent is yet to be launched or started; ``first_seconds``: in how many it is free before the queue takes it.
    """

    seconds: float
    waits_for: WaitsFor
    server: str
    is_guess: bool = False
    machine: str = ""
    bought: bool = False
    first_seconds: float = 0.0


def bare_starts(situation: Situation, controller: str, ends: Mapping[str, float], work: Mapping[int, float]) -> dict[int, BareStart]:
    """Predict when each item starts; those that nothing is known to serve are left out.

    ``ends``: seconds until running builds end, by key; ``work``: seconds that waiting ones take, by item; both as far as known.
    """
    if not situation.snapshot.controllers[controller].complete:
        return {}
    mature = _all_mature(situation, controller)
    placement = queue_as_placed(mature, controller)
    supply = _as_predicted(placement.supply, ends, _late(situation, mature, placement))
    starts: dict[int, BareStart] = {}
    for want in mature.demands[controller].wants:
        if room := supply.room(placement.servers_of(want), want.weight):
            slot = room[-1]
            is_guess = bool(slot.build) and ends.get(slot.build, 0.0) <= 0.0
            starts[want.item.id] = BareStart(
                seconds=slot.free_seconds,
                waits_for=_waits_for(slot),
                server=slot.server,
                is_guess=is_guess,
                machine=slot.machine,
                bought=slot.bought,
                first_seconds=slot.first_seconds,
            )
            supply.occupy_together(room, work.get(want.item.id) or _assumed_work(placement, want, slot))
    return starts


def _all_mature(situation: Situation, controller: str) -> Situation:
    """Take every item as mature: agents will be bought for it, too, if it still waits then."""
    demand = situation.demands[controller]
    if all(want.mature for want in demand.wants):
        return situation
    return replace(situation, demands={**situation.demands, controller: replace(demand, wants=tuple(map(_matured, demand.wants)))})


def _matured(want: Want) -> Want:
    if want.mature:
        return want
    least = min(pool.queue_maturity_seconds for pool in want.pools)
    return replace(want, item=replace(want.item, waiting_seconds=least))


def _late(situation: Situation, mature: Situation, placement: QueuePlacement) -> dict[str, tuple[int, float]]:
    """Count by pool the executors that are bought by a later look, for items that do not count yet, and say how much later."""
    if mature is situation:
        return {}
    now, later = _bought(queue_as_placed(situation, placement.controller).supply), _bought(placement.supply)
    look = situation.snapshot.look_every_seconds
    delays = {name: look * max(1, ceil((pool.spec.queue_maturity_seconds - look / 2) / look)) for name, pool in placement.pools.items()}
    return {name: (count - now[name], delays[name]) for name, count in later.items() if count > now[name]}


def _bought(supply: Supply) -> Counter[str]:
    return Counter(slot.server for slot in supply.all_slots() if slot.bought)


def _as_predicted(planned: Supply, ends: Mapping[str, float], late: Mapping[str, tuple[int, float]]) -> Supply:
    """Take the executors of a placement, free again as before it, or when their builds are predicted to end."""
    supply, left = Supply(labels=planned.labels), {name: count for name, (count, _) in late.items()}
    for slot in planned.all_slots():
        known = ends.get(slot.build) if slot.build else None
        seconds = slot.first_seconds if known is None else known
        if slot.bought and left.get(slot.server, 0) > 0:
            left[slot.server] -= 1
            seconds += late[slot.server][1]
        supply.add(ExecutorSlot(slot.server, seconds, build=slot.build, bought=slot.bought, machine=slot.machine))
    return supply


def _waits_for(slot: ExecutorSlot) -> WaitsFor:
    if slot.free_seconds > slot.first_seconds:
        return WaitsFor.QUEUE
    if slot.build:
        return WaitsFor.BUILD
    if slot.bought:
        return WaitsFor.LAUNCH
    return WaitsFor.BOOT if slot.free_seconds > 0 else WaitsFor.JENKINS


def _assumed_work(placement: QueuePlacement, want: Want, slot: ExecutorSlot) -> float:
    pool = slot.server if slot.server in placement.pools else want.pools[0].name
    return quantiles_of(placement.learned, want.item.job, pool).p50_seconds
