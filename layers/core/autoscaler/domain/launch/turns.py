"""Turns: who goes first where a limit keeps jobs of several teams or priorities waiting, and what is launched beside the queue.

Pools of a higher priority go first, then teams that are left out, then the team that spent the fewest dollars for its weight in the last
hours; an agent that is launched counts as an hour of its price at once. What all would launch, had the limits that they share room, is
handed out in this order, agent by agent. Where all of it fits, nothing is kept, and Jenkins' order stands.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from autoscaler.domain.facts.fleet import Fleet, Team
from autoscaler.domain.facts.metering import (
    HOUR_SECONDS,
    SHARE_SECONDS,
    Level,
    LevelKind,
    last_spent_at,
    missing_of,
    spent_lately,
    team_of_each,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import OfflineCause, Record
from autoscaler.domain.forecast.durations import quantiles_of
from autoscaler.domain.forecast.forecast import NOTHING, Forecast
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.backoff import held_by_what_is_stopped
from autoscaler.domain.launch.budget import NOTHING_KEPT, Budget, KeptRoom, Usage, use_of_each_level
from autoscaler.domain.launch.placement import QueuePlacement
from autoscaler.domain.memo import FOR_EVER
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import in_the_way
from autoscaler.domain.situation.pool_view import PoolView, least_agents, told_schedule
from autoscaler.domain.situation.situation import Situation, without_agents
from autoscaler.domain.situation.warm_pool import is_start_to_prove, least_stopped, may_fill, stopped_in_time
from autoscaler.domain.wording import dollars_apart

# Teams that are left out: their jobs wait, and none of their agents has run for half an hour.
#
# Dollars alone cannot share what cannot be divided: with room for one agent, nobody is ever level. So these teams go first, and each keeps
# its turn for half an hour at least, longer by its weight.


# A team waits for so long beside what others run, then they hand over; and they keep what they have for so long.
TURN_SECONDS = 1800.0


@dataclass(slots=True, kw_only=True)
class Order:
    """The order of teams, while room is handed out. ``left_out``: when the teams that are left out last spent anything, by name."""

    spent: dict[str, float]  # dollars of the last hours for their weights, by team
    left_out: dict[str, float]

    def key(self, team: str) -> tuple[bool, float, float]:
        """Sort teams: those that are left out, for the longest first; then by what they spent."""
        return team not in self.left_out, self.left_out.get(team, 0.0), self.spent[team]

    def launch(self, team: Team, usd_per_hour: float) -> None:
        """Count an agent that a team gets as an hour of its price; it is left out no more."""
        self.spent[team.name] += usd_per_hour / team.weight
        self.left_out.pop(team.name, None)


def order_of(situation: Situation, teams: Iterable[Team]) -> Order:
    """Work out who goes first of several teams."""
    return Order(spent={team.name: spent_for_weight(situation, team) for team in teams}, left_out=_left_out(situation))


def spent_for_weight(situation: Situation, team: Team) -> float:
    """Return the dollars that a team has spent in the last hours, for its weight: the lowest goes first."""
    return spent_lately(situation.memory.fleet.lately, team.pools) / team.weight


def turn_seconds(holder: Team, waiting: Team) -> float:
    """Return for how long a team keeps an agent that another one waits for: never longer than dollars are remembered."""
    return min(TURN_SECONDS * max(1.0, holder.weight / waiting.weight), SHARE_SECONDS)


def has_waited(situation: Situation, pool: str) -> bool:
    """Tell whether a job that a pool may serve has waited for as long as a turn takes."""
    return any(seconds >= TURN_SECONDS for demand in situation.demands.values() for seconds in demand.waits_for(pool))


def _left_out(situation: Situation) -> dict[str, float]:
    """Find the teams that have nothing, have spent nothing for the time of a turn, and whose jobs have waited for that long."""
    team_of, there = team_of_each(situation.fleet), _pools_that_are_there(situation)
    found: dict[str, float] = {}
    for demand in situation.demands.values():
        for want in demand.wants:
            teams = {team_of[pool.name].name: team_of[pool.name] for pool in want.pools}
            if want.item.waiting_seconds < TURN_SECONDS or found.keys() >= teams.keys():
                continue
            if any(not team.pools.isdisjoint(there) for team in teams.values()):
                continue  # who has an agent may serve it
            last = {name: last_spent_at(situation.memory.fleet.lately, team.pools) for name, team in teams.items()}
            found |= {name: at for name, at in last.items() if situation.now - at >= TURN_SECONDS}
    return found


def _pools_that_are_there(situation: Situation) -> set[str]:
    """Name the pools of which an agent runs, whatever it does, or is on its way."""
    snapshot = situation.snapshot
    running = {record.pool for record in snapshot.living if not snapshot.is_off(record)}
    return running | {intent.pool for intent in snapshot.intents if missing_of(intent)}


# Agents that stay, whatever waits: room is kept only for what fits beside them once all others have left.


def staying(situation: Situation) -> list[Record]:
    """Find the agents that nothing makes leave: of people, of pools on hold, which EC2 does not end, and each pool's minimum.

    Which agents make up a minimum, nobody knows yet: the cheapest.
    """
    living = {record.instance_id for record in situation.snapshot.living}
    on = (agent for agent in situation.agents if agent.record.instance_id in living and not situation.snapshot.is_off(agent.record))
    by_pool = grouped((agent.pool.name, agent) for agent in on)
    return [record for agents in by_pool.values() for record in _staying_of(situation, agents)]


def _staying_of(situation: Situation, agents: list[Agent]) -> list[Record]:
    """Find those of one pool, on all controllers."""
    out_of_use, kept, others = list[Record](), list[Record](), list[Record]()
    for agent in agents:
        group = out_of_use if _is_out_of_use(situation, agent) else kept if _is_kept(situation, agent) else others
        group.append(agent.record)
    others.sort(key=lambda record: record.reserved_usd_per_hour)
    return [*out_of_use, *kept, *others[: max(0, least_agents(agents[0].pool) - len(kept))]]


def _is_out_of_use(situation: Situation, agent: Agent) -> bool:
    """Tell whether a person has an agent, or EC2 does not end it: it is none of its pool's minimum."""
    by_a_person = agent.phase is Phase.SET_ASIDE and agent.node is not None and agent.node.cause is OfflineCause.PERSON
    return by_a_person or situation.past(agent).is_held or agent.phase is Phase.RESERVED


