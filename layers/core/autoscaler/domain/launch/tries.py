"""Tries: one agent of what EC2 refused before, after everything that can be had; it takes only room that the limits leave.

If they have left it none for a quarter of an hour, it goes first once.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from autoscaler.domain.facts.plan import Held, Launch, Start
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.purchase import Purchase
from autoscaler.domain.launch.queue import place_queue
from autoscaler.domain.launch.starting import startable
from autoscaler.domain.launch.turns import controllers_in_turn, kept_room
from autoscaler.domain.launch.usage import NOTHING_KEPT, KeptRoom
from autoscaler.domain.repair.static_nodes import slots_left
from autoscaler.domain.situation.disks import may_fill
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided
from autoscaler.domain.situation.supply import Supply
from autoscaler.domain.situation.trials import NO_ROOM_SECONDS, next_try_at
from autoscaler.domain.situation.wants import Want


def try_what_had_no_room(situation: Situation, _decided: Decided) -> Iterator[Launch | Start]:
    """Try first what jobs have waited for, and what had no room to be tried, for too long."""
    due = {pool.name for pool in situation.pools.values() if _had_no_room(situation, pool)}
    if not due:
        return
    for controller in controllers_in_turn(situation):
        for name in sorted(due & _refused_to_jobs(situation, controller)):
            if _longest_wait(situation, controller, name) >= NO_ROOM_SECONDS:
                due.discard(name)
                yield from (step for step in _try(situation, controller, name, (), NOTHING_KEPT) if not isinstance(step, Held))


def try_what_was_refused(situation: Situation, decided: Decided) -> Iterator[Launch | Start | Held]:
    """Try one agent of each pool that would launch more, had EC2 not refused it; what is decided already comes first."""
    decided = list(decided)
    wanted = _wanted(situation, decided)
    for controller in controllers_in_turn(situation):
        for name in sorted(name for where, name in wanted if where == controller):
            tried = any(isinstance(step, Launch | Start) and step.pool == name and step.reason is Reason.TRIES_AGAIN for step in decided)
            if not tried:
                steps = _try(situation, controller, name, decided, kept_room(situation))
                decided += steps
                yield from steps


def _wanted(situation: Situation, decided: Decided) -> set[tuple[str, str]]:
    """Find the pools of which EC2 refuses what would be launched, or what would be launched instead of what is."""
    if not any(pool.offerings_to_try for pool in situation.pools.values()):
        return set()
    decided = list(decided)
    refused = {(step.controller, step.pool) for step in decided if isinstance(step, Held) and step.reason is Reason.NO_OFFERING}
    if launched := {(step.controller, step.pool) for step in decided if isinstance(step, Launch)}:
        refused |= _cheaper_than(situation, launched)
    return {key for key in refused if key in situation.pools and situation.pools[key].offerings_to_try}


def _cheaper_than(situation: Situation, launched: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Find the pools that would take jobs for which a dearer one launches."""
    cheaper = set()
    for controller, demand in situation.demands.items():
        for want in demand.wants:
            pools = [situation.pools[controller, pool.name] for pool in want.pools]
            dearest = max((pool.usd_per_hour for pool in pools if pool.key in launched), default=0.0)
            cheaper |= {pool.key for pool in pools if _cheapest_to_try(pool) < dearest}
    return cheaper


def _cheapest_to_try(pool: PoolView) -> float:
    return min((offering.usd_per_hour for offering in pool.offerings_to_try), default=inf)


def _had_no_room(situation: Situation, pool: PoolView) -> bool:
    again_at = next_try_at(pool.spec, situation.memory)
    return again_at is not None and situation.now - again_at >= NO_ROOM_SECONDS and bool(pool.offerings_to_try)


def _refused_to_jobs(situation: Situation, controller: str) -> set[str]:
    """Find the pools that jobs need agents of, if EC2 had not refused them."""
    view = situation.snapshot.controllers[controller]
    if not view.complete or view.quieting_down:
        return set()
    held = place_queue(situation, controller, Budget(situation)).purchase.held
    return {pool for pool, reason, _ in held if reason is Reason.NO_OFFERING}


def _wants(situation: Situation, controller: str, pool: str) -> list[Want]:
    return [want for want in situation.demands[controller].wants if want.mature and any(served.name == pool for served in want.pools)]


def _longest_wait(situation: Situation, controller: str, pool: str) -> float:
    return max((want.item.waiting_seconds for want in _wants(situation, controller, pool)), default=0.0)


def _try(situation: Situation, controller: str, name: str, decided: Decided, kept: KeptRoom) -> list[Launch | Start | Held]:
    """Plan one agent of what was refused: for jobs one that is stopped, if there is any."""
    view = situation.pools[controller, name]
    pool = replace(view, offerings=view.offerings_to_try)
    budget = Budget(situation, decided=decided, kept=kept)
    purchase = Purchase(controller, Supply(), budget, slots_left(situation, controller), {name: startable(situation, pool)})
    detail = f"whether EC2 launches agents of {name} again: {view.refused_detail}"
    if _wants(situation, controller, name):
        purchase.note_waiting(pool, _longest_wait(situation, controller, name))
        purchase.buy(pool, Reason.TRIES_AGAIN, detail)
    elif pool.spec.warm_pool and may_fill(pool):
        purchase.buy_stoppable(pool, Reason.TRIES_AGAIN, detail)
    else:
        purchase.buy_new(pool, Reason.TRIES_AGAIN, detail)
    return [*purchase.steps(), *purchase.held.values()]
