"""Reclaim drained agents: when one is stopped or terminated, its node or record removed. Two looks before anything irreversible."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.nodes import MarkClass, has_static_node, may_start_on
from autoscaler.domain.facts.plan import (
    Cordon,
    DeleteNode,
    FinishStop,
    ForceStop,
    Forget,
    FreeSlot,
    Held,
    Rotate,
    Start,
    Stop,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.launch.placement import may_come_back
from autoscaler.domain.repair.instances import finish, is_off, is_settled, is_unlabelled_twice
from autoscaler.domain.repair.orphans import is_slot_left, leave_slot
from autoscaler.domain.scale_in.replace import is_kept, told_ended
from autoscaler.domain.scale_in.sides import rotate, unwanted_elsewhere
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import cannot_come_back, keeps_failing, of_starts
from autoscaler.domain.situation.canary import MACHINE_REFUSALS, is_canary, is_tripped, most_stopped, refusals_of, why_outdated
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.rows import LOST_SECONDS, is_controller_left, lost_since, told_unseen, unseen_sides, why_not_wanted
from autoscaler.domain.situation.situation import Decided, Situation, cordon, delete_node, hold_back, hold_unread, terminate, uncordon
from autoscaler.domain.situation.supply import is_leaving
from autoscaler.domain.situation.warm_pool import (
    count_stopped,
    may_be_stopped,
    most_to_stop,
    most_worth_stopping,
    stopped_wanted,
    why_disk_is_done,
)
from autoscaler.domain.wording import counted, duration, durations_apart

# Stopped agents: which drained ones are stopped instead of terminated, and which stopped ones are kept no longer.
#
# A stopped agent runs nothing and has no node: terminating it can cost no build. What is outdated is never kept stopped, nor what is
# drained for any other reason than that nothing needs it.


@dataclass(slots=True)
class WarmRoom:
    """How many more agents may be stopped, as a pass decides one after another."""

    situation: Situation
    _stopping: Counter[tuple[str, str]] = field(default_factory=Counter)

    def takes(self, agent: Agent) -> bool:
        """Tell whether a drained agent is worth keeping stopped; it then counts as stopped."""
        is_served = agent.key in self.situation.pools  # by its pool
        if not (is_served and may_be_stopped(self.situation, agent)) or self._left(agent) <= 0:
            return False
        self._stopping[agent.key] += 1
        return True

    def _left(self, agent: Agent) -> int:
        pool, warm = self.situation.pools[agent.key], agent.pool.warm_pool
        elsewhere = sum(self._there(one) for key, one in self.situation.pools.items() if key[1] == pool.name and key != agent.key)
        most = min(warm.max_agents if warm else 0, most_to_stop(self.situation, pool.name)) - elsewhere
        worth = min(stopped_wanted(self.situation, pool), most_worth_stopping(pool))
        return int(min(worth, most)) - self._there(pool)

    def _there(self, pool: PoolView) -> int:
        return count_stopped(pool) + self._stopping[pool.key]


def stop(agent: Agent, reason: Reason, detail: str) -> Stop:
    """Stop an agent that carries our mark."""
    if agent.mark is None:
        raise ValueError(f"{agent.record.instance_id} carries no mark of ours")
    return Stop(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_id=agent.record.instance_id,
        node=agent.record.node,
        mark=agent.mark,
        reason=reason,
        detail=detail,
    )


def not_worth_keeping(situation: Situation, controller: str, _decided: Decided) -> Iterator[Terminate | Held]:
    """Terminate stopped agents that are too old, outdated, or not worth their disks any more: those stopped first."""
    for pool in situation.pools_of(controller).values():
        there = [agent for agent in pool.stopped if situation.snapshot.states.get(agent.record.instance_id) is InstanceState.STOPPED]
        if there and not pool.on_hold:
            yield from _not_worth_keeping(situation, pool, sorted(there, key=lambda agent: agent.record.changed_at))


def _not_worth_keeping(situation: Situation, pool: PoolView, stopped: list[Agent]) -> Iterator[Terminate | Held]:
    left: list[Agent] = []
    for agent in stopped:
        if why := why_kept_no_longer(situation, pool, agent):
            yield terminate(agent, *why)
        else:
            left.append(agent)
    extra = count_stopped(pool) - len(stopped) + len(left) - stopped_wanted(situation, pool)
    if extra <= 0 or not left:  # those that are about to stop do so first
        return
    window, kept_seconds = situation.memory.windows.get(pool.full_name), pool.keep.seconds_in_all(1)
    watched_seconds = situation.now - window.opened_at if window else 0.0
    if watched_seconds < kept_seconds and most_stopped(situation.memory, pool.name, situation.now) >= count_stopped(pool):
        watched, kept = durations_apart(watched_seconds, kept_seconds)
        yield hold_back(left[0], Reason.WINDOW_OPEN, f"{counted(extra, 'stopped agent')} too many, seen for {watched} of {kept}")
        return
    for agent in left[:extra]:
        yield terminate(agent, *_why_extra(situation, pool, agent))


def _why_extra(situation: Situation, pool: PoolView, agent: Agent) -> tuple[Reason, str]:
    trial = situation.memory.trials.get(of_starts(pool.name))
    if trial is not None and is_tripped(trial):
        return Reason.START_FAILED, f"{trial.failures} starts in a row failed, so that none is kept stopped: {trial.why}"
    hours = duration(situation.now - agent.record.changed_at)
    return Reason.NOT_WORTH_KEEPING, f"stopped for {hours}, and not needed again within the time that its disk pays for"


def why_kept_no_longer(situation: Situation, pool: PoolView, agent: Agent) -> tuple[Reason, str] | None:
    """Say why a stopped agent is kept no longer, however soon it may be needed; None where it may stay."""
    warm, stopped_seconds = pool.spec.warm_pool, situation.now - agent.record.changed_at
    if warm is None:
        return Reason.WARM_POOL_OFF, "this pool keeps no stopped agents now"
    if pool.controller in situation.fleet.slot_controllers:
        return Reason.WARM_POOL_OFF, f"agents of {pool.controller} take static nodes now, which others could not use meanwhile"
    if level := situation.spent_by(pool.name):
        return Reason.USD_PER_MONTH, f"the month's money of {level.text} is spent, and its disk costs some, too"
    if (refusals := refusals_of(situation.memory, agent)) and refusals.times >= MACHINE_REFUSALS:
        return Reason.START_FAILED, f"EC2 refused {refusals.times} times to start it: {refusals.why}"
    if stopped_seconds > warm.max_age_seconds:
        lasted, most = durations_apart(stopped_seconds, warm.max_age_seconds)
        return Reason.WARM_POOL_AGE, f"stopped for {lasted}, at most {most} are wanted"
    if done := why_disk_is_done(situation, agent):
        return done
    # While a new template version is tried out, the old ones are what can be relied on.
    return None if is_canary(situation, pool.name) else why_outdated(situation, agent)


# Drained agents: what is removed of each, and when.


# EC2 does not let us terminate it (protected): a person must act, and finds out by the alarm. Asking each minute changes nothing.
STUCK_TRY_AGAIN_SECONDS = 3600.0
_MARKED = (Phase.RETIRING, Phase.DRAINING)
_TO_GO = (Phase.CONDEMNED, Phase.STOPPING)
_STOPS_OR_STARTS = (RecordState.STOPPING, RecordState.STARTING)


def drained(situation: Situation, decided: Decided) -> Iterator[Terminate | Stop | Rotate | Cordon | Uncordon | Held]:
    """Terminate or stop agents that carry our mark, are idle and were idle in an earlier look, and that no build is bound to."""
    room = WarmRoom(situation)
    coming_back = {(step.controller, step.node) for step in decided if isinstance(step, Uncordon)}
    for agent in situation.agents:
        stays = agent.instance_ended or situation.no_giving_up(agent.record.controller)
        if agent.phase in _MARKED and not stays and (agent.record.controller, agent.record.node) not in coming_back:
            back = unwanted_elsewhere(situation, agent) if is_leaving(agent, agent.pool.name) else None
            yield back or _drained(situation, agent, agent.record.node or "", room)


def _drained(situation: Situation, agent: Agent, node: str, room: WarmRoom) -> Terminate | Stop | Rotate | Cordon | Uncordon | Held:
    if situation.protected(agent):
        return _bound(situation, agent)
    if is_kept(situation, agent) and not (agent.record.is_host and why_not_wanted(situation, agent)):
        return hold_back(agent, Reason.KEPT, f"{node} is kept for a person to look at: resume it, or terminate its instance")
    if _is_wanted_back(situation, agent):
        return hold_back(agent, Reason.DEMAND_IS_BACK, f"{node} is kept: items wait for its pool")
    if agent.by_labels:
        return _seal(situation, agent)
    if not agent.idle:
        return _still_busy(situation, agent)
    if _is_settled(situation, agent):
        seen = f"{node} is cordoned and was seen idle twice"
        return _settled(situation, agent, seen, room)
    return hold_back(agent, Reason.SECOND_LOOK, f"{node} is idle, waits for a second look")


def _settled(situation: Situation, agent: Agent, seen: str, room: WarmRoom) -> Terminate | Stop | Rotate | Held:
    """Send a drained agent to another controller, stop it, or let it go. Builds that have ended, and are shown there, go with its node."""
    if agent.node and agent.node.ended and agent.record.is_instance:
        return terminate(agent, Reason.BUILD_HAS_ENDED, f"{seen}; {told_ended(agent)}")
    if is_leaving(agent, agent.pool.name):
        return rotate(situation, agent, seen)
    if not agent.record.is_instance:
        return _side_or_host(situation, agent, seen)
    if room.takes(agent):
        return stop(agent, Reason.KEPT_STOPPED, seen)
    done = why_disk_is_done(situation, agent)
    return terminate(agent, done[0], f"{seen}; {done[1]}") if done else terminate(agent, Reason.DRAINED, seen)


def _side_or_host(situation: Situation, agent: Agent, seen: str) -> Terminate | Held:
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


def _is_settled(situation: Situation, agent: Agent) -> bool:
    look = situation.memory.observations.get(agent.record.instance_id)
    return look is not None and is_settled(look, agent.pool.drain_settle_seconds, situation.now, situation.snapshot.request_id)


def _bound(situation: Situation, agent: Agent) -> Held:
    """Say which job, or which restart, keeps an agent that is out of use for good."""
    name, controller = agent.record.node or "", agent.record.controller
    why = f"{name} drains ({agent.mark.kind})" if agent.mark else f"{name} was given up"
    for item in situation.snapshot.controllers[controller].items:
        if name in (*item.wait.nodes, item.wait.named):
            return hold_back(agent, Reason.PINNED, f"{why}, and {item.job or 'an item'} waits for it by name")
    return hold_back(agent, Reason.BUSY_BEFORE_RESTART, f"{why}, and may hold a build of before {controller} restarted")


def _is_wanted_back(situation: Situation, agent: Agent) -> bool:
    """Tell whether demand counts on it; one that cannot be uncordoned goes, so that another may replace it."""
    is_able = may_come_back(situation, agent) and not keeps_failing(cannot_come_back(situation.memory, agent))
    waits = situation.starved_by_pool(agent.record.controller).get(agent.pool.name, 0)
    return is_able and not situation.stopped_by(agent.pool.name) and waits > 0


def is_drain_overdue(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent drains for longer than its pool's operator allows. It goes on; a person is told."""
    since, limit = situation.memory.draining_since.get(agent.record.instance_id), agent.pool.drain_timeout_seconds
    return since is not None and limit is not None and situation.seen_seconds(agent.record.controller, since) > limit


