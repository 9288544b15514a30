"""Make room: where a limit keeps jobs waiting, idle agents leave that count against it.

Demand that is there comes before demand that was. What a walk over the queues would launch without those agents, and does not with
them, is what they stand in the way of; as few of them leave as that takes. An agent that no waiting job can take is needed by nobody,
whatever its pool counts on.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator

from autoscaler.domain.facts.metering import LevelKind, levels
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.queue import place_queue
from autoscaler.domain.launch.turns import controllers_in_turn, may_be_refused, room_without
from autoscaler.domain.scale_in.surplus import idle_beyond_need
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon
from autoscaler.domain.situation.supposed import without_agents

_HELPED_BY_ROOM = {
    *(Reason.MAX_AGENTS, Reason.TEAM_MAX_AGENTS, Reason.FLEET_MAX_AGENTS),
    *(Reason.USD_PER_HOUR, Reason.USD_PER_MONTH, Reason.NOT_ITS_TURN),
}
_NARROW_FIRST = tuple(LevelKind)


def make_room(situation: Situation, decided: Decided) -> Iterator[Cordon]:
    """Cordon idle agents that nothing needs, where jobs need their room: those first that no job can take, then idle longest."""
    if not may_be_refused(situation, Budget(situation)):
        return
    beyond, stranded = idle_beyond_need(situation)
    if not (idle := [*stranded, *beyond]):
        return
    leaving = _leaving(situation, decided)
    useless = frozenset(agent.record.instance_id for agent in stranded)
    situation = without_agents(situation, useless)  # no job counts on them
    with_them, refused = _launches(situation, leaving)
    in_the_way = _in_the_way(situation, idle, useless, leaving, refused)

    def launches_without(first: int) -> int:
        return _launches(situation, leaving | {agent.record.instance_id for agent in in_the_way[:first]})[0]

    most = launches_without(len(in_the_way)) if in_the_way else with_them
    if most <= with_them:
        return
    fewest = bisect_left(range(len(in_the_way)), most, key=launches_without)
    for agent in in_the_way[:fewest]:
        against = _against(agent, refused, situation).detail
        yield _cordon_idle(situation, agent, against, is_useless=agent.record.instance_id in useless)


def _cordon_idle(situation: Situation, agent: Agent, against: str, *, is_useless: bool) -> Cordon:
    """Cordon an agent. Demand does not bring a useless one back: it would, for the very jobs that cannot take it."""
    if is_useless:
        detail = f"it is idle, no job that waits can take it, and it takes the room of an agent that jobs wait for: {against}"
        return cordon(situation, agent, MarkClass.HANDS_OVER, Reason.GIVES_WAY, detail)
    detail = f"it is idle, and takes the room of an agent that jobs wait for: {against}"
    return cordon(situation, agent, MarkClass.RETIRE, Reason.GIVES_WAY, detail)


def _launches(situation: Situation, leaving: frozenset[str]) -> tuple[int, list[Held]]:
    """Count the launches for the queues if these agents had left, and those that a limit refused."""
    budget, count, refused = Budget(situation, leaving, kept=room_without(situation, leaving)), 0, list[Held]()
    for controller in controllers_in_turn(situation):
        view = situation.snapshot.controllers[controller]
        if not view.complete or view.quieting_down:
            continue
        purchase = place_queue(situation, controller, budget).purchase
        count += sum(step.count for step in purchase.steps())
        refused += [held for held in purchase.held.values() if held.reason in _HELPED_BY_ROOM]
    return count, refused


def _in_the_way(
    situation: Situation, idle: list[Agent], useless: Collection[str], leaving: Collection[str], refused: list[Held]
) -> list[Agent]:
    """Order the agents that count against the refused launches: those of the narrowest limit first, then useless ones, then idle longest.

    An agent of another team has no room under this team's limit, nor one of another pool under this pool's.
    """
    full = [level for level in levels(situation.fleet) if level.text in {held.limit_of for held in refused}]
    since = situation.memory.idle_since

    def place(agent: Agent) -> tuple[int, bool, float]:
        narrowest = next(level for level in full if level.has(agent.pool.name))
        instance_id = agent.record.instance_id
        return _NARROW_FIRST.index(narrowest.kind), instance_id not in useless, since.get(instance_id, situation.now)

    mine = [agent for agent in idle if any(level.has(agent.pool.name) for level in full)]
    return sorted((agent for agent in mine if agent.record.instance_id not in leaving), key=place)


def _against(agent: Agent, refused: list[Held], situation: Situation) -> Held:
    """Find the first refusal for which this agent takes room."""
    whose = {level.text for level in levels(situation.fleet) if level.has(agent.pool.name)}
    return next(held for held in refused if held.limit_of in whose)


def _leaving(situation: Situation, decided: Decided) -> frozenset[str]:
    """Find idle cordoned agents: they count as freed capacity, except those that are held."""
    nodes, memory = {(step.controller, step.node) for step in decided if isinstance(step, Cordon)}, situation.memory
    out_of_use = [a for a in situation.agents if a.idle and _is_about_to_go(a, nodes)]
    held = {*memory.kept, *memory.stuck}
    return frozenset(a.record.instance_id for a in out_of_use if a.record.instance_id not in held and not situation.protected(a))


def _is_about_to_go(agent: Agent, cordoned: Collection[tuple[str, str]]) -> bool:
    """Tell whether an agent is drained, or cordoned by this pass; what a person has stays for as long as they have it."""
    return agent.phase is not Phase.RESERVED and bool(agent.mark or (agent.record.controller, agent.record.node or "") in cordoned)
