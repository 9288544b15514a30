"""The decision: snapshot and settings in, plan out. Lambda, the simulator and the tests all call these two functions.

An agent is launched by `scale_up`: for the queue where waiting would cost more than the agent, for an item that no
executor can ever take, for what is foreseen, for a pool's minimum and its warm executors, or at a person's wish; where
it is needed now and would be kept, since it is needed again so soon; and beside those for the queue a few more, where
it pays that nobody waits for the slowest boot; never beyond a limit.

An agent is given up by `scale_down` in three steps, none of which a build can be killed by:
1. *cordon* what was not needed at any time inside the break-even window, and what stands idle in the way of jobs that wait;
   builds on it go on, demand brings it back;
2. *look again*: it carries our mark, is idle, was idle in an earlier look, and no queue item waits for that very node;
3. *terminate* then, after `control` has read that one node once more.
Once the month's money is spent, all agents are cordoned and go this way, until the month ends or its limit is raised.
Where a controller was not read completely, restarted lately or is about to shut down, none of the three happens.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from autoscaler.domain import giveup, looks, month_limit, notices, retire, walks
from autoscaler.domain.agents import Agent, Phase
from autoscaler.domain.bound import bring_back_bound, drain_again, let_resume, uncordon
from autoscaler.domain.breakers import failed_boots
from autoscaler.domain.failing import at_a_pace
from autoscaler.domain.foresight import NOTHING
from autoscaler.domain.giveway import give_way
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.memory import Memory
from autoscaler.domain.model import Fleet, beacon_spec
from autoscaler.domain.notices import Notice
from autoscaler.domain.orders import MANUAL_PREFIX, DrainNodes, DrainSome, LaunchSome, Purge, Resume
from autoscaler.domain.outdated import outdated
from autoscaler.domain.plan import Adopt, CancelItem, Cordon, CreateBeacon, Held, Plan, Step
from autoscaler.domain.quarantine import quarantine
from autoscaler.domain.reasons import Reason
from autoscaler.domain.remembering import remember, remember_request
from autoscaler.domain.room import Room
from autoscaler.domain.situation import Situation, assess
from autoscaler.domain.snapshot import QueueItem, Snapshot
from autoscaler.domain.standing import Hold, Scope, asks_for

Decided = Iterable[Step | Held]
_UNDONE_BY_A_PERSON = {MarkClass.OPERATOR, MarkClass.QUARANTINE}


def scale_up(snapshot: Snapshot, fleet: Fleet) -> Plan:
    """Decide what to bring back and what to launch. What it sees of the world, `scale_down` sees too, and remembers."""
    situation = assess(snapshot, fleet)
    room = Room(situation)
    decided: list[Step | Held] = []
    for controller in walks.controllers_in_turn(situation):
        decided += keep_beacon(situation, controller)
        decided += bring_back_bound(situation, controller)
        decided += launch_for_queue(situation, controller, room)
    decided = list(at_a_pace(situation.memory, decided, situation.now))
    return replace(plan_of(situation, decided, situation.memory), remember=False)


def scale_down(snapshot: Snapshot, fleet: Fleet) -> Plan:
    """Decide what to cordon, what to give up, and what to repair."""
    situation = assess(snapshot, fleet)
    seen = looks.next_looks(situation.memory.looks, giveup.what_is_seen(situation), situation.now, snapshot.invocation)
    foreseen = {controller: situation.foreseen(controller) for controller in snapshot.controllers}
    watched = {key: pool for name in snapshot.controllers for key, pool in retire.watch(situation, name, foreseen[name]).items()}
    windows = {**situation.memory.windows, **{key: pool.window for key, pool in watched.items()}}
    returns = {**situation.memory.returns, **{key: pool.returns for key, pool in watched.items() if pool.returns}}
    growths = {**situation.memory.growths, **{key: pool.growths for key, pool in watched.items() if pool.growths}}
    memory = replace(situation.memory, looks=seen, windows=windows, returns=returns, growths=growths)
    decided: list[Step | Held] = []
    idle: list[Agent] = []
    for controller in snapshot.controllers:
        decided += bring_back_bound(situation, controller)
        decided += let_resume(situation, controller)
        if reason := situation.no_giving_up(controller):
            problem = snapshot.controllers[controller].problem or situation.disagreement or "nothing is given up meanwhile"
            decided.append(Held(pool="", controller=controller, reason=reason, detail=problem))
            continue
        pools = {} if situation.stopped else situation.pools_of(controller)
        for name, pool in pools.items():
            due = foreseen[controller].get(name, NOTHING)
            decided += retire.surplus(situation, pool, windows, due)
            idle += retire.idle_beyond_need(situation, pool, windows, due)
        decided += drain_again(situation, controller, _cordons(decided))
        decided += quarantine(situation, controller, _cordons(decided))
        decided += outdated(situation, controller, _cordons(decided))
        decided += month_limit.stop_for_month_limit(situation, controller, _cordons(decided)) if situation.stopped else ()
    decided += give_way(situation, idle, _cordons(decided))
    decided += giveup.relabels(situation)
    decided += left_the_fleet_file(situation)
    decided += giveup.drained(situation, seen)
    decided += giveup.repairs(situation, seen)
    decided += giveup.unfinished(situation, seen)
    decided = list(at_a_pace(memory, thawed(situation, decided), situation.now))
    failures = failed_boots(memory, snapshot.records, situation.versions, decided)
    return replace(plan_of(situation, decided, remember(memory, situation, decided, failures)), boot_failures=failures)


def launch_some(snapshot: Snapshot, fleet: Fleet, order: LaunchSome) -> Plan:
    """Decide a person's launch: within the limits, and once per request id."""
    situation = assess(snapshot, fleet)
    pool = situation.fleet.pools[order.pool]
    controller = order.controller or pool.controllers[0]
    intent_id = f"{MANUAL_PREFIX}{order.request_id}" if order.request_id else None
    if intent_id in {intent.id for intent in snapshot.intents}:
        held = Held(pool=pool.name, controller=controller, reason=Reason.ALREADY_DONE, detail=f"request {order.request_id}")
        return plan_of(situation, [held], situation.memory)
    walk = walks.begin_walk(situation, controller, Room(situation))
    view = situation.pools[controller, pool.name]
    planned = walk.order(view, order.count, order.reason)
    decided: list[Step | Held] = [*walk.steps(keep_until=situation.now + order.keep_seconds, intent_id=intent_id)]
    decided += walk.held.values()
    if planned < order.count:
        detail = f"{planned} of {order.count} asked for"
        decided.append(Held(pool=pool.name, controller=controller, reason=Reason.FEWER_THAN_ASKED, detail=detail))
    return plan_of(situation, decided, situation.memory)