Unfinished = Terminate | Stop | ForceStop | FinishStop | Start | DeleteNode | FreeSlot | Cordon | Uncordon | Forget | Held


def unfinished(situation: Situation, _decided: Decided) -> Iterator[Unfinished]:
    """Go on with agents that are to end, to stop or to start: again what was not done, free the node, close the record."""
    for agent in situation.agents:
        if agent.instance_ended and _is_node_gone(situation, agent):
            since = lost_since(situation, agent)
            if since is None or situation.now - since >= LOST_SECONDS:
                yield _forget(situation, agent)
        elif agent.record.state in _STOPS_OR_STARTS and is_off(agent):
            yield from finish(situation, agent)
        elif agent.phase in _TO_GO and _may_go_on(situation, agent):
            yield from _give_back_node(situation, agent) if agent.machine_gone else _go_on(situation, agent)


def _may_go_on(situation: Situation, agent: Agent) -> bool:
    """Tell whether what is seen of an agent that is to go can be believed: its controller, and what EC2 says."""
    if agent.instance is None or (agent.instance_ended and not agent.machine_gone):
        return False
    return _is_node_gone(situation, agent) or not situation.no_giving_up(agent.record.controller)


def _give_back_node(situation: Situation, agent: Agent) -> Iterator[DeleteNode | FreeSlot | Cordon | Held]:
    if has_static_node(agent.record):
        yield from leave_slot(situation, agent, agent.record.changed_at)
    elif agent.node is not None:
        yield delete_node(agent, agent.node.name, Reason.CONDEMNED)


