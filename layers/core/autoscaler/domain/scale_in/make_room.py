"""What leaves where a limit keeps jobs waiting: idle agents, stopped ones, late starts, and agents of those that come after."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf

from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.metering import HOUR_SECONDS, Level, LevelKind, hours_in_day, levels, spent_in_month, team_of_each, teams
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.launch.backoff import held_by_what_is_stopped
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.turns import (
    TURN_SECONDS,
    HandedOut,
    Refusal,
    Wish,
    hand_out,
    has_waited,
    may_be_refused,
    order_of,
    placed_in_turn,
    room_without,
    turn_seconds,
    wishes_in_turn,
    wishes_without,
)
from autoscaler.domain.scale_in.surplus import idle_beyond_need, least_missed
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import TrialOf, in_the_way
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Decided, Situation, cordon, leaving, terminate, uncordon
from autoscaler.domain.wording import dollars_apart, figures_apart

# Where limits keep jobs waiting, agents leave for them: for each agent that a queue lacks, in turn, as few as it takes until that one fits.


_HELPED_BY_ROOM = {
    *(Reason.MAX_AGENTS, Reason.TEAM_MAX_AGENTS, Reason.FLEET_MAX_AGENTS),
    *(Reason.USD_PER_HOUR, Reason.USD_PER_MONTH, Reason.NOT_ITS_TURN),
}
_HELPED_BY_HANDING_OVER = {Reason.TEAM_MAX_AGENTS, Reason.FLEET_MAX_AGENTS, Reason.USD_PER_HOUR, Reason.NOT_ITS_TURN}


@dataclass(slots=True, kw_only=True)
class _Room:
    """The room that agents leave to those whose wishes a limit refuses.

    ``leaving``: instances that leave already; ``ready``: who may leave, too, the first of all at the beginning, for refusals for these
    reasons, as far as ``leaves_for`` says; ``wishes_without``: what is wished for once these have left; ``most``: agents in one pass.
    """

    situation: Situation
    leaving: frozenset[str]
    wishes: list[Wish]
    ready: list[Agent]
    helped: Collection[Reason]
    leaves_for: Callable[[Refusal, Agent, frozenset[str], HandedOut], bool]
    wishes_without: Callable[[frozenset[str]], list[Wish]]
    most: float = inf

    def make(self) -> Iterator[tuple[Agent, Refusal]]:
        """Go through those that are refused, in turn; return who leaves, and for whom."""
        hopeless, count, handed_out = set[str](), 0, self._hand_out(())
        while count < self.most:
            refusals = (refusal for refusal in handed_out.refused if refusal.pool not in hopeless and refusal.reason in self.helped)
            if (refused := next(refusals, None)) is None:
                return
            chosen = self._for(refused, handed_out)
            gone = self._gone(chosen)
            wishes = self.wishes_without(gone) if chosen else self.wishes
            after = hand_out(self.situation, gone, wishes) if chosen else handed_out
            # Jobs that the chosen agents would have taken want their room, too. Room that only goes back to these is worth no change.
            if after.granted.get(refused.pool, 0) <= handed_out.granted.get(refused.pool, 0):
                hopeless.add(refused.pool)
                continue
            yield from ((agent, refused) for agent in chosen)
            count += len(chosen)
            self.leaving, self.wishes, handed_out = gone, wishes, after

    def _gone(self, chosen: Iterable[Agent]) -> frozenset[str]:
        return self.leaving | _ids(chosen)

    def _for(self, refused: Refusal, before: HandedOut) -> list[Agent]:
        """Choose agents until one more of this pool fits; none where all that may leave for it would not be enough.

        Once a narrow limit has room, a wider one may refuse: then others leave for it, too.
        """
        chosen, handed_out = list[Agent](), before
        while handed_out.granted.get(refused.pool, 0) <= before.granted.get(refused.pool, 0):
            gone = self._gone(chosen)
            refused = next((refusal for refusal in handed_out.refused if refusal.pool == refused.pool), refused)
            ready = (agent for agent in self.ready if agent.record.instance_id not in gone and refused.level.has(agent.pool.name))
            agent = next((agent for agent in ready if self.leaves_for(refused, agent, gone, handed_out)), None)
            if agent is None or refused.reason not in self.helped:
                return []
            chosen.append(agent)
            handed_out = self._hand_out(chosen)
        return chosen

    def _hand_out(self, chosen: Iterable[Agent]) -> HandedOut:
        return hand_out(self.situation, self._gone(chosen), self.wishes)


def _ids(agents: Iterable[Agent]) -> frozenset[str]:
    return frozenset(agent.record.instance_id for agent in agents)


# Make room: idle agents leave where a limit that they count against keeps jobs waiting.
#
# Demand that is there comes before demand that was. An agent that no waiting job can take is needed by nobody, whatever its pool counts on.


def make_room(situation: Situation, decided: Decided) -> Iterator[Cordon]:
    """Cordon idle agents that nothing needs, where jobs need their room: those first that no job can take, then idle longest."""
    if not may_be_refused(situation):
        return
    beyond, stranded = idle_beyond_need(situation)
    leaving, useless = _leaving(situation, decided), _ids(stranded)
    idle = [agent for agent in (*stranded, *beyond) if agent.record.instance_id not in leaving]
    idle.sort(key=lambda agent: (agent.record.instance_id not in useless, situation.past(agent).idle_since or situation.now))
    launched, is_refused = _launched(situation, leaving) if idle else ([], False)
    wishes = _launched(situation, leaving | _ids(idle))[0] if is_refused else []
    if len(wishes) > len(launched):
        room = _Room(
            situation=situation,
            leaving=leaving,
            wishes=wishes,
            ready=idle,
            helped=_HELPED_BY_ROOM,
            leaves_for=lambda *_: True,
            wishes_without=lambda _: wishes,  # nobody misses what is idle
        )
        for agent, refused in room.make():
            # Demand does not bring a useless one back: it would, for the very jobs that cannot take it.
            kind, why = MarkClass.RETIRE, "it is idle, and takes"
            if agent.record.instance_id in useless:
                kind, why = MarkClass.HANDS_OVER, "it is idle, no job that waits can take it, and it takes"
            yield cordon(situation, agent, kind, Reason.GIVES_WAY, f"{why} the room of an agent that jobs wait for: {refused.detail}")


def _launched(situation: Situation, leaving: frozenset[str]) -> tuple[list[Wish], bool]:
    """List the agents that the queues would get if these had left, and tell whether more room would bring them more."""
    budget = Budget(situation, leaving).keep(room_without(situation, leaving))
    held = [refusal for placement in placed_in_turn(situation, budget) for refusal in placement.purchase.held.values()]
    return budget.taken, any(refusal.reason in _HELPED_BY_ROOM for refusal in held)


def _leaving(situation: Situation, decided: Decided) -> frozenset[str]:
    """Find idle cordoned agents: they count as freed capacity, except those that are held."""
    nodes = {(step.controller, step.node) for step in decided if isinstance(step, Cordon)}
    # A reserved agent stays until its reservation ends.
    idle = (a for a in situation.agents if a.idle and a.phase is not Phase.RESERVED)
    out_of_use = [a for a in idle if a.mark or (a.record.controller, a.record.node or "") in nodes]
    return frozenset(a.record.instance_id for a in out_of_use if not (situation.past(a).is_held or situation.protected(a)))


# Stopped agents make way: each holds an address of its subnet, and volumes of the account's quota, which a launch may lack.


# Since the last look, or the one before it: what has been ended since the refusal counts, so that it ends as many as the jobs need, once.
_JUST_NOW_SECONDS = 90.0


def make_way(situation: Situation, decided: Decided) -> Iterator[Terminate]:
    """Terminate stopped agents that no job waits for, those stopped first, if EC2 has just refused a launch for what they hold."""
    gone = {step.instance_id for step in decided if isinstance(step, Terminate)}
    for pool in situation.pools.values():
        starved = situation.starved[pool.controller].get(pool.name, 0)
        if not starved:
            continue
        for subnet, trial in _lacking(situation, pool).items():
            holders = [agent for agent in _holders(situation, subnet) if agent.record.instance_id not in gone]
            for agent in holders[: max(0, ceil(starved / pool.executors) - _have_made_way(situation, trial.failed_at))]:
                gone.add(agent.record.instance_id)
                yield terminate(agent, Reason.MAKES_WAY, f"jobs wait for {pool.name}, and a launch failed: {trial.why}")


def _have_made_way(situation: Situation, since_at: float) -> int:
    """Count the agents without a node that were given up since then: what they held is for the jobs that wait."""
    given_up = (record for record in situation.snapshot.records if record.state is RecordState.CONDEMNED and record.registered_at is None)
    return sum(record.changed_at >= since_at for record in given_up)


def _lacking(situation: Situation, pool: PoolView) -> dict[str, Trial]:
    """Return what launches of a pool have just lacked, by subnet; "" for what all subnets share."""
    trials = in_the_way(pool.spec, situation.memory)
    just_now = {scope: trial for scope, trial in trials.items() if situation.now - trial.failed_at < _JUST_NOW_SECONDS}
    subnets = {TrialOf.OFFERING.scope(pool.name, offering.key): offering.subnet for offering in pool.spec.offerings}
    shared = next((trial for trial in just_now.values() if held_by_what_is_stopped(trial.code, everywhere=True)), None)
    if shared is not None:
        return {"": shared}
    return {subnets.get(scope, ""): trial for scope, trial in just_now.items() if held_by_what_is_stopped(trial.code)}


def _holders(situation: Situation, subnet: str) -> list[Agent]:
    """List the stopped agents in a subnet that no waiting job may be served by, those that were stopped first at the beginning."""
    wanted = {pool.key for pool in situation.pools.values() if situation.starved[pool.controller].get(pool.name, 0)}
    free = [
        pool for pool in situation.pools.values() if not (pool.key in wanted or pool.on_hold or situation.no_giving_up(pool.controller))
    ]
    off = [instance for instance in situation.snapshot.instances if instance.state is InstanceState.STOPPED]
    there = {instance.id for instance in off if subnet in {"", instance.subnet}}
    stopped = [agent for pool in free for agent in pool.stopped if agent.record.instance_id in there]
    return sorted(stopped, key=lambda agent: agent.record.changed_at)


# Hand over: where a limit keeps jobs waiting whose turn it is, agents of those that come after take no new builds.
#
# An agent whose queue never ends is never idle, so it would never make room. It is cordoned, its builds end, and it goes; no build is cut
# short. By priority as many are handed over as jobs need; between teams only until each has its share of the dollars an hour. Where shares
# are smaller than an agent, teams take turns of half an hour or longer.


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
    leaving = _already_leaving(situation, decided)
    if wishes := wishes_in_turn(situation, leaving):
        turns = _Turns(situation)
        room = _Room(
            situation=situation,
            leaving=leaving,
            wishes=wishes,
            ready=turns.ready,
            helped=_HELPED_BY_HANDING_OVER,
            leaves_for=turns.leaves_for,
            wishes_without=partial(wishes_without, situation),
            most=20,  # each costs a look at all limits; where more are due, the next pass goes on
        )
        for agent, refused in room.make():
            detail = f"jobs for {refused.pool} wait under the limit of {refused.level.text}, and go before those for {agent.pool.name}"
            yield cordon(situation, agent, MarkClass.HANDS_OVER, Reason.HANDS_OVER, detail)


def _already_leaving(situation: Situation, decided: Decided) -> frozenset[str]:
    """Find the agents that take no new builds: their room is as good as free."""
    nodes = {(step.controller, step.node) for step in decided if isinstance(step, Cordon)}
    leaving = [
        a for a in situation.agents if a.phase.is_out_of_use or a.record.state.is_given_up or (a.record.controller, a.record.node) in nodes
    ]
    return frozenset(a.record.instance_id for a in leaving if not situation.past(a).is_held)


class _Turns:
    """Who hands over to whom, and the agents that may go, those that come last in turn at the beginning."""

    def __init__(self, situation: Situation) -> None:
        """Work out the order once."""
        self._situation, self._team, self._order = situation, team_of_each(situation.fleet), order_of(situation, teams(situation.fleet))
        self._served = {agent.pool.name for agent in situation.agents if agent.phase.is_in_service}
        self.ready = sorted(
            least_missed(situation, [agent for agent in situation.agents if self._may_go(agent)]),
            key=lambda agent: (agent.pool.priority, -self._order.spent[self._team[agent.pool.name].name]),
        )

    def leaves_for(self, first: Refusal, agent: Agent, gone: frozenset[str], handed_out: HandedOut) -> bool:
        """Tell whether an agent is of those that come after, and more of its pool stay than its minimum."""
        priority = self._situation.fleet.pools[first.pool].priority
        if priority < agent.pool.priority:
            return False
        if priority == agent.pool.priority and not (self._is_fair(agent, first, handed_out) or self._has_had_its_turn(agent, first)):
            return False
        staying = sum(other.pool.name == agent.pool.name and other.record.instance_id not in gone for other in self.ready)
        return staying > agent.pool.min_agents

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


# At the limits of the month and of the day nothing new starts: agents are cordoned until it ends or the limit is raised.


_MAY_TAKE_BUILDS = (Phase.READY, Phase.CONNECTING)


def stop_for_month_limit(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Terminate]:
    """Cordon every agent of a controller, except those a build may be bound to; one without a node is terminated.

    Holds, `min_agents` and what a person wants kept do not count: the limit is a ceiling.
    """
    taken = leaving(decided, controller)
    for agent in situation.agents if situation.stopped_levels else ():
        level = situation.stopped_by(agent.pool.name)
        if level is None or agent.record.controller != controller or agent.record.node in taken or agent.instance_ended:
            continue
        if agent.record.is_host:
            continue  # which costs nothing
        if agent.phase is Phase.REQUESTED:
            step = terminate(agent, _of(situation, level)[1], what_holds(situation, level))
            yield replace(step, node=None, mark=None)
        elif agent.phase in _MAY_TAKE_BUILDS and not situation.protected(agent):
            yield cordon(situation, agent, *_of(situation, level), what_holds(situation, level))


def what_holds(situation: Situation, level: Level) -> str:
    """Say how much is spent or used, by whom, and what follows."""
    if level not in situation.spent_levels:
        return f"{_hours(situation, level)}: nothing new of it starts until midnight UTC"
    usd, limit = spent_in_month(situation.memory.month, level), level.ceilings.max_usd_per_month
    is_all = level.kind is LevelKind.FLEET
    by, new, of = ("", "nothing new", "") if is_all else (f" by {level.text}", "nothing new of it", f" of {level.text}")
    spent, allowed = dollars_apart(usd, limit)
    return f"{spent} of {allowed} are spent this month{by}: {new} starts until it ends or max_usd_per_month{of} is raised"


def told_hours(situation: Situation, pool: str) -> Iterator[str]:
    """Say how many hours of the day are used where a limit is about those of this pool."""
    for level in levels(situation.fleet):
        if level.has(pool) and level.ceilings.max_hours_per_day < inf:
            yield what_holds(situation, level) if level in situation.stopped_levels else _hours(situation, level)


def _hours(situation: Situation, level: Level) -> str:
    hours = hours_in_day(situation.memory.fleet.day, level, situation.now)
    used, limit = figures_apart(hours, level.ceilings.max_hours_per_day)
    return f"{used} of {limit} hours are used today by {level.text}"


def _of(situation: Situation, level: Level) -> tuple[MarkClass, Reason]:
    """Return the class of the mark and the reason: of the month's money, or of the day's hours."""
    if level in situation.spent_levels:
        return MarkClass.MONTH_LIMIT, Reason.USD_PER_MONTH
    return MarkClass.DAY_LIMIT, Reason.HOURS_PER_DAY