def drain_for_a_person(snapshot: Snapshot, fleet: Fleet, order: DrainSome | DrainNodes) -> Plan:
    """Decide a person's drain: cordons that demand does not undo; the schedule gives the agents up when they are idle."""
    situation = assess(snapshot, fleet)
    if order.request_id in situation.memory.requests:
        held = Held(pool="", reason=Reason.ALREADY_DONE, detail=f"request {order.request_id}")
        return plan_of(situation, [held], situation.memory)
    decided: list[Step | Held] = []
    for agent in _to_drain(situation, order, decided):
        controller = agent.record.controller
        if reason := situation.no_giving_up(controller):
            decided.append(Held(pool=agent.pool.name, controller=controller, reason=reason, detail=str(agent.record.node)))
        else:
            decided.append(retire.cordon(situation, agent, MarkClass.OPERATOR, Reason.MANUAL, order.reason))
    return plan_of(situation, decided, remember_request(situation, order.request_id))


def bring_back_for_a_person(snapshot: Snapshot, fleet: Fleet, order: Resume) -> Plan:
    """Decide what of the cordons of people and quarantine is undone: what EC2 takes away, and what is outdated, stays cordoned."""
    situation = assess(snapshot, fleet)
    back = [
        uncordon(agent, Reason.MANUAL, order.reason)
        for agent in situation.agents
        if agent.phase is Phase.DRAINING and agent.mark and agent.mark.kind in _UNDONE_BY_A_PERSON
        if _is_meant(order, agent) and not agent.instance_ended
    ]
    detail = "is no agent of this fleet that a person or quarantine took out of use"
    unknown = sorted({*order.nodes} - {step.node for step in back})
    missed = [Held(pool="", reason=Reason.NOT_FOUND, detail=f"{name} {detail}") for name in unknown]
    return replace(plan_of(situation, [*back, *missed], situation.memory), remember=False)


