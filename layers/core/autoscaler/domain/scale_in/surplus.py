"""Agents that nobody needs: which take no new builds, which drained ones are stopped, and which stopped ones are kept no longer."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil

from autoscaler.domain.facts.fleet import CapacityReservation, Lending, Share
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.plan import Cordon, Held, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler.domain.forecast.forecast import NOTHING
from autoscaler.domain.forecast.keeping import needed_lately
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.placement import why_refused
from autoscaler.domain.scale_in.sides import devices_reserved, told_people
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import TrialOf, closed
from autoscaler.domain.situation.canary import (
    MACHINE_REFUSALS,
    is_canary,
    most_stopped,
    refusals_of,
    why_outdated,
    why_replaced,
)
from autoscaler.domain.situation.distrust import is_on_trial
from autoscaler.domain.situation.left import is_on_hold
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Decided, Situation, cordon, hold_back, leaving, terminate
from autoscaler.domain.situation.supply import agent_remaining_seconds, builds_left
from autoscaler.domain.situation.wants import Want, may_take
from autoscaler.domain.situation.warm_pool import (
    count_stopped,
    may_be_stopped,
    most_to_stop,
    most_worth_stopping,
    stopped_wanted,
    why_disk_is_done,
)
from autoscaler.domain.wording import counted, duration, durations_apart, moment

# Stranded agents: idle while jobs wait, and no job that waits can take them.
#
# A pool counts its agents by the labels of the fleet file. Jenkins places builds by the labels that a node has now: somebody may have
# changed those, or the file.


def _waiting(situation: Situation, pool: PoolView) -> Collection[Want]:
    """Return what waits on the controllers that an agent may serve, of each kind, and of those whom the same nodes refuse, one item."""
    names = pool.spec.controllers if pool.spec.share is Share.ROTATE else (pool.controller,)
    wants = (want for name in names if name in situation.demands for want in situation.demands[name].waiting)
    return {(want.kind, want.refused_by): want for want in wants}.values()


def _may_take_any(situation: Situation, agent: Agent, wants: Iterable[Want]) -> bool:
    """Tell whether an agent may take one of these items, as it is or while it is lent; not what it refuses and another is tried for."""
    taker, wants = situation.taker(agent), [want for want in wants if agent.record.node not in want.refused_by]
    lent = taker._replace(labels=taker.labels | agent.pool.lent_labels)
    is_lent_never = agent.pool.lend is Lending.NEVER or why_refused(situation, situation.pools[agent.key])
    return any(may_take(want, some) for want in wants for some in ((taker,) if is_lent_never else (taker, lent)))


# Cordon surplus agents: those not needed at any time inside the break-even window. Reversible, and free.


def surplus(situation: Situation, controller: str, _decided: Decided) -> Iterator[Cordon | Held]:
    """Choose which ready agents of a pool to cordon: idle longest first, then least work left."""
    for pool in situation.pools_of(controller).values():
        if not situation.stopped_by(pool.name) and not pool.spec.of_hosts:
            yield from _surplus_at_once(situation, pool) if pool.spec.share is Share.COOPERATIVE else _surplus_of(situation, pool)


def _surplus_of(situation: Situation, pool: PoolView) -> list[Cordon] | list[Held]:
    ready = pool.ready
    if len(ready) <= (least := least_kept(situation, pool) if ready else 0):
        return []
    window = situation.window_of(pool)
    most = max(needed_lately(window, pool.keep.seconds, situation.now), least)
    extra = len(ready) - most
    if extra <= 0:
        return []
    if pool.on_hold:
        return [held_in(pool, Reason.HELD, f"{counted(extra, 'agent')} too many; {pool.paused_detail}")]
    watched_seconds, kept_seconds = situation.now - window.opened_at, pool.keep.seconds(most + 1)
    if watched_seconds < kept_seconds:
        watched, kept = durations_apart(watched_seconds, kept_seconds)
        seem = "seems" if extra == 1 else "seem"
        return [held_in(pool, Reason.WINDOW_OPEN, f"{counted(extra, 'agent')} {seem} too many, seen for {watched} of {kept}")]
    detail = f"no more than {most} of {len(ready)} agents were needed at once for {duration(kept_seconds)}"
    chosen = least_missed(situation, free_to_go(situation, ready))[:extra]
    return [cordon(situation, agent, MarkClass.RETIRE, Reason.SURPLUS, detail) for agent in chosen]


def _surplus_at_once(situation: Situation, pool: PoolView) -> Iterator[Cordon]:
    """Choose of machines that serve all of a pool's controllers at once those that are idle on all of them, and that none needs."""
    views = [view for (_, name), view in situation.pools.items() if name == pool.name]
    if any(situation.no_giving_up(view.controller) or view.on_hold for view in views):
        return
    machines = grouped((agent.record.machine, agent) for view in views for agent in view.ready)
    needed = max(pool.spec.min_agents, sum(_needed(situation, view) for view in views))
    chosen = _least_missed_machines(situation, machines)[: max(0, len(machines) - needed)]
    detail = f"no more than {needed} of {len(machines)} machines were needed at once on all of its controllers"
    for side in pool.ready:
        if side.record.machine in chosen:
            yield cordon(situation, side, MarkClass.RETIRE, Reason.SURPLUS, detail)