def _is_kept(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent that takes builds is kept by an operator's word."""
    pool = situation.pools.get(agent.key)
    return situation.now < agent.record.keep_until or (agent.phase is Phase.READY and pool is not None and pool.on_hold)


# Launches beside the queue: for forecasts, minimums, and agents worth keeping.


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


def for_floors(placement: QueuePlacement, *, stopped: bool = True) -> None:
    """Launch for each pool's minimum and warm executors, beyond what the queue launches; and agents to be ``stopped``."""
    for pool in [pool for pool in placement.pools.values() if pool.has_floor]:
        _for_minimum(placement, pool)
        if stopped:
            _for_stopped(placement, pool)


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
    """Launch agents to be stopped, where EC2 stops them: not while jobs wait for the pool, or for an address or volume.

    What runs is stopped later: to launch in its place would make one agent too many with each burst.
    """
    starved = placement.situation.starved[placement.controller].get(pool.name, 0)
    if starved or not may_fill(pool) or _is_short_of_address_or_volume(placement.situation):
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


def _is_short_of_address_or_volume(situation: Situation) -> bool:
    """Tell whether jobs wait because EC2 has no free address, or no volume, for their agents: stopped agents hold these, too."""
    starving = (pool for pool in situation.pools.values() if situation.starved[pool.controller].get(pool.name))
    return any(held_by_what_is_stopped(trial.code) for pool in starving for trial in in_the_way(pool.spec, situation.memory).values())


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


# The turns themselves: the order, and the room that is handed out in it.


_OF_ITS_OWN = (LevelKind.POOL,)
_SEVERAL = 2
Wish: TypeAlias = tuple[str, float]  # pool and highest price of an agent
_Line: TypeAlias = tuple[int, str]  # of those that wait: minus their priority, and their team


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The first agent of a pool that does not fit, whose limit it was, and what that is used for."""

    pool: str
    usd_per_hour: float
    reason: Reason
    detail: str
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOut:
    """What is left once the room was handed out: what is kept for whom, and who is refused, whose turn is first at the beginning."""

    kept: KeptRoom
    granted: Mapping[str, int]  # agents by pool
    refused: tuple[Refusal, ...]
    room: Budget

    def usd_per_hour(self, team: Team) -> float:
        """The highest price of a team's agents, an hour, with those that it was handed the room for."""
        levels = (use for use in self.room.levels if use.level.kind is LevelKind.POOL)
        return sum(use.usd_per_hour for use in levels if use.level.name in team.pools)


def controllers_in_turn(situation: Situation) -> list[str]:
    """Order controllers by their longest waiting job: limits may leave room for one of them only."""
    demands = situation.demands
    return sorted(demands, key=lambda name: max((want.item.waiting_seconds for want in demands[name].wants), default=0.0), reverse=True)


def controllers_to_serve(situation: Situation) -> list[str]:
    """Those of them that were read completely and take builds."""
    views = situation.snapshot.controllers
    return [name for name in controllers_in_turn(situation) if views[name].complete and not views[name].quieting_down]


def kept_room(situation: Situation) -> KeptRoom:
    """Keep room for whose turn it is in this pass, worked out once for all controllers."""
    if not has_lines(situation.fleet):
        return NOTHING_KEPT
    facts = situation.snapshot, situation.memory, situation.fleet
    return situation.memo.value("turns", facts, situation.now, lambda: (room_without(situation, ()), FOR_EVER))


def room_without(situation: Situation, leaving: Collection[str]) -> KeptRoom:
    """Keep room for whose turn it would be if these instances had left."""
    wishes = wishes_in_turn(situation, leaving)
    return hand_out(situation, leaving, wishes).kept if wishes else NOTHING_KEPT


def wishes_in_turn(situation: Situation, leaving: Collection[str]) -> list[Wish]:
    """List what would be launched if each pool had only its own limits; nothing where nobody goes before others, or all of it fits."""
    if not (has_lines(situation.fleet) and may_be_refused(situation, leaving, minima=True)):
        return []
    return _wishes(situation, leaving)


def wishes_without(situation: Situation, leaving: Collection[str]) -> list[Wish]:
    """List what would be launched, likewise, if these instances took no more builds."""
    return _wishes(without_agents(situation, leaving), leaving)


def hand_out(situation: Situation, leaving: Collection[str], wishes: list[Wish]) -> HandedOut:
    """Hand out the room that these instances leave, an agent at a time, until all have theirs or nothing fits."""
    return _HandingOut(situation, Budget(situation, leaving), wishes).all()


def may_be_refused(situation: Situation, leaving: Collection[str] = (), *, minima: bool = False) -> bool:
    """Tell whether the limits might refuse an agent for each waiting job, or minimum, once these instances have left."""
    wants = [want for demand in situation.demands.values() for want in demand.wants if want.mature]
    agents, pools = len(wants), {pool.name: pool for want in wants for pool in want.pools}
    for pool in situation.fleet.pools.values() if minima else ():
        if least := pool.min_agents + pool.warm_executors:
            agents, pools = agents + least, pools | {pool.name: pool}
    if not pools:
        return False
    budget = Budget(situation, leaving)
    return not all(budget.has_room_for(agents, pool) for pool in pools.values())


def has_lines(fleet: Fleet) -> bool:
    """Tell whether anybody may go before anybody else."""
    return bool(fleet.teams) or len({pool.priority for pool in fleet.pools.values()}) > 1


def placed_in_turn(situation: Situation, budget: Budget) -> Iterator[QueuePlacement]:
    """Place the queues of all controllers, those first whose jobs wait longest; what is launched for them is taken from ``budget``."""
    for controller in controllers_to_serve(situation):
        placement = QueuePlacement(situation, controller, budget)
        placement.place_queue()
        yield placement


def _wishes(situation: Situation, leaving: Collection[str]) -> list[Wish]:
    budget = Budget(situation, leaving, kinds=_OF_ITS_OWN)
    for placement in placed_in_turn(situation, budget):
        for_floors(placement, stopped=False)
    return budget.taken


class _HandingOut:
    def __init__(self, situation: Situation, room: Budget, wishes: list[Wish]) -> None:
        """Let each team and priority stand in a line of its own; within it the order of the queues stands."""
        self._pools, self._room, team = situation.fleet.pools, room, team_of_each(situation.fleet)
        self._team = {pool: team[pool] for pool, _ in wishes}
        self._lines: dict[_Line, deque[Wish]] = {}
        for pool, usd_per_hour in wishes:
            self._lines.setdefault(self._line(pool), deque()).append((pool, usd_per_hour))
        self._order = order_of(situation, self._team.values())
        self._refused: dict[str, Refusal] = {}
        self._granted: dict[str, list[float]] = {}
        self._saved: dict[str, float] = {}
        self._first: dict[str, str] = {}
        self._is_contested = False
        self._situation = situation

    def _line(self, pool: str) -> _Line:
        return -self._pools[pool].priority, self._team[pool].name

    def all(self) -> HandedOut:
        """Hand out all that fits; nothing needs to be kept where nobody goes without for another one."""
        while lines := [line for line, wishes in self._lines.items() if wishes]:
            # Of those that spent the same the one goes first that waits in the first queue.
            line = min(lines, key=lambda line: (line[0], self._order.key(line[1])))
            self._give(*self._lines[line].popleft())
        kept = self._kept() if self._is_contested else NOTHING_KEPT
        granted = {pool: len(prices) for pool, prices in self._granted.items()}
        return HandedOut(kept=kept, granted=granted, refused=tuple(self._refused.values()), room=self._room)

    def _give(self, pool: str, usd_per_hour: float) -> None:
        """Reserve an agent, or note that it does not fit: no other one of its pool does then."""
        if pool in self._refused:
            return
        for use in self._room.levels_of(pool):
            if use.level.text not in self._first:
                self._first[use.level.text] = self._goes_first(pool, use.level)
        spec, team = self._pools[pool], self._team[pool]
        if refused := self._room.over_limit(spec, usd_per_hour):
            self._refused[pool] = self._note_refused(pool, usd_per_hour, *refused)
            return
        self._room.reserve(spec, usd_per_hour)
        self._granted.setdefault(pool, []).append(usd_per_hour)
        self._order.launch(team, usd_per_hour)

    def _note_refused(self, pool: str, usd_per_hour: float, reason: Reason, detail: str, limit_of: str) -> Refusal:
        """Note whether others want the same room, and save what is left of it for an agent that fits once others have left."""
        use = next(use for use in self._room.levels if use.level.text == limit_of)
        if len({self._line(pool) for pool in self._team if use.level.has(pool)}) >= _SEVERAL:
            self._is_contested = True
            limit = use.level.ceilings.max_usd_per_hour
            left = limit - use.usd_per_hour
            if reason is Reason.USD_PER_HOUR and left > 0 and self._may_ever_fit(pool, usd_per_hour):
                self._saved[limit_of] = use.kept_usd_per_hour = left
        return Refusal(pool=pool, usd_per_hour=usd_per_hour, reason=reason, detail=detail, level=use.level)

    def _may_ever_fit(self, pool: str, usd_per_hour: float) -> bool:
        """Tell whether an agent fits within all limits once everything has left that may leave."""
        return all(use.fits(1, usd_per_hour, but=(Reason.LAUNCH_RATE,)) for use in self._beside if use.level.has(pool))

    @cached_property
    def _beside(self) -> list[Usage]:
        """The use of each level by what nothing makes leave."""
        return list(use_of_each_level(self._situation, staying(self._situation)))

    def _goes_first(self, pool: str, level: Level) -> str:
        """Say who goes first where a limit keeps several waiting, and why."""
        priority, hours = self._pools[pool].priority, SHARE_SECONDS / HOUR_SECONDS
        if any(self._pools[other].priority != priority for other in self._team if level.has(other)):
            return f"pool {pool} goes first (priority {priority})"
        if self._team[pool].name in self._order.left_out:
            return f"{self._team[pool].text} goes first: no agent of it has run for {TURN_SECONDS / 60:.0f} minutes"
        return f"{self._team[pool].text} goes first, having spent the fewest dollars for its weight in the last {hours:.0f} hours"

    def _kept(self) -> KeptRoom:
        return KeptRoom(
            agents={pool: len(prices) for pool, prices in self._granted.items()},
            usd_per_hour={pool: sum(prices) / len(prices) for pool, prices in self._granted.items()},
            saved=self._saved,
            first=self._first,
        )
