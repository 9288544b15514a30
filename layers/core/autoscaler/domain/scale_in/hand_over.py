"""Hand over: where a limit keeps jobs waiting whose turn it is, agents of those that come after take no new builds.

An agent whose queue never ends is never idle, so it would never make room. It is cordoned, its builds end, and it goes; no build is cut
short. By priority as many are handed over as jobs need; between teams only until each has its share of the dollars an hour. Where shares
are smaller than an agent, teams take turns of half an hour or longer.
"""

from collections.abc import Collection, Iterator

from autoscaler.domain.facts.metering import HOUR_SECONDS, team_of_each, teams
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.turns import (
    TURN_SECONDS,
    HandedOut,
    Refusal,
    Wish,
    hand_out,
    has_waited,
    order_of,
    turn_seconds,
    wishes_in_turn,
    wishes_without,
)
from autoscaler.domain.scale_in.surplus import least_missed
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, uncordon

_HELPED_BY_ROOM = {Reason.TEAM_MAX_AGENTS, Reason.FLEET_MAX_AGENTS, Reason.USD_PER_HOUR, Reason.NOT_ITS_TURN}
_LEAVING = (Phase.RETIRING, Phase.DRAINING, Phase.CONDEMNED, Phase.STOPPING)
_SERVES = (Phase.REQUESTED, Phase.CONNECTING, Phase.READY)
# Each costs a look at all limits; where more are due, the next pass goes on.
_AT_ONCE = 20


def let_bound_start(situation: Situation, controller: str, _decided: Decided) -> Iterator[Uncordon]:
    """Uncordon an agent that has handed over and that an item waits for by name: that item has no other agent to start on."""
    for agent in situation.agents if situation.snapshot.controllers[controller].complete else ():
        if agent.record.controller != controller or agent.phase is not Phase.DRAINING or agent.instance_ended:
            continue
        is_over = agent.mark is not None and agent.mark.kind is MarkClass.HANDS_OVER and agent.idle
        if is_over and agent.record.node in situation.demands[controller].pins:
            yield uncordon(agent, Reason.PINNED, f"its builds have ended, and a queue item waits for {agent.record.node} by name")


def hand_over(situation: Situation, decided: Decided) -> Iterator[Cordon]:
    """Cordon as few agents as it takes for those to fit whose turn it is, once the agents that leave already have left."""
    leaving = _leaving(situation, decided)
    if wishes := wishes_in_turn(situation, leaving):
        yield from _Handover(situation, leaving, wishes).cordons()


def _leaving(situation: Situation, decided: Decided) -> frozenset[str]:
    """Find the agents that take no new builds: their room is as good as free."""
    nodes, memory = {(step.controller, step.node) for step in decided if isinstance(step, Cordon)}, situation.memory
    leaving = [a for a in situation.agents if a.phase in _LEAVING or (a.record.controller, a.record.node) in nodes]
    return frozenset(a.record.instance_id for a in leaving).difference(memory.kept, memory.stuck)