def _least_missed_machines(situation: Situation, machines: Mapping[str, list[Agent]]) -> list[str]:
    """Order the machines that are idle on all sides, and to which no build may be bound on any, by how little is lost with them."""
    free = [sides for sides in machines.values() if len(free_to_go(situation, sides)) == len(sides)]
    idle = [sides[0] for sides in free if all(side.idle for side in sides)]
    return [agent.record.machine for agent in least_missed(situation, idle)]


def _needed(situation: Situation, pool: PoolView) -> int:
    """Count the machines that one controller has needed at once for as long as one is kept, or is foreseen to need; all, if not known."""
    window, due = situation.window_of(pool), situation.forecasts(pool.controller).get(pool.name, NOTHING)
    most = needed_lately(window, pool.keep.seconds, situation.now)
    if situation.now - window.opened_at < pool.keep.seconds(most + 1):
        return len(pool.agents)
    return max(most, window.peaks[-1][1] + ceil((due.executors - due.stages) / pool.executors))


def held_in(pool: PoolView, reason: Reason, detail: str) -> Held:
    """Note what is wanted in a pool on its controller, and is not done."""
    return Held(pool=pool.name, controller=pool.controller, reason=reason, detail=detail)


def idle_beyond_need(situation: Situation) -> tuple[list[Agent], list[Agent]]:
    """Choose the idle agents that are kept only for returning demand, not needed now, nor soon; and those that are stranded."""
    believed = [view.name for view in situation.snapshot.controllers.values() if not situation.no_giving_up(view.name)]
    pools = [pool for name in believed for pool in situation.pools_of(name).values() if not pool.on_hold]
    beyond, stranded = list[Agent](), list[Agent]()
    for pool in pools:
        if not situation.stopped_by(pool.name):
            useless = _stranded(situation, pool)
            stranded += useless
            beyond += _idle_beyond_need(situation, pool, useless)
    return beyond, stranded


def _idle_beyond_need(situation: Situation, pool: PoolView, stranded: Collection[Agent]) -> list[Agent]:
    ready = [agent for agent in pool.ready if agent not in stranded] if stranded else pool.ready
    idle = [agent for agent in free_to_go(situation, ready, for_room=True) if agent.idle and agent.makes_room]
    return least_missed(situation, idle)[: max(0, len(ready) - least_kept(situation, pool))] if idle else []


def _stranded(situation: Situation, pool: PoolView) -> list[Agent]:
    """Find the idle agents of a pool that no job which waits can take, though the pool has such jobs, or they lack its labels.

    Of the latter the pool's minimum stays.
    """
    idle = [agent for agent in pool.ready if agent.idle and agent.makes_room and not agent.is_emptied]
    wants = _waiting(situation, pool) if idle else ()
    useless = free_to_go(situation, [agent for agent in idle if not _may_take_any(situation, agent, wants)], for_room=True)
    if any(served.name == pool.name for want in wants for served in want.pools):
        return useless
    without = [agent for agent in useless if not pool.spec.labels <= situation.labels_of(agent)]
    return least_missed(situation, without)[: max(0, len(pool.ready) - floor_here(situation, pool))] if without else []