def purge_for_a_person(snapshot: Snapshot, fleet: Fleet, order: Purge) -> Plan:
    """Decide which queue items are cancelled: those that ask for the label; never what waits for a node by its name."""
    situation = assess(snapshot, fleet)
    decided: list[Step | Held] = []
    for view in snapshot.controllers.values():
        if order.controller not in {None, view.name}:
            continue
        if not view.complete:
            decided.append(Held(pool="", controller=view.name, reason=Reason.INCOMPLETE, detail=view.problem or ""))
            continue
        nodes = {node.name for node in view.nodes}
        for item in view.items:
            label = item.asked_label
            if label not in nodes and asks_for(label, order.label):
                detail = f"{item.job} asks for {label}: {order.reason}"
                decided.append(CancelItem(controller=view.name, item=item.id, job=item.job, reason=Reason.MANUAL, detail=detail))
    return replace(plan_of(situation, decided, situation.memory), remember=False)


def _is_meant(order: Resume, agent: Agent) -> bool:
    if order.nodes:
        return agent.record.node in order.nodes
    names = {Scope.FLEET: "", Scope.CONTROLLER: agent.record.controller, Scope.POOL: agent.pool.name}
    return names.get(order.scope) == order.name


def heed(snapshot: Snapshot, fleet: Fleet, notice: Notice) -> Plan:
    """Decide what follows from an announcement of EC2, beyond what the schedule will see by itself."""
    situation = assess(snapshot, fleet)
    return replace(plan_of(situation, notices.heed_notice(situation, notice), situation.memory), remember=False)


def left_the_fleet_file(situation: Situation) -> Iterable[Held]:
    """Name agents whose pool or controller is not in the fleet file any more: their builds go on, and nobody drains them."""
    fleet = situation.fleet
    for record in situation.snapshot.records:
        if record.pool not in fleet.pools or record.controller not in fleet.controllers:
            detail = f"{record.instance_id} is of a pool or controller that left the fleet file: put it back to drain it"
            yield Held(pool=record.pool, controller=record.controller, reason=Reason.NOT_OURS, detail=detail)


def keep_beacon(situation: Situation, controller: str) -> Decided:
    """Put the beacon back where it is missing: without any agent node, the queue names no labels."""
    view = situation.snapshot.controllers[controller]
    spec = beacon_spec(situation.fleet)
    if view.complete and spec.name not in {node.name for node in view.nodes}:
        yield CreateBeacon(controller=controller, spec=spec, reason=Reason.BEACON, detail=spec.name)


def launch_for_queue(situation: Situation, controller: str, room: Room) -> Decided:
    """Walk over the queue: bring back what retires, launch where waiting would cost more."""
    view = situation.snapshot.controllers[controller]
    if not view.complete:
        yield Held(pool="", controller=controller, reason=Reason.INCOMPLETE, detail=view.problem or "")
        return
    demand = situation.demands[controller]
    yield from _held_by_label(situation, controller)
    yield from _held_unclear(situation, controller)
    for unmet in demand.unmet:
        yield Held(pool="", controller=controller, reason=unmet.reason, detail=f"{unmet.item.job}: {unmet.detail}")
    if view.quieting_down:
        yield Held(pool="", controller=controller, reason=Reason.QUIETING_DOWN, detail="the controller takes no new builds")
        return
    foreseen, floors = situation.foreseen(controller), [pool for pool in situation.pools_of(controller).values() if pool.has_floor]
    if not (demand.wants or foreseen or floors):
        return
    walk = walks.walk_the_queue(situation, controller, room)
    walk.foresee(foreseen)
    for pool in floors:
        walk.keep_floor(pool)
    walk.keep_up()
    walk.hedge()
    yield from walk.uncordons
    yield from walks.bring_back_again(situation, controller)
    yield from walk.steps()
    yield from walk.held.values()


