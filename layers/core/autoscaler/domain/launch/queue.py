"""The queue of one controller: agents uncordoned and launched for it, why others are not, and when each item starts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil

from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.plan import Held, Launch, Start, Step, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.durations import quantiles_of
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.placement import PlannedStart, QueuePlacement, may_come_back
from autoscaler.domain.launch.purchase import Purchase, startable
from autoscaler.domain.launch.turns import controllers_to_serve, for_floors, for_forecasts, keep_up, kept_room, placed_in_turn
from autoscaler.domain.memo import FOR_EVER
from autoscaler.domain.repair.nodes import pinned, slots_left
from autoscaler.domain.situation.bets import NO_ROOM_SECONDS, TrialOf, cannot_come_back, next_try_at, trials_of
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Decided, Situation, uncordon
from autoscaler.domain.situation.supply import ExecutorSlot, Supply
from autoscaler.domain.situation.wants import Want
from autoscaler.domain.situation.warm_pool import may_fill

# In this order: executors and limits that one of them takes are gone for those that follow.
LAUNCHES: tuple[Callable[[QueuePlacement], None], ...] = (
    QueuePlacement.place_queue,  # jobs that wait: whatever retires comes back, an agent is launched where waiting would cost more
    for_forecasts,  # stages and jobs that are to come
    for_floors,  # a pool's min_agents and warm_executors
    keep_up,  # agents that will be needed again so soon that keeping them pays their boot
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLaunches:
    """The launches of one pass for all queues. ``placements``: by controller; ``tried_...``: tries of offerings that were refused."""

    tried_first: list[Launch | Start] = field(default_factory=list)
    placements: dict[str, QueuePlacement] = field(default_factory=dict)
    tried_last: list[Launch | Start | Held] = field(default_factory=list)


def launches_of(situation: Situation) -> PassLaunches:
    """Plan the launches for all queues, those with the longest wait first: once in a pass. Readers must not change the result."""
    facts = situation.snapshot, situation.memory, situation.fleet, situation.agents, situation.demands
    return situation.memo.value("queues", facts, situation.now, lambda: (_plan_launches(situation), FOR_EVER))


def _plan_launches(situation: Situation) -> PassLaunches:
    """Plan them from one budget, and book every launch to it."""
    controllers = [name for name in controllers_to_serve(situation) if _may_need_any(situation, name)]
    if not controllers:
        return PassLaunches()
    budget, is_refused = Budget(situation), any(pool.offerings_to_try for pool in situation.pools.values())
    tried_first = list(_try_first(situation, budget)) if is_refused else []
    budget.keep(kept_room(situation))
    placements, decided = dict[str, QueuePlacement](), list[Step | Held](tried_first)
    for controller in controllers:
        placements[controller] = placement = QueuePlacement(situation, controller, budget, tuple(decided))
        for launch in LAUNCHES:
            launch(placement)
        for unmet in situation.demands[controller].unmet:  # no pool of ours is of the kind that it asks for
            placement.loans.borrow(unmet)
        decided += [*placement.rotations.steps, *placement.purchase.steps()]
    tried_last = list(_try_last(situation, placements, tried_first, budget)) if is_refused else []
    return PassLaunches(tried_first=tried_first, placements=placements, tried_last=tried_last)


def launch_for_queue(situation: Situation, controller: str, _decided: Decided) -> Decided:
    """Serve the queue of one controller, then forecasts and minimums."""
    view, demand = situation.snapshot.controllers[controller], situation.demands[controller]
    if not view.complete:
        yield Held(pool="", controller=controller, reason=Reason.INCOMPLETE, detail=view.problem or "")
        return
    yield from _held_by_label(situation, controller)
    yield from _held_unclear(situation, controller)
    for unmet in demand.unmet:
        yield Held(pool="", controller=controller, reason=unmet.reason, detail=f"{unmet.item.job}: {unmet.detail}")
    if view.quieting_down:
        yield Held(pool="", controller=controller, reason=Reason.QUIETING_DOWN, detail="the controller takes no new builds")
    if placement := launches_of(situation).placements.get(controller):
        yield from placement.uncordons
        yield from placement.loans.steps
        yield from placement.rotations.steps
        yield from _bring_back_again(situation, controller)
        yield from placement.purchase.steps()
        yield from placement.purchase.held.values()
        yield from placement.loans.held.values()


def _may_need_any(situation: Situation, controller: str) -> bool:
    """Tell whether anything may want an agent: a job that waits or is announced, a minimum, a forecast."""
    demand, pools = situation.demands[controller], situation.pools_of(controller).values()
    waits = bool(demand.wants or demand.unmet or demand.announced)
    return waits or any(pool.has_floor for pool in pools) or bool(situation.forecasts(controller))


def with_floors(situation: Situation) -> Budget:
    """Book what the minimums and warm executors of all pools lack: what is launched for anything else leaves them room."""
    budget = Budget(situation)
    for controller, view in situation.snapshot.controllers.items():
        if view.complete:
            for_floors(QueuePlacement(situation, controller, budget))
    return budget


def expected_starts(situation: Situation, controller: str) -> dict[int, PlannedStart]:
    """Predict for each mature item whose executor it gets, a new agent's included, and in how many seconds."""
    placement = launches_of(situation).placements.get(controller)
    return placement.starts if placement else {}


