"""Turns: who goes first where a limit keeps jobs of several teams or priorities waiting, and the room that is kept for them.

Pools of a higher priority go first, then teams that are left out, then the team that spent the fewest dollars for its weight in the last
hours; an agent that is launched counts as an hour of its price at once. What all would launch, had the limits that they share room, is
handed out in this order, agent by agent. Where all of it fits, nothing is kept, and Jenkins' order stands.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from autoscaler.domain.facts.fleet import Fleet, Team
from autoscaler.domain.facts.metering import HOUR_SECONDS, SHARE_SECONDS, Level, LevelKind, team_of_each
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.left_out import TURN_SECONDS, order_of
from autoscaler.domain.launch.placement import QueuePlacement
from autoscaler.domain.launch.staying import fits_beside, staying
from autoscaler.domain.launch.top_ups import for_minima
from autoscaler.domain.launch.usage import NOTHING_KEPT, KeptRoom
from autoscaler.domain.memo import FOR_EVER
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.supposed import without_agents

_OF_ITS_OWN = (LevelKind.POOL,)
_SEVERAL = 2
Wish: TypeAlias = tuple[str, float]  # pool and highest price of an agent
_Line: TypeAlias = tuple[int, str]  # of those that wait: minus their priority, and their team


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The first agent of a pool that does not fit, and whose limit it was."""

    pool: str
    usd_per_hour: float
    reason: Reason
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
    if not has_lines(situation.fleet) or not may_be_refused(situation, Budget(situation, leaving), minima=True):
        return []
    return _wishes(situation, leaving)


def wishes_without(situation: Situation, leaving: Collection[str]) -> list[Wish]:
    """List what would be launched, likewise, if these instances took no more builds."""
    return _wishes(without_agents(situation, leaving), leaving)


def hand_out(situation: Situation, leaving: Collection[str], wishes: list[Wish]) -> HandedOut:
    """Hand out the room that these instances leave, an agent at a time, until all have theirs or nothing fits."""
    return _HandingOut(situation, Budget(situation, leaving), wishes).all()


def may_be_refused(situation: Situation, budget: Budget, *, minima: bool = False) -> bool:
    """Tell whether the limits might refuse an agent for each waiting job, or minimum: else nothing needs to be placed."""
    wants = [want for demand in situation.demands.values() for want in demand.wants if want.mature]
    agents, pools = len(wants), {pool.name: pool for want in wants for pool in want.pools}
    for pool in situation.fleet.pools.values() if minima else ():
        if least := pool.min_agents + pool.warm_executors:
            agents, pools = agents + least, pools | {pool.name: pool}
    return not all(budget.has_room_for(agents, pool) for pool in pools.values())


def has_lines(fleet: Fleet) -> bool:
    """Tell whether anybody may go before anybody else."""
    return bool(fleet.teams) or len({pool.priority for pool in fleet.pools.values()}) > 1


def _wishes(situation: Situation, leaving: Collection[str]) -> list[Wish]:
    budget = Budget(situation, leaving, kinds=_OF_ITS_OWN)
    for controller in controllers_in_turn(situation):
        view = situation.snapshot.controllers[controller]
        if view.complete and not view.quieting_down:
            placement = QueuePlacement(situation, controller, budget)
            placement.place_queue()
            for_minima(placement)
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

    def _note_refused(self, pool: str, usd_per_hour: float, reason: Reason, _detail: str, limit_of: str) -> Refusal:
        """Note whether others want the same room, and save what is left of it for an agent that fits once others have left."""
        use = next(use for use in self._room.levels if use.level.text == limit_of)
        if len({self._line(pool) for pool in self._team if use.level.has(pool)}) >= _SEVERAL:
            self._is_contested = True
            limit = use.level.ceilings.max_usd_per_hour
            left = limit - use.usd_per_hour
            if reason is Reason.USD_PER_HOUR and left > 0 and self._may_ever_fit(pool, usd_per_hour):
                self._saved[limit_of] = use.kept_usd_per_hour = left
        return Refusal(pool=pool, usd_per_hour=usd_per_hour, reason=reason, level=use.level)

    def _may_ever_fit(self, pool: str, usd_per_hour: float) -> bool:
        """Tell whether an agent fits within all limits once everything has left that may leave."""
        return all(fits_beside(self._situation, self._staying, usd_per_hour, use.level) for use in self._room.levels_of(pool))

    @cached_property
    def _staying(self) -> list[Record]:
        return staying(self._situation)

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