def least_kept(situation: Situation, pool: PoolView) -> int:
    """Count the agents that stay in any case: needed now or by a forecast, and the pool's minimum."""
    due = situation.forecasts(pool.controller).get(pool.name, NOTHING)
    soon = situation.window_of(pool).peaks[-1][1] + ceil((due.executors - due.stages) / pool.executors)
    return max(floor_here(situation, pool), soon)


def why_it_stays(situation: Situation, agent: Agent, *, for_room: bool = False) -> str | None:
    """Say why an idle agent stays, whatever its pool needs; None: nothing keeps it.

    ``for_room``: jobs need its room under a limit. Then agents go that are tried for longer for jobs which others refused.
    """
    record, now, pool = agent.record, situation.now, situation.pools.get(agent.key)
    if now < record.keep_until:
        return f"a person wants it kept for another {duration(record.keep_until - now)}"
    if pool is not None and pool.on_hold:
        return pool.paused_detail
    if situation.protected(agent):
        return "a build may be bound to it: a queue item waits for it by name, or it was busy before a restart"
    free_node = situation.memory.controller(record.controller).free_nodes.get(record.node or "")
    builds = agent.node.builds if agent.node else ()
    is_tried = free_node and not for_room and situation.distrust[record.controller].is_tried(record.node or "", builds)
    if is_tried or (free_node and is_on_trial(free_node, situation.distrust[record.controller])):
        return "jobs wait that it did not take so far: some agents take none for minutes after they connected"
    reserved = devices_reserved(situation, record.machine) if agent.pool.share is Share.COOPERATIVE else ()
    return told_people(reserved, record.node) if reserved else None


def free_to_go(situation: Situation, agents: Iterable[Agent], *, for_room: bool = False) -> list[Agent]:
    """Leave out the agents that something keeps."""
    return [agent for agent in agents if why_it_stays(situation, agent, for_room=for_room) is None]


def least_missed(situation: Situation, agents: list[Agent]) -> list[Agent]:
    """Order agents by how little is lost with them: outdated first, idle longest, then the least remaining work."""

    def loss(agent: Agent) -> tuple[bool, float, float, str]:
        instance_id = agent.record.instance_id
        wanted = why_replaced(situation, agent) is None
        if agent.idle:
            return wanted, 0.0, situation.past(agent).idle_since or situation.now, instance_id
        return wanted, 1.0, sum(agent_remaining_seconds(situation, agent)), instance_id

    return sorted(agents, key=loss)


def floor_here(situation: Situation, pool: PoolView) -> int:
    """Return the pool's minimum, less the agents that other controllers have of it."""
    if not pool.spec.min_agents:
        return 0
    elsewhere = sum(
        agent.phase is Phase.READY
        for agent in situation.agents
        if agent.pool.name == pool.name and agent.record.controller != pool.controller
    )
    return max(0, pool.spec.min_agents - elsewhere)


# Agents that take no more builds, whatever the demand: they have had as many as their operator allows, or their capacity ends.


