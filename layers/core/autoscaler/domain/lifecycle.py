"""What follows from the state of each agent: one function a state, in which two looks come before anything that cannot be undone.

What a look sees of agents, instances and nodes that may have to be removed is noted first (`next_observations`). `lifecycle` then asks
the table of states where each agent is, and does what follows; the gate has the last word.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import CORDONED_LABEL
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.nodes import Mark, MarkClass, has_static_node, is_of_host
from autoscaler.domain.facts.plan import Cordon, DeleteNode, FinishStop, ForceStop, Forget, Held, Start, Step, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import OFF, Instance, InstanceState, RecordState
from autoscaler.domain.gate import is_node_gone, why_not_yet
from autoscaler.domain.launch.backoff import code_of_end, keeps_from_starting
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.repair.nodes import leave_slot, node_named_after, take_in, unrecorded_seen
from autoscaler.domain.scale_in.replace import told_ended
from autoscaler.domain.scale_in.sides import rotate, unwanted_elsewhere
from autoscaler.domain.scale_in.surplus import WarmRoom
from autoscaler.domain.situation import states
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.canary import never_connected, starts_late
from autoscaler.domain.situation.left import LOST_SECONDS, is_controller_left, lost_since, told_unseen, unseen_sides, why_not_wanted
from autoscaler.domain.situation.situation import Decided, Situation, cordon, delete_node, hold_back, hold_unread, stop, terminate, uncordon
from autoscaler.domain.situation.states import (
    DISCONNECT_GRACE_SECONDS,
    FORCED_SECONDS,
    MARKED_BY_US,
    READY,
    STOPS_SECONDS,
    AgentState,
    Condition,
    is_fact,
    state_of,
)
from autoscaler.domain.situation.supply import is_leaving
from autoscaler.domain.situation.warm_pool import may_be_stopped, why_disk_is_done
from autoscaler.domain.wording import duration

# What a look sees.


# Of these Jenkins is no witness: its restart changes nothing about them.
_BY_EC2 = (Condition.OVERDUE, Condition.STARTED, Condition.ENDED, Condition.STRAY, Condition.ORPHAN)


def next_observations(situation: Situation) -> dict[str, Observation]:
    """Carry on what is seen of agents, however far apart the looks are; what is not seen this time, or in another session, starts again.

    A look that did not come ends nothing; what cannot be believed is left out.
    """
    memory, views = situation.memory, situation.snapshot.controllers
    whole = {view.name for view in situation.snapshot.controllers.values() if view.complete}
    unread = (agent.record.instance_id for agent in situation.agents if agent.record.controller not in whole)
    looks = {name: look for name in unread if (look := memory.agent(name).look)}
    for agent in situation.agents:
        sees = None if situation.no_giving_up(agent.record.controller) else _SEEN.get(state_of(situation, agent))
        if sees and (condition := sees(situation, agent)):
            session = "" if condition in _BY_EC2 else views[agent.record.controller].session
            name = agent.record.instance_id
            looks[name] = _next(memory.agent(name).look, condition, session, situation)
    return looks | {
        name: _next(memory.agent(name).look, condition, "", situation) for name, condition in unrecorded_seen(situation).items()
    }


def _next(before: Observation | None, condition: Condition, session: str, situation: Situation) -> Observation:
    now, idle_before_at = situation.now, None
    if before is not None and before.session == session:
        if before.condition == condition:
            return replace(before, last_at=now)
        if before.condition in {Condition.IDLE, Condition.UNLABELLED} and condition is Condition.DRAINED:
            idle_before_at = before.last_at
    return Observation(
        condition=condition,
        first_at=now,
        last_at=now,
        request_id=situation.snapshot.request_id,
        session=session,
        idle_before_at=idle_before_at,
    )


def _at_rest(agent: Agent) -> Condition | None:
    """Tell of an agent out of use that it is idle: marked offline, or its labels are gone from the node itself."""
    if agent.node is None or not agent.idle or (agent.instance in OFF and agent.record.state is RecordState.STOPPING):
        return None
    if agent.by_labels:
        return Condition.UNLABELLED if CORDONED_LABEL in agent.node.labels else None
    return Condition.DRAINED if agent.node.offline else None


def _overdue(situation: Situation, agent: Agent) -> Condition | None:
    """Tell whether a machine has had its time to register, or twice that of a start. It cannot before it has left another controller."""
    record, pool = agent.record, situation.pools.get(agent.key)
    if record.leaves or agent.phase not in (Phase.OVERDUE, Phase.REQUESTED) or agent.instance in OFF:
        return None
    is_late = agent.phase is Phase.OVERDUE or (pool is not None and starts_late(situation, agent, pool))
    is_there = is_late and node_named_after(situation, record.controller, record.instance_id) is not None
    return Condition.OVERDUE if is_late and not is_there else None


def _of_host(situation: Situation, agent: Agent) -> Condition | None:
    """Tell of a host that it is to be let go; any other comes back by itself, or a person sees to it.

    One that still leaves a node on another controller is let go once that node is gone.
    """
    is_its_own = agent.node is None or is_of_host(situation.fleet, agent.record, agent.node)
    if not is_its_own or why_not_wanted(situation, agent) is None or agent.record.leaves:
        return None
    return _not_connected(situation, agent) if agent.phase is Phase.LOST else _overdue(situation, agent)


def _not_connected(_situation: Situation, agent: Agent) -> Condition | None:
    """Tell of a lost agent that its node is there. It has none any more once Jenkins has ended what is on it."""
    return None if agent.is_node_deleted else Condition.LOST


# By state; what is not here is in doubt, or may not be removed. A person may stop what is reserved, disconnect it, or delete its node.
_SEEN: Mapping[AgentState, Callable[[Situation, Agent], Condition | None]] = {
    **dict.fromkeys((states.NODE_LEFT, states.ENDED_BY_OTHERS), lambda _situation, agent: Condition.ENDED if agent.node else None),
    states.UNSEEN: lambda _situation, agent: Condition.STOPPED if agent.instance in OFF else None,
    states.BY_HAND: lambda _situation, agent: Condition.STOPPED if agent.instance in OFF else Condition.STARTED,
    states.BOOTS: _overdue,
    states.STARTS: _overdue,
    states.HOST_AWAY: _of_host,
    states.NODELESS: lambda _situation, _agent: Condition.NODELESS,
    states.LOST: _not_connected,
    states.RESERVED: lambda _situation, agent: _at_rest(agent) if agent.by_labels else None,
    **dict.fromkeys(READY, lambda _situation, agent: Condition.IDLE if agent.idle else None),
    **dict.fromkeys(
        (states.MISSING, states.REFUSED, states.ENDS, states.STOPPING, *MARKED_BY_US), lambda _situation, agent: _at_rest(agent)
    ),
}


# What follows.


Follow = Iterator[Step | Held]


class Following:
    """What the functions of one pass share: what two looks saw, which nodes come back, and how many more agents may be stopped."""

    def __init__(self, situation: Situation, decided: Decided = ()) -> None:
        """Look up what two looks saw, and what this pass brings back."""
        self.situation = situation
        self.coming_back = {(step.controller, step.node) for step in decided if isinstance(step, Uncordon)}
        self.room = WarmRoom(situation)
        looks = ((name, past.look) for name, past in situation.memory.agents.items())
        self.facts = {name: look for name, look in looks if look is not None and is_fact(situation, look)}

    def fact(self, agent: Agent, condition: Condition) -> Observation | None:
        """Return since when two looks saw this of an agent; None where they did not."""
        fact = self.facts.get(agent.record.instance_id)
        return fact if fact is not None and fact.condition == condition else None

    def is_old(self, agent: Agent, fact: Observation) -> bool:
        """Tell whether something was seen for so long that no connection comes back by itself."""
        return self.situation.seen_seconds(agent.record.controller, fact.first_at) >= DISCONNECT_GRACE_SECONDS


def lifecycle(situation: Situation, decided: Decided) -> Follow:
    """Do what follows from the state of each agent; then take in what has no record."""
    here = Following(situation, decided)
    for agent in situation.agents:
        if follow := FOLLOWS.get(state_of(situation, agent)):
            yield from follow(here, agent)
    yield from take_in(situation, here.facts)


def _drained(here: Following, agent: Agent) -> Follow:
    """Let an agent that carries our mark end once nothing keeps it, or give it back to its controller."""
    situation = here.situation
    if situation.no_giving_up(agent.record.controller) or (agent.record.controller, agent.record.node) in here.coming_back:
        return
    back = unwanted_elsewhere(situation, agent) if is_leaving(agent, agent.pool.name) else None
    yield back or why_not_yet(situation, agent) or _end(here, agent, f"{agent.record.node} is cordoned and was seen idle twice")


def _end(here: Following, agent: Agent, seen: str) -> Step | Held:
    """Send a drained agent to another controller, stop it, or let it go. Builds that have ended, and are shown there, go with its node."""
    situation = here.situation
    if agent.node and agent.node.ended and agent.record.is_instance:
        return terminate(agent, Reason.BUILD_HAS_ENDED, f"{seen}; {told_ended(agent)}")
    if is_leaving(agent, agent.pool.name):
        return rotate(situation, agent, seen)
    if not agent.record.is_instance:
        return _end_side_or_host(situation, agent, seen)
    if agent.pool.warm_pool and here.room.takes(agent):
        return stop(agent, Reason.KEPT_STOPPED, seen)
    done = why_disk_is_done(situation, agent, agent.pool.warm_pool) if agent.pool.warm_pool else None
    return terminate(agent, done[0], f"{seen}; {done[1]}") if done else terminate(agent, Reason.DRAINED, seen)


def _end_side_or_host(situation: Situation, agent: Agent, seen: str) -> Terminate | Held:
    """Let go of what is not to serve this controller any more, and of what a person had; all else of a machine goes with the machine."""
    if agent.record.is_side and (unseen := next(unseen_sides(situation, agent.record.machine), None)):
        return hold_back(agent, Reason.USED_ELSEWHERE, f"{seen} here; {told_unseen(agent.record.machine, unseen[1])}")
    if why := why_not_wanted(situation, agent):
        return terminate(agent, Reason.LEFT_THE_FILE, f"{seen}; {why}")
    if agent.record.is_side:
        return hold_back(agent, Reason.USED_ELSEWHERE, f"{seen} here; its machine goes once it is on all of its controllers")
    if agent.record.reservation:
        return terminate(agent, Reason.RESERVATION_OVER, f"{seen}, and its reservation is over: it begins anew")
    return hold_back(agent, Reason.HOST_STAYS, f"{seen}, and is a host: resume it, or bring its node online, once it may take builds")


def _late(here: Following, agent: Agent) -> Follow:
    """Terminate what did not register by its deadline. A start that is late has time until then; one that EC2 does not show goes on."""
    record = agent.record
    if record.state is RecordState.STARTING and agent.instance in OFF:
        instance = here.situation.instances.get(record.instance_id)
        # At a limit of the month or the day nothing starts, and it is terminated.
        if instance and instance.state is InstanceState.STOPPED and not here.situation.stopped_by(agent.pool.name):
            yield _go_on_starting(here.situation, agent, instance)
    elif agent.phase is Phase.OVERDUE and here.fact(agent, Condition.OVERDUE):
        reason, of = (Reason.START_FAILED, " of its start") if record.life else (Reason.BOOT_TIMEOUT, "")
        yield terminate(agent, reason, f"not registered within {duration(agent.pool.boot_timeout_seconds)}{of}")
    elif agent.phase is Phase.REQUESTED and here.fact(agent, Condition.OVERDUE) and (refused := _why_no_other(here.situation, agent)):
        since = duration(here.situation.now - record.began_at)
        yield terminate(agent, Reason.START_FAILED, f"started {since} ago, and has not registered; {refused}")


def _why_no_other(situation: Situation, agent: Agent) -> str | None:
    """Say which limit leaves jobs that wait no other agent in place of a start that takes too long; None where none does."""
    pool = situation.pools.get(agent.key)
    if pool is None or not situation.starved[pool.controller].get(pool.name, 0):
        return None
    refused = Budget(situation).over_limit(pool.spec, pool.usd_per_hour)
    return refused[1] if refused else None


# EC2 tells when an instance was launched or started, by its own clock and to the second.
CLOCKS_DIFFER_SECONDS = 30.0
# Of one that a person stopped again, or of which EC2 says nothing.
_STOPPED_ON_PURPOSE = ("", "Client.UserInitiatedShutdown")


def _go_on_starting(situation: Situation, agent: Agent, instance: Instance) -> FinishStop | Terminate | Start:
    """Ask again for a start that EC2 does not show; give up one that has failed, and the instance that would not start the next time."""
    record, why = agent.record, instance.state_reason
    if instance.launched_at >= record.began_at - CLOCKS_DIFFER_SECONDS:
        detail = f"{instance.id} was to start, and has stopped again: {why or 'EC2 does not say why'}"
        if why in _STOPPED_ON_PURPOSE:
            return finish_stop(agent, Reason.START_FAILED, detail)
        if keeps_from_starting(code := code_of_end(why)):
            return finish_stop(agent, Reason.START_FAILED, detail, code)
        # It is about the instance itself, and would be the same the next time.
        return terminate(agent, Reason.START_FAILED, detail)
    if situation.ec2_seen_seconds(record.began_at) >= agent.pool.boot_timeout_seconds:
        return terminate(agent, Reason.START_FAILED, f"{instance.id} was to start, and EC2 shows it stopped still")
    return _start_again(agent, Reason.START_AGAIN, f"{instance.id} was to start, and EC2 does not show that yet")


def _start_again(agent: Agent, reason: Reason, detail: str) -> Start:
    """Start one agent that nothing is launched instead of: it was asked for before, or runs already."""
    return Start(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_ids=(agent.record.instance_id,),
        keep_until=agent.record.keep_until,
        request=agent.record.started_for,
        otherwise=None,
        reason=reason,
        detail=detail,
    )


def _host_away(here: Following, agent: Agent) -> Follow:
    """Let go of a host that left the fleet file while it was off. Its node goes once it is drained, as that of any other host."""
    why = why_not_wanted(here.situation, agent)
    if why is None or not (here.fact(agent, Condition.OVERDUE) or here.fact(agent, Condition.LOST)):
        return
    if agent.phase is Phase.OVERDUE:
        yield terminate(agent, Reason.LEFT_THE_FILE, f"{why}, and it does not connect")
    elif not here.situation.protected(agent):
        yield cordon(here.situation, agent, MarkClass.OUTDATED, Reason.LEFT_THE_FILE, f"{why}, and it is not connected")


def _nodeless(here: Following, agent: Agent) -> Follow:
    """Terminate what has lost its node: nobody can tell any more whether it is idle, and it takes no builds."""
    if here.fact(agent, Condition.NODELESS):
        trouble = agent.record.trouble
        why = f"could not be made: {trouble}" if trouble else "is not there any more"
        yield terminate(agent, Reason.NODE_GONE, f"its node {agent.record.node} {why}")


def _lost(here: Following, agent: Agent) -> Follow:
    """Take an agent out of use that has had its time to connect again; one that never connected has had it at its deadline.

    Its mark is one of quarantine: demand must not count on an agent that is not connected.
    """
    situation, fact = here.situation, here.fact(agent, Condition.LOST)
    if fact is None or situation.protected(agent):
        return
    if (agent.idle and never_connected(agent.record, situation.memory)) or here.is_old(agent, fact):
        yield cordon(situation, agent, MarkClass.QUARANTINE, *_why_lost(situation, agent, fact))


def _why_lost(situation: Situation, agent: Agent, fact: Observation) -> tuple[Reason, str]:
    if not situation.memory.has_connected(agent.record.life_id):
        why = agent.record.trouble or agent.record.problem
        within = duration(agent.pool.boot_timeout_seconds)
        return Reason.BOOT_TIMEOUT, f"registered, and not connected within {within}" + (f": {why}" if why else "")
    return Reason.DISCONNECTED, f"disconnected for {duration(situation.now - fact.first_at)}"


def _by_hand(here: Following, agent: Agent) -> Follow:
    """Use what a person has started; keep what they have stopped where its pool does that: elsewhere it would never be an agent again."""
    situation, record = here.situation, agent.record
    if here.fact(agent, Condition.STARTED):
        yield _start_again(agent, Reason.STARTED_BY_HAND, f"EC2 says that {record.instance_id} runs")
    fact = here.fact(agent, Condition.STOPPED)
    if fact is None:
        return
    if agent.phase is Phase.UNSEEN:
        yield hold_unread(agent)
    elif _may_be_started_for(situation, agent, fact):
        yield hold_back(agent, Reason.STILL_BUSY, f"somebody has stopped {record.instance_id}, and its node is in use")
    elif record.state is not RecordState.REGISTERED or not may_be_stopped(situation, agent):
        step = terminate(agent, Reason.INSTANCE_STOPPED, "it was stopped by somebody, and its pool keeps no stopped agents")
        yield replace(step, mark=None) if agent.by_labels else step  # then its node carries no mark to go by
    elif agent.instance is InstanceState.STOPPED:
        yield finish_stop(agent, Reason.HAS_STOPPED, f"somebody has stopped {record.instance_id}")
    elif situation.ec2_seen_seconds(fact.first_at) >= STOPS_SECONDS:
        yield _terminate_hanging(agent)
    else:
        yield hold_back(agent, Reason.SECOND_LOOK, f"{record.instance_id} is being stopped by somebody")


def _may_be_started_for(situation: Situation, agent: Agent, fact: Observation) -> bool:
    """Tell whether something runs or waits on the node of a machine that a person stopped, and may go on once they start it.

    A build that is there keeps it. What only waits may wait for any agent of its kind, where Jenkins names the one that is there.
    """
    controller = agent.record.controller
    waits_in_vain = agent.idle and situation.seen_seconds(controller, fact.first_at) >= situation.fleet.resume_timeout(controller)
    return agent.node is not None and not is_unused(situation, agent) and not waits_in_vain


def _terminate_hanging(agent: Agent) -> Terminate:
    detail = f"EC2 says for more than {STOPS_SECONDS / 60:.0f} min that {agent.record.instance_id} is stopping"
    return terminate(agent, Reason.STOP_HANGS, detail)


def is_unused(situation: Situation, agent: Agent) -> bool:
    """Tell whether nothing runs on a node, and no build is bound to it."""
    return agent.idle and not situation.protected(agent)


def finish_stop(agent: Agent, reason: Reason, detail: str, failed: str = "") -> FinishStop:
    """Note that an agent has stopped. ``failed``: why it did not start."""
    return FinishStop(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_id=agent.record.instance_id,
        node=agent.record.node if agent.node is not None and not agent.is_node_deleted else None,
        failed=failed,
        reason=reason,
        detail=detail,
    )


# A forced stop is asked for in two or three looks: one answer may be lost, and EC2 needs minutes for it.
_FORCED_FOR_SECONDS = 150.0


def _stopping(here: Following, agent: Agent) -> Follow:
    """Finish a stop that we asked for, force one that lasts, and give up a machine that hangs. What runs still is drained."""
    if agent.record.state is not RecordState.STOPPING:
        return
    if agent.instance not in OFF:
        yield from _given_up(here, agent)
        return
    situation, record = here.situation, agent.record
    is_seen = not situation.no_giving_up(record.controller) and record.node not in situation.snapshot.controllers[record.controller].unread
    is_free = agent.node is None or is_unused(situation, agent)
    seconds = situation.ec2_seen_seconds(record.changed_at)
    if agent.instance is InstanceState.STOPPING:
        if is_seen and is_free and seconds >= STOPS_SECONDS:
            yield _terminate_hanging(agent)
        elif is_seen and is_free and FORCED_SECONDS <= seconds < FORCED_SECONDS + _FORCED_FOR_SECONDS:
            yield ForceStop(
                controller=agent.record.controller,
                pool=agent.pool.name,
                node=None,
                instance_id=agent.record.instance_id,
                reason=Reason.STOP_FORCED,
                detail=f"EC2 says for more than {FORCED_SECONDS / 60:.0f} min that {agent.record.instance_id} is stopping",
            )
    elif not is_seen:
        yield hold_unread(agent)
    elif is_free or situation.now - record.changed_at >= DISCONNECT_GRACE_SECONDS:
        yield finish_stop(agent, Reason.HAS_STOPPED, f"EC2 says that {record.instance_id} has stopped; it can be started again")
    else:
        yield hold_back(agent, Reason.STILL_BUSY, f"{record.instance_id} has stopped, and something waits for its node {record.node}")


# If EC2 refuses an end, it is asked again after a minute, then after as long as it has refused, and at last once an hour.
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 60.0, 3600.0


def _given_up(here: Following, agent: Agent) -> Follow:
    """Go on with what is to end and still runs. EC2 may refuse, or have lost the answer."""
    situation = here.situation
    if is_node_gone(situation, agent) or not situation.no_giving_up(agent.record.controller):
        yield why_not_yet(situation, agent) or _end_again(situation, agent)


def _end_again(situation: Situation, agent: Agent) -> Step | Held:
    """Stop it again, if that was begun; terminate what EC2 does not stop, and what lost the node by which it was to be seen idle.

    If EC2 refuses, it is asked ever more rarely, and a person is told if that lasts.
    """
    record, stuck = agent.record, situation.past(agent).stuck
    if record.state is RecordState.STOPPING and agent.mark is not None and may_be_stopped(situation, agent):
        return stop(agent, Reason.KEPT_STOPPED, f"{record.instance_id} was to stop and still runs")
    pause = min(_LONGEST_PAUSE_SECONDS, max(_SHORTEST_PAUSE_SECONDS, stuck.tried_at - stuck.since_at)) if stuck else 0.0
    if stuck is not None and situation.now - stuck.tried_at < pause:
        minutes = (situation.now - stuck.since_at) / 60
        return hold_back(agent, Reason.STUCK, f"EC2 has not let us terminate {record.instance_id} for {minutes:.0f} min: {stuck.why}")
    return terminate(agent, Reason.CONDEMNED, f"{record.instance_id} was given up and still runs")


def _ended(here: Following, agent: Agent) -> Follow:
    """Close the record of a machine that is gone once nothing of it is left in Jenkins; until then give its node back."""
    if not is_node_gone(here.situation, agent):
        yield from _give_back(here, agent) if agent.machine_gone else ()  # else it is shutting down
        return
    since = lost_since(here.situation, agent)
    if since is None or here.situation.now - since >= LOST_SECONDS:
        yield _forget(here.situation, agent)


def _give_back(here: Following, agent: Agent) -> Follow:
    """Give back the node of a machine that is gone, once two looks saw that or it was given up before.

    A build that seems to run there, or waits for that very node, ended with its machine: its controller learns of it only when the
    node is deleted, and would wait for ever.
    """
    situation, fact = here.situation, here.fact(agent, Condition.ENDED)
    was_given_up = agent.record.state.is_given_up and not situation.no_giving_up(agent.record.controller)
    if agent.node is None or not (fact or was_given_up):
        return
    if has_static_node(agent.record):
        yield from leave_slot(situation, agent, fact.first_at if fact and not was_given_up else agent.record.changed_at)
    elif was_given_up:
        yield delete_node(agent, agent.node.name, Reason.CONDEMNED)
    elif fact and (here.is_old(agent, fact) or is_unused(situation, agent)):
        yield delete_node(agent, agent.node.name, Reason.INSTANCE_GONE)


def _forget(situation: Situation, agent: Agent) -> Forget:
    record = agent.record
    whose = f"; it was reserved for {record.reservation.person}" if record.reservation else ""
    is_left = record.node is not None and is_controller_left(situation, record.controller)
    node = f"its node {record.node} may still be on {record.controller}, which left the fleet file" if is_left else "so is its node"
    return Forget(
        controller=record.controller,
        pool=record.pool,
        node=None,
        instance_id=record.instance_id,
        reason=Reason.INSTANCE_GONE,
        detail=f"{record.instance_id} is gone; {node}{whose}",
    )


# Nothing follows by itself from the others: a rule of their own, a build, a person or a look ends them.
FOLLOWS: Mapping[AgentState, Callable[[Following, Agent], Follow]] = {
    states.NODE_LEFT: _ended,
    states.ENDED_BY_OTHERS: _ended,
    states.SHUTS_DOWN: _ended,
    states.ENDS: _given_up,
    states.REFUSED: _given_up,
    states.STOPPING: _stopping,
    states.STARTS: _late,
    states.BOOTS: _late,
    states.HOST_AWAY: _host_away,
    states.BY_HAND: _by_hand,
    states.UNSEEN: _by_hand,
    states.NODELESS: _nodeless,
    states.LOST: _lost,
    **dict.fromkeys(MARKED_BY_US, _drained),
}


# What follows at once from an announcement of EC2 about one instance: an interruption, or a change of state.
#
# Its rebalance recommendations are not listened to: they come for most young spot instances, of which few are then interrupted.


class Announced(StrEnum):
    """What is announced."""

    INTERRUPTION = "interruption"  # a spot instance goes in two minutes
    STATE = "state"  # it ended, or was stopped; what EC2 says now counts, not what the event said


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEvent:
    """One announcement."""

    kind: Announced
    instance_id: str


_STOPS_OR_STARTS = (RecordState.STOPPING, RecordState.STARTING)
# Phases in which demand may count on an agent, or come to.
_USABLE = {Phase.READY, Phase.CONNECTING, Phase.RETIRING, Phase.RESERVED, Phase.MARKED, Phase.INTERRUPTED}


def handle_event(situation: Situation, event: InstanceEvent) -> Iterator[Cordon | DeleteNode | FinishStop | Held]:
    """Cordon the interrupted agent at once; it is no supply any more, so demand replaces it. Finish a stop, or a start that failed."""
    for agent in situation.agents:
        if agent.record.machine != event.instance_id:
            continue
        if agent.phase is Phase.UNSEEN:
            yield Held(pool=agent.pool.name, controller=agent.record.controller, reason=Reason.INCOMPLETE, detail=str(agent.record.node))
        elif agent.instance_ended:
            yield from _clean_up(situation, agent)
        elif agent.record.state in _STOPS_OR_STARTS:
            # What is to be started again, or to be terminated since it never will start, is scale_down's to ask for.
            follow = FOLLOWS.get(state_of(situation, agent))
            steps = follow(Following(situation), agent) if follow else ()
            yield from (step for step in steps if isinstance(step, FinishStop | Held))
        elif event.kind is Announced.INTERRUPTION and agent.phase in _USABLE and agent.node is not None:
            yield _cordon(situation, agent, agent.node.name)


def builds_at_risk(situation: Situation, event: InstanceEvent) -> tuple[str, ...]:
    """Name the builds that run on an instance which EC2 will interrupt."""
    if event.kind is not Announced.INTERRUPTION:
        return ()
    return tuple(
        build.job
        for agent in situation.agents
        if agent.record.machine == event.instance_id and agent.node is not None
        for build in agent.node.builds
    )


def cordon_interrupted(situation: Situation, controller: str, _decided: Decided) -> Iterator[Cordon | Uncordon]:
    """Cordon agents that EC2 takes back and that carry no mark yet; uncordon those that EC2 has not ended in time."""
    for agent in situation.agents:
        if agent.record.controller != controller or agent.node is None or agent.instance_ended:
            continue
        if agent.phase is Phase.INTERRUPTED:
            yield _cordon(situation, agent, agent.node.name)
        elif _was_not_ended(situation, agent):
            detail = f"EC2 announced {duration(situation.now - agent.record.interrupted_at)} ago that it takes it back, and has not"
            yield uncordon(agent, Reason.NOT_INTERRUPTED, detail)


def _was_not_ended(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent is out of use for an interruption that did not come. One that is idle goes as every drained one."""
    is_marked = agent.phase is Phase.DRAINING and agent.mark is not None and agent.mark.kind is MarkClass.INTERRUPTED
    was_announced = bool(agent.record.interrupted_at) and not agent.record.is_interrupted(situation.now)
    return is_marked and was_announced and agent.instance is InstanceState.RUNNING and not agent.idle