def expected_starts(situation: Situation, controller: str) -> dict[int, tuple[str, float]]:
    """Of each ripe item that waits: whose executor it would take, a new agent's included, and in how many seconds."""
    if not situation.snapshot.controllers[controller].complete:
        return {}
    return walks.walk_the_queue(situation, controller, Room(situation)).starts


def _held_unclear(situation: Situation, controller: str) -> Iterable[Held]:
    """Name what waits too long for something unknown, a line for each wording and label."""
    alike: dict[tuple[str, str | None], list[QueueItem]] = {}
    for item in (one.item for one in situation.demands[controller].unclear):
        alike.setdefault((item.wait.unclear, item.asked_label), []).append(item)
    for (words, label), items in alike.items():
        first = max(items, key=lambda item: item.waiting_seconds)
        longest = f"{first.job} for {first.waiting_seconds / 60:.0f} min"
        detail = f"{len(items)} item{'s' * (len(items) > 1)} for {label or 'a label not told'}, {longest}: {words}"
        yield Held(pool="", controller=controller, reason=Reason.UNCLEAR, detail=detail)


def _held_by_label(situation: Situation, controller: str) -> Iterable[Held]:
    """Count the items that an operator holds by their label, a line for each hold."""
    held = Counter(hold for _, hold in situation.demands[controller].held)
    for hold, count in held.items():
        yield Held(pool="", controller=controller, reason=Reason.HELD, detail=f"{count} items: {hold.text(situation.now)}")


def thawed(situation: Situation, decided: Decided) -> list[Step | Held]:
    """Take out every step where an operator wants nothing done at all. To note what is there touches nothing, and the limits need it."""
    left: list[Step | Held] = []
    frozen: dict[tuple[str, str], Hold] = {}
    for step in decided:
        pool = getattr(step, "pool", "")
        hold = None if isinstance(step, Held | Adopt) else situation.standing.hold_on(step.controller, pool)
        if hold is None or not hold.freeze:
            left.append(step)
        else:
            frozen[step.controller, pool] = hold
    for (controller, pool), hold in frozen.items():
        left.append(Held(pool=pool, controller=controller, reason=Reason.FROZEN, detail=hold.text(situation.now)))
    return left


def _to_drain(situation: Situation, order: DrainSome | DrainNodes, decided: list[Step | Held]) -> list[Agent]:
    ready = [agent for agent in situation.agents if agent.phase is Phase.READY]
    if isinstance(order, DrainNodes):
        by_name = {agent.node.name: agent for agent in ready if agent.node}
        for name in order.nodes:
            if name not in by_name:
                detail = f"{name} is no agent of this fleet that takes builds now"
                decided.append(Held(pool="", reason=Reason.NOT_FOUND, detail=detail))
        return [by_name[name] for name in order.nodes if name in by_name]
    mine = [a for a in ready if a.pool.name == order.pool and order.controller in {None, a.record.controller}]
    loose = [agent for agent in mine if not situation.protected(agent)]
    if len(loose) < order.count:
        detail = f"{len(loose)} of {order.count} asked for"
        decided.append(Held(pool=order.pool, reason=Reason.FEWER_THAN_ASKED, detail=detail))
    return retire.least_missed(situation, loose)[: order.count]


def _cordons(decided: Decided) -> list[Cordon]:
    return [step for step in decided if isinstance(step, Cordon)]


def plan_of(situation: Situation, decided: Decided, memory: Memory) -> Plan:
    decided = thawed(situation, decided)
    return Plan(
        pass_id=situation.snapshot.pass_id,
        taken_at=situation.now,
        steps=tuple(step for step in decided if not isinstance(step, Held)),
        held=tuple(step for step in decided if isinstance(step, Held)),
        memory=memory,
        remember=True,
    )