def used_up(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Cordon what may have no further build, at once, for good and without a pace: builds must not share it. Those that run go on."""
    taken = leaving(decided, controller)
    for pool in situation.pools_of(controller).values():
        capacity = pool.spec.capacity
        closed = _why_closed(capacity, situation.now) if capacity and situation.now >= pool.closes_at else ""
        for agent in pool.ready if closed or pool.spec.max_builds is not None else ():
            if agent.record.node in taken or situation.protected(agent):
                continue
            if builds_left(situation, agent) == 0:
                detail = f"it has had {counted(pool.spec.max_builds or 0, 'build')}, and no more are wanted on one agent"
                yield cordon(situation, agent, MarkClass.USED_UP, Reason.MAX_BUILDS, detail)
            elif closed:
                yield cordon(situation, agent, MarkClass.USED_UP, Reason.CAPACITY_ENDS, closed)


def _why_closed(capacity: CapacityReservation, now: float) -> str:
    """Say when a reservation or a block ends: its agents take no new builds in time, so that EC2 ends none with them."""
    if now >= capacity.leaves_at:
        return f"{capacity.id} is over"
    ends = f"EC2 ends the machines of {capacity.id}" if capacity.block else f"{capacity.id} ends"
    return f"{ends} in {duration(capacity.leaves_at - now)}"


# Agents whose pool left the fleet file, or does not serve their controller any more: drained like any surplus.
#
# If more than half of the fleet's agents lose their pool at once, the file is probably wrong: nothing is drained for an hour.


_IN_USE = (Phase.READY, Phase.MARKED)


def drain_left(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Terminate | Held]:
    """Cordon the agents of a controller that have no pool any more, and let go of those that are stopped. Reserved ones stay."""
    taken = leaving(decided, controller)
    for agent in situation.agents:
        if agent.record.controller != controller or not agent.pool.has_left or agent.instance_ended or agent.record.node in taken:
            continue
        if agent.phase is Phase.STOPPED and agent.instance is InstanceState.STOPPED:
            yield from _unless_held(situation, agent, terminate(agent, Reason.POOL_LEFT, why_left(situation, agent)))
        elif agent.phase in _IN_USE and not situation.protected(agent):
            yield from _unless_held(
                situation, agent, cordon(situation, agent, MarkClass.RETIRE, Reason.POOL_LEFT, why_left(situation, agent))
            )


def _unless_held(situation: Situation, agent: Agent, step: Cordon | Terminate) -> Iterator[Cordon | Terminate | Held]:
    """Take a step unless a person wants the agent kept, or nothing done in its pool, or most agents lost their pool at once."""
    name = agent.record.node or agent.record.instance_id
    holds = situation.overrides.holds_of_people_on(agent.record.controller, agent.pool.name)
    if is_on_hold(situation, agent):
        yield hold_back(agent, Reason.MOST_POOLS_LEFT, f"{name}: {told_hold(situation)}")
    elif holds:
        yield hold_back(agent, Reason.HELD, f"{name} has no pool any more; {text_of(holds, situation.now)}")
    elif situation.now < agent.record.keep_until:
        yield hold_back(agent, Reason.HELD, f"{name} has no pool any more; a person wants it kept until {moment(agent.record.keep_until)}")
    else:
        yield step


def why_in_doubt(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say that an agent without a pool stays while most of the fleet's agents lost theirs at once."""
    if not is_on_hold(situation, agent) or agent.instance_ended or agent.record.state.is_given_up:
        return None
    return Reason.MOST_POOLS_LEFT, f"{agent.record.node or agent.record.instance_id}: {told_hold(situation)}"


def why_left(situation: Situation, agent: Agent) -> str:
    """Say why an agent has no pool any more."""
    pool = agent.pool.name
    if pool in situation.fleet.pools:
        return f"pool {pool} does not serve {agent.record.controller} any more (controllers)"
    return f"pool {pool} left the fleet file"


def told_hold(situation: Situation) -> str:
    """Say until when nothing without a pool is drained, and why."""
    until = moment(situation.memory.fleet.hold_until)
    return f"more than half of the agents lost their pool at once, so nothing of it is drained before {until}"


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
    window, kept_seconds = situation.memory.needs(pool.controller, pool.name).window, pool.keep.seconds_in_all(1)
    watched_seconds = situation.now - window.opened_at if window else 0.0
    if watched_seconds < kept_seconds and most_stopped(situation.memory, pool.name, situation.now) >= count_stopped(pool):
        watched, kept = durations_apart(watched_seconds, kept_seconds)
        yield hold_back(left[0], Reason.WINDOW_OPEN, f"{counted(extra, 'stopped agent')} too many, seen for {watched} of {kept}")
        return
    for agent in left[:extra]:
        yield terminate(agent, *_why_extra(situation, pool, agent))


def _why_extra(situation: Situation, pool: PoolView, agent: Agent) -> tuple[Reason, str]:
    if trial := closed(situation.memory, TrialOf.START.scope(pool.name)):
        return Reason.START_FAILED, f"more starts failed than worked, so that few are kept stopped: {trial.why}"
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
    if (refusals := refusals_of(situation.memory, agent)) and refusals.failures >= MACHINE_REFUSALS:
        return Reason.START_FAILED, f"EC2 refused {refusals.failures} times to start it: {refusals.why}"
    if stopped_seconds > warm.max_age_seconds:
        lasted, most = durations_apart(stopped_seconds, warm.max_age_seconds)
        return Reason.WARM_POOL_AGE, f"stopped for {lasted}, at most {most} are wanted"
    if done := why_disk_is_done(situation, agent, warm):
        return done
    # While a new template version is tried out, the old ones are what can be relied on.
    return None if is_canary(situation, pool.name) else why_outdated(situation, agent)