def _forget(situation: Situation, agent: Agent) -> Forget:
    record = agent.record
    whose = f"; it was reserved for {record.reservation.person}" if record.reservation else ""
    is_left = record.node is not None and is_controller_left(situation, record.controller)
    node = f"its node {record.node} may still be on {record.controller}, which left the fleet file" if is_left else "so is its node"
    return Forget(
        controller=record.controller,
        pool=record.pool,
        instance_id=record.instance_id,
        reason=Reason.INSTANCE_GONE,
        detail=f"{record.instance_id} is gone; {node}{whose}",
    )


def _seal(situation: Situation, agent: Agent) -> Cordon | Uncordon | Held:
    """Mark an agent without labels offline, once it was idle in two looks and no waiting item may start on it."""
    node, look = agent.node, situation.memory.observations.get(agent.record.instance_id)
    if node is None or agent.mark is None:
        raise ValueError(f"{agent.record.instance_id} has no labels that were taken")
    waits = (item.job for item in situation.snapshot.controllers[agent.record.controller].items if may_start_on(item, node))
    if not agent.idle:
        return _still_busy(situation, agent)
    if job := next(waits, None):
        if agent.record.reservation:  # no label brings it more
            return hold_back(agent, Reason.SECOND_LOOK, f"{job} may start on {node.name} even without its labels, which was reserved")
        return uncordon(agent, Reason.LABELS_TO_GIVE_BACK, f"{job} may start on {node.name} even without its labels")
    if look and is_unlabelled_twice(look, agent.pool.drain_settle_seconds, situation.now):
        detail = f"the labels of {node.name} were taken, and it was idle in two looks since"
        return replace(cordon(situation, agent, agent.mark.kind, Reason.LABELS_TAKEN, detail), mark=agent.mark)
    return hold_back(agent, Reason.SECOND_LOOK, f"the labels of {node.name} were taken, it waits for a second look")


