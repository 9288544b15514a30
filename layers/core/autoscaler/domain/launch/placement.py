"""The walk over one controller's queue, put together from what the pass has seen."""

from collections import Counter
from collections.abc import Iterable, Iterator

from autoscaler.domain.facts.plan import Held, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import QueueItem
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.purchase import QueuePlacement
from autoscaler.domain.repair.bring_back import pinned
from autoscaler.domain.repair.static_nodes import slots_left
from autoscaler.domain.situation.agents import Phase
from autoscaler.domain.situation.breakers import cannot_come_back
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, uncordon
from autoscaler.domain.situation.supply import ExecutorSlot, build_supply, ready_slots


def launch_for_queue(situation: Situation, controller: str, room: Budget) -> Decided:
    """Walk over the queue: bring back what retires, launch where waiting would cost more."""
    view = situation.snapshot.controllers[controller]
    if not view.complete:
        yield Held(pool="", controller=controller, reason=Reason.INCOMPLETE, detail=view.problem or "")
        return
    demand = situation.demands[controller]
    yield from _held_by_label(situation, controller)
    yield from _held_unclear(situation, controller)
    for unmet in demand.unmet:
        yield Held(pool="", controller=controller, reason=unmet.reason, detail=f"{unmet.item.job}: {unmet.detail}")
    if view.quieting_down:
        yield Held(pool="", controller=controller, reason=Reason.QUIETING_DOWN, detail="the controller takes no new builds")
        return
    foreseen, floors = situation.foreseen(controller), [pool for pool in situation.pools_of(controller).values() if pool.has_floor]
    if not (demand.wants or foreseen or floors):
        return
    walk = place_queue(situation, controller, room)
    walk.forecast_pools(foreseen)
    for pool in floors:
        walk.keep_floor(pool)
    walk.keep_up()
    walk.hedge()
    yield from walk.uncordons
    yield from bring_back_again(situation, controller)
    yield from walk.steps()
    yield from walk.held.values()


def expected_starts(situation: Situation, controller: str) -> dict[int, tuple[str, float]]:
    """Of each mature item that waits: whose executor it would take, a new agent's included, and in how many seconds."""
    if not situation.snapshot.controllers[controller].complete:
        return {}
    return place_queue(situation, controller, Budget(situation)).starts


def _held_unclear(situation: Situation, controller: str) -> Iterable[Held]:
    """Name what waits too long for something unknown, a line for each wording and label."""
    alike: dict[tuple[str, str | None], list[QueueItem]] = {}
    for item in (one.item for one in situation.demands[controller].unclear):
        alike.setdefault((item.wait.unclear, item.asked_label), []).append(item)
    for (words, label), items in alike.items():
        first = max(items, key=lambda item: item.waiting_seconds)
        longest = f"{first.job} for {first.waiting_seconds / 60:.0f} min"
        detail = f"{len(items)} item{'s' * (len(items) > 1)} for {label or 'a label not told'}, {longest}: {words}"
        yield Held(pool="", controller=controller, reason=Reason.UNCLEAR, detail=detail)


def _held_by_label(situation: Situation, controller: str) -> Iterable[Held]:
    """Count the items that an operator holds by their label, a line for each hold."""
    held = Counter(hold for _, hold in situation.demands[controller].held)
    for hold, count in held.items():
        yield Held(pool="", controller=controller, reason=Reason.HELD, detail=f"{count} items: {hold.text(situation.now)}")


def controllers_in_turn(situation: Situation) -> list[str]:
    """The controllers, first the one where a job has waited longest: limits may leave room for one of them only."""
    demands = situation.demands
    return sorted(demands, key=lambda name: max((want.item.waiting_seconds for want in demands[name].wants), default=0.0), reverse=True)


def place_queue(situation: Situation, controller: str, room: Budget) -> QueuePlacement:
    """Give each job that waits the executor it would get, and plan the agents that this takes; what is planned is taken from ``room``."""
    walk = begin_placement(situation, controller, room)
    kept = {agent.record.instance_id for agent in pinned(situation, controller)}
    retiring = [
        agent
        for pool in situation.pools_of(controller).values()
        for agent in pool.agents
        if agent.phase is Phase.RETIRING
        and not pool.on_hold
        and not situation.stopped
        and agent.record.instance_id not in kept
        and not agent.instance_ended
        and not cannot_come_back(situation.memory, agent)
    ]
    walk.run(situation.demands[controller].wants, retiring)
    return walk


def bring_back_again(situation: Situation, controller: str) -> Iterator[Uncordon]:
    """Try again to bring back what could not be brought back, while jobs wait for its pool; nobody counts on it meanwhile."""
    wanted = {pool.name for want in situation.demands[controller].wants if want.mature for pool in want.pools}
    kept = {agent.record.instance_id for agent in pinned(situation, controller)}
    for name in sorted(wanted & situation.pools_of(controller).keys()):
        pool = situation.pools[controller, name]
        for agent in pool.agents:
            comes_back = agent.phase is Phase.RETIRING and agent.record.instance_id not in kept and not agent.instance_ended
            if comes_back and not pool.on_hold and cannot_come_back(situation.memory, agent):
                yield uncordon(agent, Reason.DEMAND_IS_BACK, f"jobs wait for {name}, and it could not be brought back before")


def begin_placement(situation: Situation, controller: str, room: Budget) -> QueuePlacement:
    """Set out with all executors that are there or on their way."""
    snapshot = situation.snapshot
    learned = snapshot.learned[controller]
    pools = situation.pools_of(controller)
    runs = situation.queued_runs(controller)
    supply = build_supply(
        snapshot.controllers[controller],
        situation.fleet,
        pools,
        situation.expected(controller),
        learned,
        situation.now,
        recovering=situation.recovering(controller),
    )
    for agent in pinned(situation, controller):
        if cannot_come_back(situation.memory, agent):
            continue
        for seconds in ready_slots(agent, learned, situation.now, runs):
            supply.add(ExecutorSlot(agent.pool.name, seconds))
    return QueuePlacement(controller, pools, supply, room, learned, situation.now, runs, slots=slots_left(situation, controller))