def _cordon(situation: Situation, agent: Agent, node: str) -> Cordon:
    at_risk = f"{agent.busy_executors} builds are at risk" if agent.busy_executors else "it is idle"
    return Cordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=node,
        mark=Mark(fleet=situation.fleet.name, kind=MarkClass.INTERRUPTED, pass_id=situation.snapshot.pass_id),
        replaces=agent.mark,
        over_monitor=agent.phase is Phase.MARKED,
        reason=Reason.INTERRUPTED,
        detail=f"EC2 announced it for {agent.record.instance_id}; {at_risk}",
    )


def _clean_up(situation: Situation, agent: Agent) -> Iterator[DeleteNode | Held]:
    """Delete the node of an ended instance. Nodes with a build, or one bound to them, are left to the repairs."""
    controller = agent.record.controller
    reason = situation.no_giving_up(controller)
    if agent.node is None or agent.instance is None or not agent.machine_gone or has_static_node(agent.record):
        return  # it is not over yet, or a slot rests before it is free again: the schedule sees to that
    if reason or situation.protected(agent) or not agent.idle:
        yield Held(pool=agent.pool.name, controller=controller, reason=reason or Reason.STILL_BUSY, detail=agent.node.name)
        return
    yield DeleteNode(
        controller=controller,
        pool=agent.pool.name,
        node=agent.node.name,
        instance_id=agent.record.instance_id,
        fate=agent.instance,
        reason=Reason.INSTANCE_GONE,
        detail=f"EC2 says that {agent.record.instance_id} has ended",
    )
