"""The queue of one controller: agents uncordoned and launched for it, and why others are not."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.plan import Held, Launch, Start, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import QueueItem
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.placement import PlannedStart, QueuePlacement, may_come_back
from autoscaler.domain.launch.top_ups import for_floors, for_forecasts, hedge, keep_up
from autoscaler.domain.launch.turns import kept_room
from autoscaler.domain.memo import FOR_EVER
from autoscaler.domain.repair.bring_back import pinned
from autoscaler.domain.situation.breakers import cannot_come_back
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, uncordon

# In this order: executors and limits that one of them takes are gone for those that follow.
LAUNCHES: tuple[Callable[[QueuePlacement], None], ...] = (
    QueuePlacement.place_queue,  # jobs that wait: whatever retires comes back, an agent is launched where waiting would cost more
    for_forecasts,  # stages and jobs that are to come
    for_floors,  # a pool's min_agents and warm_executors
    keep_up,  # agents that will be needed again so soon that keeping them pays their boot
    hedge,  # a few more, where boots are uneven
)


def launch_for_queue(situation: Situation, controller: str, decided: Decided) -> Decided:
    """Serve the queue of one controller, then forecasts, minimums and hedges."""
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
        return
    if not _may_need_any(situation, controller):
        return
    placement = QueuePlacement(situation, controller, Budget(situation, decided=decided, kept=kept_room(situation)), decided)
    for launch in LAUNCHES:
        launch(placement)
    for unmet in demand.unmet:  # no pool of ours is of the kind that it asks for
        placement.loans.borrow(unmet.item, unmet.expression)
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
    waits = bool(demand.wants or demand.unmet or situation.snapshot.run_orders)
    return waits or any(pool.has_floor for pool in pools) or bool(situation.forecasts(controller))


def place_queue(situation: Situation, controller: str, budget: Budget) -> QueuePlacement:
    """Give each job that waits the executor it would get, and plan the agents that this takes; nothing beside the queue."""
    placement = QueuePlacement(situation, controller, budget)
    placement.place_queue()
    return placement


def queue_as_placed(situation: Situation, controller: str) -> QueuePlacement:
    """Place a queue as the next pass will: worked out once for all who read it, and change nothing of it."""
    facts = situation.snapshot, situation.memory, situation.fleet, situation.agents, situation.demands[controller]

    def work() -> tuple[QueuePlacement, float]:
        return place_queue(situation, controller, Budget(situation, kept=kept_room(situation))), FOR_EVER

    return situation.memo.value(("queue", controller), facts, situation.now, work)


def floors_of(situation: Situation) -> list[Launch | Start]:
    """Plan what the minimums and warm executors of all pools lack: what is launched for anything else leaves them room."""
    planned: list[Launch | Start] = []
    for controller, view in situation.snapshot.controllers.items():
        if view.complete:
            placement = QueuePlacement(situation, controller, Budget(situation, decided=planned))
            for_floors(placement)
            planned += placement.purchase.steps()
    return planned


def expected_starts(situation: Situation, controller: str) -> dict[int, PlannedStart]:
    """Predict for each mature item whose executor it gets, a new agent's included, and in how many seconds."""
    if not situation.snapshot.controllers[controller].complete:
        return {}
    return queue_as_placed(situation, controller).starts


def _bring_back_again(situation: Situation, controller: str) -> Iterator[Uncordon]:
    """Try again to bring back what could not be brought back, while jobs wait for its pool; nobody counts on it meanwhile."""
    if not situation.memory.failing:
        return
    wanted = {pool.name for want in situation.demands[controller].wants if want.mature for pool in want.pools}
    kept = {agent.record.instance_id for agent in pinned(situation, controller)}
    for name in sorted(wanted & situation.pools_of(controller).keys()):
        pool = situation.pools[controller, name]
        for agent in pool.agents if not pool.on_hold else ():
            if may_come_back(situation, agent) and agent.record.instance_id not in kept and cannot_come_back(situation.memory, agent):
                yield uncordon(agent, Reason.DEMAND_IS_BACK, f"jobs wait for {name}, and it could not be brought back before")


def _held_unclear(situation: Situation, controller: str) -> Iterable[Held]:
    """Name items that wait too long for something unknown, a line for each wording and label."""
    alike: dict[tuple[str, str | None], list[QueueItem]] = {}
    for item in situation.demands[controller].unknown:
        alike.setdefault((item.wait.unclear, item.asked_label), []).append(item)
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
