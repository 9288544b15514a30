"""Launches beside the queue: for forecasts, minimums, agents worth keeping, and hedges of slow boots."""

from collections import Counter
from collections.abc import Iterable

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.durations import quantiles_of
from autoscaler.domain.forecast.forecast import NOTHING, Forecast
from autoscaler.domain.launch.placement import QueuePlacement
from autoscaler.domain.situation.agents import Phase
from autoscaler.domain.situation.disks import may_fill
from autoscaler.domain.situation.pool_schedules import told_schedule
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.warm_pool import is_start_to_prove, least_stopped, stopped_in_time
from autoscaler.domain.wording import dollars_apart

# Where less than this share of a boot is left, an agent launched now would seldom be there first.
_EARLY = 0.3


def for_forecasts(placement: QueuePlacement) -> None:
    """Launch for forecasts, beyond what the queue takes; surplus agents are uncordoned first.

    A stage is as good as in the queue; for a guess at jobs nothing is launched that would leave other pools less than half of a limit.
    """
    for name, due in placement.situation.forecasts(placement.controller).items():
        _for_forecast(placement, placement.pools[name], due)


def _for_forecast(placement: QueuePlacement, pool: PoolView, due: Forecast) -> None:
    supply, purchase, launched = placement.supply, placement.purchase, 0
    new = placement.situation.forecasts_of_new(placement.controller).get(pool.name, NOTHING)
    detail = f"{due.executors} executor{'s' * (due.executors > 1)} for what is to come: {due.why}"
    for number in range(due.executors):
        slot = supply.soonest((pool.name,))
        if slot is None or slot.free_seconds > purchase.ready_seconds(pool):
            if not placement.bring_back((pool.spec,), detail):
                worth = due if purchase.stopped.get(pool.name) else new
                may_launch = launched < worth.launches and (number < due.stages or purchase.leaves_others_room(pool))
                if not (may_launch and purchase.buy(pool, Reason.FORESEEN, detail)):
                    return
                launched += 1
            slot = supply.soonest((pool.name,))
        if slot is not None:
            supply.occupy(slot, quantiles_of(placement.learned, "", pool.name).p50_seconds)


def for_floors(placement: QueuePlacement) -> None:
    """Launch for each pool's minimum and warm executors, beyond what the queue launches."""
    for pool in placement.pools.values():
        if pool.has_floor:
            _for_minimum(placement, pool)
            _for_stopped(placement, pool)


def for_minima(placement: QueuePlacement) -> None:
    """Launch for each pool's minimum and warm executors, and nothing to be stopped."""
    for pool in placement.pools.values():
        if pool.has_floor:
            _for_minimum(placement, pool)


def _for_minimum(placement: QueuePlacement, pool: PoolView) -> None:
    purchase, least, warm = placement.purchase, pool.spec.min_agents, pool.spec.warm_executors
    while (there := purchase.budget.agents_to_work_with(pool.name)) < least:
        by = told_schedule(pool.spec, "min_agents", least, pool.now)
        if not purchase.buy(pool, Reason.MIN_AGENTS, f"{there} of {least} agents{by}"):
            return
    while (spare := placement.supply.spare(pool.name, purchase.ready_seconds(pool))) < warm:
        by = told_schedule(pool.spec, "warm_executors", warm, pool.now)
        if not purchase.buy(pool, Reason.WARM_EXECUTORS, f"{spare} of {warm} executors are free or on their way{by}"):
            return
        placement.choose_again(pool)


def _for_stopped(placement: QueuePlacement, pool: PoolView) -> None:
    """Launch agents to be stopped, in quiet times: while nothing waits for the pool, and where EC2 stops its agents.

    What runs is stopped later: to launch in its place would make one agent too many with each burst.
    """
    if placement.situation.starved_by_pool(placement.controller).get(pool.name, 0) or not may_fill(pool):
        return
    purchase, least, in_time = placement.purchase, least_stopped(placement.situation, pool), stopped_in_time(placement.situation, pool)
    if is_start_to_prove(placement.situation, pool):
        version = placement.situation.current.get(pool.name, "")
        detail = f"whether agents of {pool.name}{f', of template version {version},' if version else ''} start again"
        purchase.start(pool, Reason.PROVES_STARTS, detail)
        return
    while (there := in_time + purchase.planned(pool)) < least and purchase.leaves_others_room(pool):
        if not purchase.buy_stoppable(pool, Reason.FILLS_WARM_POOL, f"{there} of {least} agents are stopped, or will be"):
            return


def keep_up(placement: QueuePlacement) -> None:
    """Launch agents that present jobs would fill, where returning demand pays for keeping them.

    The jobs that wait now may be done before they are there; those that come next are not.
    """
    for name, items in Counter(start.server for start in placement.starts.values()).items():
        if pool := placement.pools.get(name):
            needed = items + sum(agent.taken_executors for agent in pool.agents if agent.phase is Phase.READY)
            while (there := placement.supply.executors(name)) < needed and _is_worth_keeping(placement, pool, there // pool.executors + 1):
                continue


def _is_worth_keeping(placement: QueuePlacement, pool: PoolView, number: int) -> bool:
    """Launch the n-th agent if keeping it pays its boot; tell whether it is planned."""
    purchase, spared_usd, boot_usd = placement.purchase, pool.keep.spared_usd(number), pool.keep.costs.boot_usd
    if not (spared_usd > boot_usd and purchase.may_buy(pool) and purchase.leaves_others_room(pool)):
        return False
    spared, boot = dollars_apart(spared_usd, boot_usd)
    detail = f"agent {number} is needed again so soon that keeping it spares {spared}, for a boot of {boot}"
    return purchase.buy(pool, Reason.FORESEEN, detail)


def hedge(placement: QueuePlacement) -> None:
    """Launch a few more than needed where boots differ enough to pay, and the limits are far.

    For all who wait for agents with most of their boot before them, whenever those were launched: what was added for the jobs of
    an earlier look is there for those of this look, too, and a burst that goes on takes it all.
    """
    for name, items in Counter(_pools_waited_for(placement)).items():
        pool, purchase = placement.pools[name], placement.purchase
        detail = f"for {items} item{'s' * (items > 1)} not to wait for the slowest boot"
        spare = placement.supply.spare(name, purchase.ready_seconds(pool)) // pool.executors
        most, added = pool.hedges(-(-items // pool.executors), items) - spare, 0
        while added < most and purchase.may_hedge(pool) and purchase.buy(pool, Reason.UNEVEN_BOOTS, detail):
            added += 1
        if added:
            purchase.add_detail(pool, Reason.UNEVEN_BOOTS, f"; and {added} more, {detail}")


def _pools_waited_for(placement: QueuePlacement) -> Iterable[str]:
    """Of each item that waits for an agent which is far from ready: its pool."""
    ready = {name: placement.purchase.ready_seconds(pool) for name, pool in placement.pools.items()}
    for start in placement.starts.values():
        if start.server in ready and _EARLY * ready[start.server] < start.seconds <= ready[start.server]:
            yield start.server
