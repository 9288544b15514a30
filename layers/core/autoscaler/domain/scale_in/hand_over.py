"""Hand over: where a limit keeps jobs waiting whose turn it is, agents of those that come after take no new builds.

An agent whose queue never ends is never idle, so it would never make room. It is cordoned, its builds end, and it goes; no build is cut
short. By priority as many are handed over as jobs need; between teams only until each has its share of the dollars an hour.
"""

from collections.abc import Collection, Iterator

from autoscaler.domain.facts.levels import team_of_each, teams
from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.turns import HandedOut, Refusal, Wish, hand_out, spent_for_weight, wishes_in_turn
from autoscaler.domain.scale_in.surplus import least_missed
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon

_HELPED_BY_ROOM = {Reason.TEAM_MAX_AGENTS, Reason.FLEET_MAX_AGENTS, Reason.USD_PER_HOUR, Reason.NOT_ITS_TURN}
_LEAVING = (Phase.RETIRING, Phase.DRAINING, Phase.CONDEMNED, Phase.STOPPING)
# Each costs a look at all limits; where more are due, the next pass goes on.
_AT_ONCE = 20


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
        self._team = team_of_each(situation.fleet)
        self._spent = {team.name: spent_for_weight(situation, team) for team in teams(situation.fleet)}
        self._ready = sorted(least_missed(situation, [a for a in situation.agents if _may_go(situation, a)]), key=self._last_in_turn)

    def cordons(self) -> Iterator[Cordon]:
        """Go through those that are refused, in turn."""
        hopeless, count, handed_out = set[str](), 0, self._hand_out(())
        while count < _AT_ONCE:
            first = next((one for one in handed_out.refused if one.pool not in hopeless and one.reason in _HELPED_BY_ROOM), None)
            if first is None:
                return
            chosen = self._for(first, handed_out)
            if not chosen:
                hopeless.add(first.pool)
                continue
            for agent in chosen:
                detail = f"jobs for {first.pool} wait under the limit of {first.level.text}, and go before those for {agent.pool.name}"
                yield cordon(self._situation, agent, MarkClass.HANDS_OVER, Reason.HANDS_OVER, detail)
            count += len(chosen)
            self._leaving |= {agent.record.instance_id for agent in chosen}
            handed_out = self._hand_out(())

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
        return hand_out(self._situation, self._leaving.union(agent.record.instance_id for agent in chosen), self._wishes)

    def _hands_over(self, agent: Agent, first: Refusal, chosen: list[Agent], handed_out: HandedOut) -> bool:
        """Tell whether an agent counts under the limit, may go, and is of those that come after."""
        priority = self._situation.fleet.pools[first.pool].priority
        if priority < agent.pool.priority or not first.level.has(agent.pool.name):
            return False
        if priority == agent.pool.priority and not self._is_fair(agent, first, handed_out):
            return False
        gone = self._leaving.union(one.record.instance_id for one in chosen)
        staying = sum(one.pool.name == agent.pool.name and one.record.instance_id not in gone for one in self._ready)
        return agent.record.instance_id not in gone and staying > agent.pool.min_agents

    def _is_fair(self, agent: Agent, first: Refusal, handed_out: HandedOut) -> bool:
        """Tell whether the waiting team has spent less, and would still have no more an hour for its weight than the other one."""
        team, other = self._team[first.pool], self._team[agent.pool.name]
        if team.name == other.name or self._spent[team.name] >= self._spent[other.name]:
            return False
        after = handed_out.usd_per_hour(team) + first.usd_per_hour, handed_out.usd_per_hour(other) - agent.record.reserved_usd_per_hour
        return after[0] / team.weight <= after[1] / other.weight

    def _last_in_turn(self, agent: Agent) -> tuple[int, float]:
        return agent.pool.priority, -self._spent[self._team[agent.pool.name].name]


def _may_go(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent takes builds, what is seen of it can be believed, and nobody wants it kept."""
    if agent.phase is not Phase.READY or agent.instance_ended or not agent.makes_room or situation.no_giving_up(agent.record.controller):
        return False
    return not (situation.protected(agent) or situation.now < agent.record.keep_until or situation.pools[agent.key].on_hold)