def _is_node_gone(situation: Situation, agent: Agent) -> bool:
    """Tell whether nothing of an agent is left in Jenkins: no node, or a static node as it was before."""
    record, view = agent.record, situation.snapshot.controllers.get(agent.record.controller)
    if record.node is None or (view is None and agent.machine_gone):
        return True  # nobody can delete a node on a controller that left the fleet file: it is named
    if view is None or not view.complete or record.node in view.unread:
        return False
    return agent.node is None or (has_static_node(record) and is_slot_left(agent))


def _go_on(situation: Situation, agent: Agent) -> Iterator[Terminate | Stop | Cordon | Uncordon | Held]:
    """Drain again an agent that is to go and still runs: a person who brought it online may have given it builds.

    What waits for the node of a machine that has ended waits in vain; only a machine that may still run is kept for it.
    """
    if agent.node is None:
        yield _end_again(situation, agent) if _is_node_gone(situation, agent) else hold_unread(agent)
    elif situation.protected(agent) and not _is_node_gone(situation, agent):
        yield _bound(situation, agent)
    elif agent.by_labels:
        yield _seal(situation, agent)
    elif not agent.node.offline:
        yield cordon(situation, agent, MarkClass.RETIRE, Reason.CONDEMNED, "it was given up, and somebody brought its node online")
    elif agent.mark is None and agent.node.temporarily_offline:
        yield hold_back(
            agent, Reason.MARKED_BY_A_PERSON, f"{agent.node.name} was given up, and somebody marked it offline: {agent.node.reason}"
        )
    elif not agent.idle:
        yield _still_busy(situation, agent)
    elif _is_settled(situation, agent):
        yield _end_again(situation, agent)
    else:
        yield hold_back(agent, Reason.SECOND_LOOK, f"{agent.node.name} is idle, waits for a second look")


def _end_again(situation: Situation, agent: Agent) -> Terminate | Stop | Held:
    """Stop it again, if that was begun; terminate what EC2 does not stop, and what lost the node by which it was to be seen idle."""
    if agent.phase is Phase.STOPPING and agent.mark is not None and may_be_stopped(situation, agent):
        return stop(agent, Reason.KEPT_STOPPED, f"{agent.record.instance_id} was to stop and still runs")
    return _terminate_again(situation, agent)


def _terminate_again(situation: Situation, agent: Agent) -> Terminate | Held:
    """Terminate again; if EC2 refuses, tell a person and ask once an hour."""
    record, stuck = agent.record, situation.memory.stuck.get(agent.record.instance_id)
    if stuck is not None and situation.now - stuck.tried_at < STUCK_TRY_AGAIN_SECONDS:
        minutes = (situation.now - stuck.since_at) / 60
        return hold_back(agent, Reason.STUCK, f"EC2 has not let us terminate {record.instance_id} for {minutes:.0f} min: is it protected?")
    return terminate(agent, Reason.CONDEMNED, f"{record.instance_id} was given up and still runs")


def _still_busy(situation: Situation, agent: Agent) -> Held:
    jobs = ", ".join(sorted(build.job or "a build" for build in agent.node.builds)) if agent.node else ""
    if is_drain_overdue(situation, agent):
        minutes = (situation.now - situation.memory.draining_since[agent.record.instance_id]) / 60
        return hold_back(agent, Reason.DRAIN_OVERDUE, f"{agent.record.node} has been draining for {minutes:.0f} min, busy with {jobs}")
    builds = max(1, len(agent.node.builds) if agent.node else 0)
    running = "one build is still running" if builds == 1 else f"{builds} builds are still running"
    return hold_back(agent, Reason.STILL_BUSY, f"{agent.record.node}: {running}")