class _Handover:
    def __init__(self, situation: Situation, leaving: frozenset[str], wishes: list[Wish]) -> None:
        """Begin with the agents that leave already."""
        self._situation, self._leaving, self._wishes = situation, leaving, wishes
        self._team, self._order = team_of_each(situation.fleet), order_of(situation, teams(situation.fleet))
        self._ready = sorted(least_missed(situation, [a for a in situation.agents if self._may_go(a)]), key=self._last_in_turn)
        self._served = {agent.pool.name for agent in situation.agents if agent.phase in _SERVES}

    def cordons(self) -> Iterator[Cordon]:
        """Go through those that are refused, in turn."""
        hopeless, count, handed_out = set[str](), 0, self._hand_out(())
        while count < _AT_ONCE:
            first = next((one for one in handed_out.refused if one.pool not in hopeless and one.reason in _HELPED_BY_ROOM), None)
            if first is None:
                return
            chosen = self._for(first, handed_out)
            wishes = wishes_without(self._situation, self._gone(chosen)) if chosen else []
            # Jobs that the chosen agents would have taken want their room, too. Room that only goes back to these is worth no change.
            if not chosen or self._granted(first, chosen, wishes) <= handed_out.granted.get(first.pool, 0):
                hopeless.add(first.pool)
                continue
            for agent in chosen:
                detail = f"jobs for {first.pool} wait under the limit of {first.level.text}, and go before those for {agent.pool.name}"
                yield cordon(self._situation, agent, MarkClass.HANDS_OVER, Reason.HANDS_OVER, detail)
            count += len(chosen)
            self._leaving, self._wishes = self._gone(chosen), wishes
            handed_out = self._hand_out(())

    def _gone(self, chosen: Collection[Agent]) -> frozenset[str]:
        return self._leaving.union(agent.record.instance_id for agent in chosen)

    def _granted(self, first: Refusal, chosen: Collection[Agent], wishes: list[Wish]) -> int:
        return hand_out(self._situation, self._gone(chosen), wishes).granted.get(first.pool, 0)

    def _for(self, first: Refusal, before: HandedOut) -> list[Agent]:
        """Choose agents until one more of this pool fits; none where all that come after it would not be enough."""
        chosen, handed_out = list[Agent](), before
        while handed_out.granted.get(first.pool, 0) <= before.granted.get(first.pool, 0):
            agent = next((one for one in self._ready if self._hands_over(one, first, chosen, handed_out)), None)
            if agent is None:
                return []
            chosen.append(agent)
            handed_out = self._hand_out(chosen)
        return chosen

    def _hand_out(self, chosen: Collection[Agent]) -> HandedOut:
        return hand_out(self._situation, self._gone(chosen), self._wishes)

    def _hands_over(self, agent: Agent, first: Refusal, chosen: list[Agent], handed_out: HandedOut) -> bool:
        """Tell whether an agent counts under the limit, may go, and is of those that come after."""
        priority = self._situation.fleet.pools[first.pool].priority
        if priority < agent.pool.priority or not first.level.has(agent.pool.name):
            return False
        if priority == agent.pool.priority and not (self._is_fair(agent, first, handed_out) or self._has_had_its_turn(agent, first)):
            return False
        gone = self._gone(chosen)
        staying = sum(one.pool.name == agent.pool.name and one.record.instance_id not in gone for one in self._ready)
        return agent.record.instance_id not in gone and staying > agent.pool.min_agents

    def _is_fair(self, agent: Agent, first: Refusal, handed_out: HandedOut) -> bool:
        """Tell whether the waiting team has spent less, and would still have no more an hour for its weight than the other one."""
        team, other = self._team[first.pool], self._team[agent.pool.name]
        if team.name == other.name or self._order.key(team.name) >= self._order.key(other.name):
            return False
        after = handed_out.usd_per_hour(team) + first.usd_per_hour, handed_out.usd_per_hour(other) - agent.record.reserved_usd_per_hour
        return after[0] / team.weight <= after[1] / other.weight

    def _has_had_its_turn(self, agent: Agent, first: Refusal) -> bool:
        """Tell whether the waiting team is left out, and the other one has kept its agent for a turn.

        A team that has agents of other pools is left out of this one while it would have spent less even after its turn.
        """
        team, other = self._team[first.pool], self._team[agent.pool.name]
        boot_seconds = self._situation.pools[agent.key].boot_seconds
        has_served = self._situation.now - agent.record.began_at >= turn_seconds(other, team) + boot_seconds
        if team.name == other.name or not has_served or first.pool in self._served or not has_waited(self._situation, first.pool):
            return False
        if team.name in self._order.left_out or other.name in self._order.left_out:
            return self._order.key(team.name) < self._order.key(other.name)
        turn_usd = first.usd_per_hour * TURN_SECONDS / HOUR_SECONDS / team.weight
        return self._order.spent[team.name] + turn_usd < self._order.spent[other.name]

    def _last_in_turn(self, agent: Agent) -> tuple[int, float]:
        return agent.pool.priority, -self._order.spent[self._team[agent.pool.name].name]

    def _may_go(self, agent: Agent) -> bool:
        """Tell whether an agent takes builds, what is seen of it can be believed, nobody wants it kept, and no run may go on there."""
        situation, controller = self._situation, agent.record.controller
        if agent.phase is not Phase.READY or agent.instance_ended or not agent.makes_room or situation.no_giving_up(controller):
            return False
        if agent.key not in situation.pools:  # it left the fleet file, and drains anyway
            return False
        # To what is yet to begin a cordon does no harm: what waits for this node by name gets it before it goes.
        if situation.waits_to_resume(agent) or agent.record.node in situation.demands[controller].resumes:
            return False
        return not (situation.now < agent.record.keep_until or situation.pools[agent.key].on_hold)