def _bring_back_again(situation: Situation, controller: str) -> Iterator[Uncordon]:
    """Try again to bring back what could not be brought back, while jobs wait for its pool; nobody counts on it meanwhile."""
    if not trials_of(situation.memory, TrialOf.STEP):
        return
    wanted = {pool.name for want in situation.demands[controller].wants if want.mature for pool in want.pools}
    kept = {agent.record.instance_id for agent in pinned(situation, controller)}
    for name in sorted(wanted & situation.pools_of(controller).keys()):
        pool = situation.pools[controller, name]
        for agent in pool.agents if not pool.on_hold else ():
            is_wanted = may_come_back(situation, agent) and agent.record.instance_id not in kept and situation.is_waited_for(agent)
            if is_wanted and cannot_come_back(situation.memory, agent):
                yield uncordon(agent, Reason.DEMAND_IS_BACK, f"jobs wait for {name}, and it could not be brought back before")


def _held_unclear(situation: Situation, controller: str) -> Iterable[Held]:
    """Name items that wait too long for something unknown, a line for each wording and label."""
    alike = grouped(((item.wait.unclear, item.asked_label), item) for item in situation.demands[controller].unknown)
    for (words, label), items in alike.items():
        first = max(items, key=lambda item: item.waiting_seconds)
        longest = f"{first.job} for {first.waiting_seconds / 60:.0f} min"
        detail = f"{len(items)} item{'s' * (len(items) > 1)} for {label or 'a label not told'}, {longest}: {words}"
        yield Held(pool="", controller=controller, reason=Reason.UNCLEAR, detail=detail)


def _held_by_label(situation: Situation, controller: str) -> Iterable[Held]:
    """Count the items that holds on their label keep, a line for those with the same holds."""
    held = Counter(holds for _, holds in situation.demands[controller].held)
    for holds, count in held.items():
        yield Held(pool="", controller=controller, reason=Reason.HELD, detail=f"{count} items: {text_of(holds, situation.now)}")


# Tries: one agent of what EC2 refused before, after everything that can be had; it takes only room that the limits leave.
#
# If they have left it none for a quarter of an hour, it goes first once.


def _try_first(situation: Situation, budget: Budget) -> Iterator[Launch | Start]:
    """Try first what jobs have waited for, and what had no room to be tried, for too long."""
    due = {pool.name for pool in situation.pools.values() if _had_no_room(situation, pool)}
    for placement in placed_in_turn(situation, Budget(situation)) if due else ():
        for name in sorted(due & _refused_in(placement)):
            if _longest_wait(situation, placement.controller, name) >= NO_ROOM_SECONDS:
                due.discard(name)
                yield from (step for step in _try(situation, placement.controller, name, budget) if not isinstance(step, Held))


def _try_last(
    situation: Situation, placements: Mapping[str, QueuePlacement], tried_first: Iterable[Launch | Start], budget: Budget
) -> Iterator[Launch | Start | Held]:
    """Try one agent of each pool that would launch more, had EC2 not refused it: it takes nothing from what can be had."""
    tried = {step.pool for step in tried_first}
    for controller, placement in placements.items():
        for name in sorted(_wanted(situation, placement) - tried):
            steps = _try(situation, controller, name, budget)
            tried |= {name} if any(isinstance(step, Launch | Start) for step in steps) else set()
            yield from steps


def _wanted(situation: Situation, placement: QueuePlacement) -> set[str]:
    """Find the pools of which EC2 refuses what would be launched, or what would be launched instead of what is."""
    pools, refused = placement.pools, _refused_in(placement)
    launched = {step.pool for step in placement.purchase.steps() if isinstance(step, Launch)}
    for want in situation.demands[placement.controller].wants if launched else ():
        # Those that would take a job for which a dearer one launches.
        dearest = max((pools[pool.name].usd_per_hour for pool in want.pools if pool.name in launched), default=0.0)
        to_try = ((pool.name, offering.usd_per_hour) for pool in want.pools for offering in pools[pool.name].offerings_to_try)
        refused |= {name for name, usd_per_hour in to_try if usd_per_hour < dearest}
    return {name for name in refused if name in pools and pools[name].offerings_to_try}


def _refused_in(placement: QueuePlacement) -> set[str]:
    """Find the pools that anything needs agents of, if EC2 had not refused them."""
    return {pool for pool, reason, _ in placement.purchase.held if reason is Reason.NO_OFFERING}


def _had_no_room(situation: Situation, pool: PoolView) -> bool:
    again_at = next_try_at(pool.spec, situation.memory)
    return again_at is not None and situation.now - again_at >= NO_ROOM_SECONDS and bool(pool.offerings_to_try)


def _wants(situation: Situation, controller: str, pool: str) -> list[Want]:
    return [want for want in situation.demands[controller].wants if want.mature and any(one.name == pool for one in want.pools)]


def _longest_wait(situation: Situation, controller: str, pool: str) -> float:
    return max((want.item.waiting_seconds for want in _wants(situation, controller, pool)), default=0.0)


def _try(situation: Situation, controller: str, name: str, budget: Budget) -> list[Launch | Start | Held]:
    """Plan one agent of what was refused: for jobs one that is stopped, if there is any."""
    view = situation.pools[controller, name]
    pool = replace(view, offerings=view.offerings_to_try)
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


# When each item starts that waits, as far as anybody can tell; for people alone: no decision depends on it.
#
# Agents are bought as the next passes will buy them. Then the items take executors in the order of the queue, with the durations that are
# predicted for these very builds, where decisions count on what a job took on the whole.


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
    placement = _launches_when_mature(situation).placements.get(controller)
    if placement is None:
        return {}
    supply = _as_predicted(placement.supply, ends, _late(situation, placement))
    starts: dict[int, BareStart] = {}
    for want in placement.situation.demands[controller].wants:
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


def _launches_when_mature(situation: Situation) -> PassLaunches:
    """Plan as if every item were mature: agents will be bought for it, too, if it still waits then."""
    if all(want.mature for demand in situation.demands.values() for want in demand.wants):
        return launches_of(situation)
    facts = situation.snapshot, situation.memory, situation.fleet, situation.agents, situation.demands
    return situation.memo.value("queues when mature", facts, situation.now, lambda: (_plan_launches(_all_mature(situation)), FOR_EVER))


def _all_mature(situation: Situation) -> Situation:
    demands = {name: replace(demand, wants=tuple(map(_matured, demand.wants))) for name, demand in situation.demands.items()}
    return replace(situation, demands=demands)


def _matured(want: Want) -> Want:
    return want if want.mature else replace(want, item=replace(want.item, waiting_seconds=want.matures_after_seconds))


def _late(situation: Situation, placement: QueuePlacement) -> dict[str, tuple[int, float]]:
    """Count by pool the executors that are bought by a later look, for items that do not count yet, and say how much later."""
    before = launches_of(situation).placements.get(placement.controller)
    if before is placement:
        return {}
    now, later = _bought(before.supply if before else Supply()), _bought(placement.supply)
    young = sorted(
        [want for want in situation.demands[placement.controller].wants if not want.mature], key=lambda want: want.matures_after_seconds
    )
    look, longest = situation.snapshot.look_every_seconds, {pool.name: want.matures_after_seconds for want in young for pool in want.pools}
    delays = {name: look * max(1, ceil((longest.get(name, 0.0) - look / 2) / look)) for name in later}
    return {name: (count - now[name], delays[name]) for name, count in later.items() if count > now[name]}


def _bought(supply: Supply) -> Counter[str]:
    return Counter(slot.server for slot in supply.all_slots() if slot.bought)


def _as_predicted(planned: Supply, ends: Mapping[str, float], late: Mapping[str, tuple[int, float]]) -> Supply:
    """Take the executors of a placement, free again as before it, or when their builds are predicted to end."""
    supply, left = Supply(takers=planned.takers, sizes=planned.sizes), {name: count for name, (count, _) in late.items()}
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
